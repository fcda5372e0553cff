//! The operation of the world, and the calls that carry it on.

use optimus_core::{
    TaskState,
    broker::{Act, BrokerError, Changed, CountedTask, Held, Mark, OperationBatch},
};

use crate::{
    acts::ms,
    bench::{Bench, START},
    world::{NOW, World},
};

/// The fence of the carrier of the world's operation.
const FENCE: u64 = (START + 59_000) * 1_024;

/// Returns a batch of the world's operation.
fn batch(states: &[TaskState]) -> OperationBatch<'_> {
    OperationBatch { operation: "op", fence: FENCE, number: 1, states, until_ms: START + NOW }
}

/// Returns whether the call is about the world's operations.
pub(crate) fn is_operation(script: &str, situation: &str) -> bool {
    situation == "in a batch" || script.starts_with("operation_")
}

/// Returns the key of the operation that a call is about.
pub(crate) fn key_of(situation: &str) -> &'static str {
    match situation {
        "a new operation" | "one too many" => "operation:new",
        "confirm" => "operation:counted",
        _ => "operation:op",
    }
}

impl World {
    /// Stores operations, whose keys are in the slot of the queue: one that is carried on, and has
    /// changed tasks, and one that is counted.
    pub(crate) async fn operate_some(&self, bench: &Bench) {
        let queue = &bench.queue;
        bench
            .at(58_000)
            .operation_add(queue, "counted", ("{}", ""), 9)
            .await
            .expect("there is room");
        let (fence, _) = bench.at(58_000).operation_take(queue, "counted", ms(9)).await.unwrap();
        let held = Held {
            fence,
            lease: ms(0),
            from: "counting",
            to: "counted",
            matched: Some(3),
            progress: "{}",
            reached: None,
            counted: &[(1, b"tasks".to_vec())],
        };
        bench.at(58_000).operation_carry(queue, "counted", held).await.unwrap();
        bench.at(59_000).operation_add(queue, "op", ("{}", ""), 9).await.expect("there is room");
        let taken = bench.at(59_000).operation_take(queue, "op", ms(60_000)).await.unwrap();
        assert_eq!(taken.0, FENCE);
        bench.at(59_000).operation_adopt(queue, "op", FENCE, 1).await.unwrap();
    }

    /// Requeues tasks that were cancelled while they waited, in a batch of another operation.
    pub(crate) async fn bring_back<const N: usize>(&self, bench: &Bench, names: [&str; N]) {
        let states = &[TaskState::Cancelled];
        let batch = OperationBatch {
            operation: "undo",
            fence: 1,
            number: 1,
            states,
            until_ms: START + NOW,
        };
        let counted = |name: &str| CountedTask {
            id: self.id(name).clone(),
            mark: Mark::ended(START + 5_000),
        };
        let tasks: Vec<_> = names.into_iter().map(counted).collect();
        let (all, _) =
            bench.at(5_000).operate(Act::Requeue, &bench.queue, batch, &tasks).await.unwrap();
        assert!(all.iter().all(|one| matches!(one, Changed::Done)), "{all:?}");
    }

    pub(crate) async fn operate_in(
        &self,
        bench: &Bench,
        script: &str,
        situation: &str,
    ) -> Result<(), BrokerError> {
        let (queue, broker) = (&bench.queue, bench.at(NOW));
        let counted = [(1, b"tasks".to_vec())];
        let held = |to, lease| Held {
            fence: FENCE,
            lease,
            from: "counting",
            to,
            matched: Some(7),
            progress: "{}",
            reached: None,
            counted: &counted,
        };
        match (script, situation) {
            ("operation_add", "a new operation") => {
                broker.operation_add(queue, "new", ("{}", ""), 9).await.map(drop)
            }
            ("operation_add", "one too many") => {
                broker.operation_add(queue, "new", ("{}", ""), 2).await.map(drop)
            }
            ("operation_carry", "it is taken") => {
                bench.at(NOW + 90_000).operation_take(queue, "op", ms(9)).await.map(drop)
            }
            ("operation_carry", "it is counted") => {
                broker.operation_carry(queue, "op", held("counted", ms(0))).await.map(drop)
            }
            ("operation_carry", _) => {
                broker.operation_carry(queue, "op", held("counting", ms(9))).await.map(drop)
            }
            ("operation_decide", "confirm") => {
                broker.operation_confirm(queue, "counted", 3, "why").await
            }
            ("operation_decide", _) => broker.operation_cancel(queue, "op").await,
            ("operation_adopt", _) => {
                broker.operation_adopt(queue, "op", FENCE + 1, 1).await.map(drop)
            }
            (verb, _) => {
                let waits = Mark::failed(0);
                let (act, state, task, mark) = match verb {
                    "requeue" => {
                        (Act::Requeue, TaskState::Dead, "dead", Mark::ended(START + 1_000))
                    }
                    "cancel" => (Act::Cancel, TaskState::Ready, "ready", waits),
                    "delete" => (Act::Delete, TaskState::Ready, "ready", waits),
                    _ => (Act::RunNow, TaskState::Delayed, "later", waits),
                };
                let tasks = [CountedTask { id: self.id(task).clone(), mark }];
                let (done, _) = broker.operate(act, queue, batch(&[state]), &tasks).await?;
                // Each requeue has an answer of its own.
                done.into_iter().try_for_each(|changed| match changed {
                    Changed::Refused(problem) => Err(problem),
                    _ => Ok(()),
                })
            }
        }
    }
}
