//! The view and the actions of an operator, the order in which tasks run, and how many run at a
//! time.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::common::{Bench, Double, Flaky, Gate, Wait};
use optimus_core::{
    BoxError, Call, CancelAnswer, Context, Counts, DataKey, DateTime, Due, Inspector, OnLost,
    PageCursor, QueueName, Reason, Task, TaskDetails, TaskId, TaskState, WorkerId,
};
use optimus_testkit::eventually;
use optimus_worker::WorkerBuilder;
use serde::{Deserialize, Serialize};

const SOON: Duration = Duration::from_secs(20);
const LEASE: Duration = Duration::from_millis(500);

/// The tasks that ran, in the order in which they began, and how many ran at once.
#[derive(Clone, Default)]
struct Journal {
    names: Arc<Mutex<Vec<String>>>,
    running: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Journal {
    fn names(&self) -> Vec<String> {
        self.names.lock().unwrap().clone()
    }
}

/// Writes its name into the journal.
#[derive(Serialize, Deserialize)]
struct Note {
    name: String,
}

fn note(name: &str) -> Call<Note> {
    Note { name: name.into() }.call()
}

impl Task for Note {
    const NAME: &'static str = "note";
    type Output = ();

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Journal>()]
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let journal: Journal = ctx.data().unwrap();
        journal.names.lock().unwrap().push(self.name);
        let running = journal.running.fetch_add(1, Ordering::SeqCst) + 1;
        journal.most.fetch_max(running, Ordering::SeqCst);
        tokio::task::yield_now().await;
        journal.running.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }
}

fn queue(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

fn later(number: i64) -> Call<Double> {
    Double { number }.call().due(Due::In(SOON))
}

async fn view(bench: &Bench, id: &TaskId) -> TaskDetails {
    bench.client.inspector().get(id).await.unwrap().expect("the task is known")
}

async fn counts(bench: &Bench) -> Counts {
    bench.client.inspector().counts(&queue("default")).await.unwrap()
}

/// Returns the ids of all tasks in a state, in pages of `limit`.
async fn ids_in(
    inspector: &Inspector,
    queue: &QueueName,
    state: TaskState,
    limit: usize,
) -> Vec<TaskId> {
    let (mut ids, mut after) = (Vec::new(), None);
    loop {
        let page = inspector.list(queue, state, after.as_ref(), limit).await.unwrap();
        assert!(page.rows.len() <= limit);
        ids.extend(page.rows.into_iter().map(|row| row.id));
        after = page.next;
        if after.is_none() {
            return ids;
        }
    }
}

/// Runs the submitted tasks one at a time, until the journal has this many names.
async fn journal_of(
    bench: &Bench,
    build: fn(WorkerBuilder) -> WorkerBuilder,
    names: usize,
) -> Vec<String> {
    let journal = Journal::default();
    let builder = bench.worker().task_type::<Note>().data(journal.clone()).concurrency(1);
    let worker = bench.start(build(builder));
    eventually("all tasks have run", SOON, async || journal.names().len() >= names).await;
    worker.stop().await;
    assert_eq!(journal.most.load(Ordering::SeqCst), 1, "one slot runs one task at a time");
    journal.names()
}

on_both! {
    async fn the_inspector_follows_a_task_through_its_life(bench: Bench) {
        let inspector = bench.client.inspector();
        let default = queue("default");
        let list = async |state| ids_in(&inspector, &default, state, 10).await;
        let delayed = bench.client.submit(later(1)).await.unwrap();
        let handle = bench.client.submit(Wait {}.call().biz_id("b")).await.unwrap();
        assert_eq!(counts(&bench).await, Counts { ready: 1, delayed: 1, ..Counts::default() });
        assert_eq!(list(TaskState::Ready).await, [handle.id().clone()]);
        assert_eq!(list(TaskState::Delayed).await, [delayed.id().clone()]);
        let task = view(&bench, delayed.id()).await;
        assert!(task.at >= task.id.created());
        let gate = Gate::new();
        let worker = bench.start(bench.worker().task_type::<Wait>().data(gate.clone()));
        gate.began.wait_for(1).await;
        assert_eq!(list(TaskState::Working).await, [handle.id().clone()]);
        let task = view(&bench, handle.id()).await;
        let workers = inspector.workers(&default).await.unwrap();
        assert_eq!((task.state, task.worker), (TaskState::Working, Some(workers[0].id.clone())));
        gate.open.hit();
        handle.result_within(SOON).await.unwrap();
        worker.stop().await;
        let task = view(&bench, handle.id()).await;
        assert_eq!((task.state, task.record.is_none()), (TaskState::Success, true));
        assert!(task.summary.unwrap().starts_with("wait 1 "));
        assert_eq!(list(TaskState::Success).await, [handle.id().clone()]);
        assert_eq!(delayed.cancel().await.unwrap(), CancelAnswer::Cancelled);
        let seen = counts(&bench).await;
        assert!(seen.cancelled_bytes > 0);
        let cancelled_bytes = seen.cancelled_bytes;
        let end = Counts { cancelled: 1, cancelled_bytes, ..Counts::default() };
        assert_eq!(seen, Counts { recent_successes: 1, ..end });
        assert_eq!(inspector.queues().await.unwrap(), [default]);
    }

    async fn a_list_comes_in_pages_in_the_order_of_the_ready_list(bench: Bench) {
        let calls = (0..25).map(|number| Double { number }.call());
        let handles = bench.client.submit_all(calls).await.unwrap();
        let ids: Vec<TaskId> = handles.iter().map(|handle| handle.id().clone()).collect();
        let (inspector, default) = (bench.client.inspector(), queue("default"));
        let ready = async |limit| ids_in(&inspector, &default, TaskState::Ready, limit).await;
        for limit in [1, 10, 25, usize::MAX] {
            assert_eq!(ready(limit).await, ids);
        }
        let page = inspector.list(&default, TaskState::Ready, None, 10).await.unwrap();
        assert_eq!(page.rows.len(), 10);
        let problem = inspector.list(&default, TaskState::Ready, None, 0).await.unwrap_err();
        assert!(problem.is_invalid() && problem.to_string().contains("limit"), "{problem}");
        // The cursor has the form in which a URL contains it.
        let after: PageCursor = page.next.unwrap().to_string().parse().unwrap();
        let rest = inspector.list(&default, TaskState::Ready, Some(&after), 128).await.unwrap();
        assert!(rest.rows.iter().map(|row| &row.id).eq(&ids[10..]));
        for (queue, state) in [(&default, TaskState::Dead), (&queue("other"), TaskState::Ready)] {
            let problem = inspector.list(queue, state, Some(&after), 10).await.unwrap_err();
            assert!(problem.is_invalid(), "{problem}");
        }
        handles[3].cancel().await.unwrap();
        assert!(!ready(10).await.contains(&ids[3]), "a cancelled task is not in the ready list");
        assert_eq!(counts(&bench).await.ready, 24);
    }

    async fn a_row_shows_what_an_operator_needs(bench: Bench) {
        let (inspector, default) = (bench.client.inspector(), queue("default"));
        let failing = Flaky { attempts: 9, panics: false };
        let dead = bench.client.submit(failing.call().max_retry(0)).await.unwrap();
        let done = bench.client.submit(Double { number: 1 }.call()).await.unwrap();
        let delayed = bench.client.submit(later(1)).await.unwrap();
        let worker = bench.worker().task_type::<Flaky>().task_type::<Double>();
        let worker = bench.start(worker);
        assert_eq!(dead.ended().await.unwrap(), TaskState::Dead);
        done.result_within(SOON).await.unwrap();
        worker.stop().await;
        let row = async |state| {
            let page = inspector.list(&default, state, None, 10).await.unwrap();
            assert_eq!((page.rows.len(), &page.next), (1, &None), "{state}");
            page.rows.into_iter().next().unwrap()
        };
        let dead_row = row(TaskState::Dead).await;
        assert_eq!((&dead_row.id, dead_row.task.as_deref()), (dead.id(), Some("flaky")));
        assert_eq!((dead_row.state, dead_row.attempt), (TaskState::Dead, 1));
        assert!(dead_row.at >= dead_row.created && dead_row.created.is_some());
        let error = dead_row.last_error.unwrap();
        assert_eq!((error.reason, error.attempt), (Reason::Failed, 1));
        let done_row = row(TaskState::Success).await;
        assert_eq!((&done_row.id, done_row.task.as_deref()), (done.id(), Some("double")));
        assert_eq!(done_row.attempt, 1);
        assert!(done_row.took.is_some() && done_row.worker.is_some());
        let delayed_row = row(TaskState::Delayed).await;
        assert_eq!((&delayed_row.id, delayed_row.attempt), (delayed.id(), 0));
        assert!(delayed_row.at > delayed_row.created);
    }

    async fn many_are_requeued_with_an_answer_for_each(bench: Bench) {
        let calls = (0..300).map(|number| Double { number }.call());
        let handles = bench.client.submit_all(calls).await.unwrap();
        let ids: Vec<TaskId> = handles.iter().map(|handle| handle.id().clone()).collect();
        let lives = bench.client.submit(later(1)).await.unwrap();
        let cancelled = bench.client.cancel_all(ids.iter().cloned()).await;
        assert!(cancelled.into_iter().all(|answer| answer.unwrap() == CancelAnswer::Cancelled));
        let mut asked = ids.clone();
        asked.insert(150, lives.id().clone());
        let answers = bench.client.requeue_all(asked).await;
        assert_eq!(answers.len(), 301);
        for (at, answer) in answers.iter().enumerate() {
            match answer {
                Err(problem) => assert!(at == 150 && problem.is_wrong_state(), "{problem}"),
                Ok(()) => assert_ne!(at, 150),
            }
        }
        let counts = counts(&bench).await;
        assert_eq!((counts.ready, counts.cancelled), (300, 0));
    }

    async fn a_requeue_that_a_window_refuses_returns_until_when(bench: Bench) {
        let call = || Double { number: 1 }.call().biz_id("b").biz_window(SOON * 60);
        let old = bench.client.submit(call().due(Due::In(SOON))).await.unwrap();
        assert_eq!(old.cancel().await.unwrap(), CancelAnswer::Cancelled);
        let worker = bench.start(bench.worker().task_type::<Double>());
        let owner = bench.client.submit(call()).await.unwrap();
        owner.result_within(SOON).await.unwrap();
        let problem = bench.client.requeue(old.id()).await.unwrap_err();
        assert!(problem.is_duplicate(), "{problem}");
        assert_eq!(problem.task_ids(), std::slice::from_ref(owner.id()));
        assert!(problem.to_string().contains("biz_window"), "{problem}");
        worker.stop().await;
    }

    async fn a_worker_is_shown_with_its_machine_and_its_running_tasks(bench: Bench) {
        let gate = Gate::new();
        let builder = bench.worker().task_type::<Wait>().data(gate.clone()).concurrency(3);
        let worker = bench.start(builder.queues(["a", "b"]));
        let handle = bench.client.submit(Wait {}.call().queue("a")).await.unwrap();
        gate.began.wait_for(1).await;
        let inspector = bench.client.inspector();
        let seen = inspector.workers(&queue("a")).await.unwrap().remove(0);
        assert_eq!(seen.running, [handle.id().clone()]);
        assert_eq!(seen.description.pid, std::process::id());
        assert!(!seen.description.host.is_empty());
        assert!(seen.description.started > DateTime::UNIX_EPOCH);
        assert_eq!((seen.description.concurrency, seen.description.queues.len()), (3, 2));
        assert_eq!(seen.description.tasks, ["wait"]);
        let idle = inspector.workers(&queue("b")).await.unwrap().remove(0);
        assert!(idle.running.is_empty() && seen.lease_until > DateTime::UNIX_EPOCH);
        gate.open.hit();
        handle.result_within(SOON).await.unwrap();
        worker.stop().await;
        assert!(inspector.workers(&queue("a")).await.unwrap().is_empty());
    }

    async fn a_paused_queue_finishes_what_runs_and_starts_nothing_until_resumed(bench: Bench) {
        let gate = Gate::new();
        let builder = || bench.worker().task_type::<Wait>().task_type::<Double>();
        let build = || builder().data(gate.clone()).queues(["default", "other"]);
        let worker = bench.start(build());
        let running = bench.client.submit(Wait {}.call()).await.unwrap();
        gate.began.wait_for(1).await;
        bench.client.pause(&queue("default")).await.unwrap();
        assert!(counts(&bench).await.paused);
        let held = bench.client.submit(Double { number: 1 }.call()).await.unwrap();
        gate.open.hit();
        running.result_within(SOON).await.unwrap();
        worker.stop().await;
        // A new worker claims from both queues in its first turn.
        let marker = bench.client.submit(Double { number: 2 }.call().queue("other")).await.unwrap();
        let worker = bench.start(build());
        assert_eq!(marker.result_within(SOON).await.unwrap(), 4);
        assert_eq!(held.status().await.unwrap(), TaskState::Ready);
        bench.client.resume(&queue("default")).await.unwrap();
        assert_eq!(held.result_within(SOON).await.unwrap(), 2);
        assert!(!counts(&bench).await.paused);
        worker.stop().await;
    }

    async fn a_dead_task_that_is_requeued_starts_over_and_keeps_its_history(bench: Bench) {
        let worker = bench.start(bench.worker().task_type::<Flaky>());
        let call = Flaky { attempts: 2, panics: false }.call().max_retry(0);
        let handle = bench.client.submit(call).await.unwrap();
        for failures in 1..=2 {
            assert!(handle.result_within(SOON).await.unwrap_err().is_dead());
            let task = view(&bench, handle.id()).await;
            assert_eq!((task.failures, task.errors.len()), (1, failures));
            bench.client.pause(&queue("default")).await.unwrap();
            bench.client.requeue(handle.id()).await.unwrap();
            assert_eq!(view(&bench, handle.id()).await.failures, 0);
            let again = bench.client.requeue(handle.id()).await.unwrap_err();
            assert!(again.is_wrong_state(), "{again}");
            bench.client.resume(&queue("default")).await.unwrap();
        }
        assert!(handle.result_within(SOON).await.unwrap_err().is_dead());
        worker.stop().await;
    }

    async fn a_cancelled_task_that_is_requeued_runs_once(bench: Bench) {
        let names = ["first", "second", "third"];
        let handles = bench.client.submit_all(names.map(note)).await.unwrap();
        let answers = [handles[0].cancel().await, handles[0].cancel().await].map(Result::unwrap);
        assert_eq!(answers, [CancelAnswer::Cancelled; 2], "a second cancel changes nothing");
        bench.client.requeue(handles[0].id()).await.unwrap();
        let ran = journal_of(&bench, |builder| builder, 3).await;
        assert_eq!(ran, ["first", "second", "third"], "it has its old place");
        assert!(handles[1].cancel().await.unwrap_err().is_wrong_state());
        let problem = bench.client.requeue(handles[1].id()).await.unwrap_err();
        assert!(problem.is_wrong_state(), "{problem}");
    }

    async fn of_tasks_that_wait_those_of_higher_priority_run_first(bench: Bench) {
        let calls = [("low", -10), ("none", 0), ("high", 10), ("also none", 0), ("highest", 100)];
        let calls = calls.map(|(name, priority)| note(name).priority(priority));
        bench.client.submit_all(calls).await.unwrap();
        let ran = journal_of(&bench, |builder| builder, 5).await;
        assert_eq!(ran, ["highest", "high", "none", "also none", "low"]);
    }

    async fn a_strict_worker_empties_its_first_queue_before_the_next(bench: Bench) {
        for name in ["b", "a", "c", "a", "b"] {
            bench.client.submit(note(name).queue(name)).await.unwrap();
        }
        let ran = journal_of(&bench, |builder| builder.strict(["a", "b", "c"]), 5).await;
        assert_eq!(ran, ["a", "a", "b", "b", "c"]);
    }

    async fn a_weighted_worker_shares_by_weight_and_starves_nobody(bench: Bench) {
        let calls = (0..600).map(|n| if n % 2 == 0 { "a" } else { "b" });
        bench.client.submit_all(calls.map(|name| note(name).queue(name))).await.unwrap();
        let ran = journal_of(&bench, |builder| builder.weighted([("a", 3), ("b", 1)]), 600).await;
        // The range is five standard deviations around three quarters.
        let heavy = ran[..200].iter().filter(|name| *name == "a").count();
        assert!((120..=180).contains(&heavy), "{heavy} of the first 200 tasks are heavy");
        assert_eq!(ran.iter().filter(|name| *name == "a").count(), 300);
    }

    async fn several_workers_share_a_queue_each_within_its_slots(bench: Bench) {
        let gate = Gate::new();
        let build = || bench.worker().task_type::<Wait>().data(gate.clone()).concurrency(2);
        let workers = [(); 3].map(|()| bench.start(build()));
        let calls = (0..8).map(|_| Wait {}.call());
        let handles = bench.client.submit_all(calls).await.unwrap();
        gate.began.wait_for(6).await;
        let seen = bench.client.inspector().workers(&queue("default")).await.unwrap();
        let running: Vec<usize> = seen.iter().map(|worker| worker.running.len()).collect();
        assert_eq!(running, [2, 2, 2]);
        assert_eq!((gate.began.hits(), counts(&bench).await.ready), (6, 2));
        gate.open.hit();
        for handle in handles {
            handle.result_within(SOON).await.unwrap();
        }
        for worker in workers {
            worker.stop().await;
        }
    }

    async fn no_more_tasks_run_at_once_than_there_are_slots(bench: Bench) {
        let journal = Journal::default();
        let builder = bench.worker().task_type::<Note>().data(journal.clone());
        let worker = bench.start(builder.concurrency(5).queues(["a", "b"]));
        let calls = (0..500).map(|n| note("n").queue(["a", "b"][n % 2]));
        let handles = bench.client.submit_all(calls).await.unwrap();
        for handle in handles {
            handle.result_within(SOON).await.unwrap();
        }
        let most = journal.most.load(Ordering::SeqCst);
        assert!(most <= 5, "{most} tasks ran at once");
        worker.stop().await;
    }

    async fn a_lost_task_that_asked_for_it_is_dead_and_not_run_again(bench: Bench) {
        let call = || Double { number: 1 }.call();
        let once = bench.client.submit(call().on_lost(OnLost::Dead)).await.unwrap();
        let again = bench.client.submit(call().on_lost(OnLost::Retry)).await.unwrap();
        let (broker, ghost) = (bench.client.broker(), WorkerId::generate("ghost", 1));
        broker.register(&queue("default"), &ghost, LEASE, "{}").await.unwrap();
        let claimed = broker.claim(&queue("default"), &ghost, 1, 2).await.unwrap();
        assert_eq!(claimed.grants.len(), 2);
        let worker = bench.start(bench.worker().lease(LEASE).task_type::<Double>());
        assert_eq!(again.result_within(SOON).await.unwrap(), 2);
        let problem = once.result_within(SOON).await.unwrap_err();
        assert_eq!(problem.attempt_error().unwrap().reason, Reason::Lost, "{problem}");
        let task = view(&bench, once.id()).await;
        assert_eq!((task.state, task.failures, task.losses), (TaskState::Dead, 0, 1));
        worker.stop().await;
    }
}
