//! The options in `#[optimus::task(...)]`, as written.

use std::time::Duration;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{
    Expr, ExprLit, Ident, Lit, LitStr, Path, Token,
    ext::IdentExt,
    parenthesized,
    parse::{Parse, ParseStream, Parser},
    parse_quote,
    punctuated::Punctuated,
    token,
};

use crate::{
    errors::Errors,
    parse::{
        backoff::Formula,
        gather::{self, Gather},
        limits::{self, Limits},
        option_value,
        template::{self, Template},
    },
    suggest,
};

/// The options of the attribute; `None` keeps the default of optimus-core.
pub(crate) struct Options {
    pub(crate) krate: Path,
    pub(crate) name: Option<LitStr>,
    pub(crate) queue: Option<LitStr>,
    pub(crate) priority: Option<i8>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_retry: Option<u32>,
    pub(crate) backoff: Option<Backoff>,
    pub(crate) biz_id: Option<(LitStr, Template)>,
    pub(crate) biz_window: Option<Duration>,
    pub(crate) result_ttl: Option<Duration>,
    pub(crate) expires_in: Option<Duration>,
    pub(crate) on_lost: Option<OnLost>,
    pub(crate) max_losses: Option<u32>,
    pub(crate) lane: Option<(LitStr, Template)>,
    pub(crate) lane_width: Option<u16>,
    pub(crate) on_lane_failure: Option<LaneFailure>,
    pub(crate) after: Vec<Awaited>,
    pub(crate) on_prerequisite_failure: Option<PrerequisiteFailure>,
    pub(crate) give_up_after: Option<Duration>,
    pub(crate) outcome_ttl: Option<Duration>,
    pub(crate) limits: Limits,
    pub(crate) gather: Gather,
    pub(crate) history: Option<Duration>,
}

/// The value of `backoff = …`.
pub(crate) enum Backoff {
    Formula(Formula),
    Custom(Path),
}

/// The value of `on_lost = …`.
#[derive(Clone, Copy)]
pub(crate) enum OnLost {
    Dead,
    Retry,
}

/// `on_lane_failure = …`.
#[derive(Clone, Copy)]
pub(crate) enum LaneFailure {
    Skip,
    Block,
}

/// One task in `after = …`.
pub(crate) enum Awaited {
    /// The function of the task.
    Function(Path),
    /// The queue and the name of a task that this program does not know.
    Named(String, String),
}

/// `on_prerequisite_failure = …`.
#[derive(Clone, Copy)]
pub(crate) enum PrerequisiteFailure {
    Wait,
    Cancel,
    Run,
}

/// Every option, in the order of the documentation.
const NAMES: [&str; 30] = [
    "name",
    "queue",
    "priority",
    "timeout",
    "max_retry",
    "backoff",
    "biz_id",
    "biz_window",
    "result_ttl",
    "expires_in",
    "on_lost",
    "max_losses",
    "lane",
    "lane_width",
    "on_lane_failure",
    "after",
    "on_prerequisite_failure",
    "give_up_after",
    "outcome_ttl",
    "limit",
    "rate",
    "burst",
    "max_working",
    "cost",
    "lane_rate",
    "lane_burst",
    "gather",
    "by",
    "history",
    "crate",
];

/// Names that users of other queues try.
const SYNONYMS: [(&str, &str); 25] = [
    ("retries", "max_retry"),
    ("retry", "max_retry"),
    ("max_attempts", "max_retry"),
    ("unique", "biz_id"),
    ("unique_for", "biz_window"),
    ("ttl", "result_ttl"),
    ("retention", "result_ttl"),
    ("expires", "expires_in"),
    ("group", "lane"),
    ("partition", "lane"),
    ("ordering_key", "lane"),
    ("depends_on", "after"),
    ("requires", "after"),
    ("needs", "after"),
    ("wait_for", "after"),
    ("concurrency", "max_working"),
    ("max_concurrency", "max_working"),
    ("max_running", "max_working"),
    ("rate_limit", "rate"),
    ("throttle", "rate"),
    ("weight", "cost"),
    ("batch", "gather"),
    ("aggregate", "gather"),
    ("debounce", "gather"),
    ("group_by", "by"),
];

/// The options of `#[optimus::cron]`, which users may try here.
const OF_CRON: [&str; 7] = ["cron", "every", "jitter", "missed", "overlap", "schedule", "tz"];

/// One option, in any form that users try.
enum Entry {
    /// `name = value`, or `name` alone.
    Named(Ident, Option<Expr>),
    /// `name(value)`, a form of many other attributes, or `name: value`.
    Called(Ident, TokenStream),
    /// A value without a name.
    Bare(Expr),
}

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if !input.peek(Ident::peek_any) {
            let bare = input.parse().map(Self::Bare);
            return bare.map_err(|problem| {
                syn::Error::new(problem.span(), "an option is written `name = value`")
            });
        }
        let name = input.call(Ident::parse_any)?;
        if input.peek(token::Paren) {
            let value;
            parenthesized!(value in input);
            return Ok(Self::Called(name, value.parse()?));
        }
        if input.parse::<Option<Token![:]>>()?.is_some() {
            return Ok(Self::Called(name, input.parse::<Expr>()?.into_token_stream()));
        }
        let equals: Option<Token![=]> = input.parse()?;
        Ok(Self::Named(name, equals.map(|_| input.parse()).transpose()?))
    }
}

impl Entry {
    /// Returns the option's name and value, or an error that shows the right form.
    fn named(self, errors: &mut Errors) -> Option<(Ident, Option<Expr>)> {
        match self {
            Self::Named(name, value) => return Some((name, value)),
            Self::Called(name, _) if !NAMES.contains(&&*name.to_string()) => unknown(&name, errors),
            Self::Called(name, value) => {
                errors.refuse(&name, format!("an option is written with `=`: `{name} = {value}`"));
            }
            Self::Bare(value) => {
                let example = match &value {
                    Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => {
                        format!("to name the task, write `name = {}`", text.token())
                    }
                    _ => "for example `max_retry = 3`".to_owned(),
                };
                errors.refuse(&value, format!("an option is written `name = value`; {example}"));
            }
        }
        None
    }
}

impl Options {
    /// Reads valid options and collects errors, so that one mistake hides no other.
    pub(crate) fn parse(attr: TokenStream, errors: &mut Errors) -> Self {
        let mut options = Self {
            krate: parse_quote!(::optimus),
            name: None,
            queue: None,
            priority: None,
            timeout: None,
            max_retry: None,
            backoff: None,
            biz_id: None,
            biz_window: None,
            result_ttl: None,
            expires_in: None,
            on_lost: None,
            max_losses: None,
            lane: None,
            lane_width: None,
            on_lane_failure: None,
            after: Vec::new(),
            on_prerequisite_failure: None,
            give_up_after: None,
            outcome_ttl: None,
            limits: Limits::default(),
            gather: Gather::default(),
            history: None,
        };
        let entries = Punctuated::<Entry, Token![,]>::parse_terminated.parse2(attr);
        let mut given: Vec<Ident> = Vec::new();
        for entry in errors.keep(entries).into_iter().flatten() {
            let Some((name, value)) = entry.named(errors) else { continue };
            if given.contains(&name) {
                errors.refuse(&name, format!("`{name}` is given twice; remove one"));
                continue;
            }
            match value {
                Some(value) => options.set(&name, &value, errors),
                None if NAMES.contains(&&*name.to_string()) => {
                    errors.refuse(&name, format!("`{name}` needs a value: `{name} = …`"));
                }
                None => unknown(&name, errors),
            }
            given.push(name);
        }
        needs_lane(&given, errors);
        needs_after(&given, errors);
        limits::check(&given, errors);
        gather::check(&given, options.gather.window, options.expires_in, errors);
        // What was refused causes no other error.
        if options.gather.is_given {
            options.lane = None;
        } else {
            options.gather.by = None;
        }
        options
    }

    fn set(&mut self, name: &Ident, value: &Expr, errors: &mut Errors) {
        match &*name.to_string() {
            "crate" => {
                if let Some(path) = errors.keep(option_value::path(name, value)) {
                    self.krate = path;
                }
            }
            "name" => self.name = errors.keep(option_value::task_or_queue(name, value)),
            "queue" => self.queue = errors.keep(option_value::task_or_queue(name, value)),
            "priority" => {
                self.priority = errors.keep(option_value::number(name, value, -100..=100));
            }
            "max_retry" => {
                self.max_retry =
                    errors.keep(option_value::number(name, value, 0..=option_value::COUNT_MAX));
            }
            "max_losses" => {
                self.max_losses =
                    errors.keep(option_value::number(name, value, 1..=option_value::COUNT_MAX));
            }
            "timeout" => self.timeout = errors.keep(option_value::positive(name, value)),
            "biz_window" => self.biz_window = errors.keep(option_value::positive(name, value)),
            "expires_in" => self.expires_in = errors.keep(option_value::positive(name, value)),
            "result_ttl" => self.result_ttl = errors.keep(option_value::duration(name, value)),
            "backoff" => self.backoff = errors.keep(option_value::backoff(value)),
            "on_lost" => self.on_lost = errors.keep(option_value::on_lost(value)),
            "biz_id" => self.biz_id = errors.keep(template::read(name, value)),
            "lane" => self.lane = errors.keep(template::read(name, value)),
            "lane_width" => {
                let widths = 1..=i128::from(u16::MAX);
                self.lane_width = errors.keep(option_value::number(name, value, widths));
            }
            "on_lane_failure" => {
                self.on_lane_failure = errors.keep(option_value::on_lane_failure(value));
            }
            "after" => {
                self.after = errors.keep(option_value::after(value)).unwrap_or_default();
            }
            "on_prerequisite_failure" => {
                self.on_prerequisite_failure =
                    errors.keep(option_value::on_prerequisite_failure(value));
            }
            "give_up_after" => {
                self.give_up_after = errors.keep(option_value::positive(name, value));
            }
            "outcome_ttl" => {
                self.outcome_ttl = errors.keep(option_value::positive(name, value));
            }
            "history" => self.history = errors.keep(option_value::days(name, value)),
            _ if self.limits.set(name, value, errors) => {}
            _ if self.gather.set(name, value, errors) => {}
            _ => unknown(name, errors),
        }
    }

    /// Returns whether a result is stored at all.
    pub(crate) fn keeps_result(&self) -> bool {
        !self.result_ttl.is_some_and(|ttl| ttl.is_zero())
    }
}

/// Refuses what has no meaning without `lane`.
fn needs_lane(given: &[Ident], errors: &mut Errors) {
    if given.iter().any(|name| name == "lane") {
        return;
    }
    for name in given {
        let text = name.to_string();
        let on_the_call = match &*text {
            "lane_width" | "on_lane_failure" | "lane_rate" => {
                format!(", or set both on the call, with `.lane(…).{text}(…)`")
            }
            "lane_burst" => String::new(),
            _ => continue,
        };
        let problem = format!("`{text}` has no effect without a lane; add `lane = \"…\"`");
        errors.refuse(name, problem + &on_the_call);
    }
}

/// Refuses `after` without a biz id, and what has no meaning without `after`.
fn needs_after(given: &[Ident], errors: &mut Errors) {
    let find = |wanted: &str| given.iter().find(|name| *name == wanted);
    if let (Some(after), None) = (find("after"), find("biz_id")) {
        errors.refuse(
            after,
            "`after` waits for the task with the same biz id; add `biz_id = \"…\"`, or name the \
             task on the call, with `.after(optimus::key(task, …))`",
        );
    }
    if find("after").is_some() {
        return;
    }
    for name in ["on_prerequisite_failure", "give_up_after"].into_iter().filter_map(find) {
        errors.refuse(
            name,
            format!(
                "`{name}` has no effect without a prerequisite; add `after = …`, or set both on \
                 the call, with `.after(…).{name}(…)`"
            ),
        );
    }
}

fn unknown(name: &Ident, errors: &mut Errors) {
    let word = name.to_string();
    if OF_CRON.contains(&&*word) {
        errors.refuse(
            name,
            format!(
                "`{name}` belongs to a schedule: use `#[optimus::cron(\"0 9 * * *\", …)]`, which \
                 has the options of a task, too"
            ),
        );
        return;
    }
    let synonym = SYNONYMS.iter().find(|(other, _)| *other == word).map(|(_, ours)| *ours);
    let remedy = match synonym.or_else(|| suggest::nearest(&word, &NAMES)) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("the options are {}", suggest::list(NAMES)),
    };
    errors.refuse(name, format!("there is no option `{name}`; {remedy}"));
}
