//! Templates of keys: `"{order.id}-{kind}"`, split into a format string and its values.
//!
//! Rust's own `format!` does not accept fields, so `{order.id}` becomes `{}` with `order.id` as an
//! argument. Only fields are allowed, so that a reader of the attribute sees the content of the
//! key.

use proc_macro2::{Ident, Span};
use syn::{Expr, LitStr, ext::IdentExt, parse::Parser};

use crate::parse::option_value;

/// The longest key of a lane, or of calls that are gathered.
const KEY_BYTES_MAX: usize = 512;

/// A parsed template.
#[derive(Debug, PartialEq)]
pub(crate) struct Template {
    /// The plain text before the first placeholder, between the placeholders, and after the last.
    pub(crate) literals: Vec<String>,
    /// The values between these.
    pub(crate) placeholders: Vec<Placeholder>,
}

/// `{param.field.0:spec}`.
#[derive(Debug, PartialEq)]
pub(crate) struct Placeholder {
    /// The parameter, without `r#`.
    pub(crate) param: String,
    /// The fields below it, outermost first: names or tuple positions.
    pub(crate) fields: Vec<String>,
    /// How the value is printed, with the colon; empty for the usual way.
    pub(crate) spec: String,
}

impl Placeholder {
    /// Returns the format string of the value alone.
    pub(crate) fn format(&self) -> String {
        format!("{{{}}}", self.spec)
    }
}

/// Reads the template of an option: `biz_id`, `lane` or `by`.
pub(crate) fn read(name: &Ident, value: &Expr) -> syn::Result<(LitStr, Template)> {
    let (text, option) = (option_value::text(name, value)?, name.to_string());
    let problem = match (text.value().is_empty(), &*option) {
        (true, "lane") => Some(
            "an empty `lane` is no key: use one key for each order of tasks, as in \
             \"user-{order.user}\", any word for one lane of all calls, or remove `lane`"
                .to_owned(),
        ),
        (true, "by") => Some(
            "an empty `by` is no key: use a value of the call, as in \"{user}\", or remove `by`, \
             so that all calls may run together"
                .to_owned(),
        ),
        (true, _) => Some(
            "an empty `biz_id` would make all calls one task; use a value that differs, as in \
             \"{order.id}\", or remove `biz_id`"
                .to_owned(),
        ),
        (false, "lane" | "by") => key_problem(&option, &text.value()),
        (false, _) => None,
    };
    let problem = match (problem, parse(&text.value(), &option)) {
        (None, Ok(template)) => return Ok((text, template)),
        (Some(problem), _) => problem,
        (None, Err(problem)) => format!("`{name}`: {problem}"),
    };
    Err(syn::Error::new_spanned(text, problem))
}

/// Returns what is wrong with a key, whatever the values of its placeholders are.
fn key_problem(option: &str, text: &str) -> Option<String> {
    if let Some(found) = text.chars().find(|c| c.is_control()) {
        return Some(format!(
            "`{option}`: the key has the control character {found:?}; leave it out"
        ));
    }
    (text.len() > KEY_BYTES_MAX && !text.contains(['{', '}']))
        .then(|| format!("`{option}`: the key is longer than {KEY_BYTES_MAX} bytes"))
}

/// Reads a template. The error states what is wrong and what to write instead.
fn parse(text: &str, option: &str) -> Result<Template, String> {
    let mut template = Template { literals: vec![String::new()], placeholders: Vec::new() };
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (literal, from_brace) = rest.split_at(at);
        template.add(literal);
        if let Some(after) = from_brace.strip_prefix("{{") {
            template.add("{");
            rest = after;
        } else if let Some(after) = from_brace.strip_prefix("}}") {
            template.add("}");
            rest = after;
        } else if let Some(after) = from_brace.strip_prefix('{') {
            let (inside, after) = after.split_once('}').ok_or_else(unclosed)?;
            template.placeholder(inside, option)?;
            rest = after;
        } else {
            return Err("a `}` without its `{`; a plain brace is written `}}`".to_owned());
        }
    }
    template.add(rest);
    Ok(template)
}

fn unclosed() -> String {
    "a `{` is not closed; a plain brace is written `{{`".to_owned()
}

impl Template {
    /// Returns the format string for `format!`, with one positional argument for each placeholder.
    pub(crate) fn format(&self) -> String {
        let escaped = |literal: &String| literal.replace('{', "{{").replace('}', "}}");
        let mut literals = self.literals.iter().map(escaped);
        let mut format = literals.next().unwrap_or_default();
        for (placeholder, literal) in self.placeholders.iter().zip(literals) {
            format.extend([placeholder.format(), literal]);
        }
        format
    }

    fn add(&mut self, literal: &str) {
        self.literals.last_mut().expect("one literal more than placeholders").push_str(literal);
    }

    fn placeholder(&mut self, inside: &str, option: &str) -> Result<(), String> {
        let (path, spec) = match inside.split_once(':') {
            Some((path, spec)) => (path, format!(":{spec}")),
            None => (inside, String::new()),
        };
        if path.is_empty() {
            return Err("a placeholder names a parameter, as in `{order.id}`".to_owned());
        }
        if spec.contains('{') {
            return Err(unclosed());
        }
        if spec.contains('$') || spec.contains(".*") {
            return Err(format!("`{{{inside}}}`: a width or precision must be a plain number"));
        }
        let mut parts = path.split('.');
        let param = parts.next().unwrap_or_default();
        let fields: Vec<&str> = parts.collect();
        let is_field = |field: &&str| name(field).is_some() || is_position(field);
        if name(param).is_none() || !fields.iter().all(is_field) {
            return Err(format!(
                "`{{{inside}}}`: a placeholder is a parameter and its fields, as in \
                 `{{order.id}}`; for anything else remove the template and set it on the call, \
                 with `.{option}(…)`"
            ));
        }
        let fields = fields.into_iter().map(ToOwned::to_owned).collect();
        self.placeholders.push(Placeholder { param: param.to_owned(), fields, spec });
        self.literals.push(String::new());
        Ok(())
    }
}

/// Returns the identifier with that name, raw if the name is a keyword.
pub(crate) fn name(text: &str) -> Option<Ident> {
    // The lexer would skip blanks and comments, and `r#` is not part of a name.
    if !text.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return None;
    }
    if let Ok(ident) = syn::parse_str::<Ident>(text) {
        return Some(ident);
    }
    let keyword = Ident::parse_any.parse_str(text).ok()?;
    let can_be_raw = !matches!(text, "self" | "Self" | "super" | "crate" | "_");
    can_be_raw.then(|| Ident::new_raw(&keyword.to_string(), Span::call_site()))
}

fn is_position(text: &str) -> bool {
    text.parse::<u32>().is_ok_and(|position| position.to_string() == text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(placeholder: Placeholder) -> String {
        [vec![placeholder.param], placeholder.fields].concat().join(".")
    }

    #[test]
    fn a_template_becomes_a_format_with_positional_arguments() {
        for (text, format, paths) in [
            ("nightly", "nightly", vec![]),
            ("{kind}", "{}", vec!["kind"]),
            ("{order.id}-{kind}", "{}-{}", vec!["order.id", "kind"]),
            ("{pair.0}:{pair.1.name}", "{}:{}", vec!["pair.0", "pair.1.name"]),
            ("{day:>04}/{kind:?}", "{:>04}/{:?}", vec!["day", "kind"]),
            ("{{{kind}}}", "{{{}}}", vec!["kind"]),
            ("{type}", "{}", vec!["type"]),
            ("zahlung-{größe}", "zahlung-{}", vec!["größe"]),
        ] {
            let template = parse(text, "biz_id").unwrap();
            assert_eq!(template.format(), format);
            let found: Vec<_> = template.placeholders.into_iter().map(path).collect();
            assert_eq!(found, paths);
        }
    }

    #[test]
    fn an_error_names_what_is_wrong_with_a_template() {
        for (text, problem) in [
            ("{}", "names a parameter"),
            ("{:?}", "names a parameter"),
            ("{order.id", "`{` is not closed"),
            ("{order{id}", "a parameter and its fields"),
            ("order.id}", "`}` without its `{`"),
            ("{order.id()}", "with `.lane(…)`"),
            ("{orders[0]}", "a parameter and its fields"),
            ("{order.}", "a parameter and its fields"),
            ("{order.01}", "a parameter and its fields"),
            ("{ order }", "a parameter and its fields"),
            ("{self.id}", "a parameter and its fields"),
            ("{0}", "a parameter and its fields"),
            ("{order:width$}", "a plain number"),
            ("{order:.*}", "a plain number"),
        ] {
            let error = parse(text, "lane").unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".*") {
            let _ = parse(&text, "lane");
        }

        #[test]
        fn no_similar_text_panics(text in "([{}:.$*_ ]|order|id|type|self|r#|0|é|/\\*){0,12}") {
            let _ = parse(&text, "lane");
        }

        #[test]
        fn text_without_braces_is_its_own_format(text in "[^{}]*") {
            let template = parse(&text, "lane").unwrap();
            prop_assert_eq!(template, Template { literals: vec![text], placeholders: Vec::new() });
        }
    }
}
