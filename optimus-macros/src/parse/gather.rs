//! The options that gather calls: `gather = "10s | 500"` and `by`.

use std::time::Duration;

use syn::{Expr, ExprLit, Ident, Lit, LitStr};

use crate::{
    errors::Errors,
    parse::{
        duration, option_value,
        template::{self, Template},
    },
};

/// The most calls of a run.
const CALLS_MAX: u32 = 10_000;

/// The gathering of the attribute.
#[derive(Default)]
pub(crate) struct Gather {
    /// Whether the option is given, even with a value that was refused.
    pub(crate) is_given: bool,
    pub(crate) window: Option<Window>,
    pub(crate) by: Option<(LitStr, Template)>,
}

/// When a run starts: this long after its first call, or when it has this many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) wait: Duration,
    pub(crate) most: u32,
}

impl Gather {
    /// Reads one of these options. Returns whether it is one of them.
    pub(crate) fn set(&mut self, name: &Ident, value: &Expr, errors: &mut Errors) -> bool {
        match &*name.to_string() {
            "gather" => {
                self.is_given = true;
                self.window = errors.keep(window(name, value));
            }
            "by" => self.by = errors.keep(template::read(name, value)),
            _ => return false,
        }
        true
    }
}

/// Refuses options that have no meaning with, or without, another one.
pub(crate) fn check(
    given: &[Ident],
    window: Option<Window>,
    expires_in: Option<Duration>,
    errors: &mut Errors,
) {
    let find = |option: &str| given.iter().find(|name| *name == option);
    if find("gather").is_none() {
        if let Some(name) = find("by") {
            let problem = "`by` has no effect, because the calls are not gathered";
            errors.refuse(name, format!("{problem}; add `gather = \"10s | 500\"`"));
        }
        return;
    }
    if let Some(name) = find("lane") {
        errors.refuse(
            name,
            "`lane` and `gather` contradict each other: the tasks of a lane start one after the \
             other, and the calls of one run start together; remove one. To separate calls by a \
             key, use `by`",
        );
    }
    if let (Some(name), Some(Window { wait, .. })) = (find("expires_in"), window)
        && let Some(expires_in) = expires_in.filter(|expires_in| *expires_in <= wait)
    {
        errors.refuse(
            name,
            format!(
                "a call is gathered for {wait:?}, but expires after {expires_in:?}: set a longer \
                 `expires_in`"
            ),
        );
    }
}

fn window(name: &Ident, value: &Expr) -> syn::Result<Window> {
    let text = match option_value::plain(value) {
        Expr::Lit(ExprLit { lit: Lit::Str(_), .. }) => option_value::text(name, value)?,
        _ => return option_value::refuse(value, form("it is no text in quotes")),
    };
    parse(&text.value()).or_else(|problem| option_value::refuse(&text, problem))
}

fn form(problem: &str) -> String {
    format!(
        "`gather` is a time and a number of calls, as in \"10s | 500\": a run starts 10 s after \
         its first call, or at once when 500 wait; {problem}"
    )
}

fn parse(text: &str) -> Result<Window, String> {
    let Some((wait, most)) = text.split_once('|') else {
        return Err(form("there is no `|`"));
    };
    let (wait, most) = (wait.trim(), most.trim());
    let wait = duration::parse(wait).map_err(|problem| format!("`gather`: {problem}"))?;
    if wait.is_zero() {
        return Err("`gather`: the time must be above zero, or no call would wait for another; \
                    without `gather` each call runs alone"
            .to_owned());
    }
    let is_number = !most.is_empty() && most.bytes().all(|byte| byte.is_ascii_digit());
    let calls = is_number.then(|| most.parse::<u32>().ok()).flatten();
    match calls.filter(|calls| (2..=CALLS_MAX).contains(calls)) {
        Some(most) => Ok(Window { wait, most }),
        None if is_number => Err(format!("`gather`: a run has from 2 to 10,000 calls, not {most}")),
        None => Err(form(&format!("{most:?} is not a whole number"))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_window_is_a_time_and_a_number_of_calls() {
        for (text, ms, most) in [
            ("10s | 500", 10_000, 500),
            ("250ms|2", 250, 2),
            (" 1h30m |  10000 ", 5_400_000, 10_000),
        ] {
            assert_eq!(parse(text), Ok(Window { wait: Duration::from_millis(ms), most }), "{text}");
        }
    }

    #[test]
    fn an_error_names_what_is_wrong_with_a_window() {
        for (text, problem) in [
            ("", "there is no `|`"),
            ("10s", "there is no `|`"),
            ("10s, 500", "there is no `|`"),
            ("10 | 500", "10 has no unit"),
            ("500 | 10s", "500 has no unit"),
            ("| 500", "it is empty"),
            ("0s | 500", "above zero"),
            ("1801d | 500", "below 1,800 days"),
            ("10s |", "\"\" is not a whole number"),
            ("10s | many", "\"many\" is not a whole number"),
            ("10s | -1", "\"-1\" is not a whole number"),
            ("10s | 1", "from 2 to 10,000 calls, not 1"),
            ("10s | 10001", "from 2 to 10,000 calls, not 10001"),
            ("10s | 99999999999", "from 2 to 10,000 calls"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[0-9a-z| -]{0,16}") {
            let _ = parse(&text);
        }
    }
}
