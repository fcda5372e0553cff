//! Rows of the outbox as one text: [`as_one_row`], [`read_rows`].
//!
//! sqlx reads SQLite in a thread of its own, which hands each row over by itself. For a batch of
//! small calls that takes longer than to read them. So a batch is one row, with a line for each
//! call: `<seq> <age in ms> <queue> <id> <body>`, the last three as hexadecimal digits; a body that
//! is too large is `-`. So a row that is no call, which anybody may insert, does not spoil the
//! others.

use std::time::Duration;

use crate::{statement::Statement, stream::StoredRow};

/// Makes one row of those of a statement with the columns of a stored row.
pub(crate) fn as_one_row(rows: Statement) -> Statement {
    rows.within(
        "SELECT group_concat(seq || ' ' || CAST(age AS integer) || ' ' || hex(queue) || ' ' || \
         hex(id) || ' ' || CASE WHEN body IS NULL THEN '-' ELSE hex(body) END, char(10)) FROM (",
        ") AS lines",
    )
}

/// Reads what [`as_one_row`] returns, in the order of `seq`.
pub(crate) fn read_rows(text: &str) -> Vec<StoredRow> {
    let mut rows: Vec<StoredRow> = text.lines().filter_map(read_row).collect();
    // The database adds the lines in its order, but does not promise it.
    rows.sort_by_key(|row| row.seq);
    rows
}

fn read_row(line: &str) -> Option<StoredRow> {
    let mut words = line.split(' ');
    let mut next = || words.next().unwrap_or_default();
    let seq = next().parse().ok()?;
    let age = Duration::from_millis(next().parse().unwrap_or(0));
    let mut text = || {
        let mut text = bytes(next());
        // A database in UTF-16 has a zero in each character of a name or an id, which is ASCII.
        text.retain(|byte| *byte != 0);
        String::from_utf8_lossy(&text).into_owned()
    };
    let (queue, id) = (text(), text());
    let body = Some(next()).filter(|digits| *digits != "-").map(bytes);
    Some(StoredRow { seq, queue, id, body, age })
}

/// Reads pairs of hexadecimal digits.
fn bytes(digits: &str) -> Vec<u8> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => digit - b'0',
        b'A'..=b'F' => digit - b'A' + 10,
        _ => 0,
    };
    digits.as_bytes().chunks_exact(2).map(|pair| value(pair[0]) << 4 | value(pair[1])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_in_order_and_bytes_of_any_kind_are_kept() {
        let text = "12 5 6D61696C 37 000AFF20\n7 -3 6D C3 \n";
        let rows = read_rows(text);
        let seqs: Vec<i64> = rows.iter().map(|row| row.seq).collect();
        assert_eq!(seqs, [7, 12]);
        assert_eq!((rows[0].queue.as_str(), rows[0].id.as_str()), ("m", "\u{fffd}"));
        assert_eq!((rows[0].age, rows[0].body.as_deref()), (Duration::ZERO, Some(&[][..])));
        assert_eq!((rows[1].queue.as_str(), rows[1].id.as_str()), ("mail", "7"));
        assert_eq!(rows[1].age, Duration::from_millis(5));
        assert_eq!(rows[1].body.as_deref(), Some(&[0, 10, 255, 32][..]));
        assert_eq!(read_rows("3 5 6D 37 -")[0].body, None, "it is too large");
        let wide = read_rows("1 0 6D00610069006C00 3700 6D");
        assert_eq!((wide[0].queue.as_str(), wide[0].id.as_str()), ("mail", "7"), "in UTF-16");
        assert!(read_rows("").is_empty());
    }
}
