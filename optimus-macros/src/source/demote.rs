//! `demote(1..=5 = "30s", 6.. = "60s")`: how often rows that have failed are looked for.

use std::time::Duration;

use syn::{
    Expr, Ident, LitInt, Token,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
};

use crate::parse::option_value;

/// One range of failures.
pub(crate) struct Range {
    pub(crate) least: LitInt,
    /// `None` for a range without an end.
    pub(crate) most: Option<LitInt>,
    pub(crate) every: Duration,
}

/// A range of numbers of failures, and how often these rows are looked for.
#[derive(Clone, Copy)]
pub(crate) struct Tier {
    pub(crate) least: u32,
    pub(crate) most: u32,
    pub(crate) every: Duration,
}

impl Parse for Range {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let usage = "a range of failures and a time, as in `1..=5 = \"30s\"`";
        let least: LitInt =
            input.parse().map_err(|problem| syn::Error::new(problem.span(), usage))?;
        let most = if input.peek(Token![..=]) {
            input.parse::<Token![..=]>()?;
            Some(input.parse()?)
        } else if input.peek(Token![..]) {
            input.parse::<Token![..]>()?;
            if input.peek(LitInt) {
                let most: LitInt = input.parse()?;
                let text = format!("write `{least}..={most}`, which includes {most}");
                return Err(syn::Error::new(most.span(), text));
            }
            None
        } else {
            Some(least.clone())
        };
        input.parse::<Token![=]>().map_err(|problem| syn::Error::new(problem.span(), usage))?;
        let value: Expr = input.parse()?;
        let every = option_value::positive(&Ident::new("demote", least.span()), &value)?;
        Ok(Self { least, most, every })
    }
}

/// Reads the ranges.
pub(crate) fn ranges(input: ParseStream<'_>) -> syn::Result<Vec<Range>> {
    Ok(Punctuated::<Range, Token![,]>::parse_terminated(input)?.into_iter().collect())
}

/// Returns the tiers, and from how many failures on a row is given up.
///
/// # Errors
/// A gap between two ranges, and ranges that do not fit `attempts`.
pub(crate) fn tiers(
    every: Duration,
    ranges: &[Range],
    attempts: Option<u32>,
) -> syn::Result<(Vec<Tier>, Option<u32>)> {
    let mut tiers: Vec<Tier> = Vec::new();
    let end = attempts.map_or(u32::MAX, |attempts| attempts.saturating_sub(1));
    for (at, range) in ranges.iter().enumerate() {
        let refuse = |text: String| Err(syn::Error::new(range.least.span(), text));
        let least: u32 = range.least.base10_parse()?;
        let next = tiers.last().map_or(0, |tier| tier.most.saturating_add(1));
        let next_text = tiers.last().map_or("0 or 1".to_owned(), |_| next.to_string());
        if least != next && !(at == 0 && least == 1) {
            return refuse(format!("this range begins at {least}; it must begin at {next_text}"));
        }
        if at == 0 && least == 1 {
            tiers.push(Tier { least: 0, most: 0, every });
        }
        let most = match &range.most {
            Some(most) => most.base10_parse()?,
            None if at + 1 < ranges.len() => {
                return refuse("only the last range has no end".to_owned());
            }
            None => end,
        };
        if most < least {
            return refuse(match (&range.most, attempts) {
                (None, Some(attempts)) => format!(
                    "`attempts = {attempts}` gives rows up that have failed {attempts} times, so a \
                     range that begins at {least} has no rows: leave it out, or raise `attempts`"
                ),
                _ => format!("this range ends at {most}, before it begins"),
            });
        }
        tiers.push(Tier { least, most, every: range.every });
    }
    let Some(last) = tiers.last().copied() else {
        return Ok((vec![Tier { least: 0, most: end, every }], attempts));
    };
    if last.most != end {
        let span = ranges.last().map_or_else(proc_macro2::Span::call_site, |range| {
            range.most.as_ref().unwrap_or(&range.least).span()
        });
        if attempts.is_none() {
            // Rows above the last range are given up.
            return Ok((tiers, last.most.checked_add(1)));
        }
        return Err(syn::Error::new(
            span,
            format!(
                "`attempts` lets rows fail {end} times before the last attempt, and the ranges end \
                 at {}: end them at {end}, or with `{}..`",
                last.most, last.least
            ),
        ));
    }
    Ok((tiers, attempts))
}
