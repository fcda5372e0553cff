//! Checks that the keys of an Optimus queue are sound. Each task is in one state, each index agrees
//! with the records, and everything has a bound. The checks know only the keys, and not the calls
//! that wrote them.
//!
//! [`examine`] reads the queues of a live store and checks them; `optimus doctor --deep` prints
//! what it finds. [`check`] checks keys that were read before, such as those of a test:
//!
//! ```
//! use optimus_fsck::{Content, Dump, check};
//!
//! let ready = Content::List(vec![b"0123456789012345678901".to_vec()]);
//! let wrong = check(&Dump::from([("ready".to_owned(), ready)]));
//! assert_eq!(wrong[0].text, "0123456789012345678901 is in ready and has no record");
//! ```
//!
//! This crate only reads. It is for the other Optimus crates, and for tools of operators.

mod after;
mod bounds;
mod dispensers;
mod examine;
mod gathers;
mod groups;
mod history;
mod indexes;
mod key_table;
mod lanes;
mod limits;
mod look;
mod owners;
mod pointed;
mod ready;
mod remedy;
mod rosters;
mod schedules;
mod states;
mod statistics;
mod task_logs;
mod view;
mod violation;

use std::collections::BTreeMap;

pub use optimus_core::broker::{KeyContent as Content, KeyKind};

pub use self::{
    bounds::{check_lifetimes, check_types},
    examine::{Examined, examine},
    look::Coverage,
    remedy::Remedy,
    violation::{Basis, Violation},
};

/// Every key of a queue, without their common prefix, and its content.
pub type Dump = BTreeMap<String, Content>;

/// Returns the problems of a queue, of which all keys were read at one moment. A sound queue has
/// none.
pub fn check(dump: &Dump) -> Vec<Violation> {
    let view = view::View::new(dump);
    let mut wrong = violation::Wrong::default();
    let checks = [
        states::check,
        ready::check,
        lanes::check,
        after::check,
        groups::check,
        limits::check,
        gathers::check,
        schedules::check,
        dispensers::check,
        indexes::check,
        owners::check,
        rosters::check,
        statistics::check,
        history::check,
        task_logs::check,
        bounds::check,
    ];
    for check in checks {
        check(&view, &mut wrong);
    }
    wrong.into_vec()
}

/// Returns the problems that the names of keys show.
fn check_names(dump: &Dump) -> Vec<Violation> {
    let mut wrong = violation::Wrong::default();
    bounds::check(&view::View::new(dump), &mut wrong);
    wrong.into_vec()
}
