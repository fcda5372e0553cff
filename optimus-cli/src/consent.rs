//! Asks before something is done that can't be undone, or to many tasks: [`Consent`].

use std::io::{self, IsTerminal, Write};

use crate::{
    arguments::Global,
    failure::{Exit, Failure},
    output::{clean, text},
};

/// Whether the operator agrees.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Consent {
    is_given: bool,
}

impl Consent {
    pub(crate) fn of(global: &Global) -> Self {
        Self { is_given: global.yes }
    }

    /// Asks a question, and fails unless the answer is yes.
    pub(crate) fn ask(self, question: &str) -> Result<(), Failure> {
        if self.is_given {
            return Ok(());
        }
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Err(Failure::of(
                Exit::Aborted,
                format!(
                    "{question} Nobody can be asked, because this is no terminal: nothing was \
                     done. Add --yes to do it."
                ),
            ));
        }
        let mut out = io::stderr().lock();
        write!(out, "{} [y/N] ", clean::lines(question))?;
        out.flush()?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(Failure::of(Exit::Aborted, "not confirmed; nothing was done")),
        }
    }
}

/// Refuses another number of tasks than the operator expects.
pub(crate) fn expect(expected: Option<u64>, found: u64) -> Result<(), Failure> {
    match expected {
        Some(expected) if expected != found => Err(Failure::of(
            Exit::Refused,
            format!(
                "{} found, and --expect says {}: nothing was done",
                text::count(found, "task"),
                text::number(expected)
            ),
        )),
        _ => Ok(()),
    }
}
