//! Every script leaves a consistent store, and `fsck` finds each kind of damage.

use redis::cmd;

use crate::{bench::Bench, dump::Dump, situations::SITUATIONS, world::World};

async fn every_script_leaves_a_consistent_store(bench: Bench) {
    for (script, situations) in SITUATIONS {
        for situation in *situations {
            bench.restore(&Dump::new()).await;
            let world = World::build_for(&bench, situation).await;
            assert_eq!(bench.fsck().await, [""; 0], "before {script}, {situation}");
            world.act(&bench, script, situation).await.expect(situation);
            assert_eq!(bench.fsck().await, [""; 0], "after {script}, {situation}");
        }
    }
}

/// A raw command, in which `$key` is a key of the queue and `@task` a task of the world, and a part
/// of the message about the damage.
const DAMAGES: &[(&str, &str)] = &[
    ("HDEL $tasks @held", "and has no record"),
    ("HDEL $working:busy @held", "has a record and is in no state"),
    ("ZADD $retry 5 @ready", "is in retry and ready"),
    ("ZADD $dead 5 @held", "is in dead and working:busy"),
    ("HSET $working:idle @held 2:7", "the last claim of idle cannot be read"),
    ("RPUSH $ready @ready", "is in ready and ready"),
    ("HDEL $skips @tombstone", "and has no record|is in cancelled and ready"),
    ("HINCRBY $skips @tombstone 1", "2 entries"),
    ("HINCRBY $meta tombstones 1", "`tombstones` of `meta` is 1 too high"),
    ("HDEL $priorities @ranked", "is in `priority` and has no priority"),
    ("HSET $priorities @ready 1", "is in the ready list and has a priority"),
    ("RPUSH $wake 1 1", "the wakeup list holds"),
    ("HSET $tries nobody 1:0:0", "`tries` has nobody"),
    ("HSET $tries @tried many", "the tries of"),
    ("HSET $tries @tried 0:0:0@17", "the tries of"),
    ("HSET $tries @ready 1:0:0", "but the entry does not show that"),
    ("HDEL $tries @tried", "has an error history and no tries"),
    ("HSET $meta due 99999999999999", "is due before any claim will read it"),
    ("HDEL $meta due", "is due before any claim will read it"),
    ("HDEL $blobs @large", "disagree about the place of the payload"),
    ("HSET $cancel @ready 5", "is asked to stop and no worker holds it"),
    ("HSET $waiters @dead c9", "c9 wait for"),
    ("HDEL $waiters #cancel", "`cancel` has no mark"),
    ("HSET $waiters #strange 1", "has the mark \"strange\""),
    ("RPUSH $success @held", "has succeeded and still has a record"),
    ("DEL $worker:idle", "the worker idle has no description"),
    ("ZREM $workers busy", "belongs to a worker that is not registered"),
    ("HSET $working:busy @held 9:999999999999999999", "under a fence that was not given yet"),
    ("HSET $working:busy # 2:7", "the last claim of busy cannot be read"),
    ("DEL $biz:job:ready", "and has no mark"),
    ("SET $biz:job:ready @held:0:L", "and has no mark"),
    ("SET $biz:job:other @held:0:L", "biz:job:other is"),
    ("ZREM $ledgers c1", "the ledger of c1 will not be purged"),
    ("ZADD $ledgers 5 c9", "c9 is kept and has no ledger"),
    ("HSET $ledger:c1 3 5:", "slot 3 of c1"),
    ("HSET $ledger:c1 lost3 3", "slot lost3 of c1"),
    ("HINCRBY $meta dead_bytes 1", "`dead_bytes` of `meta` is 1 too high"),
    ("HSET $widths line 2", "scripts would not read them"),
    ("HDEL $meta cancelled_bytes", "`cancelled_bytes` of `meta` is"),
    ("ZREM $lane:line @waits", "is in no state|`blocked` of `meta`"),
    ("ZADD $lane:line -1 @waits", "than its width of 1"),
    ("ZREM $lane:line @offered", "wait for a free permit"),
    ("ZADD $lane:line 9 @ready", "its record states another"),
    ("ZADD $lane:free -1 @dead", "its record states another"),
    ("ZADD $lane:free -1 @lane-dead", "is at -1 in the lane"),
    ("ZREM $lane:held @held-of-lane", "without a permit of its lane"),
    ("ZREM $lanes line", "and `lanes` does not have it"),
    ("ZADD $lanes 5 strange", "no task waits in that lane"),
    ("HINCRBY $meta blocked 1", "`blocked` of `meta` is 1 too high"),
    ("HSET $meta needs 1", "older scripts would still change the queue"),
    ("SET $stranger 5", "stranger is an unknown key"),
    ("HSET $meta strange 5", "strange is an unknown field of meta"),
    ("HSET $meta retries -5", "the field `retries` of `meta` is \"-5\", which is no number"),
    (
        "HSET $meta fence x",
        "the field `fence` of `meta` is \"x\", which is no number|under a fence",
    ),
    ("RPUSH $completions:c9 completion", "completions:c9 has no expiry"),
    ("PEXPIRE $tasks 500000", "tasks expires, and must not"),
    ("RPUSH $minutes what", "`minutes` has the row"),
    ("HSET $tally week 5", "the open row \"week\""),
    ("HSET $tally day 5\njob", "the open row \"day\""),
    ("PERSIST $hours", "hours has no expiry"),
    ("ZREM $fleet busy", "the process busy is not in `fleet`"),
    ("ZREM $operations op", "the operation op is not in|op is carried on, and no operation"),
    ("ZREM $carried op", "and carried is false"),
    ("ZADD $carried 5 counted", "and carried is true"),
];

/// Damages of a queue with limits, in the same form.
const DAMAGES_OF_LIMITS: &[(&str, &str)] = &[
    ("ZREM $gate:limit:m task:job\nlimit:m", "waits at []"),
    ("ZADD $gate:task:job 0 task:job\nlimit:m", "waits at [\"limit:m\", \"task:job\"]"),
    ("ZREM $gates limit:r", "and nothing opens it"),
    ("HSET $meta due 99999999999999", "opens before any claim will read it"),
    ("ZREM $waits task:job\nlimit:m", "and `waits` does not have it"),
    ("ZADD $waits 0 task:gone", "`waits` has \"task:gone\""),
    ("ZADD $gates 0 task:gone", "nothing waits at"),
    ("ZREM $busy:limit:m @m1", "that the gate does not count"),
    ("HDEL $permits @m1", "that nothing gives back"),
    ("HDEL $waiters #permits", "`permits` has no mark"),
    ("ZADD $busy:limit:m 0 @r1", "that nothing gives back"),
    ("ZREM $loans limit:x\nlent", "that nothing gives back"),
    ("HINCRBY $meta blocked -1", "`blocked` of `meta` is 1 too low"),
    ("HSET $meta needs 2", "older scripts would still change the queue"),
];

async fn each_damage_is_found(bench: Bench) {
    let world = World::build(&bench).await;
    each_of(&bench, &world, DAMAGES).await;
}

async fn each_damage_of_limits_is_found(bench: Bench) {
    let world = World::build_for(&bench, "limited").await;
    each_of(&bench, &world, DAMAGES_OF_LIMITS).await;
}

/// Damages of a store in which tasks run together.
const DAMAGES_OF_GATHERS: &[(&str, &str)] = &[
    ("ZREM $gathers job:later", "`gathers` does not have it"),
    ("ZADD $gathers 1 job:none", "`gathers` has"),
    ("ZREM $gather:job:later @gathers", "is in no state"),
    ("ZADD $gather:job:alone 5 @gathers", "its record states|is in gather:"),
    ("ZADD $gather:job:later -1 @gathers", "`blocked` of `meta`|is in no state"),
    ("HDEL $meta due", "before any claim will read it"),
    ("HINCRBY $meta blocked -1", "`blocked` of `meta` is 1 too low"),
    ("HSET $meta needs 5", "older scripts would still change the queue"),
    ("ZREM $gather:job:led @led-1 @led-2 @led-3", "is in no state|leads no run|`gathers` has"),
    ("HSET $tries @gathers 1:0:0", "its record states"),
];

/// Damages of a dispenser.
const DAMAGES_OF_DISPENSERS: &[(&str, &str)] = &[
    ("ZADD $pool 5 i6", "is held by ann, and in the pool"),
    ("ZREM $bucket:ann i6", "whose bucket does not have it"),
    ("HDEL $holders i6", "which does not hold it|has a deadline and no holder"),
    ("HSET $holders i6 5:bob", "which does not hold it|`deadlines` has another time"),
    ("HSET $holders i6 bob", "the holder of i6 is"),
    ("ZADD $deadlines 5 i6", "`deadlines` has another time"),
    ("ZREM $assignees ann", "the bucket of ann will never be over"),
    ("HSET $returned i99 1", "is in no place|the return of i99"),
    ("HDEL $dispenser rebuild", "is not open, and has a list"),
];

async fn each_damage_of_dispensers_is_found(bench: Bench) {
    let world = World::build_for(&bench, "dispensed").await;
    each_of(&bench, &world, DAMAGES_OF_DISPENSERS).await;
}

async fn each_damage_of_gathers_is_found(bench: Bench) {
    let world = World::build_for(&bench, "gathered").await;
    each_of(&bench, &world, DAMAGES_OF_GATHERS).await;
}

/// Damages of a store with schedules.
const DAMAGES_OF_SCHEDULES: &[(&str, &str)] = &[
    ("ZREM $schedules plain", "plain is not in its index"),
    ("ZADD $code_schedules 5 plain", "plain is in both indexes"),
    ("ZADD $schedules 5 paused", "paused is paused and due"),
    ("HSET $schedule:plain last 99999999999999", "not after its last"),
    ("HSET $schedule:plain release 1.0.0", "plain is not in its index"),
    ("HDEL $schedule:plain record", "plain has no record"),
    ("DEL $schedule:plain", "is in an index and is not stored|a history of plain"),
    ("PEXPIRE $schedule:plain 500000", "schedule:plain expires, and must not"),
];

async fn each_damage_of_schedules_is_found(bench: Bench) {
    let world = World::build_for(&bench, "scheduled").await;
    each_of(&bench, &world, DAMAGES_OF_SCHEDULES).await;
}

/// Damages of a queue that keeps a history.
const DAMAGES_OF_HISTORIES: &[(&str, &str)] = &[
    ("HINCRBY $history_bytes all 1", "`all` of `history_bytes` is 1 too high"),
    ("HSET $history_bytes success:19675 5", "`success:19675` of `history_bytes` is"),
    ("ZREM $histories success:19675", "in `histories`"),
    ("ZADD $histories 19666 dead:19666", "in `histories`"),
    ("DEL $dead:19666", "which is not there"),
    ("RPUSH $dead:19666 what", "a line that is of no task"),
    ("HDEL $meta history", "nothing says how long"),
    ("PEXPIRE $histories 500000", "histories expires, and must not"),
];

async fn each_damage_of_histories_is_found(bench: Bench) {
    let world = World::build_for(&bench, "kept").await;
    each_of(&bench, &world, DAMAGES_OF_HISTORIES).await;
}

/// Damages of logs.
const DAMAGES_OF_LOGS: &[(&str, &str)] = &[
    ("ZREM $logged @held", "is not in `logged`"),
    ("HDEL $logs @held", "has no lines"),
    ("HSET $logs @held 1", "the log of"),
    ("HSET $logs @held 1_2_5_1", "the log of"),
    ("HSET $logs who 1", "a log of \"who\""),
];

async fn each_damage_of_logs_is_found(bench: Bench) {
    let world = World::build(&bench).await;
    each_of(&bench, &world, DAMAGES_OF_LOGS).await;
}

async fn each_of(bench: &Bench, world: &World, damages: &[(&str, &str)]) {
    let sound = bench.dump().await;
    for (damage, message) in damages {
        bench.restore(&sound).await;
        let words = damage.split(' ').map(|word| match word.split_at(1) {
            ("$", key) => bench.key(key),
            ("@", task) => match task.split_once(':') {
                Some((task, rest)) => format!("{}:{rest}", world.id(task).stored()),
                None => world.id(&task.replace('-', " ")).stored(),
            },
            _ => word.to_owned(),
        });
        let words: Vec<String> = words.collect();
        let _: redis::Value = bench.raw(cmd(&words[0]).arg(&words[1..])).await;
        let wrong = bench.fsck().await;
        let expected = |wrong: &String| message.split('|').any(|part| wrong.contains(part));
        assert!(wrong.iter().any(expected), "{damage}: {wrong:?}");
    }
}

on_both![
    every_script_leaves_a_consistent_store,
    each_damage_is_found,
    each_damage_of_limits_is_found,
    each_damage_of_gathers_is_found,
    each_damage_of_schedules_is_found,
    each_damage_of_dispensers_is_found,
    each_damage_of_histories_is_found,
    each_damage_of_logs_is_found,
];
