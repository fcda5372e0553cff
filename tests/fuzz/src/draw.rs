//! Values drawn from bytes: [`Draw`]. After the end of the bytes every drawn value is zero or
//! empty.

use std::time::Duration;

/// The bytes that are left to draw from.
pub(crate) struct Draw<'a>(pub(crate) &'a [u8]);

impl<'a> Draw<'a> {
    pub(crate) fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    pub(crate) fn is(&mut self) -> bool {
        self.byte() % 2 == 1
    }

    /// Draws a number of up to 64 bits. Small numbers are as likely as large ones.
    pub(crate) fn number(&mut self) -> u64 {
        let count = usize::from(self.byte() % 9);
        self.bytes(count).iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// Draws a number from 0.0 to 1.0.
    pub(crate) fn share(&mut self) -> f64 {
        f64::from(self.byte()) / 255.0
    }

    pub(crate) fn duration(&mut self) -> Duration {
        Duration::from_millis(self.number())
    }

    /// Draws up to 255 bytes, as text.
    pub(crate) fn text(&mut self) -> String {
        let count = usize::from(self.byte());
        String::from_utf8_lossy(self.bytes(count)).into_owned()
    }

    /// Draws a value or none.
    pub(crate) fn option<T>(&mut self, draw: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.is().then(|| draw(self))
    }

    /// Draws up to this many bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (drawn, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        drawn
    }
}
