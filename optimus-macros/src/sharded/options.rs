//! The options in `#[optimus::sharded(...)]`, as written.

use std::time::Duration;

use proc_macro2::TokenStream;
use syn::{
    Expr, ExprLit, Ident, Lit, LitStr, MetaNameValue, Path, Token, parse::Parser, parse_quote,
    punctuated::Punctuated,
};

use crate::{errors::Errors, parse::option_value, suggest};

/// The most shards of one function.
const SHARDS_MAX: i128 = 1024;
/// Every option, in the order of the documentation.
const NAMES: [&str; 5] = ["name", "shards", "idle", "walk", "crate"];
/// Names that users of other libraries try.
const SYNONYMS: [(&str, &str); 7] = [
    ("count", "shards"),
    ("partitions", "shards"),
    ("slices", "shards"),
    ("every", "idle"),
    ("interval", "idle"),
    ("sleep", "idle"),
    ("once", "walk"),
];

/// The options of the attribute; `None` keeps the default.
pub(crate) struct Options {
    pub(crate) krate: Path,
    pub(crate) name: Option<LitStr>,
    pub(crate) shards: Option<u16>,
    pub(crate) idle: Option<Duration>,
    pub(crate) is_once: bool,
}

impl Options {
    /// Reads the options. Each wrong one is an error.
    pub(crate) fn parse(attr: TokenStream, errors: &mut Errors) -> Self {
        let mut options = Self {
            krate: parse_quote!(::optimus),
            name: None,
            shards: None,
            idle: None,
            is_once: false,
        };
        let list = Punctuated::<MetaNameValue, Token![,]>::parse_terminated;
        let parsed = list.parse2(attr).map_err(|problem| {
            syn::Error::new(
                problem.span(),
                "the options are written `name = value`, as in `shards = 10, idle = \"8s\"`",
            )
        });
        let Some(given) = errors.keep(parsed) else { return options };
        let mut seen: Vec<String> = Vec::new();
        for MetaNameValue { path, value, .. } in given {
            let Some(name) = path.get_ident() else {
                errors.refuse(path, "an option is one word, as in `shards = 10`");
                continue;
            };
            if seen.contains(&name.to_string()) {
                errors.refuse(name, format!("`{name}` is given twice"));
                continue;
            }
            seen.push(name.to_string());
            options.set(name, &value, errors);
        }
        if !seen.contains(&"shards".to_owned()) && errors.none_since(0) {
            errors.refuse_all(
                "into how many shards is the data cut? add `shards = 10`: each is worked on by one \
                 worker at a time",
            );
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
            "shards" => {
                self.shards = errors.keep(option_value::number(name, value, 1..=SHARDS_MAX));
            }
            "idle" => self.idle = errors.keep(option_value::positive(name, value)),
            "walk" => self.is_once = errors.keep(walk(value)).unwrap_or_default(),
            _ => unknown(name, errors),
        }
    }
}

/// Reads `"forever"` or `"once"`; returns whether it is `"once"`.
fn walk(value: &Expr) -> syn::Result<bool> {
    let text = match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => text.value(),
        _ => String::new(),
    };
    match &*text {
        "forever" => Ok(false),
        "once" => Ok(true),
        _ => Err(syn::Error::new_spanned(
            value,
            "`walk` is \"forever\" (the default: a shard rests when it finds nothing) or \"once\" \
             (its pass ends then, until an operator begins the next)",
        )),
    }
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
