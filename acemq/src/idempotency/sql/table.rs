use sea_query::{Expr, IntoTableRef as _, TableRef};

/// The table that holds the claims, perhaps in a schema of its own.
#[derive(Debug, Clone)]
pub struct Table {
    schema: Option<String>,
    name: String,
}

pub(super) const KEY: &str = "message_id";
pub(super) const STATE: &str = "state";
pub(super) const HOLDER: &str = "claimed_by";
pub(super) const RECORDED: &str = "recorded_at";
pub(super) const ENDS: &str = "expires_at";
pub(super) const COLUMNS: [&str; 5] = [KEY, STATE, HOLDER, RECORDED, ENDS];

impl Default for Table {
    fn default() -> Self {
        Self::named("acemq_idempotency")
    }
}

impl Table {
    /// The table `name` or `schema.name`.
    pub(super) fn named(name: &str) -> Self {
        let (schema, name) = match name.split_once('.') {
            Some((schema, name)) => (Some(schema.to_owned()), name),
            None => (None, name),
        };
        Self { schema, name: name.to_owned() }
    }

    pub(super) fn reference(&self) -> TableRef {
        match &self.schema {
            Some(schema) => (schema.clone(), self.name.clone()).into_table_ref(),
            None => self.name.clone().into_table_ref(),
        }
    }

    pub(super) fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The name of the index: short and plain, as the builder does not quote what stands in such a name.
    pub(super) fn index(&self) -> String {
        let plain = |c: char| if c.is_alphanumeric() { c } else { '_' };
        let name: String = self.name.chars().map(plain).take(40).collect();
        format!("{name}_expires")
    }

    /// The name as a user wrote it.
    pub(super) fn display(&self) -> String {
        match &self.schema {
            Some(schema) => format!("{schema}.{}", self.name),
            None => self.name.clone(),
        }
    }
}

/// The text of the state, written out: as a parameter it would be one more for each row.
pub(super) fn claimed() -> Expr {
    Expr::cust("'CLAIMED'")
}

pub(super) fn confirmed() -> Expr {
    Expr::cust("'CONFIRMED'")
}
