mod inspect;
mod texts;

use std::{collections::HashMap, sync::Arc, time::Duration};

use sea_query::SqliteQueryBuilder;
use serde_json::{Value, json};
use sqlx::{
    AssertSqlSafe, Row as _, Sqlite, SqliteConnection, SqlitePool, Transaction,
    query::Query,
    sqlite::{SqliteArguments, SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions},
};

use self::texts::Texts;
use super::{
    SqlStore,
    backend::{Backend, Extensions},
    error::Failure,
    op::{Group, Item, Kind, Verdict},
    shape::Shape,
    statements::probes,
    store::Inner,
    table::Table,
};

type Text = Arc<str>;

/// The statements of a table.
#[derive(Debug)]
pub struct Sql {
    claim: Texts<Text>,
    found: Texts<Text>,
    confirm: Texts<Text>,
    renew: Texts<Text>,
    release: Texts<Text>,
    purge: Text,
}

impl SqlStore<Sqlite> {
    /// Claims over a pool that the application uses as well.
    ///
    /// SQLite has one writer at a time; the others wait for it as long as their `busy_timeout` says. In WAL mode readers
    /// do not wait.
    #[must_use]
    pub fn sqlite(pool: SqlitePool) -> Self {
        Self::shared(pool)
    }

    /// Claims over a connection of their own, which is opened when it is needed, in WAL mode.
    #[must_use]
    pub fn connect_sqlite(options: SqliteConnectOptions) -> Self {
        let options = options.journal_mode(SqliteJournalMode::Wal).busy_timeout(Duration::from_secs(2));
        let pool = SqlitePoolOptions::new().max_connections(1);
        Self::own(pool.connect_lazy_with(options))
    }
}

impl Backend for Sqlite {
    type Sql = Sql;

    const JOINT: bool = true;
    const AT_ONCE: usize = 1;

    fn sql(table: &Table, _: Extensions) -> Sql {
        Sql {
            claim: texts::claim(table).shared(),
            found: texts::found(table).shared(),
            confirm: texts::confirm(table).shared(),
            renew: texts::renew(table).shared(),
            release: texts::release(table).shared(),
            purge: texts::purge(table).into(),
        }
    }

    fn create_table(table: &Table) -> String {
        texts::create_table(table)
    }

    async fn carry(store: &Inner<Self>, groups: &[Group<'_>]) -> Result<Vec<Verdict>, Failure> {
        carry(store, groups).await.map_err(|error| judge(&error))
    }

    async fn look(store: &Inner<Self>, items: &[Item<'_>]) -> Result<Vec<Verdict>, Failure> {
        let held = async {
            let mut connection = store.settings.pool.acquire().await?;
            held(&store.sql, &mut connection, items, "CLAIMED").await
        };
        held.await.map_err(|error| judge(&error))
    }

    async fn confirm_in(
        sql: &Sql,
        connection: &mut SqliteConnection,
        item: Item<'_>,
        millis: i64,
    ) -> Result<Verdict, Failure> {
        let done = query(&sql.confirm.one)
            .bind(item.key)
            .bind(item.token)
            .bind(millis)
            .execute(connection)
            .await
            .map_err(|error| judge(&error))?;
        Ok(Verdict::mine(done.rows_affected() == 1))
    }

    async fn begin(pool: &SqlitePool) -> Result<Transaction<'static, Self>, sqlx::Error> {
        // One that becomes a writer only later is refused without any waiting if another wrote meanwhile.
        pool.begin_with("BEGIN IMMEDIATE").await
    }

    fn judge(error: &sqlx::Error) -> Failure {
        judge(error)
    }

    async fn purge(store: &Inner<Self>, most: usize) -> Result<usize, Failure> {
        let done = query(&store.sql.purge)
            .bind(i64::try_from(most).unwrap_or(i64::MAX))
            .execute(&store.settings.pool)
            .await
            .map_err(|error| judge(&error))?;
        Ok(usize::try_from(done.rows_affected()).unwrap_or(most))
    }

    async fn inspect(store: &Inner<Self>) -> Result<Shape, Failure> {
        inspect::inspect(store).await
    }

    async fn probe(store: &Inner<Self>) -> Result<(), Failure> {
        for text in probes(&store.settings.table, &SqliteQueryBuilder) {
            sqlx::query(AssertSqlSafe(text)).execute(&store.settings.pool).await.map_err(|error| judge(&error))?;
        }
        Ok(())
    }
}

fn query(text: &Text) -> Query<'static, Sqlite, SqliteArguments> {
    sqlx::query(AssertSqlSafe(Arc::clone(text)))
}

async fn carry(store: &Inner<Sqlite>, groups: &[Group<'_>]) -> Result<Vec<Verdict>, sqlx::Error> {
    if let [group] = groups
        && group.items.len() == 1
    {
        let mut connection = store.settings.pool.acquire().await?;
        return run(&store.sql, &mut connection, group).await;
    }
    let mut transaction = Sqlite::begin(&store.settings.pool).await?;
    let mut verdicts = Vec::new();
    for group in groups {
        verdicts.extend(run(&store.sql, &mut transaction, group).await?);
    }
    transaction.commit().await?;
    Ok(verdicts)
}

async fn run(sql: &Sql, connection: &mut SqliteConnection, group: &Group<'_>) -> Result<Vec<Verdict>, sqlx::Error> {
    let (texts, length, mine) = match group.kind {
        Kind::Claim => (&sql.claim, true, "CLAIMED"),
        Kind::Confirm => (&sql.confirm, true, "CONFIRMED"),
        Kind::Renew => (&sql.renew, true, "CLAIMED"),
        Kind::Release => (&sql.release, false, "CLAIMED"),
    };
    let mut statement = bound(texts, &group.items);
    if length {
        statement = statement.bind(group.millis);
    }
    // Once they are deleted, nobody can tell which of them were there.
    let before = match (group.kind, &*group.items) {
        (Kind::Release, [_, _, ..]) => Some(held(sql, connection, &group.items, mine).await?),
        _ => None,
    };
    // A row that comes back costs a hand-over between two threads, so none is asked for.
    let changed = statement.execute(&mut *connection).await?.rows_affected();
    let all = u64::try_from(group.items.len()).unwrap_or(u64::MAX);
    match before {
        Some(verdicts) => Ok(verdicts),
        None if changed == all => Ok(vec![Verdict::Mine; group.items.len()]),
        None if changed == 0 && group.kind != Kind::Claim => Ok(vec![Verdict::Other; group.items.len()]),
        None => held(sql, connection, &group.items, mine).await,
    }
}

/// Reads whose the keys are; those of the tokens are in the state `mine`.
async fn held(
    sql: &Sql,
    connection: &mut SqliteConnection,
    items: &[Item<'_>],
    mine: &str,
) -> Result<Vec<Verdict>, sqlx::Error> {
    let found = match items {
        [item] => query(&sql.found.one).bind(item.key),
        items => query(&sql.found.many).bind(array(items)),
    };
    let rows = found.fetch_all(connection).await?;
    let mut entries = HashMap::<&str, (&str, &str)>::with_capacity(rows.len());
    for row in &rows {
        entries.insert(row.try_get(0)?, (row.try_get(1)?, row.try_get(2)?));
    }
    let verdict = |item: &Item<'_>| match entries.get(item.key) {
        Some((holder, state)) if *holder == item.token && *state == mine => Verdict::Mine,
        Some((_, "CONFIRMED")) => Verdict::Confirmed,
        _ => Verdict::Other,
    };
    Ok(items.iter().map(verdict).collect())
}

fn bound(texts: &Texts<Text>, items: &[Item<'_>]) -> Query<'static, Sqlite, SqliteArguments> {
    match items {
        [item] => query(&texts.one).bind(item.key).bind(item.token),
        items => query(&texts.many).bind(array(items)),
    }
}

fn array(items: &[Item<'_>]) -> String {
    let pairs: Value = (items.iter()).map(|item| json!([item.key, item.token])).collect();
    pairs.to_string()
}

fn judge(error: &sqlx::Error) -> Failure {
    Failure::judge(error, |answer| {
        let why = answer.message().to_owned();
        // The low byte is the kind of error, the rest its variety.
        let code = answer.code().and_then(|code| code.parse::<u32>().ok());
        match code.map(|code| code & 0xff) {
            // Busy, locked.
            Some(5 | 6) => Failure::Retry(why),
            Some(1) if why.contains("no such table") => Failure::NoTable,
            // A bad statement, no permission, a damaged file, a constraint, a type, no database.
            Some(1 | 3 | 11 | 19 | 20 | 23 | 26) => Failure::Setup(why),
            Some(8) => Failure::read_only(&why),
            _ => Failure::Unreachable(why),
        }
    })
}
