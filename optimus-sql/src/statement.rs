//! A statement with its values, for any of the databases: [`Statement`].

use crate::dialect::Dialect;

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// A value of a parameter or of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A whole number.
    Int(i64),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// No value. Only columns have it.
    Null,
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole number.
    Int,
    /// A text.
    Text,
    /// Bytes.
    Bytes,
}

/// A statement with `?` for each value.
#[derive(Debug, Clone)]
pub struct Statement {
    sql: String,
    pub(crate) values: Vec<Value>,
    /// Whether the database keeps the prepared statement, because the text comes again.
    pub(crate) is_kept: bool,
}

impl Statement {
    pub(crate) fn new(sql: impl Into<String>) -> Self {
        Self { sql: sql.into(), values: Vec::new(), is_kept: true }
    }

    pub(crate) fn add(mut self, sql: &str) -> Self {
        self.sql.push_str(sql);
        self
    }

    /// Puts the text between two others. Values of the second are added afterwards.
    pub(crate) fn within(mut self, before: &str, after: &str) -> Self {
        self.sql = [before, &self.sql, after].concat();
        self
    }

    pub(crate) fn with(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Adds a condition that a column is none of these texts.
    pub(crate) fn none_of(self, column: &str, texts: &[&str]) -> Self {
        if texts.is_empty() {
            return self;
        }
        let holes = vec!["?"; texts.len()].join(", ");
        let statement = self.add(&format!(" AND {column} NOT IN ({holes})"));
        texts.iter().fold(statement, |statement, text| statement.with(*text))
    }

    pub(crate) fn once_only(mut self) -> Self {
        self.is_kept = false;
        self
    }

    /// Returns the text as the database expects it. No text of ours has a `?` of its own.
    #[cfg_attr(
        not(any(feature = "mysql", feature = "postgres", feature = "sqlite")),
        allow(dead_code, reason = "a build without a database sends no statement")
    )]
    pub(crate) fn text(&self, dialect: Dialect) -> String {
        if dialect != Dialect::Postgres {
            return self.sql.clone();
        }
        let mut parts = self.sql.split('?');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for (number, part) in (1_u32..).zip(parts) {
            text.push('$');
            text.push_str(&number.to_string());
            text.push_str(part);
        }
        text
    }

    /// Returns the text with its values in it, if it is for MySQL and does not come again. To
    /// prepare and forget it would take two more exchanges.
    #[cfg_attr(
        not(any(feature = "mysql", feature = "postgres", feature = "sqlite")),
        allow(dead_code, reason = "a build without a database sends no statement")
    )]
    pub(crate) fn once_in_mysql(&self, dialect: Dialect) -> Option<String> {
        (dialect == Dialect::MySql && !self.is_kept).then(|| self.in_mysql())
    }

    /// Returns the text with its values in it, for MySQL.
    pub(crate) fn in_mysql(&self) -> String {
        let mut parts = self.sql.split('?');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for (value, part) in self.values.iter().zip(parts) {
            value.add_to(&mut text);
            text.push_str(part);
        }
        text
    }
}

impl Value {
    /// Adds it to a text of MySQL. As digits it needs no escapes, which depend on the settings.
    fn add_to(&self, text: &mut String) {
        let (charset, bytes) = match self {
            Self::Int(number) => return text.push_str(&number.to_string()),
            Self::Null => return text.push_str("NULL"),
            Self::Text(value) => ("_utf8mb4 ", value.as_bytes()),
            Self::Bytes(bytes) => ("", &bytes[..]),
        };
        text.extend([charset, "X'"]);
        for byte in bytes {
            text.extend([byte >> 4, byte & 15].map(|half| char::from(DIGITS[usize::from(half)])));
        }
        text.push('\'');
    }

    pub(crate) fn int(&self) -> i64 {
        if let Self::Int(number) = self { *number } else { 0 }
    }

    pub(crate) fn into_text(self) -> Option<String> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        if let Self::Bytes(bytes) = self { bytes } else { Vec::new() }
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_a_text_of_mysql_need_no_escapes() {
        let statement =
            Statement::new("SELECT ?, ?, ? FROM t").with(-7).with("a'\\").with(vec![9_u8]);
        assert_eq!(statement.in_mysql(), "SELECT -7, _utf8mb4 X'61275c', X'09' FROM t");
    }
}
