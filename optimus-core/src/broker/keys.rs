//! Every Redis key, built in this one place.
//!
//! A queue is one cluster slot: all its keys share the tag `{<namespace>:<queue>:<partition>}`. The
//! partition is always 0 today; it is in the format so that a queue can outgrow its slot.
//!
//! | key | type | holds |
//! |---|---|---|
//! | `meta` | hash | what is paused, given, due and counted: `lua/README.md` |
//! | `tasks` | hash | id → record; immutable after the submit |
//! | `blobs` | hash | id → payload above 16 KiB |
//! | `ready` | list | ids, some as `<stamp>:<id>`, oldest first |
//! | `priority` | zset | ready ids with a priority, by ms in line less a minute a step |
//! | `priorities` | hash | id → priority, where it is not 0 |
//! | `delayed`, `retry` | zset | id by due ms |
//! | `working:<worker>` | hash | id → token `<claim seq>:<fence>`; `#` → that of the last claim |
//! | `workers` | zset | worker by lease expiry |
//! | `worker:<worker>` | hash | description, lease |
//! | `dead`, `cancelled` | zset | id by the ms it ended |
//! | `deleted` | zset | id by the ms it was deleted, for a day |
//! | `success` | list | summaries of the last 1,000 |
//! | `tries`, `errors`, `skips`, `cancel`, `waiters` | hash | by id; exist only while used |
//! | `result:<id>` | string, expires | what the handler returned |
//! | `requeued:<operation>` | string, expires | the task of a requeue that was done |
//! | `biz:<task>:<biz id>` | string | the mark of a biz id |
//! | `ledger:<client>` | hash | answers of the client's latest submits |
//! | `ledgers` | zset | client by last use, so that idle ledgers can be purged |
//! | `completions:<client>` | list, expires | ends of tasks that the client waits for |
//! | `wake`, `wake:<worker>` | list | wakeup lists: work has come; a task should stop |
//! | `interrupt:<worker>` | list, expires | ends the worker's own wait at the wakeup lists |
//!
//! Beside the queues, `<namespace>:queues` is the set of their names.

use crate::id::{QueueName, TaskId, WorkerId};

/// The keys of one queue.
#[derive(Debug, Clone)]
pub struct Keys {
    base: String,
}

impl Keys {
    /// The keys of `queue` in `namespace`.
    pub fn new(namespace: &str, queue: &QueueName) -> Self {
        Self { base: format!("{{{namespace}:{queue}:0}}:") }
    }

    /// What all of them begin with.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The key of that name, such as `tasks`.
    pub fn of(&self, name: &str) -> String {
        [&self.base, name].concat()
    }

    /// What a worker holds.
    pub fn working(&self, worker: &str) -> String {
        self.owned("working:", worker)
    }

    /// What a worker has said of itself.
    pub fn worker(&self, worker: &str) -> String {
        self.owned("worker:", worker)
    }

    /// Which tasks of a worker should stop.
    pub fn cancel_listener(&self, worker: &WorkerId) -> String {
        self.owned("wake:", worker.as_str())
    }

    /// What ends a worker's own wait.
    pub fn interrupt(&self, worker: &WorkerId) -> String {
        self.owned("interrupt:", worker.as_str())
    }

    /// The ends that a client waits for.
    pub fn completions(&self, client: &str) -> String {
        self.owned("completions:", client)
    }

    /// What a task's handler returned.
    pub fn result(&self, id: &TaskId) -> String {
        self.owned("result:", &id.stored())
    }

    /// Scripts build the same in `derive`.
    fn owned(&self, kind: &str, owner: &str) -> String {
        [&self.base, kind, owner].concat()
    }

    /// A worker's own key for a moment, to ask what its Redis user may do.
    pub fn probe(&self, worker: &str) -> String {
        self.owned("probe:", worker)
    }

    /// The mark of a biz id.
    pub fn biz(&self, task: &str, biz_id: &str) -> String {
        [&self.base, "biz:", task, ":", biz_id].concat()
    }
}

/// The set of queue names of a namespace.
pub fn queues(namespace: &str) -> String {
    format!("{namespace}:queues")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_a_queue_carries_its_one_hash_tag() {
        let keys = Keys::new("shop", &QueueName::new("mail").unwrap());
        for key in [keys.of("tasks"), keys.working("w1"), keys.biz("charge", "{x}:1")] {
            assert!(key.starts_with("{shop:mail:0}:"), "{key}");
            assert!(key.starts_with(keys.base()) && !keys.base().is_empty(), "{key}");
        }
        assert_eq!(queues("shop"), "shop:queues");
    }
}
