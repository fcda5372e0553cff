//! The one transaction of a turn: it notes what comes next and deletes what is submitted, if no
//! other relay has noted anything since: [`Change`].
//!
//! Mostly it is one statement or one packet of statements, so no lock waits for the relay. Only
//! rows that are put aside, which are few, take a statement each.

use std::ops::RangeInclusive;

use crate::{
    Dialect, Error, OutboxDb,
    dialect::joined,
    noted::Noted,
    statement::{Kind, Statement},
    stream::{NAME, Stream},
};

/// What a transaction shall do.
pub(crate) struct Change<'a> {
    /// What is noted as far as the relay knows. Otherwise the transaction does nothing.
    pub(crate) before: &'a Noted,
    pub(crate) next: &'a Noted,
    /// Rows that are submitted.
    pub(crate) done: &'a [i64],
    /// Rows to put aside, each with the reason.
    pub(crate) parked: Vec<&'a (i64, String)>,
}

/// What a transaction has done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    /// All of it. The number is that of the transaction, if the database tells it.
    Noted(Option<i64>),
    /// Nothing, because another relay has noted something since.
    Moved,
}

impl<DB: OutboxDb> Stream<DB> {
    pub(crate) async fn change(&mut self, change: &Change<'_>) -> Result<Changed, Error> {
        let note = note(change)?;
        match DB::DIALECT {
            Dialect::Postgres if change.parked.is_empty() => {
                let statement = in_one_statement(note, change.done);
                // The database answers all rows only after the commit.
                let rows = self.read(statement, &[Kind::Int]).await?;
                let own = rows.into_iter().flatten().next().map(|own| own.int());
                Ok(own.map_or(Changed::Moved, |own| Changed::Noted(Some(own))))
            }
            Dialect::MySql if change.parked.is_empty() => {
                let packet = in_one_packet(&note, change.before, change.done);
                let changed = self.run_at_once(packet).await?;
                let has_noted = matches!(changed[..], [.., 1, _]);
                Ok(if has_noted { Changed::Noted(None) } else { Changed::Moved })
            }
            _ => self.change_step_by_step(note, change).await,
        }
    }

    async fn change_step_by_step(
        &mut self,
        note: Statement,
        change: &Change<'_>,
    ) -> Result<Changed, Error> {
        self.begin().await?;
        // This also locks the row, so that nobody else deletes or puts aside.
        if self.run(note).await? == 0 {
            self.roll_back().await?;
            return Ok(Changed::Moved);
        }
        self.delete(change.done).await?;
        for (seq, why) in &change.parked {
            self.park(*seq, why).await?;
        }
        self.commit().await?;
        Ok(Changed::Noted(None))
    }
}

/// Returns the statement that notes what comes next, if `before` is still noted.
fn note(change: &Change<'_>) -> Result<Statement, Error> {
    let Change { before, next, .. } = change;
    let update = "UPDATE optimus_stream SET epoch = ?, number = ?, noted = ? \
                  WHERE name = ? AND epoch = ? AND number = ?";
    let update = Statement::new(update).with(&*next.epoch).with(number(next));
    let update = update.with(serde_json::to_string(&next.shares)?).with(NAME);
    Ok(update.with(&*before.epoch).with(number(before)))
}

/// For PostgreSQL. It answers a row with the number of the transaction if it has noted.
fn in_one_statement(note: Statement, done: &[i64]) -> Statement {
    let delete = " RETURNING 1), deleted AS (DELETE FROM optimus_outbox \
                  WHERE EXISTS (SELECT FROM moved) \
                  AND seq = ANY(string_to_array(?, ',')::bigint[])) \
                  SELECT pg_current_xact_id()::text::bigint FROM moved";
    note.within("WITH moved AS (", delete).with(joined(done))
}

/// For MySQL. The statement before the last changes one row if the packet has noted. After a
/// failure, the relay drops the connection with the transaction.
///
/// If the relay is killed meanwhile, the server runs the rest of the packet, and `ROW_COUNT()` is
/// -1 after a statement whose answer it could not send. So the deletion depends on what was read.
fn in_one_packet(note: &Statement, before: &Noted, done: &[i64]) -> String {
    let note = note.in_mysql();
    if done.is_empty() {
        return format!("BEGIN; {note}; COMMIT");
    }
    let find = "SELECT COUNT(*) INTO @optimus_found FROM optimus_stream \
                WHERE name = ? AND epoch = ? AND number = ? FOR UPDATE";
    let find = Statement::new(find).with(NAME).with(&*before.epoch).with(number(before));
    let find = find.in_mysql();
    let deletes = deletes_in_mysql(done, "@optimus_found = 1");
    format!("BEGIN; {find}; {deletes}; {note}; COMMIT")
}

/// Returns the statements that delete these rows on a condition. Between the ends of a range there
/// is no other row, whose lock a statement would wait for. A range costs MySQL about as much as
/// four rows of a list, and the list itself as much as two ranges.
fn deletes_in_mysql(done: &[i64], condition: &str) -> String {
    let ranges = ranges(done);
    if ranges.len() > 2 + done.len() / 4 {
        let delete = Dialect::MySql.delete_each("optimus_outbox", "seq", done).in_mysql();
        return format!("{delete} WHERE {condition}");
    }
    let delete = |range: &RangeInclusive<i64>| {
        let (first, last) = (range.start(), range.end());
        format!("DELETE FROM optimus_outbox WHERE seq BETWEEN {first} AND {last} AND {condition}")
    };
    ranges.iter().map(delete).collect::<Vec<_>>().join("; ")
}

/// Returns the ranges of numbers that follow one another without a gap.
fn ranges(numbers: &[i64]) -> Vec<RangeInclusive<i64>> {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    let follow = numbers.chunk_by(|one, next| one.checked_add(1) == Some(*next));
    follow.map(|run| run[0]..=run[run.len() - 1]).collect()
}

fn number(noted: &Noted) -> i64 {
    i64::try_from(noted.number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_follow_one_another_are_one_range() {
        assert_eq!(ranges(&[7, 3, 4, 5, 9, 10]), [3..=5, 7..=7, 9..=10]);
        assert_eq!(ranges(&[i64::MAX, i64::MIN]), [i64::MIN..=i64::MIN, i64::MAX..=i64::MAX]);
        assert!(ranges(&[]).is_empty());
    }

    #[test]
    fn rows_with_many_gaps_are_deleted_by_a_list() {
        let near = deletes_in_mysql(&[3, 2, 1, 9], "x = 1");
        let delete = "DELETE FROM optimus_outbox WHERE seq BETWEEN";
        assert_eq!(near, format!("{delete} 1 AND 3 AND x = 1; {delete} 9 AND 9 AND x = 1"));
        let far = deletes_in_mysql(&[1, 3, 5, 7], "x = 1");
        assert!(far.contains("JSON_TABLE") && far.ends_with(" WHERE x = 1"), "{far}");
    }
}
