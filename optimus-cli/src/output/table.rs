//! Rows of cells in aligned columns, as wide as a terminal shows them.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{clean, paint::Tone, secrets::Secrets};

/// The widest cell where there is no terminal.
const CELL_MAX: usize = 200;
/// The narrowest last column, however narrow the terminal is.
const LAST_MIN: usize = 12;
const GAP: usize = 2;

/// The head of a column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    title: &'static str,
    is_number: bool,
}

impl Column {
    /// A column of texts, which begin below each other.
    pub(crate) const fn text(title: &'static str) -> Self {
        Self { title, is_number: false }
    }

    /// A column of numbers or times, which end below each other.
    pub(crate) const fn number(title: &'static str) -> Self {
        Self { title, is_number: true }
    }
}

/// A text in a row, which is escaped.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    pub(crate) fn new(text: impl AsRef<str>) -> Self {
        Self { text: cut(&clean::line(text.as_ref()), CELL_MAX), tone: Tone::Plain }
    }

    pub(crate) fn tone(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    /// Replaces what looks like a secret.
    pub(crate) fn redact(&mut self, secrets: Secrets) {
        self.text = secrets.text(&self.text).into_owned();
    }

    /// A number, pale if it is zero.
    pub(crate) fn number(number: u64) -> Self {
        let tone = if number == 0 { Tone::Pale } else { Tone::Plain };
        Self::new(super::text::number(number)).tone(tone)
    }

    pub(crate) fn or_dash(text: Option<String>) -> Self {
        text.map_or_else(|| Self::new("-").tone(Tone::Pale), Self::new)
    }
}

/// Returns the lines of a table. If `width` is known, the last column is cut so that no line is
/// wider.
pub(crate) fn lines(
    columns: &[Column],
    rows: &[Vec<Cell>],
    width: Option<usize>,
    paint: impl Fn(Tone, &str) -> String,
) -> Vec<String> {
    let mut widths: Vec<usize> = columns.iter().map(|column| column.title.width()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.text.width());
        }
    }
    let last = columns.len() - 1;
    if let Some(width) = width {
        let others: usize = widths[..last].iter().map(|width| width + GAP).sum();
        widths[last] = widths[last].min(width.saturating_sub(others).max(LAST_MIN));
    }
    let head = columns.iter().map(|column| Cell::new(column.title).tone(Tone::Head)).collect();
    std::iter::once(&head)
        .chain(rows)
        .map(|row: &Vec<Cell>| {
            let mut line = String::new();
            for (place, cell) in row.iter().enumerate() {
                let text =
                    if place == last { cut(&cell.text, widths[last]) } else { cell.text.clone() };
                let space = " ".repeat(widths[place].saturating_sub(text.width()));
                let painted = paint(cell.tone, &text);
                match (columns[place].is_number, place == last) {
                    (true, _) => line.extend([space.as_str(), &painted]),
                    (false, false) => line.extend([painted.as_str(), &space]),
                    (false, true) => line.push_str(&painted),
                }
                if place < last {
                    line.push_str("  ");
                }
            }
            line.trim_end().to_owned()
        })
        .collect()
}

/// Returns the text, or its beginning and `…` if it is wider.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let (mut short, mut used) = (String::new(), 1);
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        short.push(c);
    }
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(_: Tone, text: &str) -> String {
        text.to_owned()
    }

    #[test]
    fn columns_are_aligned_also_with_wide_characters() {
        let columns = [Column::text("QUEUE"), Column::number("READY"), Column::text("WHY")];
        let rows = [
            vec![Cell::new("mail"), Cell::number(1_204), Cell::new("a\nb")],
            vec![Cell::new("世界"), Cell::number(0), Cell::new("\u{1b}[2J")],
        ];
        let lines = lines(&columns, &rows, None, plain);
        assert_eq!(lines, ["QUEUE  READY  WHY", "mail   1,204  a\\nb", "世界       0  \\u{1b}[2J"]);
    }

    #[test]
    fn only_the_last_column_is_cut_to_the_terminal() {
        let columns = [Column::text("ID"), Column::text("ERROR")];
        let rows = [vec![Cell::new("0123456789"), Cell::new("x".repeat(500))]];
        let wide = lines(&columns, &rows, Some(40), plain);
        assert_eq!(wide[1].width(), 40);
        assert!(wide[1].starts_with("0123456789  xxx") && wide[1].ends_with('…'));
        assert_eq!(lines(&columns, &rows, Some(5), plain)[1].width(), 10 + GAP + LAST_MIN);
        assert_eq!(lines(&columns, &rows, None, plain)[1].width(), 10 + GAP + CELL_MAX);
        assert_eq!(cut("世界世界", 5), "世界…");
    }
}
