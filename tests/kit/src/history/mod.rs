//! What clients, handlers and a nemesis did, as files of lines, and the judge over it.
//!
//! Every process appends what it does to a file of its own, each event with one write, so that
//! what was written survives a kill -9. [`check`] replays all files of a folder: nothing that was
//! acknowledged may be lost, nothing may run that was not submitted, and whatever ran twice must
//! have a reason that the history shows. An outcome that its client does not know counts as one
//! that may or may not have happened. So does what an operator asked for and was not told of; what
//! one was told must be so.

mod account;
mod acts;
mod biz;
mod check;
mod event;
mod explain;
mod line;
mod log;
mod operations;
mod queues;
mod requests;
mod verdict;

pub use check::{Rules, check, check_events};
pub use event::{Event, Found, How, What};
pub use explain::Why;
pub use log::{HistoryLog, now_ns, read_history};
pub use verdict::Verdict;
