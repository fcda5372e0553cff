//! Writes what commands have found and done, for people or as JSON: [`Out`].

pub(crate) mod clean;
pub(crate) mod paint;
pub(crate) mod secrets;
pub(crate) mod table;
pub(crate) mod text;

use std::{
    env,
    io::{self, IsTerminal, Write},
};

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::json;

use self::{
    paint::Tone,
    secrets::Secrets,
    table::{Cell, Column},
};
use crate::{
    arguments::{Color, Global},
    failure::{Exit, Failure},
};

/// A row of a list.
pub(crate) trait Row: Serialize {
    const COLUMNS: &'static [Column];
    /// The cells of the row at that time, by Redis' clock, one for each column.
    fn cells(&self, now: DateTime<Utc>) -> Vec<Cell>;
}

/// Where the command writes, and how.
#[derive(Debug)]
pub(crate) struct Out {
    is_json: bool,
    secrets: Secrets,
    has_colors: bool,
    errors_have_colors: bool,
    /// The columns of the terminal.
    width: Option<usize>,
}

impl Out {
    pub(crate) fn new(global: &Global) -> Self {
        let is_wanted = |is_terminal| match global.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                is_terminal && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            }
        };
        let is_terminal = io::stdout().is_terminal();
        let width = rustix::termios::tcgetwinsize(io::stdout()).ok().filter(|_| is_terminal);
        Self {
            is_json: global.json,
            secrets: Secrets::of(global),
            has_colors: is_wanted(is_terminal),
            errors_have_colors: is_wanted(io::stderr().is_terminal()),
            width: width.map(|size| usize::from(size.ws_col)).filter(|width| *width > 0),
        }
    }

    pub(crate) fn has_colors(&self) -> bool {
        self.has_colors
    }

    pub(crate) fn secrets(&self) -> Secrets {
        self.secrets
    }

    pub(crate) fn is_json(&self) -> bool {
        self.is_json
    }

    /// Prints a table, or a line of JSON for each row. `none` says that there are no rows.
    pub(crate) fn rows<R: Row>(
        &self,
        rows: &[R],
        now: DateTime<Utc>,
        none: &str,
    ) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        if self.is_json {
            for row in rows {
                self.write_json(&mut out, row)?;
            }
        } else if rows.is_empty() {
            writeln!(out, "{}", clean::line(none))?;
        } else {
            let mut cells: Vec<_> = rows.iter().map(|row| row.cells(now)).collect();
            cells.iter_mut().flatten().for_each(|cell| cell.redact(self.secrets));
            for line in
                table::lines(R::COLUMNS, &cells, self.width, |tone, text| self.paint(tone, text))
            {
                writeln!(out, "{line}")?;
            }
        }
        Ok(out.flush()?)
    }

    /// Prints fields with their names, or one object.
    pub(crate) fn fields(
        &self,
        object: &impl Serialize,
        fields: &[(&str, Option<String>)],
    ) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        if self.is_json {
            self.write_json(&mut out, object)?;
            return Ok(out.flush()?);
        }
        let known = || fields.iter().filter_map(|(name, text)| Some((name, text.as_ref()?)));
        let width = known().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, text) in known() {
            let name = self.paint(Tone::Head, &format!("{name:width$}"));
            let clean = clean::lines(&self.secrets.text(text));
            let mut lines = clean.lines();
            writeln!(out, "{name}  {}", lines.next().unwrap_or("-"))?;
            for line in lines {
                writeln!(out, "{:width$}  {line}", "")?;
            }
        }
        Ok(out.flush()?)
    }

    /// Prints what was done: a sentence, or one object.
    pub(crate) fn done(&self, object: &impl Serialize, sentence: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        if self.is_json {
            self.write_json(&mut out, object)?;
        } else {
            writeln!(out, "{}", clean::lines(&self.secrets.text(sentence)))?;
        }
        Ok(out.flush()?)
    }

    /// Prints where a server is. Its URL may have what looks like a secret.
    pub(crate) fn place(&self, object: &impl Serialize, place: &str) -> Result<(), Failure> {
        Self { secrets: Secrets::Shown, ..*self }.done(object, place)
    }

    /// Prints an object in one line, also for people.
    pub(crate) fn line_of_json(&self, object: &impl Serialize) -> Result<(), Failure> {
        self.write_json(&mut io::stdout().lock(), object)
    }

    /// Prints whole lines behind labels, or a line of JSON for each.
    pub(crate) fn labelled<R: Serialize>(
        &self,
        rows: &[R],
        label: impl Fn(&R) -> (Tone, &str, &str),
    ) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        for row in rows {
            if self.is_json {
                self.write_json(&mut out, row)?;
                continue;
            }
            let (tone, word, text) = label(row);
            let clean = clean::lines(&self.secrets.text(text));
            for (number, line) in clean.lines().enumerate() {
                let word = if number == 0 {
                    self.paint(tone, &format!("{word:7}"))
                } else {
                    " ".repeat(7)
                };
                writeln!(out, "{word}  {line}")?;
            }
        }
        Ok(out.flush()?)
    }

    /// Prints a text as it is: a script or a page of this program.
    pub(crate) fn page(text: &[u8]) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        out.write_all(text)?;
        Ok(out.flush()?)
    }

    /// Prints a hint for people.
    pub(crate) fn hint(&self, text: &str) {
        if !self.is_json {
            self.complain(&clean::lines(&self.secrets.text(text)));
        }
    }

    /// Says how the list goes on, also beside JSON, which would look complete.
    pub(crate) fn more(&self, text: &str) {
        self.complain(&clean::lines(&self.secrets.text(text)));
    }

    /// Prints a warning, also beside JSON.
    pub(crate) fn warn(&self, text: &str) {
        let word = self.paint_error(Tone::Warning, "warning:");
        self.complain(&format!("{word} {}", clean::lines(&self.secrets.text(text))));
    }

    /// Prints why the command has failed.
    pub(crate) fn fail(&self, failure: &Failure) -> Exit {
        let Some(message) = &failure.message else { return failure.exit };
        if self.is_json {
            let object = json!({ "error": message, "exit": failure.exit as u8 });
            self.complain(&clean::json(&self.secrets.json(object.to_string())));
        } else {
            let word = self.paint_error(Tone::Bad, "error:");
            self.complain(&format!("{word} {}", clean::lines(&self.secrets.text(message))));
        }
        failure.exit
    }

    pub(crate) fn paint(&self, tone: Tone, text: &str) -> String {
        if self.has_colors { tone.paint(text) } else { text.to_owned() }
    }

    fn paint_error(&self, tone: Tone, text: &str) -> String {
        if self.errors_have_colors { tone.paint(text) } else { text.to_owned() }
    }

    fn write_json(&self, out: &mut impl Write, object: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(object)
            .map_err(|problem| Failure::new(format!("the output can't be JSON: {problem}")))?;
        Ok(writeln!(out, "{}", clean::json(&self.secrets.json(text)))?)
    }

    /// Nobody can be told that nobody reads the errors.
    #[expect(clippy::unused_self, reason = "only an output complains")]
    fn complain(&self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{text}");
    }
}
