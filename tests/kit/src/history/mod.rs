//! A record of what clients, handlers and a nemesis did, as files of lines, and its checker.
//!
//! Every process appends its events to its own file, each event with one write, so that the events
//! survive a kill -9. [`check`] replays all files of a folder. No acknowledged task may be lost. No
//! task may run that was not submitted. Each repeated execution must have a reason in the history.
//! If a client or an operator received no answer, the action may or may not have happened. If the
//! client or the operator received an answer, the answer must be true.

mod account;
mod acts;
mod after;
mod biz;
mod check;
mod event;
mod lanes;
mod limits;
mod line;
mod log;
mod operations;
mod overlap;
mod queues;
mod repeat_reason;
mod requests;
mod verdict;

pub use check::{Rules, check, check_events};
pub use event::{Event, Found, How, IfDead, Until, What};
pub use log::{HistoryLog, now_ns, read_history};
pub use repeat_reason::Why;
pub use verdict::Verdict;
