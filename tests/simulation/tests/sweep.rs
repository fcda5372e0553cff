//! Causes one fault at each exchange of each scene.
//!
//! These tests run some of all combinations, in some seconds. `cargo xtask simulate --sweep` runs
//! all of them.

use std::collections::HashSet;

use optimus_simulation::{
    run::Voice,
    script_coverage::Site,
    sweep::{FAULTS, Scene, fail_each_call, rehearse, run_twice, run_with},
};

/// Returns the step: one in this many combinations runs. The step is coprime to the number of
/// faults, so that each exchange and each fault have their turn.
fn step() -> usize {
    let step = std::env::var("OPTIMUS_SWEEP_STEP").ok().and_then(|step| step.parse().ok());
    step.unwrap_or(STEP)
}

const STEP: usize = 27;

fn sweep(scene: Scene) {
    let rehearsal = rehearse(scene);
    assert_eq!(rehearsal.outcome.wrong, [""; 0], "without any fault");
    // Otherwise a fault hits another exchange than the intended one.
    assert_eq!(rehearsal.outcome.trace, rehearse(scene).outcome.trace, "two runs are equal");
    let (mut wrong, mut ran) = (Vec::new(), 0);
    let all = (0..rehearsal.exchanges).flat_map(|at| FAULTS.map(|fault| (at, fault)));
    let all = all.filter(|(_, fault)| scene.bears(*fault));
    for (at, fault) in all.skip(scene as usize % step()).step_by(step()) {
        ran += 1;
        let performance = run_with(scene, at, fault, Voice::Quiet);
        let with_place = |wrong: &String| format!("{at} {fault:?}: {wrong}");
        wrong.extend(performance.outcome.wrong.iter().map(with_place));
    }
    println!("{scene:?}: {} exchanges, {ran} steps", rehearsal.exchanges);
    assert_eq!(wrong, [""; 0]);
}

/// The second call finds the tasks as the first one has left them.
#[test]
fn a_change_of_an_operation_that_arrives_twice_counts_once() {
    for script in [&["requeue"], &["cancel"], &["delete"]] {
        assert_eq!(run_twice(Scene::Operations, script).outcome.wrong, [""; 0], "{script:?}");
    }
}

macro_rules! scenes {
    ($($name:ident = $scene:ident;)+) => {$(
        #[test]
        fn $name() {
            sweep(Scene::$scene);
        }
    )+};
}

scenes! {
    submit = Submit;
    batch = Batch;
    biz_id = BizId;
    later = Later;
    retry = Retry;
    cancel_waiting = CancelWaiting;
    cancel_running = CancelRunning;
    cancel_deaf = CancelDeaf;
    cancel_requeue = CancelRequeue;
    queues = Queues;
    outage = Outage;
    failover = Failover;
    elimination = Elimination;
    hostile = Hostile;
    quarantine = Quarantine;
    same_id = SameId;
    requeue = Requeue;
    timeout = Timeout;
    release = Release;
    reap = Reap;
    await_result = Await;
    poison = Poison;
    pause = Pause;
    control_words = ControlWords;
    inspect = Inspect;
    purge = Purge;
    delete = Delete;
    misfit = Misfit;
    clock = Clock;
    crowd = Crowd;
    lanes = Lanes;
    after = After;
    limits = Limits;
    groups = Groups;
    gathers = Gathers;
    one_by_one = OneByOne;
    schedules = Schedules;
    schedules_by_hand = SchedulesByHand;
    shards = Shards;
    scans = Scans;
    dispenses = Dispenses;
    clock_back = ClockBack;
    statistics = Statistics;
    history = History;
    operations = Operations;
}

/// Calls that no scene makes. The first seven need more tasks that wait for one than a scene has.
/// Of the next eight, six need more tasks than a scene has: four calls remove, count and keep
/// successes above 1,128, one call handles more than 128 tasks that are due at once, and one call
/// purges 64 dead tasks of which some block their lanes. The seventh one needs a key of another
/// type, which only a foreign program would write. The eighth one repeats a read that was refused,
/// so that its refusal ends the script. The next one needs a task that takes the result of a task
/// with a biz id and without an outcome ttl. The next two need a task that led a run and has ended,
/// and that a program of an older version has left in its key, and the two after them 500 gates
/// that wait while the clock is set back. Four need a group that has not ended when its time is
/// over, the next one 10,000 rows that have failed, and one 512 items of a dispenser whose time is
/// over. Two write the results of members of a group that end together: different results, and
/// eight equal ones. One belongs to the relay of a database. Two need more than 500 dead tasks, one
/// a member of a roster whose data Redis has lost, and three more than 8,192 logs. One keeps the
/// order of logs in a purge, and two need a worker that holds five tasks, of which one is cancelled
/// among more. The last one needs a process that is stopped for half of a lease.
const MADE_NOWHERE: [&str; 40] = [
    "redis.call('ZREMRANGEBYRANK', audit, '0', '-' .. (most + 1))",
    "local last = redis.call('ZRANGE', key, '-1', '-1'",
    "many = { key = key, size = redis.call('ZCARD', key)",
    "was_in = many.size > 0 and redis.call('ZSCORE', many.key",
    "redis.call('ZADD', many.key",
    "return redis.call('ZRANGE', many.key",
    "redis.call('ZREM', many.key",
    "redis.call('ZRANGEBYSCORE', many_of(flow, ref).key",
    "call('LTRIM', success",
    "call('HGET', base .. 'meta', 'history')",
    "redis.call('LRANGE', success, '0', whole(cut - 1))",
    "call('HINCRBY', base .. 'meta', 'cut_successes'",
    "local left = redis.call('ZRANGEBYSCORE', zset",
    "redis.call('HSET', meta, 'purge_from'",
    "redis.call('GET', keys[i])",
    "or redis.call('HSTRLEN', key, id)",
    "id = string.match(redis.call('GET', base .. 'biz:' .. ref)",
    "redis.call('ZREM', joins.gathers, one[1])",
    "redis.call('ZREM', one[2], one[3])",
    "redis.call('HSET', meta, 'back'",
    "redis.call('HDEL', meta, 'back')",
    "local ends = #indexes > 0 and redis.call('HMGET', group.results_key",
    "if id and redis.call('HEXISTS', tasks, id) == 0",
    "redis.call('HEXISTS', group.key, 'kept')",
    "redis.call('HSET', group.key, 'kept'",
    "old[#old + 1] = redis.call('ZRANGE', aside",
    "add_back(back, item, redis.call('ZSCORE', bucket, item), assignee)",
    "return redis.call('HSET', key, unpack(ARGV, at, at + 2 * left - 1))",
    "fresh = fresh + redis.call('HSET', key, ARGV[at], shared, ARGV[at + 1], shared, ARGV[at + 2],",
    "if since < 0 and redis.call('HGET', ledger, 'mark')",
    "local rank = redis.call('ZRANK', dead, after)",
    "redis.call('ZCOUNT', dead, '-inf', after_ms)",
    "redis.call('HGETALL', fences)",
    "redis.call('ZRANGE', logged, '0'",
    "redis.call('HDEL', logs, unpack(oldest))",
    "redis.call('ZREM', logged, unpack(oldest))",
    "redis.call('HSET', meta, 'logs_from'",
    "local held = redis.call('HKEYS', working)",
    "note(worker, held[i], redis.call('HGET', working, held[i]))",
    "redis.call('HINCRBY', meta, 'losses', whole(lost))",
];

/// Calls of `checkpoint` that a scene makes and none fails: they read the positions of counts
/// before the last one. Its own tests fail them.
const MADE_ONLY: [&str; 2] = [
    "for _, field in ipairs(redis.call('HKEYS', positions)) do",
    "for _, old in ipairs(redis.call('HKEYS', generations)) do",
];

#[test]
fn every_call_that_a_script_makes_before_it_writes_fails_once() {
    let (coverage, wrong) = fail_each_call();
    assert_eq!(wrong, [""; 0]);
    let sites = coverage.sites();
    let made = sites.iter().filter(|site| site.made == site.calls);
    let made: HashSet<&str> = made.map(|site| site.text).collect();
    let (mut never_made, mut never_failed) = (Vec::new(), Vec::new());
    for site in &sites {
        let is_excepted = MADE_NOWHERE.iter().any(|text| site.text.contains(text));
        // If several scripts share a function, some of them do not reach each call in it.
        let is_shared = made.contains(site.text);
        let may_miss = is_excepted || is_shared;
        if site.made < site.calls && !may_miss {
            never_made.push(format!("{site:?}"));
        }
        let fails_elsewhere = site.place.script == "checkpoint" && MADE_ONLY.contains(&site.text);
        if site.failed < site.early && !fails_elsewhere {
            never_failed.push(format!("{site:?}"));
        }
    }
    assert_eq!((never_made, never_failed), (Vec::new(), Vec::new()), "never made, never failed");
    let count = |count: fn(&Site) -> usize| sites.iter().map(count).sum::<usize>();
    println!("{} calls, {} before a first write", count(|s| s.calls), count(|s| s.failed));
}
