//! Operations beside what another program has written.

use optimus_core::{OperationAct, OperationFilter, OperationState, Task, TaskState};

use super::operations::{all, counted, died};
use crate::common::{Bench, Double};

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_with_a_foreign_entry_in_its_list_does_not_keep_an_operation_from_the_others() {
    let bench = Bench::on_redis().await;
    died(&bench, 3).await;
    bench.client.submit(Double { number: 1 }.call().queue("a-foreign")).await.unwrap();
    for foreign in [&b"foreign"[..], b"\xff\xfe"] {
        let key = bench.key("a-foreign", "dead");
        let add = [&b"ZADD"[..], key.as_bytes(), b"1", foreign];
        bench.raw().await.run_words(&add).await;
        let all = OperationFilter::of(TaskState::Dead);
        let operation = counted(&bench, OperationAct::Requeue, all).await;
        assert_eq!((operation.state, operation.matched), (OperationState::Counted, 3));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_with_a_damaged_time_is_listed_with_the_others() {
    let bench = Bench::on_redis().await;
    let act = OperationAct::Delete;
    let [damaged, other] = [0, 1].map(async |_| counted(&bench, act, all(TaskState::Dead)).await);
    let (damaged, other) = (damaged.await.id, other.await.id);
    let key = bench.key("@operations", &format!("operation:{damaged}"));
    bench.raw().await.run(&format!("HSET {key} changed {}", i64::MAX)).await;
    let listed = bench.client.operations().list(9).await.unwrap();
    let shown: Vec<_> = listed.iter().map(|one| serde_json::to_value(one).unwrap()).collect();
    assert!(shown.iter().any(|one| one["id"] == other.as_str()), "{shown:?}");
}
