//! The back-off formulas as text: `"exponential(base = 1s, cap = 10m, jitter = 0.2)"`.

use std::time::Duration;

use crate::{parse::duration, suggest};

/// A formula with its numbers. Defaults: base and wait 10 s, cap 1 h, jitter 0.2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Formula {
    Sidekiq,
    Exponential { base: Duration, cap: Duration, jitter: f64 },
    Linear { base: Duration, cap: Duration, jitter: f64 },
    Fixed { wait: Duration, jitter: f64 },
}

const NAMES: [&str; 4] = ["sidekiq", "exponential", "linear", "fixed"];

/// Reads a formula. The error states what is wrong and which formulas exist.
pub(crate) fn parse(text: &str) -> Result<Formula, String> {
    let (name, inside) = match text.split_once('(') {
        None => (text.trim(), ""),
        Some((name, rest)) => {
            let inside = rest.trim_end().strip_suffix(')');
            (name.trim(), inside.ok_or_else(|| format!("{text:?} does not end with `)`"))?)
        }
    };
    match name {
        "sidekiq" if inside.trim().is_empty() => Ok(Formula::Sidekiq),
        "sidekiq" => Err("`sidekiq` has no parameters".to_owned()),
        "exponential" => {
            let Numbers { step, cap, jitter } =
                Numbers::parse(name, &["base", "cap", "jitter"], inside)?;
            Ok(Formula::Exponential { base: step, cap, jitter })
        }
        "linear" => {
            let Numbers { step, cap, jitter } =
                Numbers::parse(name, &["base", "cap", "jitter"], inside)?;
            Ok(Formula::Linear { base: step, cap, jitter })
        }
        "fixed" => {
            let Numbers { step, jitter, .. } = Numbers::parse(name, &["wait", "jitter"], inside)?;
            Ok(Formula::Fixed { wait: step, jitter })
        }
        _ => Err(unknown_name(name)),
    }
}

fn unknown_name(name: &str) -> String {
    let meant = suggest::nearest(name, &NAMES)
        .map_or_else(String::new, |name| format!(" did you mean {name:?}?"));
    format!(
        "there is no backoff {name:?};{meant} use \"sidekiq\", \"exponential\", \"linear\" or \
         \"fixed\", or the path of your own function, without quotes"
    )
}

/// The parameters of the formulas.
struct Numbers {
    /// The first parameter of each formula: `base` or `wait`.
    step: Duration,
    cap: Duration,
    jitter: f64,
}

impl Numbers {
    fn parse(formula: &str, names: &[&str], inside: &str) -> Result<Self, String> {
        let mut numbers =
            Self { step: Duration::from_secs(10), cap: Duration::from_secs(60 * 60), jitter: 0.2 };
        let mut given = Vec::new();
        for part in inside.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part
                .split_once('=')
                .map(|(name, value)| (name.trim(), value.trim()))
                .ok_or_else(|| unnamed(formula, part, names, inside))?;
            if given.contains(&name) {
                return Err(format!("`{name}` is given twice in `{formula}`"));
            }
            given.push(name);
            match name {
                _ if !names.contains(&name) => return Err(unknown(formula, name, names)),
                "jitter" => numbers.jitter = share(value)?,
                "cap" => numbers.cap = positive(name, value)?,
                _ => numbers.step = positive(name, value)?,
            }
        }
        if names.contains(&"cap") && numbers.cap < numbers.step {
            return Err(format!(
                "in `{formula}` the cap ({:?}) is below the base ({:?})",
                numbers.cap, numbers.step
            ));
        }
        Ok(numbers)
    }
}

fn unknown(formula: &str, name: &str, there_are: &[&str]) -> String {
    format!("`{formula}` has no parameter `{name}`; it has {}", suggest::list(there_are))
}

/// Says that a parameter has no name, and writes the formula as it was meant, if that is clear.
fn unnamed(formula: &str, part: &str, names: &[&str], inside: &str) -> String {
    match with_names(names, inside).map(|inside| format!("{formula}({inside})")) {
        Some(meant) if parse(&meant).is_ok() => {
            format!("`{part}` in `{formula}` has no name; write {meant:?}")
        }
        _ => {
            let there_are = suggest::list(names);
            format!("`{part}` in `{formula}` should be `name = value`; it has {there_are}")
        }
    }
}

/// Gives each parameter a name: by its place, and to a share that of the jitter.
fn with_names(names: &[&str], inside: &str) -> Option<String> {
    let with_name = |(at, part): (usize, &str)| match part.split_once(char::is_whitespace) {
        _ if part.contains('=') => Some(part.to_owned()),
        Some((name, value)) => Some(format!("{name} = {}", value.trim_start())),
        None if at > 0 && share(part).is_ok() => Some(format!("jitter = {part}")),
        None => names.get(at).map(|name| format!("{name} = {part}")),
    };
    let parts = inside.split(',').map(str::trim).filter(|part| !part.is_empty());
    let parts: Option<Vec<String>> = parts.enumerate().map(with_name).collect();
    Some(parts?.join(", "))
}

fn positive(name: &str, value: &str) -> Result<Duration, String> {
    let duration = duration::parse(value)?;
    if duration.is_zero() {
        return Err(format!(
            "`{name}` must be above zero, or failing tasks would retry without a pause"
        ));
    }
    Ok(duration)
}

fn share(value: &str) -> Result<f64, String> {
    let share = value.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| {
        format!("`jitter` is a share of the wait from 0.0 to 1.0, as in 0.2; {value:?} is not")
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn formulas_are_read_with_their_numbers_or_the_defaults() {
        for (text, formula) in [
            ("sidekiq", Formula::Sidekiq),
            ("exponential", Formula::Exponential { base: 10 * S, cap: 3_600 * S, jitter: 0.2 }),
            (
                "exponential(base = 1s, cap = 10m, jitter = 0.5)",
                Formula::Exponential { base: S, cap: 600 * S, jitter: 0.5 },
            ),
            ("linear(base=2s,)", Formula::Linear { base: 2 * S, cap: 3_600 * S, jitter: 0.2 }),
            (" fixed ( wait = 30s ) ", Formula::Fixed { wait: 30 * S, jitter: 0.2 }),
            ("fixed(jitter = 0)", Formula::Fixed { wait: 10 * S, jitter: 0.0 }),
        ] {
            assert_eq!(parse(text), Ok(formula), "{text}");
        }
    }

    #[test]
    fn an_error_names_what_is_wrong_with_a_formula() {
        for (text, problem) in [
            ("", "there is no backoff \"\""),
            ("exponentail", "did you mean \"exponential\"?"),
            ("expo", "did you mean \"exponential\"?"),
            ("exponential(base = 1s", "does not end with `)`"),
            ("sidekiq(base = 1s)", "has no parameters"),
            ("fixed(base = 1s)", "no parameter `base`; it has `wait` and `jitter`"),
            ("fixed(cap = 1s)", "no parameter `cap`"),
            ("linear(base 1s)", "`base 1s` in `linear` has no name; write \"linear(base = 1s)\""),
            ("fixed(2s)", "`2s` in `fixed` has no name; write \"fixed(wait = 2s)\""),
            ("exponential(1s, 10m, 0.5)", "\"exponential(base = 1s, cap = 10m, jitter = 0.5)\""),
            ("linear(base = 1s, 0)", "write \"linear(base = 1s, jitter = 0)\""),
            ("fixed(1s, 0.2, 3s)", "should be `name = value`; it has `wait` and `jitter`"),
            ("linear(cap = 1h, 1s)", "`1s` in `linear` should be `name = value`"),
            ("linear(base = 1s, base = 2s)", "given twice"),
            ("linear(base = 1)", "1 has no unit"),
            ("linear(base = 0s)", "above zero"),
            ("linear(base = 2h)", "below the base"),
            ("linear(jitter = 20%)", "from 0.0 to 1.0"),
            ("linear(jitter = NaN)", "from 0.0 to 1.0"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".*") {
            let _ = parse(&text);
        }

        #[test]
        fn no_similar_text_panics(
            text in "(fixed|linear|exponential)?[()]?(base|cap|jitter|wait|[=,. 0-9smh()]){0,9}"
        ) {
            let _ = parse(&text);
        }
    }
}
