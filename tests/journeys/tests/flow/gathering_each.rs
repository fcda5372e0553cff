//! Runs with a result for each call: each ends by itself.

use crate::common::{
    Bench,
    digests::{LoggedWorker, SOON, Way, apart, submit},
};
use optimus_core::{Reason, TaskState, group};

on_both! {
    async fn each_handle_returns_the_result_of_its_own_call(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let handles = submit(&bench, (1..=3).map(|number| apart(number, Way::Plain))).await;
        for (handle, expected) in handles.iter().zip([10, 20, 30]) {
            assert_eq!(handle.result_within(SOON).await.unwrap(), expected);
        }
        assert_eq!(logged.log.lines(), ["ann#1: [1, 2, 3]"]);
        logged.worker.stop().await;
    }

    async fn the_results_of_calls_reach_their_group_in_order(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let calls = (1..=3).map(|number| apart(number, Way::Plain));
        let handle = bench.client.submit_group(group(calls)).await.unwrap();
        assert_eq!(handle.results().await.unwrap(), [10, 20, 30]);
        logged.worker.stop().await;
    }

    async fn a_call_that_fails_is_retried_without_those_that_succeeded(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let ways = [Way::Plain, Way::Fails, Way::Plain];
        let handles = submit(&bench, (1..).zip(ways).map(|(n, way)| apart(n, way))).await;
        for (handle, expected) in handles.iter().zip([10, 20, 30]) {
            assert_eq!(handle.result_within(SOON).await.unwrap(), expected);
        }
        assert_eq!(logged.log.lines(), ["ann#1: [1, 2, 3]", "ann#2: [2]"]);
        logged.worker.stop().await;
    }

    async fn the_first_call_may_fail_for_good_and_the_others_succeed(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let ways = [Way::Dies, Way::Plain, Way::Fails];
        let calls = (1..).zip(ways).map(|(n, way)| apart(n, way).max_retry(u32::from(n == 3)));
        let handles = submit(&bench, calls).await;
        assert_eq!(handles[1].result_within(SOON).await.unwrap(), 20);
        assert_eq!(handles[2].result_within(SOON).await.unwrap(), 30);
        crate::common::died_of(&handles[0], Reason::Failed).await;
        let error = crate::common::view(&bench, handles[0].id()).await.errors.remove(0);
        assert_eq!(error.message, "never");
        assert_eq!(handles[2].status().await.unwrap(), TaskState::Success);
        logged.worker.stop().await;
    }
}

#[tokio::test]
async fn a_run_in_place_has_one_result() {
    let data = optimus_core::Data::new().with(crate::common::orders::Log::default());
    let data = data.with(crate::common::Gate::new());
    assert_eq!(apart(7, Way::Plain).perform_inline_with(data.clone()).await.unwrap(), 70);
    let problem = apart(7, Way::Dies).perform_inline_with(data).await.unwrap_err();
    assert_eq!(problem.to_string(), "never");
}
