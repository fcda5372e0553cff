//! What a user writes: the [`options`] of the attribute, and the [`function`] under it. The other
//! files read the values of options.

pub(crate) mod backoff;
pub(crate) mod cron;
#[allow(dead_code, reason = "the file of optimus-core; only the parser is used here")]
pub(crate) mod cron_expression;
/// The file of `optimus-core`.
pub(crate) mod cron_nearest;
pub(crate) mod duration;
pub(crate) mod function;
pub(crate) mod gather;
pub(crate) mod limits;
pub(crate) mod option_value;
pub(crate) mod options;
pub(crate) mod rate;
pub(crate) mod template;
