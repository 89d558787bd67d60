use std::{fmt, future::Future};

use sqlx::{Database, Pool, Transaction};

use super::{
    error::Failure,
    op::{Group, Item, Kind, Verdict},
    shape::Shape,
    store::Inner,
    table::Table,
};

/// What only some servers of a dialect understand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extensions {
    /// Used, where the server has it.
    Used,
    /// Left alone, whatever the server says of itself.
    Avoided,
}

/// A database that can hold claims: PostgreSQL, MySQL and MariaDB, SQLite.
pub trait Dialect: Backend {}

impl<D: Backend> Dialect for D {}

/// What [`Dialect`] needs to do; not to be implemented outside.
pub trait Backend: Database {
    /// The statements for one table, and what is known of its server.
    type Sql: fmt::Debug + Send + Sync + 'static;

    /// Whether all kinds go together in one transaction, which pays where there is only one writer.
    const JOINT: bool;

    /// How many statements of a lane may be on their way.
    const AT_ONCE: usize;

    /// How many entries one statement of a purge deletes: as many as others can wait for.
    const PURGED: usize = 500;

    /// Builds the statements.
    fn sql(table: &Table, extensions: Extensions) -> Self::Sql;

    /// The statement that creates the table.
    fn create_table(table: &Table) -> String;

    /// Carries groups out, and gives a verdict on each item in their order.
    ///
    /// There is one group, unless all kinds go together.
    fn carry(store: &Inner<Self>, groups: &[Group<'_>]) -> impl Future<Output = Result<Vec<Verdict>, Failure>> + Send;

    /// Says which entries are claimed by their tokens. It waits for nobody and changes nothing.
    fn look(store: &Inner<Self>, items: &[Item<'_>]) -> impl Future<Output = Result<Vec<Verdict>, Failure>> + Send;

    /// Confirms one key on a connection of the caller's.
    fn confirm_in(
        sql: &Self::Sql,
        connection: &mut Self::Connection,
        item: Item<'_>,
        millis: i64,
    ) -> impl Future<Output = Result<Verdict, Failure>> + Send;

    /// Begins a transaction that is going to write.
    fn begin(pool: &Pool<Self>) -> impl Future<Output = Result<Transaction<'static, Self>, sqlx::Error>> + Send {
        pool.begin()
    }

    /// Judges what the database answered.
    fn judge(error: &sqlx::Error) -> Failure;

    /// Deletes up to `most` entries whose time has ended, in one statement.
    fn purge(store: &Inner<Self>, most: usize) -> impl Future<Output = Result<usize, Failure>> + Send;

    /// Looks at the table and at the settings of the connections.
    fn inspect(store: &Inner<Self>) -> impl Future<Output = Result<Shape, Failure>> + Send;

    /// Tries whether the store's statements are allowed, without changing anything.
    fn probe(store: &Inner<Self>) -> impl Future<Output = Result<(), Failure>> + Send;

    /// The lane of a kind.
    fn lane(kind: Kind) -> Kind {
        if Self::JOINT { Kind::Claim } else { kind }
    }
}
