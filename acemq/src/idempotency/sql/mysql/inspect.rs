use std::time::Duration;

use sqlx::{MySql, MySqlConnection, Row as _, mysql::MySqlRow};

use super::{
    super::{
        error::Failure,
        shape::{Column, Index, Shape, Sort},
        store::{Inner, TIMEOUT},
    },
    judge,
};

// Servers disagree on the types of these columns, so each is cast.

const TABLE: &str = "SELECT CAST(coalesce(e.transactions, 'NO') AS CHAR) \
     FROM information_schema.tables AS t LEFT JOIN information_schema.engines AS e ON e.engine = t.engine \
     WHERE t.table_schema = coalesce(?, DATABASE()) AND t.table_name = ?";

const COLUMNS: &str = "SELECT CAST(column_name AS CHAR), CAST(column_type AS CHAR), CAST(data_type AS CHAR), \
     CAST(coalesce(character_maximum_length, 0) AS UNSIGNED), CAST(coalesce(collation_name, '') AS CHAR), \
     CAST(is_nullable = 'NO' AND column_default IS NULL AND extra NOT LIKE '%auto_increment%' \
     AND extra NOT LIKE '%generated%' AS SIGNED) \
     FROM information_schema.columns WHERE table_schema = coalesce(?, DATABASE()) AND table_name = ?";

/// An index over the first characters of a column does not tell whole keys apart, so it goes by another name.
const INDEXES: &str = "SELECT CAST(index_name AS CHAR), CAST(non_unique = 0 AS SIGNED), \
     CAST(concat(column_name, if(sub_part IS NULL, '', concat('(', sub_part, ')'))) AS CHAR) \
     FROM information_schema.statistics WHERE table_schema = coalesce(?, DATABASE()) AND table_name = ? \
     ORDER BY index_name, seq_in_index";

const SETTINGS: &str = "SHOW VARIABLES WHERE Variable_name IN \
     ('tx_isolation', 'transaction_isolation', 'innodb_lock_wait_timeout')";

pub(super) async fn inspect(store: &Inner<MySql>) -> Result<Shape, Failure> {
    match look(store).await {
        Ok(Some(shape)) => Ok(shape),
        Ok(None) => Err(Failure::NoTable),
        Err(error) => Err(judge(&error)),
    }
}

async fn look(store: &Inner<MySql>) -> Result<Option<Shape>, sqlx::Error> {
    let mut connection = store.settings.pool.acquire().await?;
    let mut shape = Shape::default();
    let tables = rows(store, &mut connection, TABLE).await?;
    let Some(table) = tables.first() else {
        return Ok(None);
    };
    if table.try_get::<&str, _>(0)? != "YES" {
        let complaint = "its engine has no transactions; InnoDB has";
        shape.complaints.push(complaint.to_owned());
    }
    for row in &rows(store, &mut connection, COLUMNS).await? {
        shape.columns.push(column(row)?);
    }
    let mut last = None;
    for row in &rows(store, &mut connection, INDEXES).await? {
        let name: String = row.try_get(0)?;
        let column = row.try_get(2)?;
        match shape.indexes.last_mut() {
            Some(index) if last.as_ref() == Some(&name) => index.columns.push(column),
            _ => shape.indexes.push(Index { columns: vec![column], unique: row.try_get::<i64, _>(1)? == 1 }),
        }
        last = Some(name);
    }
    let limits = store.sql.texts(&mut connection).await.is_ok_and(|texts| texts.abilities.limits);
    let settings = sqlx::query(SETTINGS).fetch_all(&mut *connection).await?;
    for row in &settings {
        let (name, value): (&str, &str) = (row.try_get(0)?, row.try_get(1)?);
        if name == "innodb_lock_wait_timeout" {
            let waits = value.parse().map_or(Duration::MAX, Duration::from_secs);
            // A locked entry costs the wait twice, once with others and once by itself, and there may be several. Less than a
            // second cannot be had.
            let much = (store.settings.timeout.min(TIMEOUT) / 4).max(Duration::from_secs(1));
            if !limits && waits > much {
                tracing::warn!(
                    table = store.settings.table.display(),
                    innodb_lock_wait_timeout = value,
                    "the claim store's sessions wait long for an entry that a handler's transaction holds, and claims of \
                     other messages with them: set the variable to 1 for the pool's sessions, or use connect_mysql"
                );
            }
        } else if value == "SERIALIZABLE" {
            shape.complaints.push(
                "its connections use the isolation level SERIALIZABLE, where claims fail each other; \
                 give the store a pool with READ COMMITTED, or one of its own"
                    .to_owned(),
            );
        }
    }
    Ok(Some(shape))
}

async fn rows(
    store: &Inner<MySql>,
    connection: &mut MySqlConnection,
    text: &'static str,
) -> Result<Vec<MySqlRow>, sqlx::Error> {
    sqlx::query(text).bind(store.settings.table.schema()).bind(store.settings.table.name()).fetch_all(connection).await
}

fn column(row: &MySqlRow) -> Result<Column, sqlx::Error> {
    let room: u64 = row.try_get(3)?;
    let collation: &str = row.try_get(4)?;
    let sort = match row.try_get(2)? {
        // Other character sets have no room for some keys, or put a question mark in their place.
        "varchar" | "char" if collation.starts_with("utf8mb4") && collation.ends_with("_bin") => Sort::Exact { room },
        "varchar" | "char" => Sort::Loose { room },
        "bigint" => Sort::Integer,
        _ => Sort::Other,
    };
    let declared: &str = row.try_get(1)?;
    Ok(Column {
        name: row.try_get(0)?,
        declared: format!("{declared} {collation}").trim_end().to_owned(),
        sort,
        required: row.try_get::<i64, _>(5)? == 1,
    })
}
