use sqlx::{Row as _, postgres::PgRow};

use super::{
    super::{
        error::Failure,
        shape::{Column, Index, Shape, Sort},
        store::Inner,
    },
    Postgres, judge,
};

const TABLE: &str = "SELECT CAST(CAST(to_regclass(concat_ws('.', quote_ident($1), quote_ident($2))) AS oid) AS bigint), \
     current_setting('transaction_isolation')";

const COLUMNS: &str = "SELECT CAST(a.attname AS text), format_type(a.atttypid, a.atttypmod), a.atttypmod, \
     a.attnotnull AND NOT a.atthasdef AND a.attidentity = '', coalesce(c.collisdeterministic, true), \
     format_type(a.atttypid, NULL) \
     FROM pg_attribute AS a LEFT JOIN pg_collation AS c ON c.oid = a.attcollation \
     WHERE a.attrelid = CAST($1 AS oid) AND a.attnum > 0 AND NOT a.attisdropped";

/// Those that can decide a conflict or find entries: whole, valid and without expressions.
const INDEXES: &str = "SELECT i.indisunique AND i.indimmediate, ARRAY(\
     SELECT CAST(a.attname AS text) FROM unnest(i.indkey) WITH ORDINALITY AS k (number, place) \
     JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.number \
     WHERE k.place <= i.indnkeyatts ORDER BY k.place) \
     FROM pg_index AS i WHERE i.indrelid = CAST($1 AS oid) \
     AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL";

pub(super) async fn inspect(store: &Inner<Postgres>) -> Result<Shape, Failure> {
    match look(store).await {
        Ok(Some(shape)) => Ok(shape),
        Ok(None) => Err(Failure::NoTable),
        Err(error) => Err(judge(&error)),
    }
}

async fn look(store: &Inner<Postgres>) -> Result<Option<Shape>, sqlx::Error> {
    let mut connection = store.settings.pool.acquire().await?;
    let (schema, name) = (store.settings.table.schema(), store.settings.table.name());
    let row = sqlx::query(TABLE).bind(schema).bind(name).fetch_one(&mut *connection).await?;
    let Some(table) = row.try_get::<Option<i64>, _>(0)? else {
        return Ok(None);
    };
    let mut shape = Shape::default();
    let isolation: &str = row.try_get(1)?;
    if isolation != "read committed" && isolation != "read uncommitted" {
        shape.complaints.push(format!(
            "its connections use the isolation level {isolation}, where claims fail each other; \
             give the store a pool with default_transaction_isolation = 'read committed', or one of its own"
        ));
    }
    let columns = sqlx::query(COLUMNS).bind(table).fetch_all(&mut *connection).await?;
    for row in &columns {
        shape.columns.push(column(row)?);
    }
    let indexes = sqlx::query(INDEXES).bind(table).fetch_all(&mut *connection).await?;
    for row in &indexes {
        shape.indexes.push(Index { unique: row.try_get(0)?, columns: row.try_get(1)? });
    }
    Ok(Some(shape))
}

fn column(row: &PgRow) -> Result<Column, sqlx::Error> {
    let modifier: i32 = row.try_get(2)?;
    // The modifier of a varchar counts a header of four.
    let room = u64::try_from(modifier.saturating_sub(4)).unwrap_or(u64::MAX);
    let exact: bool = row.try_get(4)?;
    let sort = match row.try_get(5)? {
        "character varying" | "text" if exact => Sort::Exact { room },
        "character varying" | "text" => Sort::Loose { room },
        "bigint" => Sort::Integer,
        _ => Sort::Other,
    };
    Ok(Column { name: row.try_get(0)?, declared: row.try_get(1)?, sort, required: row.try_get(3)? })
}
