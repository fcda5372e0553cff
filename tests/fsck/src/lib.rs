//! Checks that the content of a queue is sound. Each task is in one state, each index agrees with
//! the records, and everything has a bound. The checks know only the keys, and not the calls that
//! wrote them.

mod after;
mod bounds;
mod content;
mod dispensers;
mod gathers;
mod groups;
mod history;
mod indexes;
mod lanes;
mod limits;
mod owners;
mod ready;
mod rosters;
mod schedules;
mod states;
mod statistics;
mod task_logs;
mod view;

pub use self::{
    bounds::check_lifetimes,
    content::{Content, Dump},
};

/// Returns the problems of a store, one sentence for each. A sound store has none.
pub fn fsck(dump: &Dump) -> Vec<String> {
    let view = view::View::new(dump);
    let mut wrong = Vec::new();
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
    wrong
}
