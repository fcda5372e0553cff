//! From which row the relay reads: [`Floor`].
//!
//! Under an old snapshot, PostgreSQL keeps the deleted rows of a table, and each read of the first
//! live rows passes them. So the relay reads above a floor. No row below it may be committed later:
//! a transaction draws the numbers of its rows when it inserts them, and may commit much later than
//! others with higher numbers.

use std::collections::VecDeque;

/// The most marks that wait.
const MARKS_MAX: usize = 64;

/// Above which `seq` rows can still appear.
#[derive(Debug, Default)]
pub(crate) struct Floor {
    seq: i64,
    marks: VecDeque<Mark>,
}

/// The last row of a read. All rows up to it that were visible are read.
#[derive(Debug)]
struct Mark {
    seq: i64,
    /// The number of a transaction that began to write after the read.
    xact: Option<i64>,
}

impl Floor {
    /// Returns the number above which to read.
    pub(crate) fn seq(&self) -> i64 {
        self.seq
    }

    /// Returns to the start, because rows that were read are to be read again.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Learns from a read that saw all transactions with numbers below `ended_below` as ended.
    /// `read_up_to` is the last row of which it is known that all visible rows before it were read,
    /// if any.
    ///
    /// Each transaction takes its own number before it draws a `seq`. So those with rows below a
    /// mark have lower numbers than any transaction that takes its number after the mark's read.
    /// Once all of them have ended, one more read finds the last of their rows, and then the mark
    /// is the floor.
    pub(crate) fn learn(&mut self, ended_below: i64, read_up_to: Option<i64>) {
        let is_over = |mark: &Mark| mark.xact.is_some_and(|xact| ended_below >= xact);
        while let Some(mark) = self.marks.front().filter(|mark| is_over(mark)) {
            // Rows up to the mark may be among those that this read did not reach.
            if read_up_to.is_none_or(|read| read < mark.seq) {
                break;
            }
            self.seq = mark.seq;
            self.marks.pop_front();
        }
        if let Some(seq) = read_up_to
            && self.marks.len() < MARKS_MAX
            && self.marks.back().map_or(self.seq, |mark| mark.seq) < seq
        {
            self.marks.push_back(Mark { seq, xact: None });
        }
    }

    /// Learns the number of a transaction that began to write after all reads so far.
    pub(crate) fn wrote(&mut self, own: i64) {
        for mark in self.marks.iter_mut().filter(|mark| mark.xact.is_none()) {
            mark.xact = Some(own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_follows_once_all_that_may_have_drawn_lower_numbers_have_ended() {
        let mut floor = Floor::default();
        floor.learn(10, Some(6));
        floor.wrote(12);
        assert_eq!(floor.seq(), 0);
        // Transaction 11 has drawn row 5 before the first read, and is open.
        floor.learn(11, Some(8));
        floor.wrote(13);
        floor.learn(11, Some(9));
        assert_eq!(floor.seq(), 0);
        // It has ended; this read has found row 5.
        floor.learn(14, Some(9));
        assert_eq!(floor.seq(), 8);
    }

    #[test]
    fn the_floor_waits_for_a_transaction_that_follows_the_read_of_its_mark() {
        let mut floor = Floor::default();
        floor.wrote(10);
        floor.learn(11, Some(6));
        // No transaction of the relay has begun to write since: 11 may have drawn row 5.
        floor.learn(12, Some(7));
        assert_eq!(floor.seq(), 0);
        floor.wrote(13);
        floor.learn(13, Some(8));
        assert_eq!(floor.seq(), 7);
    }

    #[test]
    fn a_read_that_did_not_reach_a_mark_does_not_raise_the_floor() {
        let mut floor = Floor::default();
        floor.learn(10, Some(600));
        floor.wrote(12);
        floor.learn(13, Some(100));
        assert_eq!(floor.seq(), 0);
        floor.learn(14, None);
        assert_eq!(floor.seq(), 0);
        floor.learn(15, Some(600));
        assert_eq!(floor.seq(), 600);
    }

    #[test]
    fn the_marks_that_wait_are_limited() {
        let mut floor = Floor::default();
        for seq in 1..1_000 {
            floor.learn(0, Some(seq));
            floor.wrote(seq);
        }
        assert_eq!(floor.marks.len(), MARKS_MAX);
        floor.learn(1_001, Some(1_000));
        assert_eq!(floor.seq(), i64::try_from(MARKS_MAX).unwrap());
    }
}
