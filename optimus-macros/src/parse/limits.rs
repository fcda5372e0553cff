//! The options that limit how many tasks start or run: [`Limits`].

use syn::{Expr, Ident, LitStr};

use crate::{
    errors::Errors,
    parse::{
        option_value::{self, COUNT_MAX},
        rate::Rate,
    },
};

/// The limits of the attribute; `None` is no limit.
#[derive(Default)]
pub(crate) struct Limits {
    pub(crate) limit: Option<LitStr>,
    pub(crate) rate: Option<Rate>,
    pub(crate) burst: Option<u32>,
    pub(crate) max_working: Option<u32>,
    pub(crate) cost: Option<u32>,
    pub(crate) lane_rate: Option<Rate>,
    pub(crate) lane_burst: Option<u32>,
}

impl Limits {
    /// Reads one of these options. Returns whether it is one of them.
    pub(crate) fn set(&mut self, name: &Ident, value: &Expr, errors: &mut Errors) -> bool {
        let count = || option_value::number(name, value, 1..=COUNT_MAX);
        match &*name.to_string() {
            "limit" => self.limit = errors.keep(option_value::task_or_queue(name, value)),
            "rate" => self.rate = errors.keep(option_value::rate(name, value)),
            "burst" => self.burst = errors.keep(count()),
            "max_working" => self.max_working = errors.keep(count()),
            "cost" => self.cost = errors.keep(count()),
            "lane_rate" => self.lane_rate = errors.keep(option_value::rate(name, value)),
            "lane_burst" => self.lane_burst = errors.keep(count()),
            _ => return false,
        }
        true
    }
}

/// Refuses what has no meaning without another option.
pub(crate) fn check(given: &[Ident], errors: &mut Errors) {
    let has = |option: &str| given.iter().any(|name| name == option);
    for (option, needed) in [("burst", "rate"), ("lane_burst", "lane_rate")] {
        if let Some(name) = given.iter().find(|name| *name == option && !has(needed)) {
            let problem = format!("`{option}` has no effect without `{needed}`");
            errors.refuse(name, format!("{problem}; add one, as in `{needed} = \"100/s\"`"));
        }
    }
    let is_counted = ["rate", "lane_rate", "limit"].into_iter().any(has);
    if let Some(name) = given.iter().find(|name| *name == "cost" && !is_counted) {
        errors.refuse(
            name,
            "`cost` has no effect without a rate; add `rate = \"100/s\"`, `lane_rate = \"10/s\"` \
             or the name of a limit that is set at run time, `limit = \"…\"`",
        );
    }
}
