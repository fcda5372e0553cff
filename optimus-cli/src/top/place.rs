//! The row that is chosen, which stays chosen when rows change their order: [`Place`].

use std::ops::Range;

/// The row of a page that is chosen, and which rows are on the screen.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    /// The row that is chosen; `None` takes the one at `at`.
    key: Option<String>,
    at: usize,
    /// The first row on the screen.
    first: usize,
    count: usize,
    height: usize,
}

/// How to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Move {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
}

impl Place {
    pub(super) fn go(&mut self, how: Move) {
        let page = self.height.saturating_sub(1).max(1);
        let last = self.count.saturating_sub(1);
        let at = match how {
            Move::Up => self.at.saturating_sub(1),
            Move::Down => self.at + 1,
            Move::PageUp => self.at.saturating_sub(page),
            Move::PageDown => self.at + page,
            Move::First => 0,
            Move::Last => last,
        };
        self.at = at.min(last);
        self.key = None;
    }

    /// Finds the chosen row again. Returns which rows are shown in this height, and which of all is
    /// chosen.
    pub(super) fn settle<'a>(
        &mut self,
        keys: impl ExactSizeIterator<Item = &'a str> + Clone,
        height: usize,
    ) -> (Range<usize>, usize) {
        (self.count, self.height) = (keys.len(), height);
        let known = self.key.as_deref();
        let found = known.and_then(|known| keys.clone().position(|key| key == known));
        self.at = found.unwrap_or(self.at).min(self.count.saturating_sub(1));
        let mut all = keys;
        self.key = all.nth(self.at).map(str::to_owned);
        if height == 0 {
            return (0..0, self.at);
        }
        if self.at < self.first {
            self.first = self.at;
        } else if self.at >= self.first + height {
            self.first = self.at + 1 - height;
        }
        self.first = self.first.min(self.count.saturating_sub(height));
        (self.first..self.count.min(self.first + height), self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_row_is_followed_and_stays_on_the_screen() {
        let mut place = Place::default();
        let rows = ["a", "b", "c", "d", "e"];
        assert_eq!(place.settle(rows.into_iter(), 2), (0..2, 0));
        for _ in 0..3 {
            place.go(Move::Down);
        }
        assert_eq!(place.settle(rows.into_iter(), 2), (2..4, 3));
        let other = ["d", "a", "b", "c", "e"];
        assert_eq!(place.settle(other.into_iter(), 2), (0..2, 0), "d is the first now");
        assert_eq!(place.settle(["x", "y"].into_iter(), 2), (0..2, 0), "d has gone");
        place.go(Move::Last);
        place.go(Move::Down);
        assert_eq!(place.settle(["x", "y"].into_iter(), 9), (0..2, 1));
        assert_eq!(place.settle([].into_iter(), 9), (0..0, 0));
        place.go(Move::PageDown);
        assert_eq!(place.settle(rows.into_iter(), 0), (0..0, 0), "no room for a row");
    }
}
