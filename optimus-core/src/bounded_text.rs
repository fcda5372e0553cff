//! A text of user code, which may be of any length, or without an end: [`Bounded`].

use std::fmt;

/// The longest text of user code that is kept, in bytes.
pub const TEXT_BYTES_MAX: usize = 8 * 1024;

/// Keeps the beginning of what is written, and refuses the rest.
#[derive(Debug, Default)]
pub struct Bounded(pub String);

impl Bounded {
    /// Returns the beginning of a text.
    pub fn of(text: &dyn fmt::Display) -> String {
        let mut kept = Self::default();
        // What does not fit is left out.
        fmt::write(&mut kept, format_args!("{text}")).unwrap_or_default();
        kept.0
    }
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let fitting = cut(more, TEXT_BYTES_MAX - self.0.len());
        self.0.push_str(fitting);
        if fitting.len() < more.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

/// Returns at most this many bytes of a text, cut between characters.
pub fn cut(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Long;

    impl fmt::Display for Long {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            (0..TEXT_BYTES_MAX).try_for_each(|_| f.write_str("aé"))
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(Bounded::of(&"short"), "short");
        let kept = Bounded::of(&Long);
        assert!(kept.len() <= TEXT_BYTES_MAX && kept.len() > TEXT_BYTES_MAX - 3, "{}", kept.len());
        assert_eq!(cut("aé", 2), "a");
    }
}
