//! Reads the value of one option. Each error names the option and shows the form of its value.

use std::{ops::RangeInclusive, time::Duration};

use quote::ToTokens;
use syn::{Error, Expr, ExprLit, ExprUnary, Ident, Lit, LitStr, Path, Result, UnOp};

use crate::parse::{
    backoff, duration,
    options::{Awaited, Backoff, LaneFailure, OnLost, PrerequisiteFailure},
    rate::{self, Rate},
};

/// The maximum count.
pub(crate) const COUNT_MAX: i128 = u32::MAX as i128;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest time for which a queue keeps a history, in days.
const DAYS_MAX: u64 = 366;

/// Reads a string.
pub(crate) fn text(name: &Ident, value: &Expr) -> Result<LitStr> {
    match plain(value) {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text.clone()),
        _ => refuse(value, format!("`{name}` must be a string, as in `{name} = \"…\"`")),
    }
}

/// Reads a name that is safe in a Redis key.
pub(crate) fn task_or_queue(name: &Ident, value: &Expr) -> Result<LitStr> {
    let text = text(name, value)?;
    match name_problem(&text.value()) {
        Some(problem) => refuse(&text, format!("`{name}`: {problem}")),
        None => Ok(text),
    }
}

/// Returns the reason why a text cannot be the name of a task or a queue.
pub(crate) fn name_problem(text: &str) -> Option<String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if text.is_empty() {
        return Some("the name is empty; use 1 to 128 of [A-Za-z0-9._-]".to_owned());
    }
    if text.len() > 128 {
        return Some("the name is longer than 128 bytes".to_owned());
    }
    let found = text.chars().find(|c| !allowed(*c))?;
    Some(format!("the name contains {found:?}; use only [A-Za-z0-9._-]"))
}

/// Reads a whole number within limits.
pub(crate) fn number<N: TryFrom<i128>>(
    name: &Ident,
    value: &Expr,
    bounds: RangeInclusive<i128>,
) -> Result<N> {
    let number = integer(value).filter(|number| bounds.contains(number));
    number.and_then(|number| N::try_from(number).ok()).map_or_else(
        || {
            let (from, to) = (bounds.start(), bounds.end());
            let range = if *to == COUNT_MAX {
                format!("of at least {from}")
            } else {
                format!("from {from} to {to}")
            };
            let unquoted = unquoted(value);
            let hint = unquoted.map_or_else(String::new, |number| {
                format!(", without quotes: `{name} = {number}`")
            });
            refuse(value, format!("`{name}` must be a whole number {range}{hint}"))
        },
        Ok,
    )
}

/// Returns the number inside quotes.
fn unquoted(value: &Expr) -> Option<i128> {
    match plain(value) {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => text.value().trim().parse().ok(),
        _ => None,
    }
}

/// Reads a duration above zero.
pub(crate) fn positive(name: &Ident, value: &Expr) -> Result<Duration> {
    above_zero(name, value, "; omit it to use the default")
}

/// Reads a duration above zero that has no default.
pub(crate) fn required(name: &Ident, value: &Expr) -> Result<Duration> {
    above_zero(name, value, "")
}

fn above_zero(name: &Ident, value: &Expr, hint: &str) -> Result<Duration> {
    let duration = duration(name, value)?;
    if duration.is_zero() {
        return refuse(value, format!("`{name}` must be above zero{hint}"));
    }
    Ok(duration)
}

/// Reads whole days.
pub(crate) fn days(name: &Ident, value: &Expr) -> Result<Duration> {
    let duration = duration(name, value)?;
    let days = duration.as_secs() / DAY.as_secs();
    let is_whole = Duration::from_secs(days * DAY.as_secs()) == duration;
    if !is_whole || !(1..=DAYS_MAX).contains(&days) {
        return refuse(
            value,
            format!("`{name}` must be 1 to {DAYS_MAX} whole days, as in `{name} = \"180d\"`"),
        );
    }
    Ok(duration)
}

/// Reads a number of seconds, or a text with units.
pub(crate) fn duration(name: &Ident, value: &Expr) -> Result<Duration> {
    let problem = match plain(value) {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => match duration::parse(&text.value()) {
            Ok(duration) => return Ok(duration),
            Err(problem) => format!("`{name}`: {problem}"),
        },
        _ => match integer(value).map(u64::try_from) {
            Some(Ok(seconds)) => match duration::short_enough(Duration::from_secs(seconds)) {
                Ok(duration) => return Ok(duration),
                Err(problem) => format!("`{name}`: {problem}"),
            },
            Some(Err(_)) => format!("`{name}` can't be negative"),
            None if duration::parse(&source(value)).is_ok() => {
                format!("units need quotes: `{name} = \"{}\"`", source(value))
            }
            None => format!(
                "`{name}` must be whole seconds, as in `{name} = 600`, or a text with units, as in \
                 `{name} = \"10m\"`"
            ),
        },
    };
    refuse(value, problem)
}

/// Reads a number of tasks in a time.
pub(crate) fn rate(name: &Ident, value: &Expr) -> Result<Rate> {
    if let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = plain(value) {
        return rate::parse(&text.value())
            .or_else(|problem| refuse(value, format!("`{name}`: {problem}")));
    }
    let written: String = source(value).split_whitespace().collect();
    let problem = match rate::parse(&written) {
        Ok(_) => format!("a rate needs quotes: `{name} = \"{written}\"`"),
        Err(_) => format!(
            "`{name}` must be a number of tasks in a time, as in `{name} = \"100/s\"` or \
             `{name} = \"10/m\"`"
        ),
    };
    refuse(value, problem)
}

/// Reads a formula in quotes, or a function's path.
pub(crate) fn backoff(value: &Expr) -> Result<Backoff> {
    match plain(value) {
        Expr::Path(path) if path.qself.is_none() => Ok(Backoff::Custom(path.path.clone())),
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => match backoff::parse(&text.value()) {
            Ok(formula) => Ok(Backoff::Formula(formula)),
            Err(problem) => refuse(text, format!("`backoff`: {problem}")),
        },
        _ => refuse(
            value,
            "`backoff` must be a formula in quotes, as in `backoff = \"exponential(base = 1s)\"`, \
             or the path of a `fn(u32, &(dyn Error + 'static)) -> Duration`",
        ),
    }
}

/// `"dead"` or `"retry"`.
pub(crate) fn on_lost(value: &Expr) -> Result<OnLost> {
    match plain(value) {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if text.value() == "dead" => {
            Ok(OnLost::Dead)
        }
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if text.value() == "retry" => {
            Ok(OnLost::Retry)
        }
        _ => refuse(
            value,
            "`on_lost` is \"retry\" (run again when the worker was lost: at least once) or \
             \"dead\" (mark the task Dead: at most once)",
        ),
    }
}

/// Reads `"skip"` or `"block"`.
pub(crate) fn on_lane_failure(value: &Expr) -> Result<LaneFailure> {
    let given = match plain(value) {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => text.value(),
        _ => String::new(),
    };
    match &*given {
        "skip" => Ok(LaneFailure::Skip),
        "block" => Ok(LaneFailure::Block),
        // No guess from similar letters: "stop" resembles the word of the opposite meaning.
        _ => refuse(
            value,
            "`on_lane_failure` is \"skip\" (after a Dead task the next of the lane starts) or \
             \"block\" (the lane waits until that task is requeued or deleted)",
        ),
    }
}

/// Reads one task, or several in brackets.
pub(crate) fn after(value: &Expr) -> Result<Vec<Awaited>> {
    match plain(value) {
        Expr::Array(list) if list.elems.is_empty() => {
            refuse(value, "`after` names no task; remove it")
        }
        Expr::Array(list) => list.elems.iter().map(awaited).collect(),
        one => Ok(vec![awaited(one)?]),
    }
}

/// Reads the path of a task's function, or `"queue/task"`.
fn awaited(value: &Expr) -> Result<Awaited> {
    match plain(value) {
        Expr::Path(path) if path.qself.is_none() => Ok(Awaited::Function(path.path.clone())),
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => {
            let given = text.value();
            let Some((queue, task)) = given.split_once('/') else {
                return refuse(
                    text,
                    format!(
                        "`after` takes the function, without quotes: `after = {}`. For a task of \
                         another program, name its queue, too: `after = \"queue/{given}\"`",
                        if syn::parse_str::<Path>(&given).is_ok() { &*given } else { "task" },
                    ),
                );
            };
            match name_problem(queue).or_else(|| name_problem(task)) {
                Some(problem) => refuse(text, format!("`after`: {problem}")),
                None => Ok(Awaited::Named(queue.to_owned(), task.to_owned())),
            }
        }
        _ => refuse(
            value,
            "`after` takes the function of a task, as in `after = reserve`, or several, as in \
             `after = [reserve, pay]`; the task that is waited for has the same biz id",
        ),
    }
}

/// Reads `"wait"`, `"cancel"` or `"run"`.
pub(crate) fn on_prerequisite_failure(value: &Expr) -> Result<PrerequisiteFailure> {
    let given = match plain(value) {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => text.value(),
        _ => String::new(),
    };
    match &*given {
        "wait" => Ok(PrerequisiteFailure::Wait),
        "cancel" => Ok(PrerequisiteFailure::Cancel),
        "run" => Ok(PrerequisiteFailure::Run),
        _ => refuse(
            value,
            "`on_prerequisite_failure` is \"wait\" (until the prerequisite is requeued and \
             succeeds), \"cancel\" (the task is cancelled, too) or \"run\" (it starts all the \
             same)",
        ),
    }
}

/// Reads a path, plain or in quotes.
pub(crate) fn path(name: &Ident, value: &Expr) -> Result<Path> {
    let path = match plain(value) {
        Expr::Path(path) if path.qself.is_none() => Some(path.path.clone()),
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => {
            text.parse_with(Path::parse_mod_style).ok()
        }
        _ => None,
    };
    path.map_or_else(
        || {
            refuse(
                value,
                format!("`{name}` must be the path of this crate, as in `{name} = ::jobs`"),
            )
        },
        Ok,
    )
}

/// Returns the expression without the invisible parentheses that `macro_rules!` adds.
pub(crate) fn plain(value: &Expr) -> &Expr {
    match value {
        Expr::Group(group) => plain(&group.expr),
        value => value,
    }
}

fn integer(value: &Expr) -> Option<i128> {
    match plain(value) {
        Expr::Lit(ExprLit { lit: Lit::Int(int), .. }) if int.suffix().is_empty() => {
            int.base10_parse().ok()
        }
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => integer(expr).map(|n| -n),
        _ => None,
    }
}

/// Returns the source text of the value.
fn source(value: &Expr) -> String {
    plain(value).to_token_stream().to_string()
}

pub(crate) fn refuse<T>(at: impl ToTokens, remedy: impl std::fmt::Display) -> Result<T> {
    Err(Error::new_spanned(at, remedy))
}
