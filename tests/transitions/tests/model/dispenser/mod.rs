//! Random calls of a dispenser, compared with a reference in plain Rust: each answer, the order of
//! the pool, and who holds which item. The fsck finds an item that is in two places or in none.

mod reference;
mod step;

use std::{collections::BTreeMap, time::Duration};

use optimus_core::{
    Added, Item,
    broker::{BrokerError, ByAssignee, HoldTimes, Refusal},
};
use redis::cmd;

use self::{
    reference::Reference,
    step::{HOLD, HOLD_MAX, Step},
};
use crate::bench::{Bench, START};

const TIMES: HoldTimes =
    HoldTimes { hold: Duration::from_millis(HOLD), hold_max: Duration::from_millis(HOLD_MAX) };

/// Runs so many sequences of calls.
pub(crate) async fn run(bench: Bench, sequences: u64, steps: usize) {
    for seed in 0..sequences {
        let mut chance = fastrand::Rng::with_seed(seed);
        let (mut reference, mut now) = (Reference::default(), START);
        bench.restore(&BTreeMap::new()).await;
        for number in 0..steps {
            let step = Step::drawn(&mut chance);
            let what = format!("seed {seed}, step {number}: {step:?}");
            if let Step::Wait(wait) = step {
                now += u64::try_from(wait.as_millis()).expect("a short wait");
                continue;
            }
            if let Step::Back(back) = step {
                let back = u64::try_from(back.as_millis()).expect("some hours");
                now = now.saturating_sub(back).max(START);
                continue;
            }
            // A call may arrive twice, and its second answer may be the one that is read.
            let times = if is_repeatable(&step) && chance.u8(..4) == 0 { 2 } else { 1 };
            let expected = expected(&mut reference, &step, now);
            for _ in 0..times {
                assert_eq!(answer(&bench, &step, now).await, expected, "{what}");
            }
            assert_same(&bench, &reference, &what).await;
        }
    }
}

/// Returns whether the second answer is the same. An addition answers what it has found, and a
/// rebuild that has begun again has listed nothing.
fn is_repeatable(step: &Step) -> bool {
    !matches!(step, Step::Add(_) | Step::Page(..) | Step::End(_))
}

/// Answers as texts, which show what differs.
fn expected(reference: &mut Reference, step: &Step, now: u64) -> String {
    match step {
        Step::Add(items) => format!("{:?}", Some(reference.add(now, items))),
        Step::Assign(who, count) => format!("{:?}", reference.assign(now, who, *count)),
        Step::Check(who) => format!("{:?}", reference.check(now, who)),
        Step::Done(who, items) => format!("{:?}", reference.done(now, who, items)),
        Step::GiveBack(who, items) => format!("{:?}", reference.give_back(now, who, items)),
        Step::Begin(name) => {
            reference.begin(now, name);
            "begun".to_owned()
        }
        Step::Page(name, items) => format!("{:?}", reference.page(now, name, items)),
        Step::End(name) => format!("{:?}", reference.end(now, name)),
        Step::Counts => format!("{:?}", reference.counts(now)),
        Step::Wait(_) | Step::Back(_) => String::new(),
    }
}

async fn answer(bench: &Bench, step: &Step, now: u64) -> String {
    let (slot, broker) = (&bench.queue, bench.at(now - START));
    let by = |assignee| ByAssignee { slot, assignee, times: TIMES, once: "".into() };
    match step {
        Step::Add(items) => {
            format!("{:?}", Some(broker.dispenser_add(slot, "", &ranked(items)).await.unwrap()))
        }
        Step::Assign(who, count) => {
            let held = broker.dispenser_assign(by(who), *count).await.unwrap();
            format!("{:?}", times_of(held.items))
        }
        Step::Check(who) => {
            let held = broker.dispenser_check(by(who)).await.unwrap();
            format!("{:?}", times_of(held.items))
        }
        Step::Done(who, items) => {
            format!("{:?}", broker.dispenser_done(by(who), items).await.unwrap())
        }
        Step::GiveBack(who, items) => {
            format!("{:?}", broker.dispenser_return(by(who), items).await.unwrap())
        }
        Step::Begin(name) => {
            broker.dispenser_rebuild_begin(slot, "", name).await.unwrap();
            "begun".to_owned()
        }
        Step::Page(name, items) => {
            let page = broker.dispenser_rebuild_page(slot, "", name, &ranked(items)).await;
            format!("{:?}", unless_stale::<Added>(page))
        }
        Step::End(name) => {
            let ended = broker.dispenser_rebuild_end(slot, "", name, "").await;
            format!("{:?}", unless_stale(ended.map(|(removed, _)| removed)))
        }
        Step::Counts => {
            let counts = broker.dispenser_counts(slot, TIMES).await.unwrap();
            format!("{:?}", [counts.open, counts.assigned, counts.assignees])
        }
        Step::Wait(_) | Step::Back(_) => String::new(),
    }
}

fn ranked(items: &[(String, i8)]) -> Vec<Item> {
    items.iter().map(|(id, priority)| Item::new(id.as_str()).priority(*priority)).collect()
}

fn times_of(items: Vec<optimus_core::HeldItem>) -> Vec<(String, u64)> {
    let ms = |item: &optimus_core::HeldItem| item.until.timestamp_millis().unsigned_abs();
    items.into_iter().map(|item| (item.id.clone(), ms(&item))).collect()
}

fn unless_stale<T>(answer: Result<T, BrokerError>) -> Option<T> {
    match answer {
        Ok(answer) => Some(answer),
        Err(problem) if problem.refusal() == Some(Refusal::Stale) => None,
        Err(problem) => panic!("{problem:?}"),
    }
}

/// Compares the keys with the reference.
async fn assert_same(bench: &Bench, reference: &Reference, what: &str) {
    let pool: Vec<String> = bench.raw(cmd("ZRANGE").arg(bench.key("pool")).arg(0).arg(-1)).await;
    assert_eq!(pool, reference.ordered(), "the pool, {what}");
    let holders: BTreeMap<String, String> =
        bench.raw(cmd("HGETALL").arg(bench.key("holders"))).await;
    let held = reference.held.iter();
    let held: BTreeMap<String, String> = held
        .map(|(item, held)| (item.clone(), format!("{}:{}", held.until, held.assignee)))
        .collect();
    assert_eq!(holders, held, "the holders, {what}");
    let assignees: BTreeMap<String, u64> = bench
        .raw::<Vec<(String, u64)>>(
            cmd("ZRANGE").arg(bench.key("assignees")).arg(0).arg(-1).arg("WITHSCORES"),
        )
        .await
        .into_iter()
        .collect();
    assert_eq!(assignees, reference.assignees, "the assignees, {what}");
    for who in reference.assignees.keys() {
        let bucket = bench.key(&format!("bucket:{who}"));
        let bucket: Vec<String> = bench.raw(cmd("ZRANGE").arg(bucket).arg(0).arg(-1)).await;
        let mine: Vec<String> = reference.of(who).into_iter().map(|(item, _)| item).collect();
        assert_eq!(bucket, mine, "the bucket of {who}, {what}");
    }
    assert_eq!(bench.fsck().await, [""; 0], "{what}");
}
