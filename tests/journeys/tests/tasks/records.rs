//! Records and entries in Redis that are damaged, foreign, or written by newer code.

use std::time::Duration;

use crate::common::{Bench, Double, Flaky, Raw, Running, died_of, view};
use optimus_core::{CancelAnswer, Reason, Task, TaskHandle, TaskState};
use optimus_testkit::eventually;

const SOON: Duration = Duration::from_secs(20);

/// A task's record in a real Redis, which a test damages.
struct Stored {
    bench: Bench,
    raw: Raw,
    key: String,
    handle: TaskHandle<i64>,
    record: Vec<u8>,
}

impl Stored {
    async fn submit() -> Self {
        let bench = Bench::on_redis().await;
        let mut raw = bench.raw().await;
        let handle = bench.client.submit(Double { number: 21 }.call()).await.unwrap();
        let key = bench.key("default", "tasks");
        let record = raw.run(&format!("HGET {key} {}", handle.id().stored())).await.remove(0);
        Self { bench, raw, key, handle, record }
    }

    fn worker(&self) -> Running {
        self.bench.start(self.bench.worker().task_type::<Double>())
    }

    async fn overwrite(&mut self, record: &[u8]) {
        let id = self.handle.id().stored();
        let words = [b"HSET", self.key.as_bytes(), id.as_bytes(), record];
        self.raw.run_words(&words).await;
    }

    /// Returns the stamp and the header unchanged, with another payload.
    async fn overwrite_payload(&mut self, payload: &[u8]) {
        let end = self.record.iter().position(|byte| *byte == b'\n').unwrap();
        let record = [&self.record[..=end], payload].concat();
        self.overwrite(&record).await;
    }

    async fn waits_as_a_misfit(&mut self) {
        let task = async || view(&self.bench, self.handle.id()).await;
        let waits = async || task().await.state == TaskState::Delayed;
        eventually("the task waits for a worker that knows it", SOON, waits).await;
        let task = task().await;
        assert_eq!((task.failures, task.misfits), (0, 1));
        assert!(task.errors.is_empty(), "{:?}", task.errors);
    }

    /// Ends the wait of 5 s, so that a worker can claim the task.
    async fn is_due_at_once(&mut self) {
        let due = self.bench.key("default", "delayed");
        self.raw.run(&format!("ZADD {due} XX 1 {}", self.handle.id().stored())).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_with_an_unreadable_payload_is_dead_and_runs_once_its_bytes_fit_again() {
    let mut stored = Stored::submit().await;
    let original = stored.record.clone();
    assert_eq!(stored.handle.cancel().await.unwrap(), CancelAnswer::Cancelled);
    let worker = stored.worker();
    let endless = "[".repeat(100_000);
    let unreadable: [&[u8]; 7] =
        [b"", b"no json", b"{\"number\":\xff}", b"{\"number\":2", b"{}", b"[]", endless.as_bytes()];
    for payload in unreadable {
        stored.overwrite_payload(payload).await;
        stored.bench.client.requeue(stored.handle.id()).await.unwrap();
        died_of(&stored.handle, Reason::Undecodable).await;
        let task = view(&stored.bench, stored.handle.id()).await;
        assert_eq!(task.record.unwrap().unwrap().payload, payload, "the record is kept unchanged");
    }
    stored.overwrite(&original).await;
    stored.bench.client.requeue(stored.handle.id()).await.unwrap();
    assert_eq!(stored.handle.result_within(SOON).await.unwrap(), 42);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_damaged_beyond_reading_is_dead_and_the_worker_continues() {
    let mut stored = Stored::submit().await;
    let stamp = stored.record[..8].to_vec();
    let damages: [&[u8]; 6] = [
        b"",
        b"short",
        b"\0\xff\xfe no stamp\n{}",
        b"\n",
        b"{}\n{}",
        b"{\"t\":1}\n{\"number\":21}",
    ];
    for (at, damage) in damages.into_iter().enumerate() {
        let record = if at < 3 { damage.to_vec() } else { [&stamp, damage].concat() };
        stored.overwrite(&record).await;
        let worker = stored.worker();
        died_of(&stored.handle, Reason::Undecodable).await;
        let sound = stored.bench.client.submit(Double { number: 1 }.call()).await.unwrap();
        assert_eq!(sound.result_within(SOON).await.unwrap(), 2);
        worker.stop().await;
        let task = view(&stored.bench, stored.handle.id()).await;
        assert_eq!((task.state, task.failures), (TaskState::Dead, 1));
        stored.bench.client.requeue(stored.handle.id()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_in_the_ready_list_that_is_no_task_does_not_delay_later_ones() {
    let mut stored = Stored::submit().await;
    let ready = stored.bench.key("default", "ready");
    stored.raw.run(&format!("LPUSH {ready} garbage 00000000:foreign")).await;
    stored.raw.run_words(&[b"LPUSH", ready.as_bytes(), b"\xff\0", b""]).await;
    let worker = stored.worker();
    assert_eq!(stored.handle.result_within(SOON).await.unwrap(), 42);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_under_a_foreign_id_does_not_stop_the_queue() {
    let mut stored = Stored::submit().await;
    let (tasks, ready) = (stored.key.clone(), stored.bench.key("default", "ready"));
    stored.raw.run(&format!("HSET {tasks} foreign record")).await;
    stored.raw.run(&format!("LPUSH {ready} 00000000:foreign")).await;
    let worker = stored.worker();
    assert_eq!(stored.handle.result_within(Duration::from_secs(5)).await.unwrap(), 42);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_of_an_unknown_name_waits_unspent_for_a_worker_that_knows_it() {
    let mut stored = Stored::submit().await;
    let worker = stored.bench.start(stored.bench.worker().task_type::<Flaky>());
    stored.waits_as_a_misfit().await;
    worker.stop().await;
    stored.is_due_at_once().await;
    let worker = stored.worker();
    assert_eq!(stored.handle.result_within(SOON).await.unwrap(), 42);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_of_newer_programs_is_left_alone_and_the_others_are_served() {
    let mut stored = Stored::submit().await;
    let meta = stored.bench.key("default", "meta");
    stored.raw.run(&format!("HSET {meta} needs 99")).await;
    let worker = stored.bench.worker().queues(["default", "other"]).task_type::<Double>();
    let worker = stored.bench.start(worker);
    let call = Double { number: 1 }.call().queue("other");
    let served = stored.bench.client.submit(call).await.unwrap();
    assert_eq!(served.result_within(SOON).await.unwrap(), 2);
    let problem = stored.handle.cancel().await.unwrap_err();
    assert!(problem.is_outdated() && problem.to_string().contains("upgrade"), "{problem}");
    assert_eq!(stored.handle.status().await.unwrap(), TaskState::Ready);
    stored.raw.run(&format!("HDEL {meta} needs")).await;
    assert_eq!(stored.handle.result_within(SOON).await.unwrap(), 42);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_of_a_newer_version_waits_unspent_for_newer_code() {
    let mut stored = Stored::submit().await;
    let original = stored.record.clone();
    let newer = b"{\"v\":99,\"t\":[\"double\"],\"new\":1}\n\xff".to_vec();
    stored.overwrite(&newer).await;
    let worker = stored.worker();
    stored.waits_as_a_misfit().await;
    stored.overwrite(&original).await;
    stored.is_due_at_once().await;
    assert_eq!(stored.handle.result_within(SOON).await.unwrap(), 42);
    worker.stop().await;
}
