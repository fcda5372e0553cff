//! Groups that are cancelled while members are added: which members stay, and which are cancelled.

use std::{
    future::{Future, pending},
    pin::Pin,
    sync::Mutex,
    time::Duration,
};

use crate::common::{
    Bench,
    sums::{Number, SOON, number},
};
use optimus_core::{
    BoxError, Call, Client, Due, GroupHandle, Layer, Member, PrerequisiteFailure::Cancel,
    QueueName, Submission, TaskId, group,
};
use optimus_testkit::eventually;

/// What happens when members have their positions and the next one is not stored yet.
type Meanwhile = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Does this once, when so many members have passed.
struct Does(Mutex<(u32, Option<Meanwhile>)>);

impl Layer for Does {
    async fn submit(&self, _: &mut Submission) -> Result<(), BoxError> {
        let meanwhile = {
            let mut planned = self.0.lock().unwrap();
            planned.0 = planned.0.saturating_sub(1);
            if planned.0 == 0 { planned.1.take() } else { None }
        };
        if let Some(meanwhile) = meanwhile {
            meanwhile.await;
        }
        Ok(())
    }
}

/// Returns a client that does this when it submits the member with that number, from 1.
async fn doing(
    bench: &Bench,
    at: u32,
    meanwhile: impl Future<Output = ()> + Send + 'static,
) -> Client {
    let does = Does(Mutex::new((at, Some(Box::pin(meanwhile)))));
    bench.client_builder().layer(does).connect().await.unwrap()
}

fn late(count: u64) -> impl Iterator<Item = Call<Number>> + Send {
    (0..count).map(|n| number(n).due(Due::In(Duration::from_secs(3600))))
}

fn elsewhere(count: u64) -> impl Iterator<Item = Call<Number>> + Send {
    late(count).map(|call| call.queue("other"))
}

/// Returns how many tasks of a queue wait until they are due, and how many are cancelled.
async fn delayed_and_cancelled(bench: &Bench, queue: &str) -> (u64, u64) {
    let counts = bench.client.inspector().counts(queue).await.unwrap();
    (counts.delayed, counts.cancelled)
}

/// Submits 1,500 members of another queue, and is cut off when a thousand of them are stored and
/// all have positions. Returns the id of the group.
async fn cut_off(bench: &Bench) -> TaskId {
    let id = TaskId::new(QueueName::new("default").unwrap());
    let client = doing(bench, 1_200, pending()).await;
    let members = group(elsewhere(1_500)).id(id.clone());
    let submit = tokio::spawn(async move { client.submit_group(members).await });
    let found = bench.client.group::<u64>(id.clone());
    let have_positions = async || found.progress().await.is_ok_and(|group| group.total == 1_500);
    eventually("all members have positions", SOON, have_positions).await;
    submit.abort();
    assert!(submit.await.unwrap_err().is_cancelled());
    assert_eq!(delayed_and_cancelled(bench, "other").await, (1_000, 0));
    id
}

on_both! {
    async fn no_member_of_a_cancelled_group_is_stored_by_a_repeated_submit(bench: Bench) {
        let id = cut_off(&bench).await;
        let found = bench.client.group::<u64>(id.clone());
        assert_eq!(found.cancel().await.unwrap(), 1_000);
        let again = group(elsewhere(1_500)).id(id);
        let again = bench.client.submit_group(again).await.unwrap();
        assert!(again.ended().await.unwrap_err().is_cancelled());
        // Those that are stored and then cancelled could run before that.
        assert_eq!(delayed_and_cancelled(&bench, "other").await, (0, 1_000));
    }

    async fn a_repeated_submit_ends_a_cancel_that_was_cut_off(bench: Bench) {
        let id = cut_off(&bench).await;
        // The group is cancelled, and its members are not cancelled yet.
        bench.client.broker().disband(&id).await.unwrap();
        bench.client.submit_group(group(elsewhere(1_500)).id(id)).await.unwrap();
        assert_eq!(delayed_and_cancelled(&bench, "other").await, (0, 1_000));
    }

    async fn an_addition_of_several_batches_leaves_no_member_in_a_cancelled_group(bench: Bench) {
        let found = bench.client.submit_group(group(late(3))).await.unwrap();
        let cancelled = found.clone();
        let client = doing(&bench, 1, async move {
            assert_eq!(cancelled.cancel().await.unwrap(), 3);
        });
        let adds: GroupHandle<u64> = client.await.group(found.id().clone());
        let problem = adds.add(elsewhere(1_500)).await.unwrap_err();
        assert!(problem.is_wrong_state(), "{problem}");
        assert_eq!(delayed_and_cancelled(&bench, "default").await, (0, 3));
        assert_eq!(delayed_and_cancelled(&bench, "other").await, (0, 1_000));
    }

    async fn a_member_that_fails_during_an_addition_cancels_no_other_member(bench: Bench) {
        // With the second batch, the addition comes too late.
        for (round, count) in [(1, 1_000), (2, 1_500)] {
            let members = group(late(3)).on_member_failure(Cancel);
            let found = bench.client.submit_group(members).await.unwrap();
            let first = Member::id(found.id(), found.id().queue(), 0);
            let (fails, ends) = (bench.client.handle::<u64>(first), found.clone());
            let client = doing(&bench, 1, async move {
                fails.cancel().await.unwrap();
                assert!(ends.ended().await.unwrap_err().is_cancelled());
            });
            let adds: GroupHandle<u64> = client.await.group(found.id().clone());
            let added = adds.add(elsewhere(count)).await;
            assert_eq!(added.is_ok(), round == 1, "{added:?}");
            assert_eq!(delayed_and_cancelled(&bench, "default").await, (2 * round, round));
            assert_eq!(delayed_and_cancelled(&bench, "other").await, (1_000 * round, 0));
        }
    }
}
