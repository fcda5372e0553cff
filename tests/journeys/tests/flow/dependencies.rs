//! Tasks that wait for others: in each order of submits, in one queue or in two, and with each end
//! of the other task.

use std::time::Duration;

use crate::common::{
    Bench, Double, Gate,
    orders::{
        LONG, Log, LoggedWorker, Reserve, SOON, asked, asked_of, becomes, counts, done, doomed,
        others_run, reserve, ship, slow, start, state, submit,
    },
};
use optimus_core::{
    Counts, Due, Key, Prerequisite, PrerequisiteFailure, QueueName, Reason, Task, TaskId,
    TaskState, key,
};

on_both! {
    async fn a_task_that_comes_first_waits_for_its_prerequisite(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let second = submit(&bench, ship("o-17")).await;
        others_run(&bench).await;
        assert_eq!(state(&second).await, TaskState::Blocked);
        assert_eq!(counts(&bench).await.blocked, 1);
        done(&submit(&bench, reserve("o-18")).await).await;
        assert_eq!(state(&second).await, TaskState::Blocked, "another order");
        submit(&bench, reserve("o-17")).await;
        assert_eq!(done(&second).await, "o-17");
        assert_eq!(logged.log.lines(), ["reserve o-18", "reserve o-17", "ship o-17"]);
        assert_eq!(counts(&bench).await.blocked, 0);
        logged.worker.stop().await;
    }

    async fn a_task_that_comes_after_the_end_of_its_prerequisite_starts(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        done(&submit(&bench, reserve("o-17")).await).await;
        assert_eq!(done(&submit(&bench, ship("o-17")).await).await, "o-17");
        logged.worker.stop().await;
    }

    async fn a_task_that_comes_while_its_prerequisite_runs_waits_for_its_end(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let first = submit(&bench, slow("o-17")).await;
        logged.gate.began.wait_for(1).await;
        let second = submit(&bench, ship("o-17")).await;
        others_run(&bench).await;
        assert_eq!(state(&second).await, TaskState::Blocked);
        logged.gate.open.hit();
        done(&second).await;
        done(&first).await;
        assert_eq!(logged.log.lines(), ["reserve o-17", "ship o-17"]);
        logged.worker.stop().await;
    }

    async fn a_task_waits_for_all_its_prerequisites_by_key_and_by_handle(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let known = submit(&bench, slow("o-1")).await;
        let reserved = |order: String, waits, dies| Reserve { order, waits, dies }.call();
        let call = ship("o-17").after(&known).after(known.id()).after(key(reserved, "o-2"));
        let last = submit(&bench, call).await;
        for order in ["o-17", "o-2"] {
            done(&submit(&bench, reserve(order)).await).await;
        }
        others_run(&bench).await;
        assert_eq!(state(&last).await, TaskState::Blocked);
        logged.gate.open.hit();
        done(&last).await;
        assert_eq!(logged.log.lines(), ["reserve o-17", "reserve o-2", "reserve o-1", "ship o-17"]);
        logged.worker.stop().await;
    }

    async fn other_queues_know_who_waits_for_their_tasks_once_a_submit_returns(bench: Bench) {
        let first = submit(&bench, reserve("o-1").queue("stock")).await;
        let (broker, queue) = (bench.client.broker(), QueueName::new("default").unwrap());
        for number in 0..50 {
            let call = Double { number }.call().after(&first);
            submit(&bench, call).await;
            assert!(broker.outgoing(&queue).await.unwrap().is_empty(), "{number}");
        }
    }

    async fn a_prerequisite_may_be_of_another_queue_with_workers_of_its_own(bench: Bench) {
        let (log, gate) = (Log::default(), Gate::new());
        let here = start(&bench, &log, &gate, ["default"]);
        let there = start(&bench, &log, &gate, ["stock"]);
        let call = |order| ship(order).after(Key::of::<Reserve>(order).queue("stock"));
        let early = submit(&bench, call("o-1")).await;
        submit(&bench, reserve("o-1")).await;
        others_run(&bench).await;
        assert_eq!(state(&early).await, TaskState::Blocked);
        submit(&bench, reserve("o-1").queue("stock")).await;
        done(&early).await;
        done(&submit(&bench, reserve("o-2").queue("stock")).await).await;
        submit(&bench, reserve("o-2")).await;
        done(&submit(&bench, call("o-2")).await).await;
        here.stop().await;
        there.stop().await;
    }

    async fn by_default_a_task_waits_until_its_dead_prerequisite_has_been_requeued(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let first = submit(&bench, doomed("o-17")).await;
        becomes(&first, TaskState::Dead).await;
        let second = submit(&bench, ship("o-17")).await;
        others_run(&bench).await;
        assert_eq!(state(&second).await, TaskState::Blocked);
        logged.gate.open.hit();
        bench.client.requeue(first.id()).await.unwrap();
        done(&second).await;
        logged.worker.stop().await;
    }

    async fn a_task_may_be_cancelled_with_its_prerequisite_and_says_which_one(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let cancels = |order| ship(order).on_prerequisite_failure(PrerequisiteFailure::Cancel);
        let early = submit(&bench, cancels("o-17")).await;
        let elsewhere = Key::of::<Reserve>("o-18").queue("stock");
        let far = submit(&bench, cancels("o-18").after(elsewhere)).await;
        asked(&bench).await;
        submit(&bench, doomed("o-17")).await;
        let reserved = submit(&bench, reserve("o-18")).await;
        let unwanted = reserve("o-18").queue("stock").due(Due::In(LONG));
        submit(&bench, unwanted).await.cancel().await.unwrap();
        for (task, names) in [
            (early, "the prerequisite default/reserve with biz id \"o-17\" is dead"),
            (far, "the prerequisite stock/reserve with biz id \"o-18\" is cancelled"),
        ] {
            let problem = task.result_within(SOON).await.unwrap_err();
            assert!(problem.is_cancelled() && problem.to_string().contains(names), "{problem}");
            assert_eq!(problem.attempt_error().unwrap().reason, Reason::Unmet);
        }
        reserved.result_within(SOON).await.unwrap();
        assert_eq!(logged.log.lines(), ["reserve o-18"]);
        logged.worker.stop().await;
    }

    async fn a_cancel_reaches_tasks_of_other_queues_at_once_and_without_a_worker(bench: Bench) {
        let client = &bench.client;
        let first = submit(&bench, reserve("o-17").queue("stock")).await;
        let call = |order: &'static str, queue, former: &TaskId| {
            let call = ship(order).queue(queue).after(former);
            call.on_prerequisite_failure(PrerequisiteFailure::Cancel)
        };
        let second = submit(&bench, call("o-1", "parcels", first.id())).await;
        let third = submit(&bench, call("o-2", "letters", second.id())).await;
        let fourth = submit(&bench, call("o-3", "mail", third.id())).await;
        for queue in ["parcels", "letters", "mail"] {
            asked_of(&bench, queue).await;
        }
        assert_eq!(first.cancel().confirmed().await.unwrap(), TaskState::Cancelled);
        for told in [&second, &third, &fourth] {
            assert_eq!(state(told).await, TaskState::Cancelled);
        }
        // A requeue lets them wait again. A delete reaches them as a cancel does.
        client.requeue(first.id()).await.unwrap();
        client.requeue(second.id()).await.unwrap();
        assert_eq!(state(&second).await, TaskState::Blocked);
        asked_of(&bench, "parcels").await;
        client.delete(first.id()).await.unwrap();
        assert_eq!(state(&second).await, TaskState::Cancelled);
    }

    async fn tasks_that_wait_for_each_other_are_refused_and_named(bench: Bench) {
        let call = |order: &str, other: &str| {
            let call = reserve(order).after(Key::of::<Reserve>(other));
            call.outcome_ttl(LONG)
        };
        let first = submit(&bench, call("o-1", "o-2")).await;
        let second = submit(&bench, call("o-2", "o-3")).await;
        let problem = bench.client.submit(call("o-3", "o-1")).await.unwrap_err();
        assert!(problem.is_cycle(), "{problem}");
        assert_eq!(problem.task_ids(), [first.id().clone(), second.id().clone()]);
        let text = problem.to_string();
        let path = format!("{}, which waits for {}, which", first.id(), second.id());
        assert!(text.contains("would wait for itself") && text.contains(&path), "{text}");
        // Others of the same call are stored, and the biz id is free.
        let calls = [call("o-3", "o-1"), reserve("o-3")];
        let all = bench.client.submit_all(calls).await.unwrap_err();
        assert!(all.first.is_cycle() && all.answers[1].is_ok());
        let text = all.to_string();
        let one = "1 of 2 tasks was not accepted: task \"reserve\" would wait";
        assert!(text.starts_with(one), "{text}");
        assert!(text.contains("it was not submitted"), "{text}");
    }

    async fn a_requeue_after_which_tasks_would_wait_for_each_other_is_refused(bench: Bench) {
        let first = submit(&bench, reserve("o-1").after(Key::of::<Reserve>("o-2"))).await;
        bench.client.cancel(first.id()).await.unwrap();
        let second = submit(&bench, reserve("o-2").outcome_ttl(LONG).after(&first)).await;
        let problem = bench.client.requeue(first.id()).await.unwrap_err();
        assert!(problem.is_cycle(), "{problem}");
        assert_eq!(problem.task_ids(), [second.id().clone()]);
        let text = problem.to_string();
        assert!(text.starts_with(&first.id().to_string()), "{text}");
        assert!(text.contains("it was not requeued; submit one of these"), "{text}");
        assert_eq!(state(&first).await, TaskState::Cancelled);
    }

    async fn a_task_may_run_although_its_prerequisite_is_dead(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let runs = ship("o-17").on_prerequisite_failure(PrerequisiteFailure::Run);
        let second = submit(&bench, runs).await;
        others_run(&bench).await;
        assert_eq!(state(&second).await, TaskState::Blocked);
        submit(&bench, doomed("o-17")).await;
        done(&second).await;
        logged.worker.stop().await;
    }

    async fn a_task_gives_up_and_says_what_it_waited_for(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let second = submit(&bench, ship("o-17").give_up_after(Duration::from_millis(50))).await;
        let problem = second.result_within(SOON).await.unwrap_err();
        let names = "it gave up: the prerequisite default/reserve with biz id \"o-17\"";
        assert!(problem.is_dead() && problem.to_string().contains(names), "{problem}");
        done(&submit(&bench, reserve("o-17")).await).await;
        assert_eq!(state(&second).await, TaskState::Dead);
        bench.client.requeue(second.id()).await.unwrap();
        done(&second).await;
        logged.worker.stop().await;
    }

    async fn a_waiting_task_that_is_cancelled_does_not_run_later(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let unwanted = submit(&bench, ship("o-17")).await;
        unwanted.cancel().await.unwrap();
        assert_eq!(state(&unwanted).await, TaskState::Cancelled);
        let problem = unwanted.result_within(SOON).await.unwrap_err();
        assert!(problem.is_cancelled() && problem.attempt_error().is_none(), "{problem}");
        done(&submit(&bench, reserve("o-17")).await).await;
        others_run(&bench).await;
        assert_eq!(logged.log.lines(), ["reserve o-17"]);
        assert_eq!(counts(&bench).await.blocked, 0);
        logged.worker.stop().await;
    }

    async fn a_delay_continues_while_a_task_waits(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let short = ship("o-1").due(Due::In(Duration::from_millis(50)));
        let (short, far) =
            (submit(&bench, short).await, submit(&bench, ship("o-2").due(Due::In(LONG))).await);
        others_run(&bench).await;
        assert_eq!(state(&short).await, TaskState::Blocked);
        for order in ["o-1", "o-2"] {
            done(&submit(&bench, reserve(order)).await).await;
        }
        done(&short).await;
        assert_eq!(state(&far).await, TaskState::Delayed);
        logged.worker.stop().await;
    }

    async fn a_waiting_task_stops_no_lane_and_joins_its_own_afterwards(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let first = submit(&bench, ship("o-1").lane("carrier")).await;
        done(&submit(&bench, reserve("o-2").lane("carrier")).await).await;
        let holder = submit(&bench, slow("o-3").lane("carrier")).await;
        logged.gate.began.wait_for(1).await;
        done(&submit(&bench, reserve("o-1")).await).await;
        others_run(&bench).await;
        assert_eq!(state(&first).await, TaskState::Blocked, "by its lane");
        logged.gate.open.hit();
        done(&first).await;
        done(&holder).await;
        logged.worker.stop().await;
    }

    async fn a_waiting_task_holds_its_biz_id(bench: Bench) {
        let first = submit(&bench, ship("o-17")).await;
        let again = submit(&bench, ship("o-17")).await;
        assert!(again.is_duplicate() && again.id() == first.id());
        assert_eq!(counts(&bench).await.blocked, 1);
    }

    async fn an_inspector_shows_what_a_task_waits_for(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let known = submit(&bench, doomed("o-1")).await;
        becomes(&known, TaskState::Dead).await;
        done(&submit(&bench, reserve("o-17")).await).await;
        let elsewhere = Key::of::<Reserve>("o-2").queue("stock");
        let waiting = submit(&bench, ship("o-17").after(&known).after(elsewhere)).await;
        let inspector = bench.client.inspector();
        let found = inspector.prerequisites(waiting.id()).await.unwrap();
        let found: Vec<_> = found.iter().map(|one| (one.is_met, one.state)).collect();
        let (dead, unknown) = (TaskState::Dead, TaskState::Forgotten);
        assert_eq!(found, [(true, TaskState::Success), (false, dead), (false, unknown)]);
        let of_none = inspector.prerequisites(known.id()).await.unwrap();
        assert!(of_none.is_empty(), "{of_none:?}");
        logged.worker.stop().await;
    }
}

#[tokio::test]
async fn invalid_prerequisites_are_refused_before_anything_is_sent() {
    let bench = Bench::on_memory().await;
    let call = || Double { number: 1 }.call();
    let of = |queue: &str, biz_id: &str| Key::new(queue, "reserve", biz_id);
    let many = (0..33).fold(call(), |call, n| call.after(of("stock", &n.to_string())));
    for (call, remedy) in [
        (call().after(of("a b", "1")), "queue"),
        (call().after(of("stock", "")), "1 to 512 bytes"),
        (call().after(of("stock", "a\nb")), "control character"),
        (call().after(Key::of::<Double>("1")), "outcome_ttl"),
        (call().give_up_after(LONG), "set .after(…)"),
        (call().on_prerequisite_failure(PrerequisiteFailure::Run), "set .after(…)"),
        (call().outcome_ttl(Duration::ZERO), "above zero"),
        (call().outcome_ttl(LONG).biz_id("a\nb"), "control character"),
        (many, "33 prerequisites"),
    ] {
        let problem = bench.client.submit(call).await.unwrap_err();
        assert!(problem.is_invalid(), "{problem}");
        let text = problem.to_string();
        assert!(text.contains("\"double\"") && text.contains(remedy), "{text}");
    }
    let itself = call().biz_id("1").after(Key::new("default", "double", "1"));
    let problem = bench.client.submit(itself).await.unwrap_err();
    assert!(problem.is_cycle(), "{problem}");
    assert_eq!(counts(&bench).await, Counts::default());
}

#[test]
fn a_prerequisite_is_shown_by_its_queue_its_name_and_its_biz_id() {
    let id = optimus_core::TaskId::new(QueueName::new("q").unwrap());
    assert_eq!(Prerequisite::Task(id.clone()).to_string(), id.to_string());
}
