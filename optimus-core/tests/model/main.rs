//! Random sequences of every call of the broker, against a model of the queue that one can read.
//!
//! [`reference`] is the model: what a queue is to be, in plain Rust. [`chance`] makes sequences of
//! [`step`]s, [`actors`] the calls of them, [`run`] sends each call to the store and to the
//! reference and compares: the answer, every key ([`picture`]), the structure (`tests/fsck/`), the
//! wakeup list. Calls are sent twice, and old ones again, as a network does; the clock is set, also
//! back. In the end each queue must run empty. [`cases`] repeats that from seeds and shrinks what
//! fails; [`reach`] counts what came about.
//!
//! `OPTIMUS_MODEL_CASES`, `_STEPS` and `_SEED` ask for other runs than the short ones, and
//! `cargo xtask model` for long ones.

#[macro_use]
#[path = "../common/mod.rs"]
mod common;
mod actors;
mod answer;
mod call;
mod cases;
mod chance;
mod drain;
mod hear;
mod holds;
mod names;
mod observed;
mod picture;
mod plot;
mod reach;
mod reference;
mod run;
mod send;
mod shrink;
mod side;
mod step;
mod told;

use common::{bench, dump, jobs};

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
