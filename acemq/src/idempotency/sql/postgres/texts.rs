//! The texts. Every statement takes the keys as its first parameter, the tokens as its second and a length as its third,
//! and serves any number of entries.

use sea_query::{
    CaseStatement, ColumnDef, CommonTableExpression, Expr, ExprTrait as _, Func, Index, JoinType, LockBehavior,
    LockType, OnConflict, Order, PostgresQueryBuilder, Query, SelectStatement, SubQueryStatement, Table as CreateTable,
    WithClause,
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

// Names within the statements that no table is likely to have.
const WANTED: &str = "_wanted";
const HELD: &str = "_held";
const RENEWED: &str = "_renewed";
const ENTRY: &str = "_entry";

/// Keys and tokens as rows.
fn wanted() -> SelectStatement {
    Query::select()
        .expr_as(Expr::cust("unnest(CAST($1 AS text[]))"), "id")
        .expr_as(Expr::cust("unnest(CAST($2 AS text[]))"), "token")
        .to_owned()
}

/// Writes only where there is something to win: a duplicate costs no write, and an entry that a handler's transaction is
/// about to confirm is not waited for.
///
/// It answers with the entries that it won; see [`found`] for the others.
pub(super) fn claim(table: &Table) -> String {
    let source = Query::select()
        .column("id")
        .expr(claimed())
        .column("token")
        .expr(WORDS.now())
        .expr(WORDS.end())
        .from_subquery(wanted(), WANTED)
        .and_where(is_free(table, &Expr::col("id"), &Expr::col("token")))
        // In the order of all other statements, by which they wait for each other and do not deadlock.
        .order_by_expr(Expr::cust("\"id\" COLLATE \"C\""), Order::Asc)
        .to_owned();
    upsert(table, source)
}

/// [`claim`] for one entry.
pub(super) fn claim_one(table: &Table) -> String {
    let (key, token) = (Expr::cust(WORDS.key), Expr::cust(WORDS.token));
    let source = Query::select()
        .exprs([key.clone(), claimed(), token.clone()])
        .exprs([WORDS.now(), WORDS.end()])
        .and_where(is_free(table, &key, &token))
        .to_owned();
    upsert(table, source)
}

/// Whether there is no entry, or one that the token holds, or one whose lease has ended and that nobody else takes over
/// right now.
///
/// Each is looked up by itself. As a join, it would be planned by the size of the table, and a plan for a small table
/// reads all of it.
fn is_free(table: &Table, key: &Expr, token: &Expr) -> Expr {
    let entry = |column: &'static str| Expr::col((ENTRY, column));
    let this = |answer: Expr| {
        Query::select().expr(answer).from_as(table.reference(), ENTRY).and_where(entry(KEY).eq(key.clone())).to_owned()
    };
    let mut locked = this(Expr::cust("true"));
    locked.lock_with_behavior(LockType::Update, LockBehavior::SkipLocked);
    let takes = CaseStatement::new()
        .case(entry(STATE).ne(claimed()), Expr::cust("false"))
        .case(entry(HOLDER).eq(token.clone()), Expr::cust("true"))
        .case(entry(ENDS).lte(WORDS.now()), Func::coalesce([scalar(locked), Expr::cust("false")]))
        .finally(Expr::cust("false"));
    Func::coalesce([scalar(this(takes.into())), Expr::cust("true")]).into()
}

fn scalar(select: SelectStatement) -> Expr {
    Expr::SubQuery(None, Box::new(select.into()))
}

fn upsert(table: &Table, source: SelectStatement) -> String {
    let name = table.name().to_owned();
    let column = |column: &'static str| Expr::col((name.clone(), column));
    let excluded = |column: &'static str| Expr::col(("excluded", column));
    let mut insert = Query::insert();
    insert.into_table(table.reference()).columns(COLUMNS);
    // It only fails where the columns do not match.
    let _ = insert.select_from(source);
    insert
        .on_conflict(
            OnConflict::column(KEY)
                .update_columns([HOLDER, RECORDED, ENDS])
                .action_and_where(column(STATE).eq(claimed()))
                .action_and_where(column(ENDS).lte(excluded(RECORDED)).or(column(HOLDER).eq(excluded(HOLDER))))
                .to_owned(),
        )
        .returning(Query::returning().columns([KEY, HOLDER]))
        .to_string(PostgresQueryBuilder)
}

/// Key and state of each entry, or no state where there is none; takes the keys only.
pub(super) fn found(table: &Table) -> String {
    let state = Query::select()
        .column((ENTRY, STATE))
        .from_as(table.reference(), ENTRY)
        .and_where(Expr::col((ENTRY, KEY)).equals("id"))
        .to_owned();
    Query::select()
        .column("id")
        .expr(Func::coalesce([scalar(state), Expr::cust("''")]))
        .from_subquery(Query::select().expr_as(Expr::cust("unnest(CAST($1 AS text[]))"), "id").to_owned(), WANTED)
        .to_string(PostgresQueryBuilder)
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
pub(super) fn renew(table: &Table) -> String {
    let mut held = held(table, Some(LockBehavior::SkipLocked));
    held.and_where(Expr::col((ENTRY, STATE)).eq(claimed()));
    let renewed = statements::renew(table, WORDS, is_held(table))
        .from(HELD)
        .returning_col((table.name().to_owned(), KEY))
        .to_owned();
    let answer = mine(table).column((ENTRY, HOLDER)).and_where(Expr::col((ENTRY, STATE)).eq(claimed())).to_owned();
    with([(HELD, held.into()), (RENEWED, renewed.into())], answer)
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
        .to_owned();
    Query::delete()
        .from_table(table.reference())
        .and_where(Expr::col(KEY).in_subquery(oldest))
        .and_where(WORDS.ended())
        .build(PostgresQueryBuilder)
        .0
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

    #[test]
    fn a_claim_looks_first_and_takes_over_only_what_has_ended() {
        let free = |key: &str, token: &str| {
            [
                r#"COALESCE((SELECT (CASE WHEN ("_entry"."state" <> ('CLAIMED')) THEN false "#,
                &format!(r#"WHEN ("_entry"."claimed_by" = {token}) THEN true "#),
                r#"WHEN ("_entry"."expires_at" <= (NOW)) THEN COALESCE((SELECT true "#,
                &format!(r#"FROM "work"."claims" AS "_entry" WHERE "_entry"."message_id" = {key} "#),
                "FOR UPDATE SKIP LOCKED), false) ELSE false END) ",
                &format!(r#"FROM "work"."claims" AS "_entry" WHERE "_entry"."message_id" = {key}), true)"#),
            ]
            .concat()
        };
        let start = r#"INSERT INTO "work"."claims" ("message_id", "state", "claimed_by", "recorded_at", "expires_at")"#;
        let ending = [
            r#"ON CONFLICT ("message_id") DO UPDATE SET "claimed_by" = "excluded"."claimed_by", "#,
            r#""recorded_at" = "excluded"."recorded_at", "expires_at" = "excluded"."expires_at" "#,
            r#"WHERE "claims"."state" = ('CLAIMED') AND ("claims"."expires_at" <= "excluded"."recorded_at" "#,
            r#"OR "claims"."claimed_by" = "excluded"."claimed_by") RETURNING "message_id", "claimed_by""#,
        ]
        .concat();
        assert_eq!(
            claim_one(&table()).replace(WORDS.now, "NOW"),
            format!("{start} SELECT $1, 'CLAIMED', $2, NOW, NOW + $3 WHERE {} {ending}", free("($1)", "($2)"))
        );
        assert_eq!(
            claim(&table()).replace(WORDS.now, "NOW"),
            format!(
                "{start} SELECT \"id\", 'CLAIMED', \"token\", NOW, NOW + $3 FROM ({}) AS \"_wanted\" WHERE {} \
                 ORDER BY \"id\" COLLATE \"C\" ASC {ending}",
                wanted().to_string(PostgresQueryBuilder),
                free("\"id\"", "\"token\"")
            )
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
    fn what_was_not_won_is_looked_up_one_by_one() {
        assert_eq!(
            found(&table()),
            "SELECT \"id\", COALESCE((SELECT \"_entry\".\"state\" FROM \"work\".\"claims\" AS \"_entry\" \
             WHERE \"_entry\".\"message_id\" = \"id\"), '') \
             FROM (SELECT unnest(CAST($1 AS text[])) AS \"id\") AS \"_wanted\""
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
        let oldest = r#"ORDER BY "expires_at" ASC LIMIT $1 FOR UPDATE SKIP LOCKED) AND "expires_at" <= "#;
        assert!(text.contains(oldest), "{text}");
    }

    #[test]
    fn every_time_is_the_servers() {
        for text in [claim(&table()), confirm(&table()), renew(&table()), confirm_one(&table())] {
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
