//! The table of attempts, and what a stop wakes.

use std::{
    pin::pin,
    sync::mpsc,
    task::{self, Wake, Waker},
    thread::{self, ThreadId},
};

use optimus_core::{Data, QueueName, Token, WorkerId};

use super::*;
use crate::test_worker::{attempt_of, first_facts, idle_worker};

const FENCE: u64 = 7;

fn attempt(queue: &str, uuid: &str) -> Arc<Attempt> {
    let id: TaskId = format!("{queue}/{uuid}").parse().unwrap();
    let (worker, token) = (WorkerId::from_stored("w"), Token { seq: 1, fence: FENCE });
    let first = optimus_core::AttemptFacts::first(id.clone(), Deadline::now());
    let ctx = Context::new(first, Data::new().into());
    Arc::new(Attempt::new(Lease { id, worker, token }, 0, first_facts(), ctx))
}

#[test]
fn one_uuid_in_two_queues_under_one_fence_is_two_attempts() {
    let uuid = QueueName::new("q").map(TaskId::new).unwrap().uuid().to_string();
    let (one, other) = (attempt("one", &uuid), attempt("other", &uuid));
    let attempts = Attempts::new(Arc::default());
    attempts.insert([&one, &other].into_iter());
    assert_eq!(attempts.len(), 2);
    attempts.remove(std::iter::once(&one.lease), |_, _| {});
    assert!(!attempts.holds(&one.lease.id, FENCE) && attempts.of(&one.lease).is_none());
    assert!(attempts.holds(&other.lease.id, FENCE));
    assert!(Arc::ptr_eq(&attempts.of(&other.lease).unwrap(), &other));
}

struct TellsThread(mpsc::Sender<ThreadId>);

impl Wake for TellsThread {
    fn wake(self: Arc<Self>) {
        self.0.send(thread::current().id()).unwrap();
    }
}

/// A waker is user code, and may block its thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stop_wakes_those_who_wait_on_the_runtime_of_the_handlers() {
    let (_client, shared) = idle_worker("foreign-waker").await;
    let attempt = attempt_of(&shared);
    let (sender, threads) = mpsc::channel();
    let waker = Waker::from(Arc::new(TellsThread(sender)));
    let mut cancelled = pin!(attempt.ctx.cancelled());
    assert!(cancelled.as_mut().poll(&mut task::Context::from_waker(&waker)).is_pending());
    attempt.stop(Stop::Cancelled);
    assert!(attempt.ctx.is_cancelled(), "the handler's code sees it at once");
    let woken_on = threads.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_ne!(woken_on, thread::current().id());
}
