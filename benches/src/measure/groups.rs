//! Counts the Redis instructions for a member of a group, and for a plain task, with the help of
//! valgrind. A callback waits for the group.

use optimus_core::{Member, PrerequisiteFailure, TaskId};

use super::life::Made;
use super::{Measurement, added, plain};
use crate::bench::Bench;
use crate::row::Row;

pub(super) const GROUPS: Measurement = Measurement {
    name: "groups",
    about: "instructions of Redis for members of groups and for plain tasks, by valgrind",
    run: groups,
};

fn groups(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let mut group = TaskId::new(plain::queue()?);
    added::rows(bench, GROUPS.name, "of a group", |number, _| {
        if number == 0 {
            group = TaskId::new(plain::queue()?);
        }
        let (group, index) = (group.clone(), u32::try_from(number)?);
        let member = Member { group, index, on_failure: PrerequisiteFailure::default() };
        Ok(Made::of_group(plain::submission()?, member))
    })
}
