mod inspect;
mod plan;
mod texts;

use std::{collections::HashSet, sync::Arc, time::Instant};

use sea_query::PostgresQueryBuilder;
use sqlx::{
    AssertSqlSafe, PgConnection, PgPool, Postgres, Row as _,
    postgres::{PgArguments, PgConnectOptions, PgPoolOptions, PgRow},
    query::Query,
};

use self::plan::Planned;
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

/// The statements of a table.
#[derive(Debug)]
pub struct Sql {
    fresh: Planned,
    fresh_one: Planned,
    found: Planned,
    claim: Planned,
    confirm: Planned,
    confirm_one: Planned,
    renew: Planned,
    release: Planned,
    claimed: Planned,
    purge: Arc<str>,
}

impl SqlStore<Postgres> {
    /// Claims over a pool that the application uses as well.
    ///
    /// Its connections need the isolation level READ COMMITTED, PostgreSQL's default.
    #[must_use]
    pub fn postgres(pool: PgPool) -> Self {
        Self::shared(pool)
    }

    /// Claims over a pool of their own, which opens connections when they are needed: eight at most.
    ///
    /// Handlers that hold all of the application's connections then cannot hold up a renewal, and the server itself ends
    /// what takes too long.
    #[must_use]
    pub fn connect_postgres(options: PgConnectOptions) -> Self {
        let options = options.options([
            ("default_transaction_isolation", "read committed"),
            ("lock_timeout", "1s"),
            ("statement_timeout", "5s"),
            // Entries are found by their key, whatever the table's size was when the statement was planned.
            ("enable_seqscan", "off"),
            ("enable_hashjoin", "off"),
            ("enable_mergejoin", "off"),
        ]);
        let pool = PgPoolOptions::new().max_connections(8);
        Self::own(pool.connect_lazy_with(options))
    }
}

impl Backend for Postgres {
    type Sql = Sql;

    const JOINT: bool = false;
    const AT_ONCE: usize = 2;

    fn sql(table: &Table, _: Extensions) -> Sql {
        Sql {
            fresh: Planned::new(texts::fresh(table)),
            fresh_one: Planned::new(texts::fresh_one(table)),
            found: Planned::new(texts::found(table)),
            claim: Planned::new(texts::claim(table)),
            confirm: Planned::new(texts::confirm(table)),
            confirm_one: Planned::new(texts::confirm_one(table)),
            renew: Planned::new(texts::renew(table)),
            release: Planned::new(texts::release(table)),
            claimed: Planned::new(texts::claimed_ones(table)),
            purge: texts::purge(table).into(),
        }
    }

    fn create_table(table: &Table) -> String {
        texts::create_table(table)
    }

    async fn carry(store: &Inner<Self>, groups: &[Group<'_>]) -> Result<Vec<Verdict>, Failure> {
        let mut connection = store.settings.pool.acquire().await.map_err(|e| judge(&e))?;
        let mut verdicts = Vec::new();
        for group in groups {
            verdicts.extend(run(&store.sql, &mut connection, group).await?);
        }
        Ok(verdicts)
    }

    async fn look(store: &Inner<Self>, items: &[Item<'_>]) -> Result<Vec<Verdict>, Failure> {
        let mut connection = store.settings.pool.acquire().await.map_err(|e| judge(&e))?;
        let rows = many(&store.sql.claimed, &mut connection, items, None).await?;
        Ok(verdicts(items, &pairs(&rows)?))
    }

    async fn confirm_in(
        sql: &Sql,
        connection: &mut PgConnection,
        item: Item<'_>,
        millis: i64,
    ) -> Result<Verdict, Failure> {
        let done = query(&sql.confirm_one.text())
            .bind(item.key)
            .bind(item.token)
            .bind(millis)
            .execute(connection)
            .await
            .map_err(|error| judge(&error))?;
        Ok(Verdict::mine(done.rows_affected() == 1))
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
        for text in probes(&store.settings.table, &PostgresQueryBuilder) {
            sqlx::query(AssertSqlSafe(text)).execute(&store.settings.pool).await.map_err(|error| judge(&error))?;
        }
        Ok(())
    }
}

fn query(text: &Arc<str>) -> Statement {
    sqlx::query(AssertSqlSafe(Arc::clone(text)))
}

async fn run(sql: &Sql, connection: &mut PgConnection, group: &Group<'_>) -> Result<Vec<Verdict>, Failure> {
    let (items, length) = (&*group.items, Some(group.millis));
    let rows = match (group.kind, items) {
        (Kind::Claim, _) => return claim(sql, connection, items, group.millis).await,
        (Kind::Confirm, [item]) => one(&sql.confirm_one, connection, item, group.millis).await?,
        (Kind::Confirm, _) => many(&sql.confirm, connection, items, length).await?,
        (Kind::Renew, _) => many(&sql.renew, connection, items, length).await?,
        (Kind::Release, _) => many(&sql.release, connection, items, None).await?,
    };
    if group.kind == Kind::Renew {
        for row in &rows {
            if row.try_get(2).map_err(|error| judge(&error))? {
                return Err(Failure::Locked(
                    "a lease that has ended was not renewed, as its entry is locked".to_owned(),
                ));
            }
        }
    }
    Ok(verdicts(items, &pairs(&rows)?))
}

fn verdicts(items: &[Item<'_>], mine: &HashSet<(&str, &str)>) -> Vec<Verdict> {
    items.iter().map(|item| Verdict::mine(mine.contains(&(item.key, item.token)))).collect()
}

async fn claim(
    sql: &Sql,
    connection: &mut PgConnection,
    items: &[Item<'_>],
    lease: i64,
) -> Result<Vec<Verdict>, Failure> {
    let rows = match items {
        [item] => one(&sql.fresh_one, connection, item, lease).await?,
        items => many(&sql.fresh, connection, items, Some(lease)).await?,
    };
    let mut won = pairs(&rows)?;
    if won.len() == items.len() {
        return Ok(vec![Verdict::Mine; items.len()]);
    }
    let is_left = |item: &&Item<'_>| !won.contains(&(item.key, item.token));
    let left: Vec<_> = items.iter().filter(is_left).copied().collect();
    let rows = many(&sql.found, connection, &left, None).await?;
    let found = pairs(&rows)?;
    let free: Vec<_> = left.into_iter().filter(|item| found.contains(&(item.key, "FREE"))).collect();
    let rows = if free.is_empty() { Vec::new() } else { many(&sql.claim, connection, &free, Some(lease)).await? };
    won.extend(pairs(&rows)?);
    let verdict = |item: &Item<'_>| match Verdict::mine(won.contains(&(item.key, item.token))) {
        Verdict::Other if found.contains(&(item.key, "CONFIRMED")) => Verdict::Confirmed,
        verdict => verdict,
    };
    Ok(items.iter().map(verdict).collect())
}

/// Runs a statement for one entry.
async fn one(
    planned: &Planned,
    connection: &mut PgConnection,
    item: &Item<'_>,
    length: i64,
) -> Result<Vec<PgRow>, Failure> {
    fetch(planned, connection, |query| query.bind(item.key).bind(item.token).bind(length)).await
}

/// Runs a statement for any number of entries.
async fn many(
    planned: &Planned,
    connection: &mut PgConnection,
    items: &[Item<'_>],
    length: Option<i64>,
) -> Result<Vec<PgRow>, Failure> {
    let keys: Vec<&str> = items.iter().map(|item| item.key).collect();
    let tokens: Vec<&str> = items.iter().map(|item| item.token).collect();
    fetch(planned, connection, |query| {
        let query = query.bind(&keys).bind(&tokens);
        match length {
            Some(length) => query.bind(length),
            None => query,
        }
    })
    .await
}

type Statement = Query<'static, Postgres, PgArguments>;

async fn fetch(
    planned: &Planned,
    connection: &mut PgConnection,
    bind: impl FnOnce(Statement) -> Statement,
) -> Result<Vec<PgRow>, Failure> {
    let start = Instant::now();
    let rows = bind(query(&planned.text())).fetch_all(connection).await.map_err(|error| judge(&error))?;
    planned.took(start.elapsed(), start);
    Ok(rows)
}

fn pairs(rows: &[PgRow]) -> Result<HashSet<(&str, &str)>, Failure> {
    let pairs = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
    pairs.collect::<Result<_, _>>().map_err(|error| judge(&error))
}

fn judge(error: &sqlx::Error) -> Failure {
    Failure::judge(error, |answer| {
        let why = answer.message().to_owned();
        match &*answer.code().unwrap_or_default() {
            "40P01" | "40001" => Failure::Retry(why),
            "55P03" => Failure::Locked(why),
            "42P01" => Failure::NoTable,
            "25006" => Failure::read_only(&why),
            // The server goes down, or somebody has ended the session.
            "57P01" | "57P02" | "57P03" => Failure::Cut(why),
            code => match code.get(..2) {
                Some("08") => Failure::Cut(why),
                Some("22") => Failure::Row(why),
                // Columns, privileges, constraints, names and passwords.
                Some("21" | "23" | "26" | "28" | "3D" | "3F" | "42") => Failure::Setup(why),
                _ => Failure::Unreachable(why),
            },
        }
    })
}
