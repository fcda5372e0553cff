//! The results of many tasks, in the order in which the tasks end, or in the order of the handles.

use std::{sync::Arc, time::Duration};

use crate::common::{Bench, Double, Gate, Wait, script_calls, thousands_that_have_ended};
use futures_util::StreamExt;
use optimus_core::{BoxError, CancelAnswer, Context, DataKey, Fatal, Task};
use optimus_testkit::{RedisServer, Signal};
use serde::{Deserialize, Serialize};

const SOON: Duration = Duration::from_secs(60);

/// Waits for the door with its number, then returns the number. Fails if there is no such door.
#[derive(Serialize, Deserialize)]
struct Pass {
    door: usize,
}

#[derive(Clone)]
struct Doors(Arc<[Signal; 3]>);

impl Task for Pass {
    const NAME: &'static str = "pass";
    type Output = usize;

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Doors>()]
    }

    async fn run(self, ctx: Context) -> Result<usize, BoxError> {
        let doors: Doors = ctx.data().unwrap();
        let door = doors.0.get(self.door).ok_or_else(|| Fatal::new("no such door"))?;
        door.wait_for(1).await;
        Ok(self.door)
    }
}

on_both! {
    async fn results_come_in_the_order_in_which_their_tasks_end(bench: Bench) {
        let doors = Doors(Arc::new(std::array::from_fn(|_| Signal::new())));
        let worker = bench.start(bench.worker().task_type::<Pass>().data(doors.clone()));
        let calls = (0..3).map(|door| Pass { door }.call());
        let handles = bench.client.submit_all(calls).await.unwrap();
        let ids: Vec<_> = handles.iter().map(|handle| handle.id().clone()).collect();
        let mut results = bench.client.results(handles);
        for (left, door) in [(2, 1), (1, 2), (0, 0)] {
            doors.0[door].hit();
            let (id, result) = tokio::time::timeout(SOON, results.next()).await.unwrap().unwrap();
            assert_eq!((&id, result.unwrap()), (&ids[door], door));
            assert_eq!(results.len(), left);
        }
        assert!(results.next().await.is_none() && results.is_empty());
        worker.stop().await;
    }

    async fn a_bad_end_is_the_result_of_its_own_task_only(bench: Bench) {
        let doors = Doors(Arc::new(std::array::from_fn(|_| Signal::new())));
        let calls = [0, 9, 1, 2].map(|door| Pass { door }.call());
        let handles = bench.client.submit_all(calls).await.unwrap();
        assert_eq!(handles[2].cancel().await.unwrap(), CancelAnswer::Cancelled);
        doors.0[0].hit();
        doors.0[2].hit();
        let worker = bench.start(bench.worker().task_type::<Pass>().data(doors));
        let twice = [handles.clone(), handles.clone()].concat();
        for handles in [handles.clone(), twice] {
            for results in bench.client.results_in_order(handles).await.chunks(4) {
                let [first, dead, cancelled, last] = results else { panic!("four at a time") };
                assert_eq!((first.as_ref().unwrap(), last.as_ref().unwrap()), (&0, &2));
                assert!(dead.as_ref().unwrap_err().is_dead());
                assert!(cancelled.as_ref().unwrap_err().is_cancelled());
            }
        }
        let results: Vec<_> = bench.client.results(handles).collect().await;
        assert_eq!(results.iter().filter(|(_, result)| result.is_ok()).count(), 2);
        assert_eq!(results.len(), 4);
        worker.stop().await;
    }

    async fn the_result_of_an_erased_call_that_returns_nothing_is_null(bench: Bench) {
        let gate = Gate::new();
        gate.open.hit();
        let worker = bench.start(bench.worker().task_type::<Wait>().data(gate));
        let call = || Wait {}.call().erase().unwrap();
        let mut handles = bench.client.submit_all([call(), call()]).await.unwrap();
        handles.push(bench.client.submit(call()).await.unwrap());
        for handle in handles {
            let result = handle.result_within(SOON).await.unwrap();
            assert_eq!(result, serde_json::Value::Null);
        }
        worker.stop().await;
    }

    async fn five_thousand_results_come_while_the_tasks_run(bench: Bench) {
        let calls = (0..5_000).map(|number| Double { number }.call());
        let handles = bench.client.submit_all(calls).await.unwrap();
        let results = bench.client.results(handles);
        let worker = bench.start(bench.worker().task_type::<Double>().concurrency(256));
        let sum = results.fold(0, async |sum, (_, result)| sum + result.unwrap()).await;
        assert_eq!(sum, 5_000 * 4_999);
        worker.stop().await;
    }
}

/// One round trip for each result would take several times as long as the tasks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_of_ended_tasks_are_fetched_together_and_not_before_they_are_awaited() {
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let mut raw = bench.raw().await;
    let handles = thousands_that_have_ended(&bench).await;

    let before = script_calls(&mut raw).await;
    let mut results = bench.client.results(handles);
    results.next().await.unwrap().1.unwrap();
    let first = script_calls(&mut raw).await - before;
    assert!(first <= 32, "{first} calls for the first of 5,000 results");
    let sum = results.fold(0, async |sum, (_, result)| sum + result.unwrap()).await;
    assert!(sum <= 5_000 * 4_999, "{sum}");
    let calls = script_calls(&mut raw).await - before;
    // A machine that is not busy needs about 50 calls.
    assert!(calls < 2_500, "{calls} calls for 5,000 results");
}
