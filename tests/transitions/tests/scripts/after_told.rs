//! A call whose answer was lost has posted effects. Its repetition says so, because the caller
//! tells other queues before it returns.

use optimus_core::{PrerequisiteFailure, Submission, TaskId, broker::Batch};

use crate::{
    after::{after, or},
    bench::Bench,
    jobs::{job, ready_at},
};

/// Sends a call of a client. Returns whether effects wait for a relay.
async fn sent(bench: &Bench, number: u64, tasks: &[Submission]) -> bool {
    let queue = &bench.queue;
    let batch = Batch { queue, client: "c7", number, since: 0, keep: false, tasks };
    bench.at(2).submit(&batch).await.unwrap().posted
}

/// A task, and one in another queue that is cancelled with it.
async fn pair(here: &Bench) -> (TaskId, Bench) {
    let there = here.sibling("there");
    let first = here.add(0, job()).await;
    let policy = or(PrerequisiteFailure::Cancel, after(&first));
    there.add_after(1, job().queue("there"), policy).await;
    there.relay_all(2).await;
    (first, there)
}

async fn a_submit_that_is_sent_again(here: Bench) {
    let first = here.sibling("there").add(0, job().queue("there")).await;
    let waits = [ready_at(1, job()).waiting_for(after(&first))];
    assert!(sent(&here, 1, &waits).await);
    assert!(sent(&here, 1, &waits).await);
    here.relay_all(3).await;
    assert!(!sent(&here, 1, &waits).await, "all is told");
}

async fn a_submit_whose_biz_id_is_taken(here: Bench) {
    let first = here.sibling("there").add(0, job().queue("there")).await;
    let call = || [ready_at(1, job().biz_id("o-17")).waiting_for(after(&first))];
    assert!(sent(&here, 1, &call()).await);
    assert!(sent(&here, 2, &call()).await);
    here.relay_all(3).await;
    assert!(!sent(&here, 3, &call()).await, "all is told");
}

async fn a_cancel_that_is_sent_again(here: Bench) {
    let (first, _there) = pair(&here).await;
    let cancel = async || here.at(3).cancel_many(&here.queue, &[&first]).await.unwrap().1;
    assert!(cancel().await);
    assert!(cancel().await);
    here.relay_all(4).await;
    assert!(!cancel().await, "all is told");
}

async fn a_delete_that_is_sent_again(here: Bench) {
    let (first, _there) = pair(&here).await;
    let delete = async || here.at(3).delete_many(&here.queue, &[&first]).await.unwrap().1;
    assert!(delete().await);
    assert!(delete().await);
    here.relay_all(4).await;
    assert!(!delete().await, "all is told");
}

async fn a_requeue_that_is_sent_again(here: Bench) {
    let there = here.sibling("there");
    let first = there.add(0, job().queue("there")).await;
    let waits = here.add_after(1, job(), after(&first)).await;
    here.at(2).cancel(&waits).await.unwrap();
    here.relay_all(3).await;
    let requeue = async || here.at(4).requeue_as(&waits, "once").await.unwrap();
    assert!(requeue().await);
    assert!(requeue().await);
    here.relay_all(5).await;
    assert!(!requeue().await, "all is told");
}

on_both![
    a_submit_that_is_sent_again,
    a_submit_whose_biz_id_is_taken,
    a_cancel_that_is_sent_again,
    a_delete_that_is_sent_again,
    a_requeue_that_is_sent_again,
];
