//! Flows that can't be stored as a whole: nothing of them runs, and nothing stays.

use std::time::Duration;

use crate::common::{
    Bench, Gate,
    sums::{LoggedWorker, SOON, note, number, plus, sum, unfinished},
};
use optimus_core::{BoxError, Due, IntoFlow as _, Layer, PrerequisiteFailure, Submission, group};
use optimus_testkit::{RedisServer, eventually};

/// Refuses the calls of a task.
struct Refuses(&'static str);

impl Layer for Refuses {
    async fn submit(&self, call: &mut Submission) -> Result<(), BoxError> {
        if call.task() == self.0 { Err("no".into()) } else { Ok(()) }
    }
}

/// Keeps the first steps of flows until the gate is open.
struct KeepsFirst(Gate);

impl Layer for KeepsFirst {
    async fn submit(&self, call: &mut Submission) -> Result<(), BoxError> {
        if call.task() == "number" {
            self.0.began.hit();
            self.0.open.wait_for(1).await;
        }
        Ok(())
    }
}

on_both! {
    async fn no_callback_runs_while_its_flow_is_removed(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let owner = number(1).biz_id("taken").due(Due::In(Duration::from_secs(3600)));
        bench.client.submit(owner).await.unwrap();
        for _ in 0..20 {
            let always = note("callback").on_prerequisite_failure(PrerequisiteFailure::Run);
            let flow = number(1).biz_id("taken").then(group((1..=3).map(plus))).then(always);
            let problem = bench.client.submit_flow(flow).await.unwrap_err();
            assert!(problem.is_duplicate(), "{problem}");
        }
        let last = bench.client.submit(note("last")).await.unwrap();
        last.result_within(SOON).await.unwrap();
        assert_eq!(logged.log.lines(), ["last"]);
        logged.worker.stop().await;
    }

    async fn no_step_is_sent_if_another_one_of_its_call_is_refused(bench: Bench) {
        let builder = bench.client_builder().layer(Refuses("number")).payload_limit(100);
        let client = builder.connect().await.unwrap();
        let flow = note("first").then(note("second")).then(number(3));
        let problem = client.submit_flow(flow).await.unwrap_err();
        assert!(problem.is_refused(), "{problem}");
        let flow = note("first").then(note("second")).then(note(&"x".repeat(200)));
        let problem = client.submit_flow(flow).await.unwrap_err();
        assert!(problem.is_too_large(), "{problem}");
        let queues = bench.client.inspector().queues().await.unwrap();
        assert!(queues.is_empty(), "a queue to which a task was sent is known: {queues:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_stays_of_flows_whose_first_steps_meet_an_outage() {
    let mut redis = RedisServer::builder().appendonly_always().start();
    let bench = Bench::at(&redis.url()).await;
    let gate = Gate::new();
    let builder = bench.client_builder().submit_timeout(Duration::from_secs(3));
    let client = builder.layer(KeepsFirst(gate.clone())).connect().await.unwrap();
    let chain = || number(1).queue("other").then(plus(10).biz_id("one")).then(plus(100));
    let members = || group((1..=3).map(plus));
    let grouped = || number(1).queue("other").then(members()).then(sum).into_flow();

    let outage = async {
        gate.began.wait_for(2).await;
        redis.kill();
        // Else it would write the first steps, and not know whether they are stored.
        let quickly = client.broker().within(Duration::ZERO);
        let is_known = async || quickly.ping().await.is_err();
        eventually("the client knows that Redis is away", SOON, is_known).await;
        gate.open.hit();
    };
    let flows = (client.submit_flow(chain()), client.submit_flow(grouped()));
    let (first, second, ()) = tokio::join!(flows.0, flows.1, outage);
    for problem in [first.unwrap_err(), second.unwrap_err()] {
        assert!(problem.is_unavailable(), "{problem}");
    }
    redis.restart();
    eventually("all is removed", SOON, async || {
        let groups = bench.client.inspector().groups("default", None, 1).await.unwrap();
        groups.rows.is_empty() && unfinished(&bench, "default").await == 0
    })
    .await;
    let logged = LoggedWorker::of(&bench);
    let again = bench.client.submit_flow(chain()).await.unwrap();
    assert_eq!(again.result_within(SOON).await.unwrap(), 111, "the biz id is free");
    logged.worker.stop().await;
}
