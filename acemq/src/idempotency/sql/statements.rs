//! Statements that differ in little more than the clock.

use sea_query::{DeleteStatement, Expr, ExprTrait as _, Order, Query, QueryBuilder, SelectStatement, UpdateStatement};

use super::table::{COLUMNS, ENDS, HOLDER, KEY, STATE, Table, claimed, confirmed};

/// How a dialect writes the time, in milliseconds since 1970, and its parameters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words {
    pub(super) now: &'static str,
    pub(super) key: &'static str,
    pub(super) token: &'static str,
    pub(super) length: &'static str,
}

impl Words {
    pub(super) fn now(self) -> Expr {
        Expr::cust(self.now)
    }

    /// When what starts now and has the given length ends.
    pub(super) fn end(self) -> Expr {
        Expr::cust(format!("{} + {}", self.now, self.length))
    }

    /// Whether the time of an entry has ended.
    pub(super) fn ended(self) -> Expr {
        Expr::col(ENDS).lte(self.now())
    }
}

/// Makes the held entries that `which` selects confirmed.
///
/// It does not ask for the state, so that a confirmation whose answer was lost can be repeated.
pub(super) fn confirm(table: &Table, words: Words, which: Expr) -> UpdateStatement {
    let mut update = Query::update();
    update.table(table.reference()).value(STATE, confirmed()).value(ENDS, words.end()).and_where(which);
    update
}

pub(super) fn renew(table: &Table, words: Words, which: Expr) -> UpdateStatement {
    let mut update = Query::update();
    update.table(table.reference()).value(ENDS, words.end()).and_where(which).and_where(is_claimed());
    update
}

pub(super) fn release(table: &Table, which: Expr) -> DeleteStatement {
    let mut delete = Query::delete();
    delete.from_table(table.reference()).and_where(which).and_where(is_claimed());
    delete
}

/// The one entry that is named by key and token.
pub(super) fn one(words: Words) -> Expr {
    Expr::col(KEY).eq(Expr::cust(words.key)).and(Expr::col(HOLDER).eq(Expr::cust(words.token)))
}

/// The keys of entries whose time has ended, the oldest first.
pub(super) fn ended(table: &Table, words: Words) -> SelectStatement {
    let mut select = Query::select();
    select.column(KEY).from(table.reference()).and_where(words.ended()).order_by(ENDS, Order::Asc);
    select
}

pub(super) fn is_claimed() -> Expr {
    Expr::col(STATE).eq(claimed())
}

/// Statements that change nothing, but only where the store's own would be allowed.
pub(super) fn probes(table: &Table, builder: &impl QueryBuilder) -> Vec<String> {
    let never = || Expr::cust("1 = 0");
    let mut select = Query::select();
    select.columns(COLUMNS).from(table.reference()).and_where(never());
    let mut update = Query::update();
    update.table(table.reference()).values(COLUMNS.map(|column| (column, Expr::col(column)))).and_where(never());
    let mut delete = Query::delete();
    delete.from_table(table.reference()).and_where(never());
    let mut insert = Query::insert();
    insert.into_table(table.reference()).columns(COLUMNS);
    // It only fails where the columns do not match.
    let _ = insert.select_from(select.clone());
    vec![
        select.build_any(builder).0,
        insert.build_any(builder).0,
        update.build_any(builder).0,
        delete.build_any(builder).0,
    ]
}
