//! Arguments of every size and kind arrive unchanged. Arguments that can't be decoded are kept.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use crate::common::{Bench, Double, died_of, view};
use optimus_core::{BoxError, Call, Context, Reason, Retry, Snooze, Task, TaskOptions, TaskState};
use optimus_testkit::RedisServer;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(20);
const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// A task that returns its arguments, so that the test covers both directions.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq)]
struct Echo<T>(T);

trait Payload: Serialize + DeserializeOwned + Send + 'static {}

impl<T: Serialize + DeserializeOwned + Send + 'static> Payload for T {}

impl<T: Payload> Task for Echo<T> {
    const NAME: &'static str = "echo";
    type Output = T;

    async fn run(self, _: Context) -> Result<T, BoxError> {
        Ok(self.0)
    }
}

/// A task that returns the size of its arguments.
#[derive(Serialize, Deserialize)]
struct Weigh {
    cargo: String,
}

/// The number of bytes of `{"cargo":""}`.
const PACKAGING: usize = 12;

impl Weigh {
    /// Returns a call whose arguments have exactly this many bytes of JSON.
    fn of(bytes: usize) -> Call<Self> {
        Self { cargo: "x".repeat(bytes - PACKAGING) }.call()
    }
}

impl Task for Weigh {
    const NAME: &'static str = "weigh";
    type Output = usize;

    async fn run(self, _: Context) -> Result<usize, BoxError> {
        Ok(self.cargo.len())
    }
}

/// The time in which a task must start. It is long enough on a busy machine.
const EXPIRY: Duration = Duration::from_secs(2);

/// Succeeds after the time at which it would have expired.
#[derive(Serialize, Deserialize)]
struct Late {
    by: Ask,
    made: SystemTime,
}

/// What the first attempt asks for.
#[derive(Clone, Copy, Serialize, Deserialize)]
enum Ask {
    Retry,
    Snooze,
}

impl Late {
    fn new(by: Ask) -> Call<Self> {
        Self { by, made: SystemTime::now() }.call()
    }
}

impl Task for Late {
    const NAME: &'static str = "late";
    type Output = Duration;

    async fn run(self, _: Context) -> Result<Duration, BoxError> {
        let waited = self.made.elapsed()?;
        if waited > EXPIRY {
            return Ok(waited);
        }
        let rest = EXPIRY.saturating_sub(waited) + Duration::from_millis(50);
        Err(match self.by {
            Ask::Retry => Retry::after(rest).into(),
            Ask::Snooze => Snooze::new(rest).into(),
        })
    }
}

/// A task whose result is kept only if a call asks for that.
#[derive(Serialize, Deserialize)]
struct Unkept {}

impl Task for Unkept {
    const NAME: &'static str = "unkept";
    type Output = u8;

    fn options() -> TaskOptions {
        TaskOptions::new().result_ttl(Duration::ZERO)
    }

    async fn run(self, _: Context) -> Result<u8, BoxError> {
        Ok(7)
    }
}

/// A change of a task's arguments in a deploy: their names before and after.
macro_rules! version_of_rename {
    ($type:ident, $field:ident: $kind:ty) => {
        #[derive(Serialize, Deserialize)]
        struct $type {
            $field: $kind,
        }

        impl Task for $type {
            const NAME: &'static str = "rename";
            type Output = String;

            async fn run(self, _: Context) -> Result<String, BoxError> {
                Ok(self.$field.to_string())
            }
        }
    };
}

version_of_rename!(Before, user: u32);
version_of_rename!(After, user: String);

#[derive(Serialize, Deserialize, Debug, Clone, PartialEq)]
struct Odds {
    beyond_a_double: u64,
    largest: u64,
    smallest: i64,
    wider: u128,
    floats: [f64; 5],
    no_items: Vec<u8>,
    no_fields: BTreeMap<String, u8>,
    nothing: Option<u8>,
    nested: Value,
    texts: Vec<String>,
}

fn odds() -> Odds {
    Odds {
        beyond_a_double: (1 << 53) + 1,
        largest: u64::MAX,
        smallest: i64::MIN,
        wider: u128::MAX,
        floats: [0.1, -0.0, f64::MIN_POSITIVE, f64::MAX, 1.0],
        no_items: Vec::new(),
        no_fields: BTreeMap::new(),
        nothing: None,
        nested: json!([[], {}, [{}], {"": []}, 9_007_199_254_740_993_u64, 1.0, 1, "1", null]),
        texts: [
            "",
            "\0",
            "a\0b",
            "line\nbreak\r\n",
            "ﬁ 🦀 e\u{301} \u{202e}",
            "\u{7f}\u{2028}\"\\/",
        ]
        .map(String::from)
        .to_vec(),
    }
}

/// Checks that the call's arguments are stored unchanged, and come back unchanged.
async fn comes_back<T: Payload + Clone + PartialEq + std::fmt::Debug>(bench: &Bench, value: T) {
    let handle = bench.client.submit(Echo(value.clone()).call()).await.unwrap();
    let record = view(bench, handle.id()).await.record.unwrap().unwrap();
    assert_eq!(record.payload, serde_json::to_vec(&value).unwrap());
    let worker = bench.start(bench.worker().task_type::<Echo<T>>());
    assert_eq!(handle.result_within(SOON).await.unwrap(), value);
    worker.stop().await;
}

#[tokio::test]
async fn arguments_that_redis_would_not_take_are_refused_with_what_to_raise() {
    let server = RedisServer::builder().arg("--proto-max-bulk-len", "1mb").start();
    let bench = Bench::at(&server.url()).await;
    let lavish = bench.client_builder().payload_limit(8 * MIB).connect().await.unwrap();
    lavish.submit(Weigh::of(MIB)).await.unwrap();
    let problem = lavish.submit(Weigh::of(MIB + 1)).await.unwrap_err();
    assert!(problem.is_too_large() && problem.to_string().contains("proto-max-bulk-len"));
}

on_both! {
    async fn numbers_texts_and_empty_things_come_back_unchanged(bench: Bench) {
        comes_back(&bench, odds()).await;
    }

    async fn floats_come_back_to_the_last_bit(bench: Bench) {
        let mut random = fastrand::Rng::with_seed(7);
        let floats = std::iter::repeat_with(|| f64::from_bits(random.u64(..)));
        let floats: Vec<f64> = floats.filter(|float| float.is_finite()).take(2_000).collect();
        let sent: Vec<u64> = floats.iter().map(|float| float.to_bits()).collect();
        let handle = bench.client.submit(Echo(floats).call()).await.unwrap();
        let worker = bench.start(bench.worker().task_type::<Echo<Vec<f64>>>());
        let back = handle.result_within(SOON).await.unwrap();
        let altered = sent.iter().zip(&back).filter(|(sent, back)| **sent != back.to_bits());
        assert_eq!(altered.count(), 0, "of {} floats were changed", sent.len());
        worker.stop().await;
    }

    async fn arguments_without_a_json_form_are_refused_at_submit(bench: Bench) {
        let unsayable = BTreeMap::from([((1, 2), 3)]);
        let problem = bench.client.submit(Echo(unsayable).call()).await.unwrap_err();
        assert!(problem.is_invalid() && problem.to_string().contains("echo"), "{problem}");
    }

    async fn arguments_nested_too_deep_to_read_are_refused_at_submit(bench: Bench) {
        let nested = |depth| (0..depth).fold(json!(1), |inner, _| json!([inner]));
        let worker = bench.start(bench.worker().task_type::<Echo<Value>>());
        let fine = bench.client.submit(Echo(nested(100)).call()).await.unwrap();
        let problem = bench.client.submit(Echo(nested(1_000)).call()).await.unwrap_err();
        assert!(problem.is_invalid() && problem.to_string().contains("127"), "{problem}");
        assert_eq!(fine.result_within(SOON).await.unwrap(), nested(100));
        worker.stop().await;
    }

    async fn arguments_of_every_size_up_to_the_limit_arrive(bench: Bench) {
        let worker = bench.start(bench.worker().task_type::<Weigh>());
        let sizes = [20, 16 * KIB - 1, 16 * KIB, 16 * KIB + 1, 100 * KIB, MIB - 1, MIB];
        let calls = sizes.map(Weigh::of);
        let handles = bench.client.submit_all(calls).await.unwrap();
        for (size, handle) in sizes.into_iter().zip(handles) {
            assert_eq!(handle.result_within(SOON).await.unwrap(), size - PACKAGING);
        }
        worker.stop().await;
    }

    async fn arguments_above_the_limit_are_refused_and_not_stored(bench: Bench) {
        let problem = bench.client.submit(Weigh::of(MIB + 1)).await.unwrap_err();
        assert!(problem.is_too_large(), "{problem}");
        let text = problem.to_string();
        assert!(text.contains("weigh") && text.contains(&(MIB + 1).to_string()), "{text}");
        assert!(bench.client.inspector().queues().await.unwrap().is_empty());
    }

    async fn the_limit_can_be_set_lower_and_higher(bench: Bench) {
        let strict = bench.client_builder().payload_limit(100).connect().await.unwrap();
        assert!(strict.submit(Weigh::of(101)).await.unwrap_err().is_too_large());
        let small = strict.submit(Weigh::of(100)).await.unwrap();
        let lavish = bench.client_builder().payload_limit(8 * MIB).connect().await.unwrap();
        let large = lavish.submit(Weigh::of(6 * MIB)).await.unwrap();
        let worker = bench.start(bench.worker().task_type::<Weigh>());
        assert_eq!(small.result_within(SOON).await.unwrap(), 100 - PACKAGING);
        assert_eq!(large.result_within(SOON).await.unwrap(), 6 * MIB - PACKAGING);
        worker.stop().await;
    }

    async fn arguments_from_before_a_deploy_are_kept_until_the_code_fits_again(bench: Bench) {
        let worker = bench.start(bench.worker().task_type::<After>());
        let handle = bench.client.submit(Before { user: 7 }.call()).await.unwrap();
        died_of(&handle, Reason::Undecodable).await;
        worker.stop().await;
        let worker = bench.start(bench.worker().task_type::<Before>());
        bench.client.requeue(handle.id()).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), "7");
        worker.stop().await;
    }

    async fn a_task_that_is_not_started_in_time_is_dead_and_never_run(bench: Bench) {
        let call = Double { number: 1 }.call().expires_in(Duration::from_millis(1));
        let handle = bench.client.submit(call).await.unwrap();
        tokio::time::sleep(Duration::from_millis(3)).await;
        let worker = bench.start(bench.worker().task_type::<Double>());
        died_of(&handle, Reason::Expired).await;
        let in_time = Double { number: 1 }.call().expires_in(SOON);
        let handle = bench.client.submit(in_time).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 2);
        worker.stop().await;
    }

    async fn a_task_that_was_started_in_time_is_retried_and_snoozed_beyond_it(bench: Bench) {
        let worker = bench.start(bench.worker().task_type::<Late>());
        let calls = [Ask::Retry, Ask::Snooze].map(|by| Late::new(by).expires_in(EXPIRY));
        for handle in bench.client.submit_all(calls).await.unwrap() {
            let waited = handle.result_within(SOON).await.unwrap();
            assert!(waited > EXPIRY, "the task ended {waited:?} after its submit");
        }
        worker.stop().await;
    }

    async fn an_expired_task_runs_once_it_is_requeued(bench: Bench) {
        let call = Double { number: 1 }.call().expires_in(EXPIRY);
        let handle = bench.client.submit(call).await.unwrap();
        tokio::time::sleep(EXPIRY + Duration::from_millis(10)).await;
        let worker = bench.start(bench.worker().task_type::<Double>());
        died_of(&handle, Reason::Expired).await;
        bench.client.requeue(handle.id()).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 2);
        worker.stop().await;
    }

    async fn the_result_ttl_of_a_call_counts_where_the_definition_keeps_none(bench: Bench) {
        let worker = bench.start(bench.worker().task_type::<Unkept>());
        let kept = bench.client.submit(Unkept {}.call().result_ttl(SOON)).await.unwrap();
        assert_eq!(kept.result_within(SOON).await.unwrap(), 7);
        worker.stop().await;
    }

    async fn a_task_of_an_unknown_name_is_dead_once_the_grace_is_over(bench: Bench) {
        let builder = bench.worker().misfit_grace(Duration::ZERO);
        let worker = bench.start(builder.task_type::<Double>());
        let handle = bench.client.submit(Weigh::of(20)).await.unwrap();
        died_of(&handle, Reason::Unknown).await;
        let message = view(&bench, handle.id()).await.errors[0].message.clone();
        assert!(message.contains("weigh"), "{message}");
        worker.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_payload_leaves_nothing_behind_after_success() {
    let bench = Bench::on_redis().await;
    let worker = bench.start(bench.worker().task_type::<Weigh>());
    let call = Weigh::of(MIB).result_ttl(Duration::ZERO).biz_id("once");
    let handle = bench.client.submit(call).await.unwrap();
    assert_eq!(handle.ended().await.unwrap(), TaskState::Success);
    worker.stop().await;
    let mut raw = bench.raw().await;
    let left = raw.run(&format!("KEYS {}", bench.key("default", "*"))).await;
    let mut left: Vec<String> = left.into_iter().map(|k| String::from_utf8(k).unwrap()).collect();
    left.retain(|key| !key.contains(":ledger:") && !key.contains(":completions:"));
    left.sort();
    assert_eq!(
        left,
        ["ledgers", "meta", "success", "tally"].map(|name| bench.key("default", name))
    );
}
