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
    backend::Backend,
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
    claim: Planned,
    claim_one: Arc<str>,
    found: Arc<str>,
    confirm: Planned,
    confirm_one: Arc<str>,
    renew: Planned,
    release: Planned,
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

    fn sql(table: &Table) -> Sql {
        Sql {
            claim: Planned::new(texts::claim(table)),
            claim_one: texts::claim_one(table).into(),
            found: texts::found(table).into(),
            confirm: Planned::new(texts::confirm(table)),
            confirm_one: texts::confirm_one(table).into(),
            renew: Planned::new(texts::renew(table)),
            release: Planned::new(texts::release(table)),
            purge: texts::purge(table).into(),
        }
    }

    fn create_table(table: &Table) -> String {
        texts::create_table(table)
    }

    async fn carry(store: &Inner<Self>, groups: &[Group<'_>]) -> Result<Vec<Verdict>, Failure> {
        let mut connection = store.pool.acquire().await.map_err(|e| judge(&e))?;
        let mut verdicts = Vec::new();
        for group in groups {
            let done = run(&store.sql, &mut connection, group).await;
            verdicts.extend(done.map_err(|error| judge(&error))?);
        }
        Ok(verdicts)
    }

    async fn confirm_in(
        sql: &Sql,
        connection: &mut PgConnection,
        item: Item<'_>,
        millis: i64,
    ) -> Result<Verdict, Failure> {
        let done = query(&sql.confirm_one)
            .bind(item.key)
            .bind(item.token)
            .bind(millis)
            .execute(connection)
            .await
            .map_err(|error| judge(&error))?;
        Ok(Verdict::mine(done.rows_affected() == 1))
    }

    async fn purge(store: &Inner<Self>, most: usize) -> Result<usize, Failure> {
        let done = query(&store.sql.purge)
            .bind(i64::try_from(most).unwrap_or(i64::MAX))
            .execute(&store.pool)
            .await
            .map_err(|error| judge(&error))?;
        Ok(usize::try_from(done.rows_affected()).unwrap_or(most))
    }

    async fn inspect(store: &Inner<Self>) -> Result<Shape, Failure> {
        inspect::inspect(store).await
    }

    async fn probe(store: &Inner<Self>) -> Result<(), Failure> {
        for text in probes(&store.table, &PostgresQueryBuilder) {
            sqlx::query(AssertSqlSafe(text)).execute(&store.pool).await.map_err(|error| judge(&error))?;
        }
        Ok(())
    }
}

fn query(text: &Arc<str>) -> Query<'static, Postgres, PgArguments> {
    sqlx::query(AssertSqlSafe(Arc::clone(text)))
}

async fn run(sql: &Sql, connection: &mut PgConnection, group: &Group<'_>) -> Result<Vec<Verdict>, sqlx::Error> {
    let rows = changed(sql, connection, group).await?;
    let changed = pairs(&rows)?;
    let mut verdicts: Vec<_> =
        (group.items.iter()).map(|item| Verdict::mine(changed.contains(&(item.key, item.token)))).collect();
    if group.kind == Kind::Claim && changed.len() < verdicts.len() {
        let keys: Vec<&str> = group.items.iter().map(|item| item.key).collect();
        let rows = query(&sql.found).bind(&keys).fetch_all(connection).await?;
        let found = pairs(&rows)?;
        for (item, verdict) in group.items.iter().zip(&mut verdicts) {
            if *verdict == Verdict::Other && found.contains(&(item.key, "CONFIRMED")) {
                *verdict = Verdict::Confirmed;
            }
        }
    }
    Ok(verdicts)
}

/// Key and holder of the entries that the group has changed.
async fn changed(sql: &Sql, connection: &mut PgConnection, group: &Group<'_>) -> Result<Vec<PgRow>, sqlx::Error> {
    if let [item] = &*group.items {
        let text = match group.kind {
            Kind::Claim => Some(&sql.claim_one),
            Kind::Confirm => Some(&sql.confirm_one),
            Kind::Renew | Kind::Release => None,
        };
        if let Some(text) = text {
            let statement = query(text).bind(item.key).bind(item.token);
            return statement.bind(group.millis).fetch_all(connection).await;
        }
    }
    let (planned, length) = match group.kind {
        Kind::Claim => (&sql.claim, true),
        Kind::Confirm => (&sql.confirm, true),
        Kind::Renew => (&sql.renew, true),
        Kind::Release => (&sql.release, false),
    };
    let keys: Vec<&str> = group.items.iter().map(|item| item.key).collect();
    let tokens: Vec<&str> = group.items.iter().map(|item| item.token).collect();
    let mut statement = query(&planned.text()).bind(&keys).bind(&tokens);
    if length {
        statement = statement.bind(group.millis);
    }
    let start = Instant::now();
    let rows = statement.fetch_all(connection).await?;
    planned.took(start.elapsed(), start);
    Ok(rows)
}

fn pairs(rows: &[PgRow]) -> Result<HashSet<(&str, &str)>, sqlx::Error> {
    let mut pairs = HashSet::with_capacity(rows.len());
    for row in rows {
        pairs.insert((row.try_get(0)?, row.try_get(1)?));
    }
    Ok(pairs)
}

fn judge(error: &sqlx::Error) -> Failure {
    Failure::judge(error, |answer| {
        let why = answer.message().to_owned();
        match &*answer.code().unwrap_or_default() {
            "40P01" | "40001" => Failure::Retry(why),
            "55P03" => Failure::Locked(why),
            "42P01" => Failure::NoTable,
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
