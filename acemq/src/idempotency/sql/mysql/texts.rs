//! The texts, for as many entries as are asked for. MariaDB's `RETURNING` and limits are added by hand, as the builder does
//! not know them.

use sea_query::{
    ColumnDef, Expr, ExprTrait as _, Func, Index, MysqlQueryBuilder, OnConflict, Query, SelectStatement,
    Table as CreateTable,
};

use super::super::{
    statements::{self, Words},
    table::{COLUMNS, ENDS, HOLDER, KEY, RECORDED, STATE, Table, claimed},
};

/// `UNIX_TIMESTAMP()` loses an hour when the session's zone leaves summer time.
pub(super) const WORDS: Words = Words {
    now: "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000)",
    key: "?",
    token: "?",
    length: "?",
};

/// Takes key, token and length for each entry.
pub(super) fn claim(table: &Table, count: usize) -> String {
    let mut insert = Query::insert();
    insert.into_table(table.reference()).columns(COLUMNS);
    for _ in 0..count {
        // It only fails where the columns do not match.
        let _ = insert.values([Expr::cust("?"), claimed(), Expr::cust("?"), WORDS.now(), WORDS.end()]);
    }
    let new = |column: &'static str| Expr::from(Func::cust("VALUES").arg(Expr::col(column)));
    let ours =
        || statements::is_claimed().and(Expr::col(ENDS).lte(new(RECORDED)).or(Expr::col(HOLDER).eq(new(HOLDER))));
    let set = |column: &'static str| {
        let value = Func::cust("IF").args([ours(), new(column), Expr::col(column)]);
        (column, Expr::from(value))
    };
    insert
        // A condition on the whole update is silently left out for this dialect, so each assignment has it. They are made
        // in order and see the ones before: once `expires_at` has changed, nobody could tell that the lease had ended.
        .on_conflict(OnConflict::new().values([set(HOLDER), set(RECORDED), set(ENDS)]).to_owned())
        .to_string(MysqlQueryBuilder)
}

/// Takes the keys.
pub(super) fn found(table: &Table, count: usize) -> String {
    entries(table, keys(count)).to_string(MysqlQueryBuilder)
}

/// Takes the length, then key and token for each entry.
pub(super) fn confirm(table: &Table, count: usize) -> String {
    statements::confirm(table, WORDS, pairs(count)).to_string(MysqlQueryBuilder)
}

/// Takes the length, then key and token for each entry.
pub(super) fn renew(table: &Table, count: usize) -> String {
    statements::renew(table, WORDS, pairs(count)).to_string(MysqlQueryBuilder)
}

/// Takes key and token for each entry.
pub(super) fn release(table: &Table, count: usize) -> String {
    statements::release(table, pairs(count)).to_string(MysqlQueryBuilder)
}

/// Takes key and token for each entry.
pub(super) fn held(table: &Table, count: usize) -> String {
    entries(table, pairs(count)).to_string(MysqlQueryBuilder)
}

/// [`held`] for one entry, if its time has not ended.
pub(super) fn lasting(table: &Table) -> String {
    entries(table, pairs(1)).and_where(Expr::col(ENDS).gt(WORDS.now())).to_string(MysqlQueryBuilder)
}

fn entries(table: &Table, which: Expr) -> SelectStatement {
    Query::select().columns([KEY, HOLDER, STATE]).from(table.reference()).and_where(which).to_owned()
}

/// Takes the number of keys.
pub(super) fn ended(table: &Table) -> String {
    statements::ended(table, WORDS)
        // Built with parameters, the limit becomes one.
        .limit(0)
        .build(MysqlQueryBuilder)
        .0
}

/// Takes the keys. By the primary key: a range over `expires_at` would lock what lies between.
pub(super) fn purge(table: &Table, count: usize) -> String {
    Query::delete()
        .from_table(table.reference())
        .and_where(keys(count))
        .and_where(WORDS.ended())
        .to_string(MysqlQueryBuilder)
}

fn keys(count: usize) -> Expr {
    Expr::col(KEY).is_in((0..count).map(|_| Expr::cust("?")))
}

/// Key and token belong together: two lists would accept the token of another key.
fn pairs(count: usize) -> Expr {
    if count == 1 {
        return statements::one(WORDS);
    }
    let pairs = vec!["(?, ?)"; count].join(", ");
    Expr::cust(format!("(`{KEY}`, `{HOLDER}`) IN ({pairs})"))
}

pub(super) fn create_table(table: &Table) -> String {
    let ascii = |length: u32| format!("varchar({length}) CHARACTER SET ascii COLLATE ascii_bin");
    CreateTable::create()
        .table(table.reference())
        .col(
            ColumnDef::new(KEY)
                .custom("varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
                .not_null()
                .primary_key(),
        )
        .col(ColumnDef::new(STATE).custom(ascii(16)).not_null())
        .col(ColumnDef::new(HOLDER).custom(ascii(64)).not_null())
        .col(ColumnDef::new(RECORDED).big_integer().not_null())
        .col(ColumnDef::new(ENDS).big_integer().not_null())
        .index(Index::create().name(table.index()).col(ENDS))
        .engine("InnoDB")
        .to_string(MysqlQueryBuilder)
        + ";"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table::named("work.claims")
    }

    fn plain(text: &str) -> String {
        text.replace(WORDS.now, "NOW").replace(
            "`state` = ('CLAIMED') AND (`expires_at` <= VALUES(`recorded_at`) OR `claimed_by` = VALUES(`claimed_by`))",
            "C",
        )
    }

    #[test]
    fn a_claim_has_its_condition_in_each_assignment_and_changes_the_end_last() {
        assert_eq!(
            plain(&claim(&table(), 2)),
            [
                "INSERT INTO `work`.`claims` ",
                "(`message_id`, `state`, `claimed_by`, `recorded_at`, `expires_at`) VALUES ",
                "(?, 'CLAIMED', ?, NOW, NOW + ?), (?, 'CLAIMED', ?, NOW, NOW + ?) ON DUPLICATE KEY UPDATE ",
                "`claimed_by` = IF(C, VALUES(`claimed_by`), `claimed_by`), ",
                "`recorded_at` = IF(C, VALUES(`recorded_at`), `recorded_at`), ",
                "`expires_at` = IF(C, VALUES(`expires_at`), `expires_at`)",
            ]
            .concat()
        );
    }

    #[test]
    fn key_and_token_stay_together() {
        let one = "`message_id` = (?) AND `claimed_by` = (?)";
        let two = "(`message_id`, `claimed_by`) IN ((?, ?), (?, ?))";
        for build in [confirm, renew, release, held] {
            let (first, second) = (build(&table(), 1), build(&table(), 2));
            assert!(first.contains(one), "{first}");
            assert!(second.contains(two), "{second}");
        }
    }

    #[test]
    fn only_a_confirmation_does_not_ask_for_the_state() {
        let asks = "`state` = ('CLAIMED')";
        for count in [1, 2] {
            assert!(!confirm(&table(), count).contains(asks));
            assert!(renew(&table(), count).contains(asks));
            assert!(release(&table(), count).contains(asks));
        }
    }

    #[test]
    fn a_purge_deletes_by_key_and_looks_twice() {
        assert_eq!(
            plain(&ended(&table())),
            "SELECT `message_id` FROM `work`.`claims` WHERE `expires_at` <= (NOW) \
             ORDER BY `expires_at` ASC LIMIT ?"
        );
        assert_eq!(
            plain(&purge(&table(), 2)),
            "DELETE FROM `work`.`claims` WHERE `message_id` IN (?, ?) AND `expires_at` <= (NOW)"
        );
    }

    #[test]
    fn every_time_is_the_servers() {
        let cases = [
            // Key, token, length for each entry.
            (claim(&table(), 2), 6),
            // A length, and key and token for each entry.
            (confirm(&table(), 2), 5),
            (renew(&table(), 2), 5),
        ];
        for (text, parameters) in cases {
            assert!(text.contains(WORDS.now), "{text}");
            assert_eq!(text.matches('?').count(), parameters, "{text}");
        }
    }

    #[test]
    fn the_table_keeps_all_keys_apart() {
        assert_eq!(
            create_table(&table()),
            [
                "CREATE TABLE `work`.`claims` ( ",
                "`message_id` varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY, ",
                "`state` varchar(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, ",
                "`claimed_by` varchar(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, ",
                "`recorded_at` bigint NOT NULL, `expires_at` bigint NOT NULL, ",
                "KEY `claims_expires` (`expires_at`) ) ENGINE=InnoDB;",
            ]
            .concat()
        );
    }
}
