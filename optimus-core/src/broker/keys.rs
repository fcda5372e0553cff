//! Builds every Redis key.
//!
//! A queue is one cluster slot: all its keys share the tag `{<namespace>:<queue>:<partition>}`. The
//! partition is always 0 today; it is in the format so that a queue can outgrow its slot.
//!
//! | key | type | holds |
//! |---|---|---|
//! | `meta` | hash | pause, clock, due times and counts: see `lua/README.md` |
//! | `tasks` | hash | id → record; not changed after the submit |
//! | `blobs` | hash | id → payload above 16 KiB |
//! | `ready` | list | ids, some as `<stamp>:<id>`, oldest first |
//! | `priority` | zset | ready ids with a priority, by ready time (ms) minus a minute per step |
//! | `priorities` | hash | id → priority, where it is not 0 |
//! | `delayed`, `retry` | zset | id by due ms |
//! | `working:<worker>` | hash | id → token `<claim seq>:<fence>`; `#` → the last claim's token |
//! | `workers` | zset | worker by lease expiry |
//! | `worker:<worker>` | hash | description, lease |
//! | `lane:<key>` | zset | the tasks that have joined a lane: with a permit, or by their places |
//! | `lanes` | zset | the lanes in which tasks wait, by the ms since when |
//! | `widths` | hash | lane → the width that was set at run time |
//! | `unmet` | hash | id of a task that waits for others → the marks of those |
//! | `unmet_ended` | hash | the same for tasks that ended while they waited |
//! | `ties` | hash | reference → the tasks that wait for it |
//! | `after:<reference>` | zset | the same, if they are many |
//! | `outcome:<reference>` | string, expires | a success that is remembered |
//! | `outbox:<queue>` | zset | effects on another queue, by their numbers |
//! | `outboxes` | zset | the queues for which there are effects, by the ms since when |
//! | `applied` | hash | queue → the last effect of its outbox that was applied here |
//! | `asked` | zset | reference by the ms when a task elsewhere has last asked for it |
//! | `asks`, `giveups` | zset | id of a waiting task by the ms when it asks again, or gives up |
//! | `group:<group>` | hash | the counts of a group, and its additions |
//! | `results:<group>` | hash | position in the group → what the member returned |
//! | `ran:<group>` | hash, expires | which members of a group elsewhere have succeeded here |
//! | `groups` | zset | the groups, by the ms when they are removed |
//! | `limits` | hash | gate → the limit that was set at run time |
//! | `shut`, `paused` | zset, hash | gate by the ms until when it is shut; who paused it and why |
//! | `shut:<gate>` | string, expires | the task that has shut it, and why |
//! | `spent` | zset | gate by the µs at which it has all its tokens again |
//! | `wait:<class>` | zset | the tasks with the same gates that wait, by rank |
//! | `waits` | zset | the classes with tasks that wait, by the ms since when |
//! | `gate:<gate>`, `gates` | zset | the classes that wait at a gate; gates by when they open |
//! | `busy:<gate>`, `permits` | zset, hash | the tasks with a permit of a gate; the gates by task |
//! | `loans` | zset | permits outside tasks, by the end of their leases |
//! | `schedules`, `code_schedules` | zset | schedules made at run time, or by code, by due ms |
//! | `schedule:<name>` | hash | what a schedule submits, and when |
//! | `ticks:<name>` | list | the last 100 instants of a schedule, the latest first |
//! | `dead`, `cancelled` | zset | id by the ms it ended |
//! | `deleted` | zset | id by the ms it was deleted, for a day |
//! | `success` | list | summaries of the last 1,000 |
//! | `success:<day>`, `dead:<day>` | list | the history of a day: lines of tasks |
//! | `histories`, `history_bytes` | zset, hash | these lists by day; their bytes |
//! | `logs`, `logged` | hash, zset | what attempts have said; id by the ms of the last line |
//! | `tally` | hash, expires | the open rows of the statistics: of the minute, hour and day |
//! | `minutes`, `hours`, `days` | list, expires | finished rows, the latest last |
//! | `tries`, `errors`, `skips`, `cancel`, `waiters` | hash | by id; exist only while used |
//! | `waiters`, field `#<key>` | | that key has content, so a success must look at it |
//! | `result:<id>` | string, expires | what the handler returned |
//! | `requeued:<operation>` | string, expires | the task of a completed requeue |
//! | `operated:<operation>` | hash, expires | the last batch of an operation on many tasks here |
//! | `biz:<task>:<biz id>` | string | the task that holds a biz id |
//! | `same:<id>` | string, expires | the task that held the biz id of a call of a transaction |
//! | `ledger:<client>` | hash | answers of the client's latest submits |
//! | `ledgers` | zset | client by last use, to purge idle ledgers |
//! | `completions:<client>` | list, expires | completion messages for the client |
//! | `wake`, `wake:<worker>` | list | wakeup lists: for work; to stop an attempt |
//! | `interrupt:<worker>` | list, expires | interrupts the worker's wait for a wakeup |
//!
//! A roster is a slot of its own: `{<namespace>:@shards.<name>:0}` for the shards of a function,
//! `{<namespace>:@sources.<name>:0}` for the slices of a source, `@relay.<epoch>` for the relays of
//! a database. It has `meta`, `workers` and
//! `worker:<worker>` as a queue, and:
//!
//! | key | type | holds |
//! |---|---|---|
//! | `joined` | hash | member → the ms since when, `-` if it leaves |
//! | `posts` | hash | post → its holder |
//! | `fences` | hash | number of a post → the fence of its last grant |
//! | `suspended` | hash | number of a post, `*` for all → who suspended it and why |
//! | `generations` | hash | generation → its count |
//! | `positions` | hash | post → how far its holder has come |
//! | `failures`, `aside` | hash, zset | row → its failures; row by the ms until when it waits |
//! | `control` | hash | of a source: how its tasks have ended, since when it is slow, requests |
//! | `scans` | hash | of a source: number of a slice → its figures as JSON |
//!
//! A dispenser has a slot of its own, `{<namespace>:@d.<name>:0}`, whose name no queue can have:
//!
//! | key | type | holds |
//! |---|---|---|
//! | `dispenser` | hash | the last place, the rebuilds, the longest times, the latest `done:` |
//! | `pool` | zset | items by rank: since when they wait, minus a minute per priority |
//! | `assignees` | zset | assignee by the ms when it is over unless it calls |
//! | `bucket:<assignee>` | zset | the items of an assignee, by their ranks |
//! | `holders` | hash | item → the ms at which its time is over, and its assignee |
//! | `deadlines` | zset | item by that ms |
//! | `returned` | hash | item → how often it came back, and who had it last |
//! | `done:<hour>` | hash, expires | finished item → its assignee |
//! | `seen:<rebuild>` | hash, expires | the items that a rebuild has listed |
//! | `answer:<assignee>:<name>` | string, expires | an answer for a repeat of its request |
//!
//! All processes of a namespace are in the slot `{<namespace>:@fleet:0}`:
//!
//! | key | type | holds |
//! |---|---|---|
//! | `fleet` | zset, expires | process by the ms when it counts as gone |
//! | `process:<id>` | hash, expires | what a process is and does, and what it is asked for |
//!
//! What operators have done is in the slot `{<namespace>:@audit:0}`:
//!
//! | key | type | holds |
//! |---|---|---|
//! | `audit` | zset | lines of acts, by the ms at which they began |
//!
//! All operations on many tasks are in the slot `{<namespace>:@operations:0}`:
//!
//! | key | type | holds |
//! |---|---|---|
//! | `operations` | zset | the last 100 operations, by the ms when they were added |
//! | `carried` | zset | those under way, by the ms when the lease of who carries them is over |
//! | `operation:<id>` | hash | what an operation is about, its state, and how far it has come |
//! | `counted:<id>` | hash | the tasks that it has counted and not reached, by number; may expire |
//!
//! In addition to the queues, `<namespace>:queues` is the set of their names, and of the slots of
//! rosters and dispensers.

use crate::id::{QueueName, TaskId, WorkerId};

/// The keys of one queue.
#[derive(Debug, Clone)]
pub struct Keys {
    base: String,
}

impl Keys {
    /// Returns the keys of `queue` in `namespace`.
    pub fn new(namespace: &str, queue: &QueueName) -> Self {
        Self { base: ["{", namespace, ":", queue.as_str(), ":0}:"].concat() }
    }

    /// Returns the prefix of all these keys.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Returns the key of that name, such as `tasks`.
    pub fn of(&self, name: &str) -> String {
        [&self.base, name].concat()
    }

    /// Returns the key of the hash of the tasks that a worker holds.
    pub fn working(&self, worker: &str) -> String {
        self.owned("working:", worker)
    }

    /// Returns the key of the hash with a worker's description.
    pub fn worker(&self, worker: &str) -> String {
        self.owned("worker:", worker)
    }

    /// Returns the key of the wakeup list for attempts of a worker that should stop.
    pub fn cancel_listener(&self, worker: &WorkerId) -> String {
        self.owned("wake:", worker.as_str())
    }

    /// Returns the key of the list that interrupts a worker's wait.
    pub fn interrupt(&self, worker: &WorkerId) -> String {
        self.owned("interrupt:", worker.as_str())
    }

    /// Returns the key of a client's completion list.
    pub fn completions(&self, client: &str) -> String {
        self.owned("completions:", client)
    }

    /// Returns the key of a task's result.
    pub fn result(&self, id: &TaskId) -> String {
        self.owned("result:", &id.stored())
    }

    /// Returns the key that names the task with the biz id of a call that was not submitted.
    pub fn same(&self, id: &TaskId) -> String {
        self.owned("same:", &id.stored())
    }

    /// Returns the key of the hash with the counts of a group.
    pub fn group(&self, group: &TaskId) -> String {
        self.owned("group:", &group.stored())
    }

    /// Returns the key of the hash with the results of the members of a group.
    pub fn group_results(&self, group: &TaskId) -> String {
        self.owned("results:", &group.stored())
    }

    /// Returns the key of a schedule.
    pub fn schedule(&self, name: &str) -> String {
        self.owned("schedule:", name)
    }

    /// Returns the key of the history of a schedule.
    pub fn ticks(&self, name: &str) -> String {
        self.owned("ticks:", name)
    }

    /// Returns the key of a process.
    pub fn process(&self, id: &str) -> String {
        self.owned("process:", id)
    }

    /// Returns the key of an operation on many tasks.
    pub fn operation(&self, id: &str) -> String {
        self.owned("operation:", id)
    }

    /// Returns the key of the tasks that an operation has counted.
    pub fn counted(&self, id: &str) -> String {
        self.owned("counted:", id)
    }

    /// Returns the key of the effects on another queue.
    pub fn outbox(&self, target: &QueueName) -> String {
        self.owned("outbox:", target.as_str())
    }

    /// Scripts build the same keys in `lua/include/key_of.lua`.
    fn owned(&self, kind: &str, owner: &str) -> String {
        [&self.base, kind, owner].concat()
    }

    /// Returns a temporary key of a worker, which checks what the worker's Redis user may do.
    pub fn probe(&self, worker: &str) -> String {
        self.owned("probe:", worker)
    }

    /// Returns the key of a biz id.
    pub fn biz(&self, task: &str, biz_id: &str) -> String {
        [&self.base, "biz:", task, ":", biz_id].concat()
    }
}

/// Returns the key of the set of queue names of a namespace.
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
