//! The events that each role of a worker waits for: [`Wakeups`].
//!
//! Each role rests on its own [`Wakeup`] until its time has come, or until an event that it waits
//! for. The code that causes an event calls the method with the name of the event. Only this file
//! knows which role an event wakes.
//!
//! | role | waits for | caused by |
//! |---|---|---|
//! | claimer | a free slot | `Slot`, dropped |
//! | | a report to send | `Reporter::push` |
//! | | the answer of reports that kept it from claims | `FallbackReporter` |
//! | | a queue that may have work | `Served::hint`: a wakeup, poll, heartbeat, reap or claim |
//! | work listener | a queue that was found empty, to listen to it | `Served::found_empty` |
//! | | the answer of a claim that shows when a task is due | `Claims` |
//! | | the next free slot, while it has asked for it | `Slot`, dropped |
//! | heartbeat | a claim that found the lease over, or made it short | `Served` |
//! | reaper | an expiry that was not known before | `Heartbeat` |
//! | relay | an effect on another queue | `Served::effects_posted`: the answer of reports, a reap |
//! | scheduler | a schedule that is due sooner than known | `Served::tick_heard`: a heartbeat |
//! | posts | the end of the work of a post, the end of the worker | `PostRun`, `shutdown_phases` |
//! | deadlines, fallback reporter, driver watch | an attempt, if asleep | `Attempts::insert` |
//! | attendance | an attempt, if asleep | `Attempts::insert` |
//! | | what an operator asks | `CancelListener` |
//! | | a sign that Redis has lost data: a lost lease, another connection | `Heartbeat` |
//! | log writer | the first line that handlers say, if asleep | `LogDesk` |
//! | ending | the end of a task, or the end of its need for the runtime | `Slot` |
//! | | the answer of reports | `Reporter` |
//! | | the last post, given back | `Posts` |
//! | | the end of a service | `Services` |
//!
//! An event must have happened before its method is called, because a woken role checks once and
//! rests again. A wakeup is kept while its role is busy, so no wakeup is missed, and several
//! wakeups become one. Each task frees a slot and pushes a report, and each of these events costs
//! an atomic exchange.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// The wakeups of one worker.
#[derive(Debug, Default)]
pub(crate) struct Wakeups {
    pub(crate) claimer: Wakeup,
    pub(crate) work_listener: Wakeup,
    pub(crate) heartbeat: Wakeup,
    pub(crate) reaper: Wakeup,
    pub(crate) relay: Wakeup,
    pub(crate) scheduler: Wakeup,
    pub(crate) posts: Wakeup,
    pub(crate) deadlines: Sleeper,
    pub(crate) fallback_reporter: Sleeper,
    pub(crate) driver_watch: Sleeper,
    pub(crate) attendance: Sleeper,
    pub(crate) log_writer: Sleeper,
    pub(crate) ending: Sleeper,
    /// Whether the work listener has asked for the next free slot.
    slot_awaited: AtomicBool,
    /// Whether something has happened since the last look after which the process attends at once.
    attends_now: AtomicBool,
}

/// The wakeup on which one role rests.
#[derive(Debug, Default)]
pub(crate) struct Wakeup(Notify);

impl Wakeup {
    fn wake(&self) {
        self.0.notify_one();
    }

    /// Resolves at the next wakeup, or at once if one has come since the last.
    pub(crate) async fn woken(&self) {
        self.0.notified().await;
    }
}

/// A wakeup for a role that checks repeatedly, and sleeps while there is nothing to check.
#[derive(Debug, Default)]
pub(crate) struct Sleeper {
    asleep: AtomicBool,
    pub(crate) wakeup: Wakeup,
}

impl Sleeper {
    fn wake(&self) {
        if self.asleep.load(Ordering::SeqCst) && self.asleep.swap(false, Ordering::SeqCst) {
            self.wakeup.wake();
        }
    }

    /// Returns whether the role may sleep until it is woken. Returns `false` if the role is not
    /// idle.
    pub(crate) fn fall_asleep(&self, is_idle: impl FnOnce() -> bool) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        let idle = is_idle();
        if !idle {
            self.asleep.store(false, Ordering::SeqCst);
        }
        idle
    }
}

impl Wakeups {
    /// Called when a slot is idle.
    pub(crate) fn slot_freed(&self) {
        self.claimer.wake();
        self.ending.wake();
        if self.slot_awaited.load(Ordering::SeqCst)
            && self.slot_awaited.swap(false, Ordering::SeqCst)
        {
            self.work_listener.wake();
        }
    }

    /// Wakes the work listener when a slot is idle, or now if one is idle.
    pub(crate) fn await_slot(&self, is_idle: impl FnOnce() -> bool) {
        self.slot_awaited.store(true, Ordering::SeqCst);
        if is_idle() && self.slot_awaited.swap(false, Ordering::SeqCst) {
            self.work_listener.wake();
        }
    }

    /// Called when a task that still runs no longer needs a thread of the runtime.
    pub(crate) fn runtime_left(&self) {
        self.ending.wake();
    }

    /// Called when Redis has answered reports.
    pub(crate) fn reports_answered(&self) {
        self.ending.wake();
    }

    /// Called when a report waits to be sent.
    pub(crate) fn report_pushed(&self) {
        self.claimer.wake();
    }

    /// Called when the fallback reporter has received answers to reports.
    pub(crate) fn fallback_reported(&self) {
        self.claimer.wake();
    }

    /// Called when a queue may have work.
    pub(crate) fn queue_hinted(&self) {
        self.claimer.wake();
    }

    /// Called when a queue has no work.
    pub(crate) fn queue_found_empty(&self) {
        self.work_listener.wake();
    }

    /// Called when the answer to a claim shows when a task is due in the queue.
    pub(crate) fn due_learned(&self) {
        self.work_listener.wake();
    }

    /// Called when a queue needs its heartbeat sooner than expected.
    pub(crate) fn beat_wanted(&self) {
        self.heartbeat.wake();
    }

    /// Called when a heartbeat has returned the ends of the leases of other workers.
    pub(crate) fn expiry_learned(&self) {
        self.reaper.wake();
    }

    /// Called when a call has caused effects on other queues.
    pub(crate) fn effects_posted(&self) {
        self.relay.wake();
    }

    /// Called when a schedule is due sooner than was known, or the worker has a new id.
    pub(crate) fn tick_heard(&self) {
        self.scheduler.wake();
    }

    /// Called when the work of a post has ended.
    pub(crate) fn post_ended(&self) {
        self.posts.wake();
    }

    /// Called when the worker must give its posts back.
    pub(crate) fn posts_must_end(&self) {
        self.posts.wake();
    }

    /// Called when the worker holds no post.
    pub(crate) fn posts_given_back(&self) {
        self.ending.wake();
    }

    /// Called when a service of the worker has ended.
    pub(crate) fn service_ended(&self) {
        self.ending.wake();
    }

    /// Called when attempts were added to the table.
    pub(crate) fn attempts_began(&self) {
        self.deadlines.wake();
        self.fallback_reporter.wake();
        self.driver_watch.wake();
        self.attendance.wake();
    }

    /// Called when the worker holds posts, and held none.
    pub(crate) fn posts_began(&self) {
        self.attendance.wake();
    }

    /// Called when a handler has said something and nothing else waits to be sent.
    pub(crate) fn line_said(&self) {
        self.log_writer.wake();
    }

    /// Called when an operator has asked the process for something.
    pub(crate) fn process_asked(&self) {
        self.attend_now();
    }

    /// Called when queues that did not know the worker know it again. Redis may have lost the
    /// process, too.
    pub(crate) fn registered_again(&self) {
        self.attend_now();
    }

    /// Called when heartbeats are answered over another connection than before. The attendance
    /// looks whether it has used that connection.
    pub(crate) fn connected_again(&self) {
        self.attendance.wakeup.wake();
    }

    fn attend_now(&self) {
        self.attends_now.store(true, Ordering::SeqCst);
        self.attendance.wakeup.wake();
    }

    /// Returns whether the process must attend at once. It must do so once for any number of
    /// events.
    pub(crate) fn take_attends_now(&self) -> bool {
        self.attends_now.swap(false, Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt;
    use optimus_core::{
        Lease, QueueName, TaskId, Token, WorkerId,
        broker::{Give, Release},
        log::Log,
    };

    use super::*;
    use crate::{decide_outcome::Report, reporter::Reporter, served_queue::Served, slots::Slots};

    fn is_woken(wakeup: &Wakeup) -> bool {
        wakeup.woken().now_or_never().is_some()
    }

    #[test]
    fn a_free_slot_wakes_the_claimer_and_the_work_listener_only_if_it_has_asked() {
        let wakeups = Wakeups::default();
        wakeups.slot_freed();
        assert!(is_woken(&wakeups.claimer) && !is_woken(&wakeups.work_listener));
        wakeups.await_slot(|| false);
        assert!(!is_woken(&wakeups.work_listener));
        wakeups.slot_freed();
        wakeups.slot_freed();
        assert!(
            is_woken(&wakeups.work_listener) && !is_woken(&wakeups.work_listener),
            "asked once"
        );
        wakeups.await_slot(|| true);
        assert!(is_woken(&wakeups.work_listener), "the slot was idle already");
    }

    #[test]
    fn each_event_wakes_the_role_that_waits_for_it() {
        let wakeups: Arc<Wakeups> = Arc::default();
        let (queue, worker) = (QueueName::new("q").unwrap(), WorkerId::generate("test", 1));
        let served = Served::new(queue.clone(), 1, worker.clone(), wakeups.clone());
        served.hint();
        assert!(is_woken(&wakeups.claimer), "by a hint");
        served.found_empty(served.ask());
        assert!(
            is_woken(&wakeups.work_listener),
            "a queue that has no work wakes the work listener"
        );
        let lease = Lease { id: TaskId::new(queue), worker, token: Token { seq: 1, fence: 1 } };
        let report = Report::Release(Release { lease, give: Give::Head });
        Reporter::new(wakeups.clone(), Log::here()).push(report);
        assert!(is_woken(&wakeups.claimer), "by a report");
        drop(Slots::new(1, 1, wakeups.clone()).take(0));
        assert!(is_woken(&wakeups.claimer), "by a slot");
        assert!(!served.take_posted());
        served.effects_posted();
        assert!(is_woken(&wakeups.relay) && served.take_posted() && !served.take_posted());
    }

    #[test]
    fn a_role_that_checks_attempts_sleeps_only_without_any_and_until_the_next() {
        let wakeups = Wakeups::default();
        wakeups.attempts_began();
        assert!(!is_woken(&wakeups.fallback_reporter.wakeup), "the role did not sleep");
        assert!(!wakeups.fallback_reporter.fall_asleep(|| false));
        wakeups.attempts_began();
        assert!(!is_woken(&wakeups.fallback_reporter.wakeup), "the role did not fall asleep");
        assert!(wakeups.fallback_reporter.fall_asleep(|| true));
        wakeups.attempts_began();
        assert!(
            is_woken(&wakeups.fallback_reporter.wakeup) && !is_woken(&wakeups.deadlines.wakeup)
        );
    }

    #[test]
    fn each_end_that_the_shutdown_may_wait_for_wakes_it() {
        let wakeups: Arc<Wakeups> = Arc::default();
        let slot = Slots::new(1, 1, wakeups.clone()).take(0).unwrap();
        let ending = &wakeups.ending;
        let wakes = |happens: &mut dyn FnMut()| {
            assert!(ending.fall_asleep(|| true));
            happens();
            is_woken(&ending.wakeup)
        };
        assert!(wakes(&mut || drop(slot.leave_runtime())), "the task no longer needs the runtime");
        let mut slot = Some(slot);
        assert!(wakes(&mut || slot = None), "the task has ended");
        assert!(wakes(&mut || wakeups.reports_answered()), "the report was answered");
        assert!(wakes(&mut || wakeups.posts_given_back()), "all posts are given back");
        wakeups.post_ended();
        assert!(is_woken(&wakeups.posts));
    }

    #[test]
    fn a_wish_or_a_new_registration_wakes_the_attendance_even_if_it_is_not_asleep() {
        let wakeups = Wakeups::default();
        assert!(!wakeups.take_attends_now());
        for happens in [Wakeups::process_asked, Wakeups::registered_again] {
            happens(&wakeups);
            assert!(is_woken(&wakeups.attendance.wakeup));
            assert!(wakeups.take_attends_now() && !wakeups.take_attends_now(), "taken once");
        }
        wakeups.connected_again();
        assert!(is_woken(&wakeups.attendance.wakeup) && !wakeups.take_attends_now());
    }

    #[test]
    fn a_wakeup_that_comes_while_its_role_is_busy_is_kept() {
        let wakeups = Wakeups::default();
        wakeups.report_pushed();
        wakeups.queue_hinted();
        assert!(
            is_woken(&wakeups.claimer) && !is_woken(&wakeups.claimer),
            "several wakeups become one"
        );
        wakeups.queue_found_empty();
        assert!(is_woken(&wakeups.work_listener));
        wakeups.beat_wanted();
        wakeups.expiry_learned();
        assert!(is_woken(&wakeups.heartbeat) && is_woken(&wakeups.reaper));
    }
}
