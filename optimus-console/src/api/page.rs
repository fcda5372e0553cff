//! Pages of rows: [`Page`], [`PageOf`].

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::problem::Problem;

/// How many rows a page has, unless it is asked for, and at most.
const LIMIT_DEFAULT: usize = 50;
pub(super) const LIMIT_MAX: usize = 100;

/// Some of the rows.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Page<T> {
    pub(crate) rows: Vec<T>,
    /// Where the next page begins: give it as `after`. `null` after the last page.
    pub(crate) next: Option<String>,
    /// How many rows there are, if that is known.
    pub(crate) total: Option<u64>,
    /// How many were looked at for this page, if rows were filtered.
    pub(crate) scanned: Option<u64>,
}

impl<T> Page<T> {
    pub(super) fn new(rows: Vec<T>, next: Option<String>) -> Self {
        Self { rows, next, total: None, scanned: None }
    }
}

/// Which page.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageOf {
    /// The `next` of the page before; none for the first page.
    pub(super) after: Option<String>,
    /// How many rows: 50 unless it is given, 100 at most.
    pub(super) limit: Option<usize>,
}

/// Returns how many rows to read.
pub(super) fn limit_of(limit: Option<usize>) -> Result<usize, Problem> {
    match limit {
        Some(0) => Err(Problem::invalid("the limit of a page is 0; ask for 1 row or more")),
        limit => Ok(limit.unwrap_or(LIMIT_DEFAULT).min(LIMIT_MAX)),
    }
}

/// Reads the cursor of a page.
pub(super) fn cursor<C: std::str::FromStr<Err: Into<Problem>>>(
    after: Option<&str>,
) -> Result<Option<C>, Problem> {
    after.filter(|after| !after.is_empty()).map(str::parse).transpose().map_err(Into::into)
}

/// Returns a page of rows that are all there, by their places.
pub(super) fn slice<T>(rows: Vec<T>, page: (Option<&str>, usize)) -> Result<Page<T>, Problem> {
    let (after, limit) = page;
    let begin = match after.filter(|after| !after.is_empty()) {
        None => 0,
        Some(after) => after.parse::<usize>().map_err(|_| {
            Problem::invalid(format!("{after:?} is not the `next` of the page before"))
        })?,
    };
    let total = rows.len();
    let rows: Vec<T> = rows.into_iter().skip(begin).take(limit).collect();
    let end = begin.saturating_add(rows.len());
    let next = (end < total && !rows.is_empty()).then(|| end.to_string());
    Ok(Page { rows, next, total: Some(total as u64), scanned: None })
}
