//! The query of a peek: [`Page`].

use optimus_core::HELD_MAX;

use crate::{node::shown, problem::Problem};

/// Which list to read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum List {
    Open,
    Assigned,
    Assignees,
}

/// A page of a list. Without a list, a peek answers the counts.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) list: Option<List>,
    pub(crate) skip: usize,
    pub(crate) limit: usize,
}

impl Page {
    /// Reads the parameters of a query.
    pub(crate) fn read(parameters: &[(String, String)]) -> Result<Self, Problem> {
        let mut page = Self { list: None, skip: 0, limit: HELD_MAX };
        for (at, (name, value)) in parameters.iter().enumerate() {
            if parameters[..at].iter().any(|(earlier, _)| earlier == name) {
                return Err(Problem::invalid(format!("{} is there twice", shown(name))));
            }
            match name.as_str() {
                "list" => page.list = Some(list(value)?),
                "skip" => page.skip = number(name, value, "a whole number from 0")?,
                "limit" => page.limit = limit(value)?,
                _ => {
                    return Err(Problem::invalid(format!(
                        "unknown parameter {:?}; use list, skip and limit",
                        shown(name)
                    )));
                }
            }
        }
        if page.list.is_none() && !parameters.is_empty() {
            return Err(Problem::invalid("skip and limit need list=open, assigned or assignees"));
        }
        Ok(page)
    }
}

fn list(value: &str) -> Result<List, Problem> {
    Ok(match value {
        "open" => List::Open,
        "assigned" => List::Assigned,
        "assignees" => List::Assignees,
        _ => {
            return Err(Problem::invalid(format!(
                "list is {:?}; use open, assigned or assignees",
                shown(value)
            )));
        }
    })
}

fn limit(value: &str) -> Result<usize, Problem> {
    let range = format!("1 to {HELD_MAX}");
    match number("limit", value, &range)? {
        limit @ 1..=HELD_MAX => Ok(limit),
        limit => Err(Problem::invalid(format!("limit is {limit}; use {range}"))),
    }
}

fn number(name: &str, value: &str, range: &str) -> Result<usize, Problem> {
    let wrong = |_| Problem::invalid(format!("{name} is {:?}; use {range}", shown(value)));
    value.parse().map_err(wrong)
}
