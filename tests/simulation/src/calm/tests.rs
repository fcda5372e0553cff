//! Hand-made records. The checks find each problem in them, and accept correct records.

use std::time::Duration;

use super::{
    fair, live,
    trial_record::{Happened, Member, Record, Step},
};
use crate::world::Setup;

const MS: u64 = 1_000_000;

/// Records the events of a worker with one set of slots, and queues with these weights.
struct Story(Record);

impl Story {
    fn of(slots: usize, weights: &[u32]) -> Self {
        let workers = vec![Member { process: 1, setup: Setup::of(slots) }];
        Self(Record { workers, weights: weights.to_vec(), steps: Vec::new() })
    }

    fn add(&mut self, ms: u64, what: Happened) {
        self.0.steps.push(Step { at: ms * MS, what });
    }

    /// Returns a story with this many tasks in each queue from the beginning.
    fn filled(slots: usize, weights: &[u32], each: usize) -> Self {
        let mut story = Self::of(slots, weights);
        for queue in 0..weights.len() {
            (0..each).for_each(|_| story.add(0, Happened::Waits { queue }));
        }
        story
    }

    /// Runs one task after the other on the worker, from these queues in turn, one ms each.
    fn runs(mut self, queues: impl IntoIterator<Item = usize>) -> Record {
        for (ms, queue) in (1..).zip(queues) {
            self.add(ms, Happened::Begins { queue, worker: 0 });
            self.add(ms + 1, Happened::Ends { worker: 0 });
        }
        self.0
    }
}

fn only(wrong: &[String]) -> &str {
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    &wrong[0]
}

#[test]
fn an_idle_slot_while_a_task_waits_is_found_after_half_a_second() {
    let begins_after = |ms: u64| {
        let mut story = Story::of(4, &[1]);
        story.add(1_000, Happened::Waits { queue: 0 });
        story.add(1_000 + ms, Happened::Begins { queue: 0, worker: 0 });
        live::check(&story.0)
    };
    assert!(begins_after(499).is_empty());
    assert_eq!(
        only(&begins_after(501)),
        "worker 1 left 4 of 4 slots idle while queue 0 had work for 501 ms"
    );
}

#[test]
fn a_busy_worker_may_let_tasks_wait() {
    let mut story = Story::of(1, &[1]);
    (0..2).for_each(|_| story.add(1, Happened::Waits { queue: 0 }));
    story.add(2, Happened::Begins { queue: 0, worker: 0 });
    story.add(5_000, Happened::Ends { worker: 0 });
    story.add(5_001, Happened::Begins { queue: 0, worker: 0 });
    assert!(live::check(&story.0).is_empty());
}

#[test]
fn a_worker_may_ignore_a_queue_that_it_does_not_serve() {
    let mut story = Story::of(4, &[1, 1]);
    let setup = Setup { serves: 0b01, lease: Duration::from_secs(6), ..Setup::of(4) };
    story.0.workers[0].setup = setup;
    story.add(1, Happened::Waits { queue: 1 });
    story.add(9_000, Happened::Waits { queue: 1 });
    assert!(live::check(&story.0).is_empty());
}

#[test]
fn a_queue_that_starves_is_found_and_one_that_has_its_share_is_not() {
    let story = || Story::filled(1, &[1, 3], 1_000);
    assert!(
        fair::check_weights(&story().runs((0..600).map(|n| usize::from(n % 4 > 0)))).is_empty()
    );
    let starving = fair::check_weights(&story().runs((0..600).map(|n| usize::from(n % 4 == 0))));
    assert!(only(&starving).contains("began 30 of 40 from queue 0"), "{starving:?}");
}

#[test]
fn tasks_begun_before_all_queues_had_work_do_not_count() {
    let story = |late: u64| {
        let mut story = Story::filled(4_096, &[1, 1], 2_000);
        (0..1_024).for_each(|_| story.add(late, Happened::Begins { queue: 0, worker: 0 }));
        let turns = (0..1_024).flat_map(|n| [n % 2; 2]);
        turns.for_each(|queue| story.add(late + 30, Happened::Begins { queue, worker: 0 }));
        story.0.steps.sort_by_key(|step| step.at);
        fair::check_weights(&story.0)
    };
    assert!(story(79).is_empty());
    assert!(only(&story(81)).contains("from queue 0"));
}

#[test]
fn a_queue_without_work_has_no_share() {
    let mut story = Story::filled(1, &[1, 1], 1_000);
    story.0.steps.retain(|step| !matches!(step.what, Happened::Waits { queue: 1 }));
    assert!(fair::check_weights(&story.runs([0; 600])).is_empty());
}

#[test]
fn an_earlier_queue_that_waits_is_found() {
    let story = || Story::filled(1, &[1, 1], 1_000);
    assert!(fair::check_strict(&story().runs([0; 600])).is_empty());
    let wrong = fair::check_strict(&story().runs([1; 600]));
    assert_eq!(
        only(&wrong),
        "worker 1 of 1 slots began from queue 1 201 ms after queue 0 had work for all"
    );
}
