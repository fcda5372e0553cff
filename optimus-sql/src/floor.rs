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

/// What a transaction of the relay knows of all transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Horizon {
    /// Its own number.
    pub(crate) own: i64,
    /// All transactions with lower numbers have ended before this transaction reads.
    pub(crate) ended_below: i64,
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

    /// Learns from a read that followed this horizon. `read_up_to` is the last row of which it is
    /// known that all visible rows before it were read, if any.
    ///
    /// Each transaction takes its own number before it draws a `seq`. So those with rows below a
    /// mark have lower numbers than any transaction that takes its number after the mark's read.
    /// Once all of them have ended, one more read finds the last of their rows, and then the mark
    /// is the floor.
    pub(crate) fn learn(&mut self, horizon: Horizon, read_up_to: Option<i64>) {
        let is_over = |mark: &Mark| mark.xact.is_some_and(|xact| horizon.ended_below >= xact);
        while let Some(mark) = self.marks.front().filter(|mark| is_over(mark)) {
            // Rows up to the mark may be among those that this read did not reach.
            if read_up_to.is_none_or(|read| read < mark.seq) {
                break;
            }
            self.seq = mark.seq;
            self.marks.pop_front();
        }
        for mark in self.marks.iter_mut().filter(|mark| mark.xact.is_none()) {
            mark.xact = Some(horizon.own);
        }
        if let Some(seq) = read_up_to
            && self.marks.len() < MARKS_MAX
            && self.marks.back().map_or(self.seq, |mark| mark.seq) < seq
        {
            self.marks.push_back(Mark { seq, xact: None });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn horizon(own: i64, ended_below: i64) -> Horizon {
        Horizon { own, ended_below }
    }

    #[test]
    fn the_floor_follows_once_all_that_may_have_drawn_lower_numbers_have_ended() {
        let mut floor = Floor::default();
        floor.learn(horizon(10, 10), Some(6));
        assert_eq!(floor.seq(), 0);
        // Transaction 11 has drawn row 5 before the first read, and is open.
        floor.learn(horizon(12, 11), Some(8));
        floor.learn(horizon(13, 11), Some(9));
        assert_eq!(floor.seq(), 0);
        // It has ended; this read has found row 5.
        floor.learn(horizon(14, 14), Some(9));
        assert_eq!(floor.seq(), 8);
    }

    #[test]
    fn a_read_that_did_not_reach_a_mark_does_not_raise_the_floor() {
        let mut floor = Floor::default();
        floor.learn(horizon(10, 10), Some(600));
        floor.learn(horizon(12, 11), Some(600));
        floor.learn(horizon(13, 13), Some(100));
        assert_eq!(floor.seq(), 0);
        floor.learn(horizon(14, 14), None);
        assert_eq!(floor.seq(), 0);
        floor.learn(horizon(15, 15), Some(600));
        assert_eq!(floor.seq(), 600);
    }

    #[test]
    fn the_marks_that_wait_are_limited() {
        let mut floor = Floor::default();
        for seq in 1..1_000 {
            floor.learn(horizon(seq, 0), Some(seq));
        }
        assert_eq!(floor.marks.len(), MARKS_MAX);
        floor.learn(horizon(1_001, 1_001), Some(1_000));
        assert_eq!(floor.seq(), i64::try_from(MARKS_MAX).unwrap());
    }
}
