//! The texts, each for one entry and for any number of them. Those for many take an array of pairs in JSON and a length.

use sea_query::{
    ColumnDef, Expr, ExprTrait as _, Func, FunctionCall, Index, OnConflict, Query, SelectStatement, SqliteQueryBuilder,
    Table as CreateTable,
};

use super::super::{
    statements::{self, Words},
    table::{COLUMNS, ENDS, HOLDER, KEY, RECORDED, STATE, Table, claimed},
};

const NOW: &str = "CAST(round(unixepoch('now', 'subsec') * 1000) AS INTEGER)";

/// For one entry.
const ONE: Words = Words { now: NOW, key: "?1", token: "?2", length: "?3" };

/// For many: the pairs take the place of the key.
const MANY: Words = Words { length: "?2", ..ONE };

/// A statement for one entry and the same for many.
#[derive(Debug)]
pub(super) struct Texts<T> {
    pub(super) one: T,
    pub(super) many: T,
}

impl Texts<String> {
    pub(super) fn shared<T: From<String>>(self) -> Texts<T> {
        Texts { one: self.one.into(), many: self.many.into() }
    }
}

pub(super) fn claim(table: &Table) -> Texts<String> {
    let one = Query::select()
        .exprs([Expr::cust(ONE.key), claimed(), Expr::cust(ONE.token)])
        .exprs([ONE.now(), ONE.end()])
        .and_where(Expr::cust("true"))
        .to_owned();
    let many = Query::select()
        .exprs([Expr::cust("value->>0"), claimed(), Expr::cust("value->>1")])
        .exprs([MANY.now(), MANY.end()])
        .from_function(pairs(), "pairs")
        // Without a condition the parser takes ON CONFLICT for the condition of a join.
        .and_where(Expr::cust("true"))
        .to_owned();
    Texts { one: upsert(table, one), many: upsert(table, many) }
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
        .to_string(SqliteQueryBuilder)
}

/// Key, holder and state of entries.
pub(super) fn found(table: &Table) -> Texts<String> {
    let select = |which: Expr| {
        Query::select()
            .columns([KEY, HOLDER, STATE])
            .from(table.reference())
            .and_where(which)
            .to_string(SqliteQueryBuilder)
    };
    let keys = Query::select().expr(Expr::cust("value->>0")).from_function(pairs(), "pairs").to_owned();
    Texts { one: select(Expr::col(KEY).eq(Expr::cust(ONE.key))), many: select(Expr::col(KEY).in_subquery(keys)) }
}

pub(super) fn confirm(table: &Table) -> Texts<String> {
    let text = |words, which| statements::confirm(table, words, which).to_string(SqliteQueryBuilder);
    Texts { one: text(ONE, statements::one(ONE)), many: text(MANY, held()) }
}

pub(super) fn renew(table: &Table) -> Texts<String> {
    let text = |words, which| statements::renew(table, words, which).to_string(SqliteQueryBuilder);
    Texts { one: text(ONE, statements::one(ONE)), many: text(MANY, held()) }
}

pub(super) fn release(table: &Table) -> Texts<String> {
    let text = |which| statements::release(table, which).to_string(SqliteQueryBuilder);
    Texts { one: text(statements::one(ONE)), many: text(held()) }
}

/// Takes the number of entries.
pub(super) fn purge(table: &Table) -> String {
    let oldest = statements::ended(table, ONE)
        // Built with parameters, the limit becomes one.
        .limit(0)
        .to_owned();
    Query::delete()
        .from_table(table.reference())
        .and_where(Expr::col(KEY).in_subquery(oldest))
        .build(SqliteQueryBuilder)
        .0
}

fn pairs() -> FunctionCall {
    Func::cust("json_each").arg(Expr::cust("?1"))
}

fn held() -> Expr {
    let pairs = Query::select()
        .exprs([Expr::cust("value->>0"), Expr::cust("value->>1")])
        .from_function(pairs(), "pairs")
        .to_owned();
    Expr::tuple([Expr::col(KEY), Expr::col(HOLDER)]).in_subquery(pairs)
}

pub(super) fn create_table(table: &Table) -> String {
    let create = CreateTable::create()
        .table(table.reference())
        .col(ColumnDef::new(KEY).string_len(255).not_null().primary_key())
        .col(ColumnDef::new(STATE).string_len(16).not_null())
        .col(ColumnDef::new(HOLDER).string_len(64).not_null())
        .col(ColumnDef::new(RECORDED).big_integer().not_null())
        .col(ColumnDef::new(ENDS).big_integer().not_null())
        .extra("WITHOUT ROWID")
        .to_string(SqliteQueryBuilder);
    let index =
        Index::create().name(table.index()).table(table.name().to_owned()).col(ENDS).to_string(SqliteQueryBuilder);
    format!("{create};\n{index};")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table::named("work.claims")
    }

    #[test]
    fn a_claim_takes_over_only_what_has_ended() {
        let ending = [
            r#"WHERE true ON CONFLICT ("message_id") DO UPDATE SET "claimed_by" = "excluded"."claimed_by", "#,
            r#""recorded_at" = "excluded"."recorded_at", "expires_at" = "excluded"."expires_at" "#,
            r#"WHERE "claims"."state" = ('CLAIMED') AND ("claims"."expires_at" <= "excluded"."recorded_at" "#,
            r#"OR "claims"."claimed_by" = "excluded"."claimed_by")"#,
        ]
        .concat();
        let start =
            r#"INSERT INTO "work"."claims" ("message_id", "state", "claimed_by", "recorded_at", "expires_at") "#;
        let texts = claim(&table());
        assert_eq!(texts.one.replace(NOW, "NOW"), format!("{start}SELECT ?1, 'CLAIMED', ?2, NOW, NOW + ?3 {ending}"));
        assert_eq!(
            texts.many.replace(NOW, "NOW"),
            format!(
                "{start}SELECT value->>0, 'CLAIMED', value->>1, NOW, NOW + ?2 \
                 FROM json_each(?1) AS \"pairs\" {ending}"
            )
        );
    }

    #[test]
    fn key_and_token_stay_together() {
        for texts in [confirm(&table()), renew(&table()), release(&table())] {
            let one = r#""message_id" = (?1) AND "claimed_by" = (?2)"#;
            let many = r#"("message_id", "claimed_by") IN (SELECT value->>0, value->>1 FROM json_each(?1) AS "pairs")"#;
            assert!(texts.one.contains(one), "{}", texts.one);
            assert!(texts.many.contains(many), "{}", texts.many);
        }
    }

    #[test]
    fn only_a_confirmation_does_not_ask_for_the_state() {
        let asks = |texts: Texts<String>| [texts.one, texts.many].map(|text| text.contains(r#""state" = ('CLAIMED')"#));
        assert_eq!(asks(confirm(&table())), [false, false]);
        assert_eq!(asks(renew(&table())), [true, true]);
        assert_eq!(asks(release(&table())), [true, true]);
    }

    #[test]
    fn every_time_is_the_databases() {
        for texts in [claim(&table()), confirm(&table()), renew(&table())] {
            assert!(texts.one.contains(NOW) && texts.many.contains(NOW));
            // Key, token and a length; pairs and a length.
            assert!(texts.one.contains("?3") && !texts.one.contains("?4"));
            assert!(texts.many.contains("?2") && !texts.many.contains("?3"));
        }
    }

    #[test]
    fn the_table_is_its_own_index() {
        let text = create_table(&table());
        assert!(text.contains(r#""message_id" varchar(255) NOT NULL PRIMARY KEY"#), "{text}");
        assert!(text.contains("WITHOUT ROWID;\nCREATE INDEX"), "{text}");
    }
}
