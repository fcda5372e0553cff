//! Rows of one page, before they are drawn: [`Table`].

use std::cmp::Ordering;

use crate::output::{clean, paint::Tone, table::cut};

/// A text that is longer is cut before anything else looks at it.
const CHARS_MAX: usize = 500;

/// The head of a column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) title: &'static str,
    /// How wide it is; `None` takes what the others leave, and only one column does.
    pub(super) width: Option<u16>,
    pub(super) is_number: bool,
    /// It is shown on terminals that have at least so many columns.
    pub(super) from: u16,
}

impl Column {
    pub(super) const fn number(title: &'static str, width: u16) -> Self {
        Self { title, width: Some(width), is_number: true, from: 0 }
    }

    pub(super) const fn text(title: &'static str, width: u16) -> Self {
        Self { title, width: Some(width), is_number: false, from: 0 }
    }

    pub(super) const fn rest(title: &'static str) -> Self {
        Self { title, width: None, is_number: false, from: 0 }
    }

    pub(super) const fn from(self, from: u16) -> Self {
        Self { from, ..self }
    }
}

/// A text without what it could do to a terminal.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) tone: Tone,
}

impl Cell {
    pub(super) fn new(text: impl AsRef<str>) -> Self {
        Self { text: clean(text.as_ref()), tone: Tone::Plain }
    }

    pub(super) fn tone(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    /// A number, pale if it is zero.
    pub(super) fn number(number: u64) -> Self {
        let tone = if number == 0 { Tone::Pale } else { Tone::Plain };
        Self::new(super::number::short(number)).tone(tone)
    }

    /// The same, in a tone if it is not zero.
    pub(super) fn alarm(number: u64, tone: Tone) -> Self {
        if number == 0 { Self::number(0) } else { Self::number(number).tone(tone) }
    }

    pub(super) fn or_dash(text: Option<String>) -> Self {
        text.map_or_else(|| Self::new("-").tone(Tone::Pale), Self::new)
    }

    /// Returns the text in at most this many columns of the terminal.
    pub(super) fn within(&self, width: u16) -> String {
        cut(&self.text, usize::from(width))
    }
}

/// Returns the text in one line, without what it could do to a terminal, and not much of it. A
/// character without a width of its own stays only behind another one, and only one does: a
/// thousand accents on a letter would cover other lines.
pub(super) fn clean(text: &str) -> String {
    use unicode_width::UnicodeWidthChar;
    let (mut short, mut is_after_wide) = (String::new(), false);
    for c in clean::line(text).chars().take(CHARS_MAX) {
        let is_wide = c.width().unwrap_or(0) > 0;
        if is_wide || is_after_wide {
            short.push(c);
        }
        is_after_wide = is_wide;
    }
    short
}

/// A row, and what it is of.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) key: String,
    pub(super) cells: Vec<Cell>,
}

/// Rows in their order.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) columns: &'static [Column],
    pub(super) rows: Vec<Row>,
    /// How many rows there are without the filter.
    pub(super) all: usize,
    /// What is said if there is no row at all.
    pub(super) none: &'static str,
}

/// An order of rows: its name, and which of two comes first.
pub(super) struct Order<T: 'static> {
    pub(super) name: &'static str,
    pub(super) compare: fn(&T, &T) -> Ordering,
}

/// Returns the lines that have the text, in this order.
pub(super) fn chosen<'a, T>(
    lines: &'a [T],
    order: &Order<T>,
    filter: &str,
    texts: impl Fn(&'a T) -> Vec<&'a str>,
) -> Vec<&'a T> {
    let filter = filter.to_lowercase();
    let has = |text: &str| text.to_lowercase().contains(&filter);
    let takes = |line: &&'a T| filter.is_empty() || texts(line).into_iter().any(has);
    let mut chosen: Vec<&'a T> = lines.iter().filter(takes).collect();
    // It keeps the order of equal ones, which is that of their names.
    chosen.sort_by(|one, other| (order.compare)(one, other));
    chosen
}
