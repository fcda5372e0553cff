//! The options in `#[optimus::source(...)]`, as written.

use std::time::Duration;

use proc_macro2::TokenStream;
use syn::{
    Expr, Ident, LitStr, Path, Token, parenthesized,
    parse::{Parse, ParseStream, Parser},
    parse_quote,
    punctuated::Punctuated,
};

use crate::{
    errors::Errors,
    parse::option_value,
    source::demote::{self, Range, Tier},
    suggest,
};

const SLICES_MAX: i128 = 1024;
const PAGE_MAX: i128 = 10_000;
/// Every option, in the order of the documentation.
const NAMES: [&str; 15] = [
    "every",
    "demote",
    "attempts",
    "before",
    "on_failure",
    "over",
    "slices",
    "page",
    "high_water",
    "idle",
    "remember",
    "timeout",
    "archive",
    "name",
    "crate",
];
/// Names that users of other libraries try.
const SYNONYMS: [(&str, &str); 14] = [
    ("interval", "every"),
    ("poll", "every"),
    ("shards", "slices"),
    ("partitions", "slices"),
    ("tables", "over"),
    ("table", "over"),
    ("limit", "page"),
    ("page_size", "page"),
    ("batch", "page"),
    ("max_retry", "attempts"),
    ("retries", "attempts"),
    ("tiers", "demote"),
    ("biz_window", "remember"),
    ("max_pending", "high_water"),
];

/// The options of the attribute; `None` keeps the default.
pub(crate) struct Options {
    pub(crate) krate: Path,
    pub(crate) name: Option<LitStr>,
    pub(crate) every: Option<Duration>,
    pub(crate) ranges: Vec<Range>,
    pub(crate) tiers: Vec<Tier>,
    pub(crate) attempts: Option<u32>,
    pub(crate) before: Option<Path>,
    pub(crate) on_failure: Option<Path>,
    pub(crate) over: Option<Expr>,
    pub(crate) slices: Option<u16>,
    pub(crate) page: Option<u32>,
    pub(crate) high_water: Option<u64>,
    pub(crate) idle: Option<Duration>,
    pub(crate) remember: Option<Duration>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) archive: Option<(Duration, Path)>,
}

/// One option, with its value or its list.
enum Given {
    Value(Ident, Expr),
    Demote(Ident, Vec<Range>),
    Archive(Ident, Vec<(Ident, Expr)>),
}

impl Parse for Given {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let usage = "the options are written `name = value`, as in `every = \"3s\", slices = 16`";
        let name = input
            .call(syn::ext::IdentExt::parse_any)
            .map_err(|problem| syn::Error::new(problem.span(), usage))?;
        if input.peek(syn::token::Paren) && (name == "demote" || name == "archive") {
            let list;
            parenthesized!(list in input);
            if name == "demote" {
                return Ok(Self::Demote(name, demote::ranges(&list)?));
            }
            let pair = |input: ParseStream<'_>| {
                let name: Ident = input.parse()?;
                input.parse::<Token![=]>()?;
                Ok((name, input.parse()?))
            };
            let pairs = Punctuated::<_, Token![,]>::parse_terminated_with(&list, pair)?;
            return Ok(Self::Archive(name, pairs.into_iter().collect()));
        }
        input.parse::<Token![=]>().map_err(|problem| syn::Error::new(problem.span(), usage))?;
        Ok(Self::Value(name, input.parse()?))
    }
}

impl Options {
    /// Reads the options. Each wrong one is an error.
    pub(crate) fn parse(attr: TokenStream, errors: &mut Errors) -> Self {
        let mut options = Self {
            krate: parse_quote!(::optimus),
            name: None,
            every: None,
            ranges: Vec::new(),
            tiers: Vec::new(),
            attempts: None,
            before: None,
            on_failure: None,
            over: None,
            slices: None,
            page: None,
            high_water: None,
            idle: None,
            remember: None,
            timeout: None,
            archive: None,
        };
        let list = Punctuated::<Given, Token![,]>::parse_terminated;
        let Some(given) = errors.keep(list.parse2(attr)) else { return options };
        let mut seen: Vec<String> = Vec::new();
        for given in given {
            let (Given::Value(name, _) | Given::Demote(name, _) | Given::Archive(name, _)) = &given;
            if seen.contains(&name.to_string()) {
                errors.refuse(name, format!("`{name}` is given twice"));
                continue;
            }
            seen.push(name.to_string());
            match given {
                Given::Value(name, value) => options.set(&name, &value, errors),
                Given::Demote(_, ranges) => options.ranges = ranges,
                Given::Archive(name, pairs) => {
                    options.archive = errors.keep(archive(&name, &pairs));
                }
            }
        }
        options.finish(errors);
        options
    }

    /// Checks what options mean together.
    fn finish(&mut self, errors: &mut Errors) {
        if !errors.none_since(0) {
            return;
        }
        let Some(every) = self.every else {
            errors.refuse_all(
                "how often does a pass over the rows begin? add `every = \"3s\"`, the time from \
                 the begin of one pass to the begin of the next",
            );
            return;
        };
        if let Some((tiers, attempts)) =
            errors.keep(demote::tiers(every, &self.ranges, self.attempts))
        {
            (self.tiers, self.attempts) = (tiers, attempts);
        }
    }

    fn set(&mut self, name: &Ident, value: &Expr, errors: &mut Errors) {
        match &*name.to_string() {
            "crate" => {
                if let Some(path) = errors.keep(option_value::path(name, value)) {
                    self.krate = path;
                }
            }
            "name" => self.name = errors.keep(option_value::task_or_queue(name, value)),
            "every" => self.every = errors.keep(option_value::required(name, value)),
            "attempts" => self.attempts = errors.keep(positive_count(name, value)),
            "before" => self.before = errors.keep(function(name, value)),
            "on_failure" => self.on_failure = errors.keep(function(name, value)),
            "over" => self.over = Some(value.clone()),
            "slices" => {
                self.slices = errors.keep(option_value::number(name, value, 1..=SLICES_MAX));
            }
            "page" => self.page = errors.keep(option_value::number(name, value, 1..=PAGE_MAX)),
            "high_water" => self.high_water = errors.keep(positive_count(name, value)),
            "idle" => self.idle = errors.keep(option_value::positive(name, value)),
            "remember" => self.remember = errors.keep(option_value::positive(name, value)),
            "timeout" => self.timeout = errors.keep(option_value::positive(name, value)),
            "demote" => errors.refuse(
                value,
                "`demote` has ranges of failures, as in `demote(1..=5 = \"30s\", 6.. = \"60s\")`",
            ),
            "archive" => errors.refuse(value, ARCHIVE),
            _ => unknown(name, errors),
        }
    }
}

const ARCHIVE: &str =
    "`archive` has a time and a function, as in `archive(after = \"30d\", with = archive_paid)`";

fn archive(name: &Ident, pairs: &[(Ident, Expr)]) -> syn::Result<(Duration, Path)> {
    let value = |word: &str| pairs.iter().find(|(name, _)| name == word).map(|(_, value)| value);
    if let Some((other, _)) = pairs.iter().find(|(name, _)| name != "after" && name != "with") {
        return Err(syn::Error::new(other.span(), ARCHIVE));
    }
    match (value("after"), value("with")) {
        (Some(after), Some(with)) => Ok((
            option_value::required(&Ident::new("after", name.span()), after)?,
            function(&Ident::new("with", name.span()), with)?,
        )),
        _ => Err(syn::Error::new(name.span(), ARCHIVE)),
    }
}

/// Reads the name of a function.
fn function(name: &Ident, value: &Expr) -> syn::Result<Path> {
    match option_value::plain(value) {
        Expr::Path(path) if path.qself.is_none() => Ok(path.path.clone()),
        _ => Err(syn::Error::new_spanned(
            value,
            format!("`{name}` must be the name of an `async fn`, as in `{name} = my_function`"),
        )),
    }
}

fn positive_count<N: TryFrom<i128>>(name: &Ident, value: &Expr) -> syn::Result<N> {
    option_value::number(name, value, 1..=option_value::COUNT_MAX)
}

fn unknown(name: &Ident, errors: &mut Errors) {
    let word = name.to_string();
    let synonym = SYNONYMS.iter().find(|(other, _)| *other == word).map(|(_, ours)| *ours);
    let remedy = match synonym.or_else(|| suggest::nearest(&word, &NAMES)) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("the options are {}", suggest::list(NAMES)),
    };
    errors.refuse(name, format!("there is no option `{name}`; {remedy}"));
}
