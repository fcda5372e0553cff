//! `optimus exporter`: its numbers are those of the inspector, and it lives through outages.

use std::{
    net::{SocketAddr, TcpListener},
    time::Duration,
};

use optimus::{Client, Due, Schedule, TaskState};
use optimus_testkit::{
    HttpAnswer, Proc, ProcBuilder, RedisServer, eventually,
    exposition::{Samples, check_with_promtool, read},
    http_get,
};
use serde_json::json;
use tokio::task::spawn_blocking;

use crate::{
    kit::{optimus, run, set_text},
    stage::{Stage, send},
};

const SOON: Duration = Duration::from_secs(20);

pub(crate) struct Exporter {
    program: Proc,
    pub(crate) address: SocketAddr,
}

impl Exporter {
    pub(crate) async fn start(url: &str, namespace: &str, line: &[&str]) -> Self {
        let program = Proc::program(env!("CARGO_BIN_EXE_optimus"));
        let program = program.env("OPTIMUS_URL", url).env("OPTIMUS_NAMESPACE", namespace);
        let program = ["exporter", "--json", "--listen", "127.0.0.1:0"]
            .iter()
            .chain(line)
            .fold(program, ProcBuilder::arg);
        let program = program.start();
        let line = program.wait_for_line("http://", SOON).await;
        let started: serde_json::Value = serde_json::from_str(&line).unwrap();
        let url = started["url"].as_str().unwrap();
        let address = url.trim_start_matches("http://").trim_end_matches("/metrics");
        Self { program, address: address.parse().unwrap() }
    }

    async fn get(&self, path: &str) -> HttpAnswer {
        let (address, request) = (self.address, format!("GET {path}"));
        spawn_blocking(move || http_get(address, &request)).await.unwrap().unwrap()
    }

    async fn metrics(&self) -> Samples {
        read(&self.get("/metrics").await.body)
    }

    async fn scale(&self, queue: &str) -> serde_json::Value {
        let answer = self.get(&format!("/scale?queue={queue}")).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, "application/json"));
        serde_json::from_str(&answer.body).unwrap()
    }

    async fn want_slots(&self, queue: &str) -> u64 {
        self.scale(queue).await["want_slots"].as_u64().unwrap()
    }
}

fn of(seen: &Samples, name: &str, queue: &str) -> Option<f64> {
    seen.value(name, &[("queue", queue)])
}

fn whole(number: u64) -> f64 {
    f64::from(u32::try_from(number).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_is_named_twice_is_counted_once() {
    let stage = Stage::new().await;
    stage.waiting("x").await;
    let line = ["--every", "1h", "--queue", "mail", "--queue", "other", "--queue", "mail"];
    let exporter = Exporter::start(stage.url(), &stage.namespace, &line).await;
    let text = exporter.get("/metrics").await.body;
    check_with_promtool(&text);
    assert_eq!(text.matches("optimus_queue_paused{queue=\"mail\"}").count(), 1, "{text}");
    assert_eq!(read(&text).value("optimus_queues", &[]), Some(2.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metrics_of_queues_equal_what_the_inspector_says_and_scrapes_read_nothing() {
    let stage = Stage::new().await;
    stage.ended(["fatal", "sent to ann", "cancel"]).await;
    stage.waiting("x").await;
    stage.waiting("y").await;
    stage.client.submit(send("z".into()).due(Due::In(Duration::from_secs(3_600)))).await.unwrap();
    stage.client.pause("empty").await.unwrap();
    let (url, namespace) = (stage.url().to_owned(), stage.namespace.clone());
    let exporter = Exporter::start(&url, &namespace, &["--every", "1h"]).await;
    let text = exporter.get("/metrics").await.body;
    check_with_promtool(&text);
    let seen = read(&text);
    let counts = stage.inspector().counts("mail").await.unwrap();
    for (state, count) in [
        (TaskState::Ready, counts.ready),
        (TaskState::Delayed, counts.delayed),
        (TaskState::Blocked, counts.blocked),
        (TaskState::Retry, counts.retry),
        (TaskState::Working, counts.working),
        (TaskState::Dead, counts.dead),
        (TaskState::Cancelled, counts.cancelled),
    ] {
        let labels = [("queue", "mail"), ("state", state.as_str())];
        assert_eq!(seen.value("optimus_queue_tasks", &labels), Some(whole(count)), "{state}");
    }
    assert_eq!((counts.ready, counts.delayed, counts.dead), (2, 1, 1));
    let totals = stage.inspector().totals("mail").await.unwrap();
    for (outcome, count) in [
        ("success", totals.successes),
        ("retry", totals.retries),
        ("dead", totals.deaths),
        ("cancelled", totals.cancels),
    ] {
        let labels = [("queue", "mail"), ("outcome", outcome)];
        let found = seen.value("optimus_queue_attempts_total", &labels);
        assert_eq!(found, Some(whole(count)), "{outcome}");
    }
    assert!(of(&seen, "optimus_queue_oldest_seconds", "mail").is_some_and(|age| age > 0.0));
    assert_eq!(of(&seen, "optimus_queue_paused", "mail"), Some(0.0));
    assert_eq!(of(&seen, "optimus_queue_paused", "empty"), Some(1.0));
    assert_eq!(of(&seen, "optimus_queue_oldest_seconds", "empty"), Some(0.0));
    assert_eq!(of(&seen, "optimus_queue_schedule_lag_seconds", "mail"), Some(0.0));
    assert_eq!(of(&seen, "optimus_queue_want_slots", "mail"), Some(1.0));
    let numbers = ["optimus_queues", "optimus_redis_up"].map(|name| seen.value(name, &[]));
    assert_eq!(numbers, [Some(2.0), Some(1.0)]);
    assert_eq!(exporter.want_slots("mail").await, 1);
    assert_eq!(exporter.scale("mail").await["known"], true);
    let unused = json!({ "queue": "not-used-yet", "known": false, "want_slots": 0 });
    assert_eq!(exporter.scale("not-used-yet").await, unused, "a new deployment begins at zero");
    for wrong in ["/scale", "/scale?queue=", "/scale?queue=a%20b", "/scale?name=mail"] {
        assert_eq!(exporter.get(wrong).await.status, 400, "{wrong}");
    }
    // What came since the last read is not seen, however often somebody asks.
    stage.waiting("later").await;
    for _ in 0..20 {
        let labels = [("queue", "mail"), ("state", "ready")];
        let ready = exporter.metrics().await.value("optimus_queue_tasks", &labels);
        assert_eq!(ready, Some(2.0));
    }
    for path in ["/livez", "/readyz"] {
        assert_eq!(exporter.get(path).await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scaler_that_has_ended_all_workers_starts_one_for_a_task_that_is_due() {
    let stage = Stage::new().await;
    let due = Due::In(Duration::from_millis(100));
    stage.client.submit(send("x".into()).due(due)).await.unwrap();
    let (url, namespace) = (stage.url().to_owned(), stage.namespace.clone());
    let exporter = Exporter::start(&url, &namespace, &["--every", "1s"]).await;
    let wants = async || exporter.want_slots("mail").await == 1;
    eventually("a slot is wanted", SOON, wants).await;
    let seen = exporter.metrics().await;
    assert_eq!(of(&seen, "optimus_queue_due", "mail"), Some(1.0));
    assert!(of(&seen, "optimus_queue_oldest_seconds", "mail").is_some_and(|age| age > 0.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn named_queues_and_a_limit_bound_what_is_read() {
    let stage = Stage::new().await;
    for queue in ["a", "b", "c"] {
        stage.client.pause(queue).await.unwrap();
    }
    let (url, namespace) = (stage.url().to_owned(), stage.namespace.clone());
    let few = Exporter::start(&url, &namespace, &["--queues-max", "2"]).await;
    let seen = few.metrics().await;
    let numbers = ["optimus_queues", "optimus_queues_left_out"].map(|name| seen.value(name, &[]));
    assert_eq!(numbers, [Some(3.0), Some(1.0)]);
    assert_eq!(of(&seen, "optimus_queue_paused", "b"), Some(1.0));
    assert_eq!(of(&seen, "optimus_queue_paused", "c"), None);
    assert_eq!(few.get("/scale?queue=c").await.status, 404);
    let named = Exporter::start(&url, &namespace, &["--queue", "c"]).await;
    let seen = named.metrics().await;
    assert_eq!(of(&seen, "optimus_queue_paused", "c"), Some(1.0));
    assert_eq!(of(&seen, "optimus_queue_paused", "a"), None);
    assert_eq!(named.get("/scale?queue=a").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_can_not_be_read_is_marked_and_the_others_are_shown() {
    let redis = RedisServer::start();
    let client = Client::connect(&redis.url()).await.unwrap();
    for queue in ["a", "b", "c"] {
        client.pause(queue).await.unwrap();
    }
    set_text(&redis.url(), "{optimus:b:0}:ready");
    let exporter = Exporter::start(&redis.url(), "optimus", &[]).await;
    let seen = exporter.metrics().await;
    let of_all = |name: &str| ["a", "b", "c"].map(|queue| of(&seen, name, queue));
    assert_eq!(of_all("optimus_queue_unreadable"), [Some(0.0), Some(1.0), Some(0.0)]);
    assert_eq!(of_all("optimus_queue_paused"), [Some(1.0), None, Some(1.0)]);
    assert_eq!(seen.value("optimus_queues", &[]), Some(3.0));
    assert_eq!(seen.value("optimus_redis_up", &[]), Some(1.0));
    assert_eq!(exporter.get("/readyz").await.status, 200);
    let answer = exporter.get("/scale?queue=b").await;
    assert_eq!(answer.status, 503, "a scaler keeps what it has");
    assert!(answer.body.contains("WRONGTYPE"), "{}", answer.body);
    assert_eq!(exporter.want_slots("a").await, 0);
    exporter.program.wait_for_line("queue b can't be read", SOON).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_hides_the_queues_and_ends_with_redis_back() {
    let mut redis = RedisServer::builder().appendonly_always().start();
    let client = Client::connect(&redis.url()).await.unwrap();
    client.pause("mail").await.unwrap();
    let often = Schedule::every("often", Duration::from_secs(1)).call(send("x".into()));
    client.schedules().put(often).await.unwrap();
    let exporter = Exporter::start(&redis.url(), "optimus", &["--every", "1s"]).await;
    let lag = async || {
        let seen = exporter.metrics().await;
        of(&seen, "optimus_queue_schedule_lag_seconds", "mail").is_some_and(|lag| lag > 1.0)
    };
    eventually("no worker ticks the schedule", SOON, lag).await;
    redis.kill();
    let is_up = async |up: f64| exporter.metrics().await.value("optimus_redis_up", &[]) == Some(up);
    eventually("the outage is seen", SOON, async || is_up(0.0).await).await;
    let seen = exporter.metrics().await;
    assert_eq!(of(&seen, "optimus_queue_paused", "mail"), None, "an old number would be wrong");
    assert!(seen.value("optimus_samples_failed_total", &[]).unwrap() >= 1.0);
    let statuses = [exporter.get("/livez").await, exporter.get("/readyz").await];
    assert_eq!(statuses.map(|answer| answer.status), [200, 503]);
    assert_eq!(exporter.get("/scale?queue=mail").await.status, 503);
    redis.restart();
    eventually("the end of the outage is seen", SOON, async || is_up(1.0).await).await;
    let seen = exporter.metrics().await;
    assert_eq!(of(&seen, "optimus_queue_paused", "mail"), Some(1.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exporter_ends_with_a_signal_and_says_why_it_can_not_start() {
    let stage = Stage::new().await;
    for signal in ["INT", "TERM"] {
        let mut exporter = Exporter::start(stage.url(), &stage.namespace, &[]).await;
        exporter.program.signal(signal);
        assert!(exporter.program.wait(SOON).await.success(), "{signal}");
    }
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ran = stage.optimus(&["exporter", "--listen", &address]).ended(1);
    assert!(ran.err.contains(&address) && ran.err.contains("--listen"), "{ran:?}");
    for wrong in [&["--listen", "9187"][..], &["--every", "10ms"], &["--target", "0s"]] {
        stage.optimus(&[&["exporter"], wrong].concat()).ended(2);
    }
    let away = ["exporter", "--listen", "127.0.0.1:0", "--url", "redis://127.0.0.1:1/"];
    run(optimus().args(away), "").ended(6);
}
