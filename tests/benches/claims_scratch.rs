#![allow(missing_docs, clippy::all, clippy::pedantic, clippy::unwrap_used, clippy::indexing_slicing)]
use acemq::idempotency::{Claim, ClaimStore, Fenced, Token, sql::SqlStore};
use futures_util::future::BoxFuture;
use sqlx::{
    MySql, Pool, Postgres, Sqlite,
    mysql::MySqlPoolOptions,
    postgres::PgPoolOptions,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

trait Pairs: Send + Sync {
    fn claim<'a>(&'a self, key: &'a str, t: &'a Token) -> BoxFuture<'a, bool>;
    fn confirm<'a>(&'a self, key: &'a str, t: &'a Token) -> BoxFuture<'a, bool>;
}
const L: Duration = Duration::from_secs(300);
struct Ours(Arc<dyn ClaimStore>);
impl Pairs for Ours {
    fn claim<'a>(&'a self, k: &'a str, t: &'a Token) -> BoxFuture<'a, bool> {
        Box::pin(async move { self.0.claim(k, t, L).await.unwrap() == Claim::Claimed })
    }
    fn confirm<'a>(&'a self, k: &'a str, t: &'a Token) -> BoxFuture<'a, bool> {
        Box::pin(async move { self.0.confirm(k, t, L).await.unwrap() == Fenced::Held })
    }
}
const PNOW: &str = "CAST(floor(extract(epoch from statement_timestamp())*1000) AS bigint)";
const MNOW: &str = "(TIMESTAMPDIFF(MICROSECOND,'1970-01-01',UTC_TIMESTAMP(3)) DIV 1000)";
const SNOW: &str = "CAST(round(unixepoch('now','subsec')*1000) AS INTEGER)";
struct Pg(Pool<Postgres>, String, String);
struct My(Pool<MySql>, String, String);
struct Li(Pool<Sqlite>, String, String);
macro_rules! naive {
    ($t:ty) => {
        impl Pairs for $t {
            fn claim<'a>(&'a self, k: &'a str, t: &'a Token) -> BoxFuture<'a, bool> {
                Box::pin(async move {
                    sqlx::query(sqlx::AssertSqlSafe(self.1.clone()))
                        .bind(k)
                        .bind(t.as_str())
                        .bind(300_000_i64)
                        .fetch_all(&self.0)
                        .await
                        .unwrap()
                        .len()
                        == 1
                })
            }
            fn confirm<'a>(&'a self, k: &'a str, t: &'a Token) -> BoxFuture<'a, bool> {
                Box::pin(async move {
                    sqlx::query(sqlx::AssertSqlSafe(self.2.clone()))
                        .bind(300_000_i64)
                        .bind(k)
                        .bind(t.as_str())
                        .execute(&self.0)
                        .await
                        .unwrap()
                        .rows_affected()
                        == 1
                })
            }
        }
    };
}
naive!(Pg);
naive!(My);
naive!(Li);

struct Out {
    pps: f64,
    p50: f64,
    p99: f64,
}
async fn run(p: &Arc<dyn Pairs>, conc: usize, dur: Duration) -> Out {
    let stop = Arc::new(AtomicBool::new(false));
    let t0 = Instant::now();
    let hs: Vec<_> = (0..conc)
        .map(|_| {
            let (p, stop) = (p.clone(), stop.clone());
            tokio::spawn(async move {
                let mut lat = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let k = format!("orders:{}", Token::random().as_str());
                    let t = Token::random();
                    let s = Instant::now();
                    assert!(p.claim(&k, &t).await);
                    lat.push(s.elapsed().as_secs_f64() * 1e3);
                    assert!(p.confirm(&k, &t).await);
                }
                lat
            })
        })
        .collect();
    tokio::time::sleep(dur).await;
    stop.store(true, Ordering::Relaxed);
    let mut lat = Vec::new();
    for h in hs {
        lat.extend(h.await.unwrap());
    }
    let el = t0.elapsed().as_secs_f64();
    lat.sort_by(f64::total_cmp);
    Out { pps: lat.len() as f64 / el, p50: lat[lat.len() / 2], p99: lat[lat.len() * 99 / 100] }
}
fn med(v: &mut Vec<f64>) -> (f64, f64, f64) {
    v.sort_by(f64::total_cmp);
    (v[v.len() / 2], v[0], v[v.len() - 1])
}

#[tokio::main]
async fn main() {
    let which = std::env::var("DB").unwrap_or("pg,my,li".into());
    let reps: usize = std::env::var("REPS").map_or(3, |s| s.parse().unwrap());
    let concs: Vec<usize> =
        std::env::var("CONC").unwrap_or("1,8,64,256".into()).split(',').map(|s| s.parse().unwrap()).collect();
    let dur = Duration::from_millis(std::env::var("MS").map_or(1500, |s| s.parse().unwrap()));
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    for db in which.split(',') {
        let (naive, ours, clear): (Arc<dyn Pairs>, Arc<dyn Pairs>, Box<dyn Fn() -> BoxFuture<'static, ()>>) = match db {
            "pg" => {
                let pool = PgPoolOptions::new()
                    .max_connections(10)
                    .connect("postgres://postgres@127.0.0.1:54731/acemq")
                    .await
                    .unwrap();
                let st = SqlStore::postgres(pool.clone());
                sqlx::raw_sql("drop table if exists acemq_idempotency").execute(&pool).await.unwrap();
                sqlx::raw_sql(sqlx::AssertSqlSafe(st.create_table_sql())).execute(&pool).await.unwrap();
                let n = Pg(
                    pool.clone(),
                    format!(
                        "INSERT INTO acemq_idempotency AS t (message_id,state,claimed_by,recorded_at,expires_at) VALUES ($1,'CLAIMED',$2,{PNOW},{PNOW}+$3) ON CONFLICT (message_id) DO UPDATE SET claimed_by=excluded.claimed_by, recorded_at=excluded.recorded_at, expires_at=excluded.expires_at WHERE t.state='CLAIMED' AND t.expires_at<=excluded.recorded_at RETURNING message_id"
                    ),
                    format!(
                        "UPDATE acemq_idempotency SET state='CONFIRMED', expires_at={PNOW}+$1 WHERE message_id=$2 AND claimed_by=$3"
                    ),
                );
                let own = std::env::var("OWN").is_ok();
                let st = if own {
                    SqlStore::connect_postgres("postgres://postgres@127.0.0.1:54731/acemq".parse().unwrap())
                } else {
                    st
                };
                let p2 = pool.clone();
                (
                    Arc::new(n),
                    Arc::new(Ours(Arc::new(st))),
                    Box::new(move || {
                        let p = p2.clone();
                        Box::pin(async move {
                            sqlx::raw_sql("truncate acemq_idempotency").execute(&p).await.unwrap();
                        })
                    }),
                )
            }
            "my" => {
                let pool = MySqlPoolOptions::new()
                    .max_connections(10)
                    .connect("mysql://acemq:secret@127.0.0.1:33731/acemq")
                    .await
                    .unwrap();
                let st = SqlStore::mysql(pool.clone());
                sqlx::raw_sql("drop table if exists acemq_idempotency").execute(&pool).await.unwrap();
                sqlx::raw_sql(sqlx::AssertSqlSafe(st.create_table_sql())).execute(&pool).await.unwrap();
                let n = My(
                    pool.clone(),
                    format!(
                        "INSERT INTO acemq_idempotency (message_id,state,claimed_by,recorded_at,expires_at) VALUES (?,'CLAIMED',?,{MNOW},{MNOW}+?) ON DUPLICATE KEY UPDATE claimed_by=IF(state='CLAIMED' AND expires_at<=VALUES(recorded_at),VALUES(claimed_by),claimed_by), recorded_at=IF(state='CLAIMED' AND expires_at<=VALUES(recorded_at),VALUES(recorded_at),recorded_at), expires_at=IF(state='CLAIMED' AND expires_at<=VALUES(recorded_at),VALUES(expires_at),expires_at) RETURNING message_id, claimed_by, state"
                    ),
                    format!(
                        "UPDATE acemq_idempotency SET state='CONFIRMED', expires_at={MNOW}+? WHERE message_id=? AND claimed_by=?"
                    ),
                );
                let p2 = pool.clone();
                (
                    Arc::new(n),
                    Arc::new(Ours(Arc::new(st))),
                    Box::new(move || {
                        let p = p2.clone();
                        Box::pin(async move {
                            sqlx::raw_sql("truncate acemq_idempotency").execute(&p).await.unwrap();
                        })
                    }),
                )
            }
            _ => {
                let pool = SqlitePoolOptions::new()
                    .max_connections(1)
                    .connect_with(
                        SqliteConnectOptions::new()
                            .filename(dir.path().join("a"))
                            .create_if_missing(true)
                            .journal_mode(sqlx::sqlite::SqliteJournalMode::Wal),
                    )
                    .await
                    .unwrap();
                let st = SqlStore::sqlite(pool.clone());
                sqlx::raw_sql(sqlx::AssertSqlSafe(st.create_table_sql())).execute(&pool).await.unwrap();
                let n = Li(
                    pool.clone(),
                    format!(
                        "INSERT INTO acemq_idempotency (message_id,state,claimed_by,recorded_at,expires_at) VALUES (?1,'CLAIMED',?2,{SNOW},{SNOW}+?3) ON CONFLICT (message_id) DO UPDATE SET claimed_by=excluded.claimed_by, recorded_at=excluded.recorded_at, expires_at=excluded.expires_at WHERE state='CLAIMED' AND expires_at<=excluded.recorded_at RETURNING message_id"
                    ),
                    format!(
                        "UPDATE acemq_idempotency SET state='CONFIRMED', expires_at={SNOW}+?1 WHERE message_id=?2 AND claimed_by=?3"
                    ),
                );
                let p2 = pool.clone();
                (
                    Arc::new(n),
                    Arc::new(Ours(Arc::new(st))),
                    Box::new(move || {
                        let p = p2.clone();
                        Box::pin(async move {
                            sqlx::raw_sql("delete from acemq_idempotency").execute(&p).await.unwrap();
                        })
                    }),
                )
            }
        };
        if std::env::var("LONE").is_ok() {
            clear().await;
            let (mut a, mut b, mut c, mut d) = (vec![], vec![], vec![], vec![]);
            for i in 0..3000 {
                for k in 0..2 {
                    let p = if (i + k) % 2 == 0 { &naive } else { &ours };
                    let key = format!("orders:{}", Token::random().as_str());
                    let t = Token::random();
                    let s = Instant::now();
                    assert!(p.claim(&key, &t).await);
                    let x = s.elapsed().as_secs_f64() * 1e6;
                    let s = Instant::now();
                    assert!(p.confirm(&key, &t).await);
                    let y = s.elapsed().as_secs_f64() * 1e6;
                    if (i + k) % 2 == 0 {
                        a.push(x);
                        c.push(y)
                    } else {
                        b.push(x);
                        d.push(y)
                    }
                }
            }
            for v in [&mut a, &mut b, &mut c, &mut d] {
                v.sort_by(f64::total_cmp);
            }
            let q = |v: &Vec<f64>, f: f64| v[(v.len() as f64 * f) as usize];
            for f in [0.1, 0.25, 0.5] {
                println!(
                    "{db} lone q{f}: claim naive {:.0} ours {:.0} us = {:.3}; confirm naive {:.0} ours {:.0} = {:.3}",
                    q(&a, f),
                    q(&b, f),
                    q(&b, f) / q(&a, f),
                    q(&c, f),
                    q(&d, f),
                    q(&d, f) / q(&c, f)
                );
            }
        }
        for &conc in &concs {
            if conc == 0 {
                continue;
            }
            let (mut rn, mut ro, mut ratio, mut l, mut p50r) = (vec![], vec![], vec![], vec![], vec![]);
            for r in 0..reps {
                let mut one = |p: &Arc<dyn Pairs>| {
                    let p = p.clone();
                    let c = clear();
                    async move {
                        c.await;
                        run(&p, conc, dur).await
                    }
                };
                let (a, b) = if r % 2 == 0 {
                    let a = one(&naive).await;
                    (a, one(&ours).await)
                } else {
                    let b = one(&ours).await;
                    (one(&naive).await, b)
                };
                ratio.push(b.pps / a.pps);
                p50r.push(b.p50 / a.p50);
                l.push((a.p50, a.p99, b.p50, b.p99));
                rn.push(a.pps);
                ro.push(b.pps);
            }
            let (m, lo, hi) = med(&mut ratio);
            let (p, plo, phi) = med(&mut p50r);
            println!(
                "{db} conc {conc:>3}: naive {:>7.0} ours {:>7.0} pairs/s  ratio {m:.2} [{lo:.2}..{hi:.2}]  p50 ratio {p:.2} [{plo:.2}..{phi:.2}]  (p50/p99 naive {:.2}/{:.1} ours {:.2}/{:.1})",
                med(&mut rn).0,
                med(&mut ro).0,
                l[0].0,
                l[0].1,
                l[0].2,
                l[0].3
            );
        }
    }
}
