use std::collections::HashMap;

use sqlx::{Row as _, Sqlite, sqlite::SqliteRow};

use super::{
    super::{
        error::Failure,
        shape::{Column, Index, Shape, Sort},
        store::Inner,
        table::KEY,
    },
    judge,
};

const COLUMNS: &str = "SELECT name, type, \"notnull\" AND dflt_value IS NULL AND hidden = 0 \
     FROM pragma_table_xinfo(?1, ?2)";

/// The columns of whole indexes, with the way in which each compares text.
const INDEXES: &str = "SELECT l.name, l.\"unique\", coalesce(x.name, ''), x.coll \
     FROM pragma_index_list(?1, ?2) AS l JOIN pragma_index_xinfo(l.name, ?2) AS x \
     WHERE x.key AND NOT l.partial ORDER BY l.name, x.seqno";

/// The first version whose clock has milliseconds.
const OLDEST: [u32; 2] = [3, 42];

pub(super) async fn inspect(store: &Inner<Sqlite>) -> Result<Shape, Failure> {
    match look(store).await {
        Ok(shape) if shape.columns.is_empty() => Err(Failure::NoTable),
        Ok(shape) => Ok(shape),
        Err(error) => Err(judge(&error)),
    }
}

async fn look(store: &Inner<Sqlite>) -> Result<Shape, sqlx::Error> {
    let mut connection = store.settings.pool.acquire().await?;
    let name = store.settings.table.name();
    let schema = store.settings.table.schema().unwrap_or("main");
    let mut shape = Shape::default();
    let indexes = sqlx::query(INDEXES).bind(name).bind(schema).fetch_all(&mut *connection).await?;
    let mut comparisons = HashMap::new();
    let mut last = None;
    for row in &indexes {
        let index: String = row.try_get(0)?;
        let unique: bool = row.try_get(1)?;
        let column: String = row.try_get(2)?;
        if unique {
            comparisons.insert(column.clone(), row.try_get::<String, _>(3)?);
        }
        match shape.indexes.last_mut() {
            Some(known) if last.as_ref() == Some(&index) => known.columns.push(column),
            _ => shape.indexes.push(Index { columns: vec![column], unique }),
        }
        last = Some(index);
    }
    let exact = comparisons.get(KEY).is_none_or(|how| how == "BINARY");
    let columns = sqlx::query(COLUMNS).bind(name).bind(schema).fetch_all(&mut *connection).await?;
    for row in &columns {
        shape.columns.push(column(row, exact)?);
    }
    let version: String = sqlx::query_scalar("SELECT sqlite_version()").fetch_one(&mut *connection).await?;
    let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
    if [numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)] < OLDEST {
        shape.complaints.push(format!("SQLite {version} has no clock with milliseconds; 3.42 has"));
    }
    Ok(shape)
}

fn column(row: &SqliteRow, exact: bool) -> Result<Column, sqlx::Error> {
    let name: String = row.try_get(0)?;
    let declared: String = row.try_get(1)?;
    // The rules by which SQLite reads a declared type; lengths in it mean nothing.
    let upper = declared.to_uppercase();
    let is = |words: &[&str]| words.iter().any(|word| upper.contains(word));
    let room = u64::MAX;
    let sort = if is(&["INT"]) {
        Sort::Integer
    } else if is(&["CHAR", "CLOB", "TEXT"]) && (exact || name != KEY) {
        Sort::Exact { room }
    } else if is(&["CHAR", "CLOB", "TEXT"]) {
        Sort::Loose { room }
    } else {
        Sort::Other
    };
    Ok(Column { name, declared, sort, required: row.try_get(2)? })
}
