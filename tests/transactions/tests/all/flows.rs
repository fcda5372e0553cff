//! Flows, and calls that wait for others, in transactions.

use std::convert::Infallible;

use optimus::{Client, chain, task};
use optimus_core::{Call, StepHandle, TaskState, group};
use optimus_sql::{Error, FlowInTx as _, PerformInTx as _, lag, transaction};

use crate::{
    databases::TestDb,
    setup::{SOON, Seen, Setup, note},
};

crate::on_each_database! {
    a_flow_runs_in_its_order_after_the_commit
    a_rolled_back_flow_is_never_submitted
    a_plain_flow_in_a_transaction_waits_for_its_commit
    a_call_that_waits_for_another_one_is_committed_with_it
    flows_that_could_wait_forever_are_refused
}

#[task]
async fn plus_one(number: i64) -> Result<i64, Infallible> {
    Ok(number + 1)
}

#[task(queue = "other")]
async fn doubled(number: i64) -> Result<i64, Infallible> {
    Ok(2 * number)
}

async fn a_flow_runs_in_its_order_after_the_commit<DB: TestDb>(setup: Setup<DB>) {
    let (seen, relay) = (Seen::default(), setup.start_relay().await);
    let _worker = setup.start_worker(&seen);
    let mut tx = setup.pool.begin().await.unwrap();
    let flow = chain![plus_one(1), doubled(_), plus_one(_), doubled(_), plus_one(_).biz_id("last")];
    let promised = flow.perform_in_tx(&mut tx).await.unwrap();
    let notes = chain![note(1, 1), note(1, 2).queue("other"), note(1, 3)];
    let ordered = notes.perform_in_tx(&mut tx).await.unwrap();
    assert_eq!(lag(&setup.pool).await.unwrap().rows, 0);
    tx.commit().await.unwrap();
    let handle = promised.handle(&setup.client);
    assert_eq!(handle.result_within(SOON).await.unwrap(), 11);
    assert!(promised.ids().eq(handle.steps().iter().map(StepHandle::id)));
    ordered.handle(&setup.client).result_within(SOON).await.unwrap();
    assert_eq!(seen.all(), [(1, 1), (1, 2), (1, 3)]);
    setup.all_relayed().await;
    relay.stop().await;
}

async fn a_rolled_back_flow_is_never_submitted<DB: TestDb>(setup: Setup<DB>) {
    let mut tx = setup.pool.begin().await.unwrap();
    chain![plus_one(1), doubled(_)].perform_in_tx(&mut tx).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(lag(&setup.pool).await.unwrap().rows, 0);
}

async fn a_plain_flow_in_a_transaction_waits_for_its_commit<DB: TestDb>(setup: Setup<DB>) {
    let _worker = setup.start_worker(&Seen::default());
    let client: Client = setup.client.clone();
    let handle = client
        .scope(transaction(&setup.pool, async |_| {
            Ok::<_, Error>(chain![plus_one(4), doubled(_)].perform_async().await?)
        }))
        .await
        .unwrap();
    assert_eq!(lag(&setup.pool).await.unwrap().rows, 2);
    let relay = setup.start_relay().await;
    assert_eq!(handle.result_within(SOON).await.unwrap(), 10);
    relay.stop().await;
}

async fn a_call_that_waits_for_another_one_is_committed_with_it<DB: TestDb>(setup: Setup<DB>) {
    let (seen, relay) = (Seen::default(), setup.start_relay().await);
    let mut tx = setup.pool.begin().await.unwrap();
    let first: Call<_> = note(1, 1).queue("other");
    let first = first.perform_in_tx(&mut tx).await.unwrap();
    let then = note(1, 2).after(first.id()).perform_in_tx(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    setup.all_relayed().await;
    assert_eq!(then.handle(&setup.client).status().await.unwrap(), TaskState::Blocked);
    let _worker = setup.start_worker(&seen);
    then.handle(&setup.client).result_within(SOON).await.unwrap();
    assert_eq!(seen.all(), [(1, 1), (1, 2)]);
    relay.stop().await;
}

async fn flows_that_could_wait_forever_are_refused<DB: TestDb>(setup: Setup<DB>) {
    let client: Client = setup.client.clone();
    let refused: Result<(), Error> = client
        .scope(transaction(&setup.pool, async |mut tx| {
            let problem = group([note(1, 1), note(1, 2)]).perform_async().await.unwrap_err();
            let text = problem.to_string();
            assert!(text.contains("a group can't wait for the commit"), "{text}");
            let flow = group([note(1, 1)]).then(note(1, 2));
            let problem = flow.perform_in_tx(&mut tx).await.unwrap_err();
            let text = problem.to_string();
            assert!(text.contains("a flow with a group can't wait for the commit"), "{text}");
            let flow = chain![plus_one(1).biz_id("first"), doubled(_)];
            flow.perform_in_tx(&mut tx).await?;
            Ok(())
        }))
        .await;
    let problem = refused.unwrap_err().to_string();
    assert!(
        problem.contains("\"plus_one\"") && problem.contains("a step with a biz id"),
        "{problem}"
    );
    assert_eq!(lag(&setup.pool).await.unwrap().rows, 0);
}
