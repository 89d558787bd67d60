use super::{
    backend::Backend,
    error::Failure,
    store::Inner,
    table::{COLUMNS, ENDS, HOLDER, KEY, RECORDED, STATE},
};

/// What a table and the connections to it look like.
#[derive(Debug, Default)]
pub struct Shape {
    pub(super) columns: Vec<Column>,
    pub(super) indexes: Vec<Index>,
    /// What is wrong besides, each a clause without a full stop.
    pub(super) complaints: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) declared: String,
    pub(super) sort: Sort,
    /// Whether an insertion has to name it.
    pub(super) required: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// Text that is equal only to itself, with room for so many characters.
    Exact {
        room: u64,
    },
    /// Text that is equal to other text as well, in another case for instance.
    Loose {
        room: u64,
    },
    /// An integer of 64 bits.
    Integer,
    Other,
}

#[derive(Debug)]
pub(super) struct Index {
    pub(super) columns: Vec<String>,
    pub(super) unique: bool,
}

impl Shape {
    /// All that would keep claims from being right.
    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for name in COLUMNS {
            match self.columns.iter().find(|column| column.name == name) {
                None => faults.push(format!("it has no column {name}")),
                Some(column) => faults.extend(column.fault()),
            }
        }
        for column in &self.columns {
            if column.required && !COLUMNS.contains(&&*column.name) {
                faults.push(format!("the column {} needs a default value, as claims do not set it", column.name));
            }
        }
        let unique = || self.indexes.iter().filter(|index| index.unique);
        if !unique().any(|index| index.columns == [KEY]) {
            faults.push(format!("{KEY} is not its primary key, so two claims of one message could both win"));
        }
        for index in unique().filter(|index| index.columns != [KEY]) {
            faults.push(format!("another unique index, on {}, gets in the way of claims", index.columns.join(", ")));
        }
        faults.extend(self.complaints.iter().cloned());
        faults
    }

    fn finds_ended(&self) -> bool {
        self.indexes.iter().any(|index| index.columns.first().is_some_and(|first| first == ENDS))
    }
}

impl Column {
    fn fault(&self) -> Option<String> {
        let (name, declared) = (&self.name, &self.declared);
        let needed = match &**name {
            KEY => 255,
            STATE => 9,
            HOLDER => 36,
            RECORDED | ENDS if self.sort == Sort::Integer => return None,
            RECORDED | ENDS => {
                return Some(format!("{name} is {declared} and not a 64-bit integer for milliseconds"));
            }
            _ => return None,
        };
        match self.sort {
            Sort::Loose { .. } if name == KEY => {
                Some(format!("{name} is {declared}, which takes different keys for the same one"))
            }
            Sort::Exact { room } | Sort::Loose { room } if room < needed => {
                Some(format!("{name} is {declared}, too short for {needed} characters"))
            }
            Sort::Exact { .. } | Sort::Loose { .. } => None,
            Sort::Integer | Sort::Other => Some(format!("{name} is {declared} and not text")),
        }
    }
}

impl<D: Backend> Inner<D> {
    /// Looks for what would make the store useless, and changes nothing.
    pub(super) async fn check(&self) -> Result<(), Failure> {
        self.within_limit(self.look_through()).await
    }

    async fn look_through(&self) -> Result<(), Failure> {
        let shape = D::inspect(self).await?;
        let faults = shape.faults();
        if !faults.is_empty() {
            return Err(Failure::Setup(format!(
                "the table {} will not do: {}; it is meant to be created with:\n{}",
                self.settings.table.display(),
                faults.join("; "),
                D::create_table(&self.settings.table)
            )));
        }
        if !shape.finds_ended() {
            tracing::warn!(
                table = self.settings.table.display(),
                "the claim store's table has no index on expires_at: each purge reads all of it"
            );
        }
        D::probe(self).await
    }

    /// Deletes up to `most` ended entries, a few at a time.
    pub(super) async fn purge(&self, most: usize) -> Result<usize, Failure> {
        let mut removed = 0;
        while removed < most {
            let wanted = (most - removed).min(D::PURGED);
            let purged = self.purge_some(wanted).await?;
            removed += purged;
            if purged < wanted {
                break;
            }
        }
        Ok(removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, declared: &str, sort: Sort) -> Column {
        Column { name: name.to_owned(), declared: declared.to_owned(), sort, required: true }
    }

    fn good() -> Shape {
        let text = |room| Sort::Exact { room };
        Shape {
            columns: vec![
                column(KEY, "varchar(255)", text(255)),
                column(STATE, "varchar(16)", text(16)),
                column(HOLDER, "varchar(64)", text(64)),
                column(RECORDED, "bigint", Sort::Integer),
                column(ENDS, "bigint", Sort::Integer),
            ],
            indexes: vec![Index { columns: vec![KEY.to_owned()], unique: true }],
            ..Shape::default()
        }
    }

    #[test]
    fn each_fault_has_its_sentence() {
        type Spoil = fn(&mut Shape);
        let cases: [(Spoil, &str); 10] = [
            (|_| (), ""),
            (|s| drop(s.columns.pop()), "it has no column expires_at"),
            (
                |s| s.columns[0].sort = Sort::Loose { room: 255 },
                "message_id is varchar(255), which takes different keys for the same one",
            ),
            (
                |s| s.columns[0].sort = Sort::Exact { room: 254 },
                "message_id is varchar(255), too short for 255 characters",
            ),
            (|s| s.columns[0].sort = Sort::Other, "message_id is varchar(255) and not text"),
            (
                |s| s.columns[2].sort = Sort::Exact { room: 35 },
                "claimed_by is varchar(64), too short for 36 characters",
            ),
            (|s| s.columns[4].sort = Sort::Other, "expires_at is bigint and not a 64-bit integer for milliseconds"),
            (
                |s| s.columns.push(column("tenant", "text", Sort::Other)),
                "the column tenant needs a default value, as claims do not set it",
            ),
            (
                |s| s.indexes[0].columns.push(STATE.to_owned()),
                "message_id is not its primary key, so two claims of one message could both win; \
                 another unique index, on message_id, state, gets in the way of claims",
            ),
            (
                |s| {
                    let complaint = "its engine has no transactions";
                    s.complaints.push(complaint.to_owned());
                },
                "its engine has no transactions",
            ),
        ];
        for (spoil, sentence) in cases {
            let mut shape = good();
            spoil(&mut shape);
            assert_eq!(shape.faults().join("; "), sentence);
        }
    }
}
