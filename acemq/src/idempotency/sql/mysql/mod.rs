mod inspect;
mod server;
mod texts;

use std::{collections::HashSet, sync::Arc};

use sea_query::MysqlQueryBuilder;
use sqlx::{
    AssertSqlSafe, MySql, MySqlConnection, MySqlPool, Row as _,
    mysql::{MySqlArguments, MySqlConnectOptions, MySqlDatabaseError, MySqlPoolOptions, MySqlRow},
    query::Query,
};
use tokio::sync::OnceCell;

use self::server::{Abilities, BySize, Texts};
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

/// The statements of a table, once it is known which server they are for.
#[derive(Debug)]
pub struct Sql {
    table: Table,
    texts: OnceCell<Texts>,
}

impl SqlStore<MySql> {
    /// Claims over a pool that the application uses as well, in MySQL 8 or MariaDB.
    ///
    /// MariaDB ends a statement that waits for a locked entry after a second. MySQL has no such limit for one statement:
    /// there, set `innodb_lock_wait_timeout` for the pool's sessions, or use [`connect_mysql`](Self::connect_mysql).
    #[must_use]
    pub fn mysql(pool: MySqlPool) -> Self {
        Self::shared(pool)
    }

    /// Claims over a pool of their own, which opens connections when they are needed: eight at most.
    ///
    /// Handlers that hold all of the application's connections then cannot hold up a renewal.
    #[must_use]
    pub fn connect_mysql(options: MySqlConnectOptions) -> Self {
        let pool = MySqlPoolOptions::new().max_connections(8).after_connect(|connection, _| {
            Box::pin(async move {
                for setting in [
                    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
                    "SET SESSION innodb_lock_wait_timeout = 1",
                ] {
                    sqlx::query(setting).execute(&mut *connection).await?;
                }
                Ok(())
            })
        });
        Self::own(pool.connect_lazy_with(options))
    }
}

impl SqlStore<MySql> {
    /// Uses only what MySQL and MariaDB share, whatever version the server gives; for a proxy that gives another's.
    ///
    /// A claim then takes two statements.
    #[must_use]
    pub fn without_extensions(self) -> Self {
        self.with(|settings| settings.extensions = Extensions::Avoided)
    }
}

impl Backend for MySql {
    type Sql = Sql;

    const JOINT: bool = false;
    const AT_ONCE: usize = 2;

    fn sql(table: &Table, extensions: Extensions) -> Sql {
        let known = (extensions == Extensions::Avoided).then(|| Texts::new(table, Abilities::NONE));
        Sql { table: table.clone(), texts: OnceCell::new_with(known) }
    }

    fn create_table(table: &Table) -> String {
        texts::create_table(table)
    }

    async fn carry(store: &Inner<Self>, groups: &[Group<'_>]) -> Result<Vec<Verdict>, Failure> {
        let mut connection = acquire(store).await?;
        let texts = store.sql.texts(&mut connection).await?;
        let mut verdicts = Vec::new();
        for group in groups {
            verdicts.extend(match group.kind {
                Kind::Claim => claim(texts, &mut connection, group).await?,
                Kind::Release => release(texts, &mut connection, group).await?,
                Kind::Confirm => update(texts, &texts.confirm, &mut connection, group, "CONFIRMED").await?,
                Kind::Renew => renew(texts, &mut connection, group).await?,
            });
        }
        Ok(verdicts)
    }

    async fn look(store: &Inner<Self>, items: &[Item<'_>]) -> Result<Vec<Verdict>, Failure> {
        let mut connection = acquire(store).await?;
        let texts = store.sql.texts(&mut connection).await?;
        held(texts, &mut connection, items, "CLAIMED").await
    }

    async fn confirm_in(
        sql: &Sql,
        connection: &mut MySqlConnection,
        item: Item<'_>,
        millis: i64,
    ) -> Result<Verdict, Failure> {
        let text = texts::confirm(&sql.table, 1);
        let done = sqlx::query(AssertSqlSafe(text))
            .bind(millis)
            .bind(item.key)
            .bind(item.token)
            .execute(connection)
            .await
            .map_err(|error| judge(&error))?;
        Ok(Verdict::mine(done.rows_affected() == 1))
    }

    fn judge(error: &sqlx::Error) -> Failure {
        judge(error)
    }

    async fn purge(store: &Inner<Self>, most: usize) -> Result<usize, Failure> {
        let mut connection = acquire(store).await?;
        let texts = store.sql.texts(&mut connection).await?;
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        let rows = query(&texts.ended).bind(most).fetch_all(&mut *connection).await;
        let rows = rows.map_err(|error| judge(&error))?;
        let keys: Result<Vec<String>, _> = rows.iter().map(|row| row.try_get(0)).collect();
        let mut keys = keys.map_err(|error| judge(&error))?;
        if keys.is_empty() {
            return Ok(0);
        }
        keys.sort_unstable();
        let (text, size) = texts.purge.text(keys.len());
        let mut statement = query(&text);
        for key in filled(&keys, size) {
            statement = statement.bind(key);
        }
        let done = statement.execute(&mut *connection).await;
        let done = done.map_err(|error| judge(&error))?;
        Ok(usize::try_from(done.rows_affected()).unwrap_or(usize::MAX))
    }

    async fn inspect(store: &Inner<Self>) -> Result<Shape, Failure> {
        inspect::inspect(store).await
    }

    async fn probe(store: &Inner<Self>) -> Result<(), Failure> {
        for text in probes(&store.settings.table, &MysqlQueryBuilder) {
            sqlx::query(AssertSqlSafe(text)).execute(&store.settings.pool).await.map_err(|error| judge(&error))?;
        }
        Ok(())
    }
}

impl Sql {
    /// Asks the server what it is, the first time.
    async fn texts(&self, connection: &mut MySqlConnection) -> Result<&Texts, Failure> {
        let ask = || async {
            let version: String = sqlx::query_scalar("SELECT VERSION()").fetch_one(connection).await?;
            Ok(Texts::new(&self.table, Abilities::of(&version)))
        };
        self.texts.get_or_try_init(ask).await.map_err(|error| judge(&error))
    }
}

type Acquired = sqlx::pool::PoolConnection<MySql>;

async fn acquire(store: &Inner<MySql>) -> Result<Acquired, Failure> {
    store.settings.pool.acquire().await.map_err(|error| judge(&error))
}

fn query(text: &Arc<str>) -> Query<'static, MySql, MySqlArguments> {
    sqlx::query(AssertSqlSafe(Arc::clone(text)))
}

/// The items, and the last of them again until there are `size`.
fn filled<T>(items: &[T], size: usize) -> impl Iterator<Item = &T> {
    let last = items.last().into_iter().cycle();
    items.iter().chain(last).take(size)
}

/// Key, holder and state of entries.
type Entry<'r> = (&'r str, &'r str, &'r str);

fn entry(row: &MySqlRow) -> Result<Entry<'_>, Failure> {
    let read = || Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?));
    read().map_err(|error| judge(&error))
}

async fn claim(texts: &Texts, connection: &mut MySqlConnection, group: &Group<'_>) -> Result<Vec<Verdict>, Failure> {
    let (text, size) = texts.claim.text(group.items.len());
    let mut statement = query(&text);
    for item in filled(&group.items, size) {
        statement = statement.bind(item.key).bind(item.token).bind(group.millis);
    }
    let rows = if texts.abilities.returning {
        statement.fetch_all(connection).await
    } else {
        let done = statement.execute(&mut *connection).await;
        done.map_err(|error| judge(&error))?;
        let (text, size) = texts.found.text(group.items.len());
        let mut statement = query(&text);
        for item in filled(&group.items, size) {
            statement = statement.bind(item.key);
        }
        statement.fetch_all(connection).await
    };
    let rows = rows.map_err(|error| judge(&error))?;
    // Without RETURNING, an entry may have been released since: then somebody else was at it.
    let mut verdicts = vec![Verdict::Other; group.items.len()];
    for row in &rows {
        let (key, holder, state) = entry(row)?;
        let position = group.items.binary_search_by(|item| item.key.cmp(key));
        let slot = position.ok().and_then(|at| {
            let item = group.items.get(at)?;
            Some((item, verdicts.get_mut(at)?))
        });
        let Some((item, verdict)) = slot else {
            return Err(Failure::Setup(
                "a key came back as another one: the collation of message_id does not keep keys apart".to_owned(),
            ));
        };
        *verdict = match state {
            "CONFIRMED" => Verdict::Confirmed,
            _ => Verdict::mine(holder == item.token),
        };
    }
    Ok(verdicts)
}

/// Changes what is held, and reads which ones that were if not all of them.
async fn update(
    texts: &Texts,
    change: &BySize,
    connection: &mut MySqlConnection,
    group: &Group<'_>,
    state: &str,
) -> Result<Vec<Verdict>, Failure> {
    let (text, size) = change.text(group.items.len());
    let mut statement = query(&text).bind(group.millis);
    for item in filled(&group.items, size) {
        statement = statement.bind(item.key).bind(item.token);
    }
    let done = statement.execute(&mut *connection).await;
    let changed = done.map_err(|error| judge(&error))?.rows_affected();
    let all = u64::try_from(group.items.len()).unwrap_or(u64::MAX);
    if changed == all || changed == 0 {
        return Ok(vec![Verdict::mine(changed == all); group.items.len()]);
    }
    held(texts, connection, &group.items, state).await
}

async fn renew(texts: &Texts, connection: &mut MySqlConnection, group: &Group<'_>) -> Result<Vec<Verdict>, Failure> {
    let renewed = update(texts, &texts.renew, connection, group, "CLAIMED").await;
    let ([item], Err(Failure::Locked(why))) = (&*group.items, &renewed) else {
        return renewed;
    };
    // The handler's own transaction is about to confirm it: it is held, if it is still ours. Once the lease has ended, it may
    // also be somebody who takes it over.
    let lasting = query(&texts.lasting).bind(item.key).bind(item.token).fetch_optional(connection).await;
    match lasting.map_err(|error| judge(&error))? {
        Some(row) => Ok(vec![Verdict::mine(entry(&row)?.2 == "CLAIMED")]),
        None => Err(Failure::Unreachable(format!("a lease that has ended was not renewed: {why}"))),
    }
}

async fn release(texts: &Texts, connection: &mut MySqlConnection, group: &Group<'_>) -> Result<Vec<Verdict>, Failure> {
    // Once they are deleted, nobody can tell which of them were there.
    let held = match group.items.len() {
        1 => None,
        _ => Some(held(texts, connection, &group.items, "CLAIMED").await?),
    };
    let (text, size) = texts.release.text(group.items.len());
    let mut statement = query(&text);
    for item in filled(&group.items, size) {
        statement = statement.bind(item.key).bind(item.token);
    }
    let done = statement.execute(&mut *connection).await;
    let deleted = done.map_err(|error| judge(&error))?.rows_affected();
    Ok(held.unwrap_or_else(|| vec![Verdict::mine(deleted == 1)]))
}

async fn held(
    texts: &Texts,
    connection: &mut MySqlConnection,
    items: &[Item<'_>],
    state: &str,
) -> Result<Vec<Verdict>, Failure> {
    let (text, size) = texts.held.text(items.len());
    let mut statement = query(&text);
    for item in filled(items, size) {
        statement = statement.bind(item.key).bind(item.token);
    }
    let rows = statement.fetch_all(connection).await;
    let rows = rows.map_err(|error| judge(&error))?;
    let mut entries = HashSet::with_capacity(rows.len());
    for row in &rows {
        let (key, holder, found) = entry(row)?;
        if found == state {
            entries.insert((key, holder));
        }
    }
    let verdict = |item: &Item<'_>| Verdict::mine(entries.contains(&(item.key, item.token)));
    Ok(items.iter().map(verdict).collect())
}

fn judge(error: &sqlx::Error) -> Failure {
    // It is the default of a MySQL, and sqlx says it only to whoever prints its error.
    if matches!(error, sqlx::Error::Configuration(why) if why.to_string().contains("mysql-rsa")) {
        return Failure::Setup(
            "the server takes the password only over TLS, or encrypted, for which sqlx needs its feature mysql-rsa"
                .to_owned(),
        );
    }
    Failure::judge(error, |answer| {
        let why = answer.message().to_owned();
        let number = answer.try_downcast_ref::<MySqlDatabaseError>().map_or(0, MySqlDatabaseError::number);
        match number {
            // A deadlock; a record that changed since it was read.
            1213 | 1020 => Failure::Retry(why),
            1205 | 3572 => Failure::Locked(why),
            1146 => Failure::NoTable,
            // This transaction only reads; the server does.
            1792 | 1290 | 1836 => Failure::read_only(&why),
            // The server goes down, or somebody has ended the session.
            1053 | 1152 | 1158..=1161 | 1927 | 4031 => Failure::Cut(why),
            // Values that do not fit the columns.
            1264 | 1267 | 1292 | 1300 | 1366 | 1406 | 3988 => Failure::Row(why),
            // Names, passwords, privileges, columns, constraints.
            1044 | 1045 | 1048 | 1049 | 1054 | 1062 | 1064 | 1142 | 1143 | 1227 | 1364 | 1698 => Failure::Setup(why),
            _ => Failure::Unreachable(why),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_password_that_cannot_be_sent_is_told_with_its_remedy() {
        let told = |why: &str| format!("{:?}", judge(&sqlx::Error::Configuration(why.into())));
        // The words of sqlx 0.9.0; there is no other sign of it.
        let sqlx =
            "RSA auth backend disabled; enable feature `mysql-rsa` (or `rsa` if using sqlx-mysql directly) or use TLS.";
        assert!(told(sqlx).contains("over TLS"));
        assert!(!told("a secret").contains("secret"));
    }

    #[tokio::test]
    async fn a_store_without_extensions_stays_so_whatever_is_set_next() {
        let pool = MySqlPool::connect_lazy("mysql://nobody@localhost/nowhere").unwrap();
        let store = SqlStore::mysql(pool.clone()).without_extensions();
        let store = store.table("t").answer_timeout(Duration::from_secs(2)).transactions(pool).pool_to_itself();
        let texts = store.inner().sql.texts.get().unwrap();
        let (claim, _) = texts.claim.text(1);
        assert!(claim.starts_with("INSERT INTO `t` ") && !claim.contains("RETURNING"), "{claim}");
    }
}
