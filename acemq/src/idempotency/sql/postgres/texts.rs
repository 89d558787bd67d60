//! The texts. Unless its comment says otherwise, a statement takes the keys as its first parameter, the tokens as its second
//! and a length as its third, if it needs them, and serves any number of entries.

use sea_query::{
    CaseStatement, ColumnDef, CommonTableExpression, Expr, ExprTrait as _, Func, Index, JoinType, LockBehavior,
    LockType, OnConflict, Order, PostgresQueryBuilder, Query, SelectStatement, SubQueryStatement, Table as CreateTable,
    WithClause, extension::postgres::PgFunc,
};

use super::super::{
    statements::{self, Words},
    table::{COLUMNS, ENDS, HOLDER, KEY, RECORDED, STATE, Table, claimed},
};

/// `now()` would stand still in a transaction of the caller's, `clock_timestamp()` would move within the statement.
pub(super) const WORDS: Words = Words {
    now: "CAST(floor(extract(epoch from statement_timestamp()) * 1000) AS bigint)",
    key: "$1",
    token: "$2",
    length: "$3",
};

/// The time of this moment within a statement.
const CLOCK: &str = "CAST(floor(extract(epoch from clock_timestamp()) * 1000) AS bigint)";

// Names within the statements that no table is likely to have.
const WANTED: &str = "_wanted";
const HELD: &str = "_held";
const RENEWED: &str = "_renewed";
const ENTRY: &str = "_entry";

/// The keys as rows.
///
/// The planner does not see into a query of its own: if it knew how many there are, it would plan each statement anew for
/// its number, which costs nearly as much as to run it.
const KEYS: &str = "unnest((SELECT CAST($1 AS text[])))";

/// The tokens as rows.
const TOKENS: &str = "unnest((SELECT CAST($2 AS text[])))";

/// Keys and tokens as rows.
fn wanted() -> SelectStatement {
    Query::select().expr_as(Expr::cust(KEYS), "id").expr_as(Expr::cust(TOKENS), "token").to_owned()
}

/// Claims what has no entry, which is what nearly every message is; it answers with the entries that it made.
///
/// It looks first, for each by itself: an entry that is there costs no write, and one that a handler's transaction is about
/// to confirm is not waited for.
pub(super) fn fresh(table: &Table) -> String {
    let source = wanted_entries().and_where(entry(table, Expr::cust("true"), &Expr::col("id")).is_null()).to_owned();
    insert(table, source, OnConflict::column(KEY).do_nothing().to_owned())
}

/// [`fresh`] for one entry.
pub(super) fn fresh_one(table: &Table) -> String {
    let key = Expr::cust(WORDS.key);
    let source = Query::select()
        .exprs([key.clone(), claimed(), Expr::cust(WORDS.token)])
        .exprs([WORDS.now(), WORDS.end()])
        .and_where(entry(table, Expr::cust("true"), &key).is_null())
        .to_owned();
    insert(table, source, OnConflict::column(KEY).do_nothing().to_owned())
}

/// Claims whatever is free; see [`found`]. It answers with the entries that it won.
pub(super) fn claim(table: &Table) -> String {
    let source = wanted_entries().and_where(is_free(table, &Expr::col("id"), &Expr::col("token"))).to_owned();
    let name = table.name().to_owned();
    let column = |column: &'static str| Expr::col((name.clone(), column));
    let excluded = |column: &'static str| Expr::col(("excluded", column));
    let take_over = OnConflict::column(KEY)
        .update_columns([HOLDER, RECORDED, ENDS])
        .action_and_where(column(STATE).eq(claimed()))
        .action_and_where(column(ENDS).lte(excluded(RECORDED)).or(column(HOLDER).eq(excluded(HOLDER))))
        .to_owned();
    insert(table, source, take_over)
}

/// The entries that claims of the keys would make.
fn wanted_entries() -> SelectStatement {
    Query::select()
        .column("id")
        .expr(claimed())
        .column("token")
        .expr(WORDS.now())
        .expr(WORDS.end())
        .from_subquery(wanted(), WANTED)
        // In the order of all other statements, by which they wait for each other and do not deadlock.
        .order_by_expr(Expr::cust("\"id\" COLLATE \"C\""), Order::Asc)
        .to_owned()
}

fn insert(table: &Table, source: SelectStatement, on_conflict: OnConflict) -> String {
    let mut insert = Query::insert();
    insert.into_table(table.reference()).columns(COLUMNS);
    // It only fails where the columns do not match.
    let _ = insert.select_from(source);
    insert.on_conflict(on_conflict).returning(Query::returning().columns([KEY, HOLDER])).to_string(PostgresQueryBuilder)
}

/// What `answer` says of the entry of a key, or NULL if there is none.
///
/// Each entry is looked up by itself. As a join, it would be planned by the size of the table, and a plan for a small table
/// reads all of it.
fn entry(table: &Table, answer: Expr, key: &Expr) -> Expr {
    scalar(this(table, answer, key))
}

fn this(table: &Table, answer: Expr, key: &Expr) -> SelectStatement {
    let own = Expr::col((ENTRY, KEY));
    Query::select().expr(answer).from_as(table.reference(), ENTRY).and_where(own.eq(key.clone())).to_owned()
}

/// Whether there is no entry, or one that the token holds, or one whose lease has ended and that nobody else takes over
/// right now.
fn is_free(table: &Table, key: &Expr, token: &Expr) -> Expr {
    let mut locked = this(table, Expr::cust("true"), key);
    locked.lock_with_behavior(LockType::Update, LockBehavior::SkipLocked);
    let takes = CaseStatement::new()
        .case(is(STATE).ne(claimed()), Expr::cust("false"))
        .case(is(HOLDER).eq(token.clone()), Expr::cust("true"))
        .case(is(ENDS).lte(WORDS.now()), Func::coalesce([scalar(locked), Expr::cust("false")]))
        .finally(Expr::cust("false"));
    Func::coalesce([entry(table, takes.into(), key), Expr::cust("true")]).into()
}

/// Says of each key whether it is confirmed, claimed or free to be claimed by its token.
pub(super) fn found(table: &Table) -> String {
    let what = CaseStatement::new()
        .case(is(STATE).ne(claimed()), is(STATE))
        .case(is(HOLDER).equals("token").or(is(ENDS).lte(WORDS.now())), Expr::cust(FREE))
        .finally(is(STATE));
    Query::select()
        .column("id")
        .expr(Func::coalesce([entry(table, what.into(), &Expr::col("id")), Expr::cust(FREE)]))
        .from_subquery(wanted(), WANTED)
        .to_string(PostgresQueryBuilder)
}

const FREE: &str = "'FREE'";

fn is(column: &'static str) -> Expr {
    Expr::col((ENTRY, column))
}

fn scalar(select: SelectStatement) -> Expr {
    Expr::SubQuery(None, Box::new(select.into()))
}

/// The entries that their tokens hold, locked in one order: a deadlock costs PostgreSQL a second to find.
fn held(table: &Table, behavior: Option<LockBehavior>) -> SelectStatement {
    let mut select = mine(table);
    select.order_by((ENTRY, KEY), Order::Asc);
    match behavior {
        Some(behavior) => select.lock_with_tables_behavior(LockType::Update, [ENTRY], behavior),
        None => select.lock_with_tables(LockType::Update, [ENTRY]),
    };
    select
}

fn mine(table: &Table) -> SelectStatement {
    Query::select()
        .column((ENTRY, KEY))
        .from_as(table.reference(), ENTRY)
        .join_subquery(
            JoinType::InnerJoin,
            wanted(),
            WANTED,
            Expr::col((ENTRY, KEY)).equals((WANTED, "id")).and(Expr::col((ENTRY, HOLDER)).equals((WANTED, "token"))),
        )
        .to_owned()
}

fn is_held(table: &Table) -> Expr {
    Expr::col((table.name().to_owned(), KEY)).equals((HELD, KEY))
}

pub(super) fn confirm(table: &Table) -> String {
    statements::confirm(table, WORDS, is_held(table))
        .from(sea_query::TableRef::SubQuery(held(table, None).into(), HELD.into()))
        .returning(Query::returning().columns([(table.name().to_owned(), KEY), (table.name().to_owned(), HOLDER)]))
        .to_string(PostgresQueryBuilder)
}

/// Leaves an entry alone that a transaction has locked, and answers that it is held: this is the handler's own
/// transaction, about to confirm it. Waiting for it would hold up the renewals of all others.
///
/// Once the lease has ended it may also be somebody who takes the entry over. Of such a one it answers that it is in doubt.
/// The time is read after the lock was looked for, so that whoever took it over has seen the lease ended no later.
pub(super) fn renew(table: &Table) -> String {
    let mut held = held(table, Some(LockBehavior::SkipLocked));
    held.and_where(Expr::col((ENTRY, STATE)).eq(claimed()));
    let renewed = statements::renew(table, WORDS, is_held(table))
        .from(HELD)
        .returning_col((table.name().to_owned(), KEY))
        .to_owned();
    let is_renewed = Expr::col((ENTRY, KEY)).in_subquery(Query::select().column(KEY).from(RENEWED).to_owned());
    let in_doubt = CaseStatement::new().case(is_renewed, Expr::cust("false")).finally(is(ENDS).lte(Expr::cust(CLOCK)));
    let answer = mine_and_claimed(table).expr(in_doubt).to_owned();
    with([(HELD, held.into()), (RENEWED, renewed.into())], answer)
}

/// The entries that their tokens have claimed.
pub(super) fn claimed_ones(table: &Table) -> String {
    mine_and_claimed(table).to_string(PostgresQueryBuilder)
}

fn mine_and_claimed(table: &Table) -> SelectStatement {
    mine(table).column((ENTRY, HOLDER)).and_where(is(STATE).eq(claimed())).to_owned()
}

pub(super) fn release(table: &Table) -> String {
    let held = held(table, None);
    statements::release(table, Expr::col(KEY).in_subquery(held))
        .returning(Query::returning().columns([KEY, HOLDER]))
        .to_string(PostgresQueryBuilder)
}

pub(super) fn confirm_one(table: &Table) -> String {
    statements::confirm(table, WORDS, statements::one(WORDS))
        .returning(Query::returning().columns([KEY, HOLDER]))
        .to_string(PostgresQueryBuilder)
}

/// Deletes as many of the oldest as its parameter says; what a claim has locked is left for the next time.
pub(super) fn purge(table: &Table) -> String {
    let oldest = statements::ended(table, WORDS)
        // Built with parameters, the limit becomes one.
        .limit(0)
        .lock_with_behavior(LockType::Update, LockBehavior::SkipLocked)
        .build(PostgresQueryBuilder)
        .0;
    Query::delete()
        .from_table(table.reference())
        // As an array it is read once. As a subquery it may be read again for each row, with a new limit each time.
        .and_where(Expr::col(KEY).eq(PgFunc::any(Expr::cust(format!("ARRAY({oldest})")))))
        .and_where(WORDS.ended())
        .to_string(PostgresQueryBuilder)
}

pub(super) fn create_table(table: &Table) -> String {
    let create = CreateTable::create()
        .table(table.reference())
        .col(ColumnDef::new(KEY).custom("varchar(255) COLLATE \"C\"").not_null().primary_key())
        .col(ColumnDef::new(STATE).string_len(16).not_null())
        .col(ColumnDef::new(HOLDER).string_len(64).not_null())
        .col(ColumnDef::new(RECORDED).big_integer().not_null())
        .col(ColumnDef::new(ENDS).big_integer().not_null())
        .to_string(PostgresQueryBuilder);
    let index = Index::create().name(table.index()).table(table.reference()).col(ENDS).to_string(PostgresQueryBuilder);
    format!("{create};\n{index};")
}

fn with<const N: usize>(clauses: [(&'static str, SubQueryStatement); N], answer: SelectStatement) -> String {
    let mut with = WithClause::new();
    for (name, query) in clauses {
        with.cte(CommonTableExpression::new().table_name(name).query(query).to_owned());
    }
    with.query(answer).to_string(PostgresQueryBuilder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table::named("work.claims")
    }

    /// Where the entry of `key` is looked up.
    fn of(key: &str) -> String {
        format!(r#"FROM "work"."claims" AS "_entry" WHERE "_entry"."message_id" = {key}"#)
    }

    const INSERT: &str =
        r#"INSERT INTO "work"."claims" ("message_id", "state", "claimed_by", "recorded_at", "expires_at")"#;

    fn many() -> String {
        let wanted = wanted().to_string(PostgresQueryBuilder);
        format!("{INSERT} SELECT \"id\", 'CLAIMED', \"token\", NOW, NOW + $3 FROM ({wanted}) AS \"_wanted\"")
    }

    #[test]
    fn a_fresh_claim_only_adds() {
        let none = |key: &str| format!("WHERE (SELECT true {}) IS NULL", of(key));
        let ending = r#"ON CONFLICT ("message_id") DO NOTHING RETURNING "message_id", "claimed_by""#;
        assert_eq!(
            fresh_one(&table()).replace(WORDS.now, "NOW"),
            format!("{INSERT} SELECT $1, 'CLAIMED', $2, NOW, NOW + $3 {} {ending}", none("($1)"))
        );
        assert_eq!(
            fresh(&table()).replace(WORDS.now, "NOW"),
            format!("{} {} ORDER BY \"id\" COLLATE \"C\" ASC {ending}", many(), none("\"id\""))
        );
    }

    #[test]
    fn a_claim_looks_first_and_takes_over_only_what_has_ended() {
        let free = [
            r#"COALESCE((SELECT (CASE WHEN ("_entry"."state" <> ('CLAIMED')) THEN false "#,
            r#"WHEN ("_entry"."claimed_by" = "token") THEN true "#,
            r#"WHEN ("_entry"."expires_at" <= (NOW)) THEN COALESCE((SELECT true "#,
            &of("\"id\""),
            r" FOR UPDATE SKIP LOCKED), false) ELSE false END) ",
            &of("\"id\""),
            r"), true)",
        ]
        .concat();
        let ending = [
            r#"ON CONFLICT ("message_id") DO UPDATE SET "claimed_by" = "excluded"."claimed_by", "#,
            r#""recorded_at" = "excluded"."recorded_at", "expires_at" = "excluded"."expires_at" "#,
            r#"WHERE "claims"."state" = ('CLAIMED') AND ("claims"."expires_at" <= "excluded"."recorded_at" "#,
            r#"OR "claims"."claimed_by" = "excluded"."claimed_by") RETURNING "message_id", "claimed_by""#,
        ]
        .concat();
        assert_eq!(
            claim(&table()).replace(WORDS.now, "NOW"),
            format!("{} WHERE {free} ORDER BY \"id\" COLLATE \"C\" ASC {ending}", many())
        );
    }

    #[test]
    fn what_changes_several_entries_locks_them_in_order() {
        let locks = r#"ORDER BY "_entry"."message_id" ASC FOR UPDATE OF "_entry""#;
        for text in [confirm(&table()), renew(&table()), release(&table())] {
            assert!(text.contains(locks), "{text}");
            let pair = r#""_entry"."message_id" = "_wanted"."id" AND "_entry"."claimed_by" = "_wanted"."token""#;
            assert!(text.contains(pair), "{text}");
        }
        assert!(renew(&table()).contains(&format!("{locks} SKIP LOCKED")));
    }

    #[test]
    fn what_is_there_is_looked_up_one_by_one() {
        let what = [
            r#"CASE WHEN ("_entry"."state" <> ('CLAIMED')) THEN "_entry"."state" "#,
            r#"WHEN ("_entry"."claimed_by" = "token" OR "_entry"."expires_at" <= (NOW)) THEN 'FREE' "#,
            r#"ELSE "_entry"."state" END"#,
        ]
        .concat();
        assert_eq!(
            found(&table()).replace(WORDS.now, "NOW"),
            format!(
                "SELECT \"id\", COALESCE((SELECT ({what}) {}), 'FREE') FROM ({}) AS \"_wanted\"",
                of("\"id\""),
                wanted().to_string(PostgresQueryBuilder)
            )
        );
    }

    #[test]
    fn only_a_confirmation_does_not_ask_for_the_state() {
        let asks = r#""state" = ('CLAIMED')"#;
        assert!(!confirm(&table()).contains(asks) && !confirm_one(&table()).contains(asks));
        assert!(renew(&table()).contains(asks) && release(&table()).contains(asks));
    }

    #[test]
    fn a_purge_passes_over_what_is_locked_and_looks_twice() {
        let text = purge(&table());
        let oldest = r#"ORDER BY "expires_at" ASC LIMIT $1 FOR UPDATE SKIP LOCKED)) AND "expires_at" <= "#;
        assert!(text.contains(oldest), "{text}");
    }

    #[test]
    fn every_time_is_the_servers() {
        for text in [
            fresh(&table()),
            fresh_one(&table()),
            claim(&table()),
            confirm(&table()),
            renew(&table()),
            confirm_one(&table()),
        ] {
            assert!(text.contains(WORDS.now), "{text}");
            let parameters: std::collections::BTreeSet<_> =
                text.split('$').skip(1).filter_map(|rest| rest.chars().next()).collect();
            // Keys, tokens and a length, which is the same by every clock.
            assert_eq!(parameters, ['1', '2', '3'].into());
        }
    }

    #[test]
    fn the_table_keeps_all_keys_apart() {
        assert_eq!(
            create_table(&table()),
            [
                r#"CREATE TABLE "work"."claims" ( "#,
                r#""message_id" varchar(255) COLLATE "C" NOT NULL PRIMARY KEY, "#,
                r#""state" varchar(16) NOT NULL, "claimed_by" varchar(64) NOT NULL, "#,
                r#""recorded_at" bigint NOT NULL, "expires_at" bigint NOT NULL );"#,
                "\n",
                r#"CREATE INDEX "claims_expires" ON "work"."claims" ("expires_at");"#,
            ]
            .concat()
        );
    }
}
