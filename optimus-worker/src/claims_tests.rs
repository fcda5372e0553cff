//! What becomes of a claim's answer that is late, or comes out of turn.

use optimus_core::{BoxError, Client, Context, Task, TaskState};
use serde::{Deserialize, Serialize};

use super::*;
use crate::{Worker, reporter::take_in_reports};

#[derive(Serialize, Deserialize)]
struct Nothing {}

impl Task for Nothing {
    const NAME: &'static str = "nothing";
    type Output = ();

    async fn run(self, _: Context) -> Result<(), BoxError> {
        Ok(())
    }
}

#[tokio::test]
async fn what_a_claim_still_grants_after_a_shutdown_began_is_given_back_and_does_not_start() {
    let url = "memory://late-answer";
    let client = Client::builder(url).connect().await.unwrap();
    let handle = client.submit(Nothing {}.call()).await.unwrap();
    let worker = Worker::builder(url).quiet().only_named_tasks().task_type::<Nothing>();
    let shared = worker.build().unwrap().still().await;
    let mut claims = Claims::new(shared.clone());
    let ask = claims.asks().remove(0);
    let call = claims.send(&ask);
    let answer = shared.broker.run_all(vec![call]).await.remove(0);
    assert_eq!(handle.status().await.unwrap(), TaskState::Working);
    shared.shutdown.begin();
    assert!(claims.take_in(ask, answer));
    assert!(shared.attempts.is_empty() && shared.slots.busy() == 0, "it did not start");
    let groups = shared.reporter.take(1);
    let calls = groups.iter().map(|group| group.call(&shared.broker)).collect();
    let mut answers = shared.broker.run_all(calls).await.into_iter();
    assert!(take_in_reports(&shared, groups, &mut answers));
    assert_eq!(handle.status().await.unwrap(), TaskState::Ready);
}

#[test]
fn the_answer_to_a_later_claim_does_not_make_an_earlier_one_heard() {
    let ask = |seq| Ask {
        queue: 0,
        worker: WorkerId::generate("test", 1),
        seq,
        want: 1,
        hints: 0,
        mode: Mode::Share,
    };
    let mut line = Line { answered_seq: 4, ..Line::default() };
    assert_eq!(line.heard_seq(), 4);
    line.unanswered = Some(ask(5));
    line.answered_seq = 6;
    assert_eq!(line.heard_seq(), 4, "it is asked for again, and may be told what it granted");
    line.unanswered = None;
    assert_eq!(line.heard_seq(), 6);
}
