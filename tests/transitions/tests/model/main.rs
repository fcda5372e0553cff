//! Random sequences of every call of the broker, compared with a readable model of the queue.
//!
//! [`reference`] is the model: the specification of a queue in plain Rust. [`chance`] makes
//! sequences of [`step`]s, and [`actors`] make the calls of a step. [`run`] sends each call to the
//! store and to the reference and compares both: the answer, every key ([`picture`]), the structure
//! (`optimus-fsck/`), and the wakeup list. Calls are sent twice, and old calls are repeated, as on
//! a network. The clock steps forwards and backwards. At the end each queue must become empty.
//! [`cases`] repeats this from seeds and shrinks failing runs; [`reach`] counts which cases
//! occurred. [`flows`] does the same with limits, groups and gathered calls, for what users see.
//!
//! [`dispenser`] does the same with the calls of a dispenser, and [`schedules`] with those of
//! schedules.
//!
//! `OPTIMUS_MODEL_CASES`, `_STEPS` and `_SEED` replace the short default, and `cargo xtask model`
//! does long runs.

#[macro_use]
#[path = "../common/mod.rs"]
mod common;
mod actors;
mod answer;
mod call;
mod cases;
mod chance;
mod dispenser;
mod display;
mod drain;
mod flows;
mod granted_tasks;
mod keys_as_lines;
mod messages;
mod names;
mod observed;
mod reached_cases;
mod reference;
mod run;
mod scenario;
mod schedules;
mod send;
mod shrink;
mod side;
mod step;

use common::{acts, bench, dump, jobs, lanes, limits};

use self::{bench::Bench, cases::Plan};

#[tokio::test]
async fn embedded_store_and_model_never_differ() {
    Plan::from_env().run(Bench::embedded()).await;
}

#[tokio::test]
async fn embedded_store_and_model_never_differ_beyond_the_bounds() {
    Plan::from_env().one_of(100).wide().run(Bench::embedded()).await;
}

#[tokio::test]
async fn redis_and_model_never_differ() {
    Plan::from_env().one_of(10).run(Bench::own_redis().await).await;
}

#[tokio::test]
async fn redis_and_model_never_differ_beyond_the_bounds() {
    Plan::from_env().one_of(200).wide().run(Bench::own_redis().await).await;
}

#[tokio::test]
async fn limits_groups_and_runs_of_the_embedded_store_keep_their_promises() {
    flows::run(Bench::embedded(), 4).await;
}

#[tokio::test]
async fn limits_groups_and_runs_of_redis_keep_their_promises() {
    flows::run(Bench::own_redis().await, 50).await;
}

#[tokio::test]
async fn a_queue_is_looked_at_for_the_first_of_what_comes_back_in_one_call() {
    assert_eq!(flows::found::a_run_and_a_permit_come_back(Bench::embedded()).await, Ok(()));
}

#[tokio::test]
async fn a_queue_is_looked_at_for_the_first_of_what_comes_free_in_one_call() {
    assert_eq!(
        flows::found::a_permit_and_a_delayed_task_come_free(Bench::embedded()).await,
        Ok(())
    );
}

#[tokio::test]
async fn a_dispenser_of_the_embedded_store_and_its_model_never_differ() {
    dispenser::run(Bench::embedded(), 60, 300).await;
}

#[tokio::test]
async fn a_dispenser_of_redis_and_its_model_never_differ() {
    dispenser::run(Bench::own_redis().await, 10, 300).await;
}

#[tokio::test]
async fn schedules_of_the_embedded_store_and_their_model_never_differ() {
    let seen = schedules::run(Bench::embedded(), 40, 300).await;
    for answer in ["stored", "overlap", "missed", "taken", "stale", "early"] {
        assert!(seen.contains_key(answer), "no tick has the answer {answer}: {seen:?}");
    }
}

#[tokio::test]
async fn schedules_of_redis_and_their_model_never_differ() {
    schedules::run(Bench::own_redis().await, 6, 300).await;
}
