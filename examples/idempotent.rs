//! A message that comes three times, and a deposit that is made once.
//!
//! `cargo run -p acemq-examples --example idempotent`, on the embedded broker unless `ACEMQ_URL` names another. The claims,
//! and the accounts, are in an SQLite database in a temporary file.

use std::time::Duration;

use acemq::{
    App, Context, Drained, consumer,
    idempotency::sql::{SqlStore, Tx},
};
use serde::{Deserialize, Serialize};
use sqlx::{
    AssertSqlSafe, Sqlite,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions},
};

#[derive(Serialize, Deserialize)]
struct Deposit {
    account: String,
    cents: i64,
}

/// The deposit and the note that the message is handled are committed together, after this returns.
#[consumer(queue = "example.deposits", declare = quorum, retry = fixed(5, "200ms"), concurrency = 4, idempotent(in_progress_delay = "200ms"))]
async fn deposit(deposit: Deposit, mut tx: Tx<Sqlite>, context: Context) -> Result<(), sqlx::Error> {
    println!("    attempt {}: {} cents for {}", context.attempt(), deposit.cents, deposit.account);
    sqlx::query("UPDATE accounts SET cents = cents + ? WHERE name = ?")
        .bind(deposit.cents)
        .bind(&deposit.account)
        .execute(&mut *tx)
        .await?;
    if context.attempt() == 1 {
        println!("    something goes wrong after the deposit: it is taken back, and tried again");
        return Err(sqlx::Error::WorkerCrashed);
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<Drained, Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().with_max_level(tracing_subscriber::filter::LevelFilter::ERROR).init();
    let folder = std::env::temp_dir().join(format!("acemq-example-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let drained = run(&folder.join("accounts.db")).await;
    std::fs::remove_dir_all(&folder)?;
    drained
}

async fn run(file: &std::path::Path) -> Result<Drained, Box<dyn std::error::Error>> {
    let options = SqliteConnectOptions::new().filename(file).create_if_missing(true);
    let options = options.journal_mode(SqliteJournalMode::Wal);
    let pool = SqlitePoolOptions::new().connect_with(options).await?;
    let store = SqlStore::sqlite(pool.clone());
    // Whoever looks after the database does this once.
    sqlx::raw_sql(AssertSqlSafe(store.create_table_sql())).execute(&pool).await?;
    sqlx::query("CREATE TABLE accounts (name text PRIMARY KEY, cents integer NOT NULL)").execute(&pool).await?;
    sqlx::query("INSERT INTO accounts VALUES ('Ada', 0)").execute(&pool).await?;

    let url = std::env::var("ACEMQ_URL").unwrap_or_else(|_| "memory://idempotent".to_owned());
    let running = App::new().url(url).consumer::<deposit>().idempotency(store).start().await?;
    // Another run of the example is another deposit.
    let id = format!("deposit-{}", std::process::id());
    let before = running.totals();
    for time in 1..=3 {
        println!("published, copy {time}");
        let message = Deposit { account: "Ada".to_owned(), cents: 500 };
        running.publisher().to_queue("example.deposits").id(&*id).send(&message).await?;
    }
    loop {
        let now = running.totals();
        if now.acked + now.duplicate - before.acked - before.duplicate == 3 {
            println!(
                "handled {} time, recognised {} times",
                now.acked - before.acked,
                now.duplicate - before.duplicate
            );
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let cents: i64 = sqlx::query_scalar("SELECT cents FROM accounts WHERE name = 'Ada'").fetch_one(&pool).await?;
    println!("Ada has {cents} cents");
    let drained = running.close().await;
    pool.close().await;
    Ok(drained)
}
