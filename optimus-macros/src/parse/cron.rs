//! What `#[optimus::cron("0 9 * * 1-5", tz = "…", …)]` has in addition to the options of a task.

use std::time::Duration;

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::{
    Expr, LitStr, Token,
    ext::IdentExt,
    parse::{Parse, ParseStream},
};

use crate::{
    errors::Errors,
    parse::{cron_expression::CronExpression, option_value},
    suggest,
};

/// The names of the IANA database.
const ZONES: &str = include_str!("time_zones.txt");
const NAMES: [&str; 4] = ["tz", "missed", "overlap", "jitter"];
const SYNONYMS: [(&str, &str); 5] = [
    ("timezone", "tz"),
    ("time_zone", "tz"),
    ("zone", "tz"),
    ("catch_up", "missed"),
    ("misfire", "missed"),
];
const JITTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The schedule of a task.
pub(crate) struct Cron {
    pub(crate) expression: LitStr,
    pub(crate) zone: Option<LitStr>,
    /// A variant of `Missed`.
    pub(crate) missed: Option<Ident>,
    /// A variant of `Overlap`.
    pub(crate) overlap: Option<Ident>,
    pub(crate) jitter: Option<Jitter>,
    /// The shortest time between two instants, unless the expression is wrong.
    pub(crate) shortest: Option<Duration>,
}

/// The time by which tasks are delayed at most, as it is written.
pub(crate) struct Jitter {
    pub(crate) time: Duration,
    pub(crate) written: Expr,
}

/// `name = value`.
struct Named(Ident, Expr);

impl Parse for Named {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.call(Ident::parse_any)?;
        input.parse::<Token![=]>()?;
        Ok(Self(name, input.parse()?))
    }
}

/// Reads the expression and the options of the schedule; returns them, and the options of the task.
pub(crate) fn parse(attr: TokenStream, errors: &mut Errors) -> (Option<Cron>, TokenStream) {
    let mut parts = parts(attr).into_iter();
    let expression = parts.next().unwrap_or_default();
    let mut rest = TokenStream::new();
    let Ok(expression) = syn::parse2::<LitStr>(expression.clone()) else {
        errors.refuse_all(
            "`#[optimus::cron]` begins with the expression, as in \
             `#[optimus::cron(\"0 9 * * 1-5\", tz = \"Asia/Shanghai\")]`",
        );
        return (None, rest);
    };
    let parsed = CronExpression::parse(&expression.value());
    let shortest = parsed.map_err(|problem| errors.refuse(&expression, problem)).ok();
    let shortest = shortest.and_then(|parsed| parsed.shortest_secs()).map(Duration::from_secs);
    let (zone, missed, overlap, jitter) = (None, None, None, None);
    let mut cron = Cron { expression, zone, missed, overlap, jitter, shortest };
    let mut given: Vec<Ident> = Vec::new();
    for part in parts {
        let Ok(Named(name, value)) = syn::parse2::<Named>(part.clone()) else {
            rest.extend(part);
            rest.extend(quote::quote!(,));
            continue;
        };
        let word = name.to_string();
        if let Some((_, ours)) = SYNONYMS.iter().find(|(other, _)| *other == word) {
            errors.refuse(&name, format!("there is no option `{name}`; did you mean `{ours}`?"));
        } else if !NAMES.contains(&&*word) {
            rest.extend(part);
            rest.extend(quote::quote!(,));
        } else if given.contains(&name) {
            errors.refuse(&name, format!("`{name}` is given twice; remove one"));
        } else {
            errors.keep(cron.set(&name, &value));
            given.push(name);
        }
    }
    (Some(cron), rest)
}

impl Cron {
    /// Returns whether an instant is left out while the task before has not ended.
    pub(crate) fn skips(&self) -> bool {
        self.overlap.as_ref().is_none_or(|overlap| overlap == "Skip")
    }

    fn set(&mut self, name: &Ident, value: &Expr) -> syn::Result<()> {
        match &*name.to_string() {
            "tz" => self.zone = Some(zone(name, value)?),
            "missed" => {
                let words = [("skip", "Skip"), ("run_once", "RunOnce"), ("all", "All")];
                self.missed = Some(word(name, value, &words)?);
            }
            "overlap" => {
                let words = [("skip", "Skip"), ("queue", "Queue"), ("all", "All")];
                self.overlap = Some(word(name, value, &words)?);
            }
            _ => {
                let time = option_value::positive(name, value)?;
                if time > JITTER_MAX {
                    return option_value::refuse(value, "`jitter` is at most a day");
                }
                self.jitter = Some(Jitter { time, written: value.clone() });
            }
        }
        Ok(())
    }
}

fn zone(name: &Ident, value: &Expr) -> syn::Result<LitStr> {
    let text = option_value::text(name, value)?;
    let zone = text.value();
    if ZONES.lines().any(|known| known == zone) {
        return Ok(text);
    }
    let other_case = ZONES.lines().find(|known| known.eq_ignore_ascii_case(&zone));
    let city = || ZONES.lines().find(|known| known.rsplit('/').next() == Some(&*zone));
    let near = || suggest::nearest(&zone, &ZONES.lines().collect::<Vec<_>>());
    let remedy = match other_case.or_else(city).or_else(near) {
        Some(meant) => format!("did you mean {meant:?}?"),
        None => "use a name of the IANA database, as in \"Asia/Shanghai\", or \"UTC\"".to_owned(),
    };
    option_value::refuse(text, format!("there is no time zone {zone:?}; {remedy}"))
}

fn word(name: &Ident, value: &Expr, words: &[(&str, &str)]) -> syn::Result<Ident> {
    let text = option_value::text(name, value)?;
    let found = words.iter().find(|(word, _)| *word == text.value());
    if let Some((_, variant)) = found {
        return Ok(Ident::new(variant, text.span()));
    }
    let words = suggest::list(words.iter().map(|(word, _)| format!("{word:?}")));
    option_value::refuse(text, format!("`{name}` is one of {words}"))
}

/// Splits the attribute at its commas.
fn parts(attr: TokenStream) -> Vec<TokenStream> {
    let mut parts = vec![TokenStream::new()];
    for token in attr {
        match &token {
            TokenTree::Punct(punct) if punct.as_char() == ',' => parts.push(TokenStream::new()),
            _ => parts.last_mut().expect("one part").extend([token]),
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}
