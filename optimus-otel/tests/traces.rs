//! Traces go from the code that submits, through the store, to handlers and their retries.

mod common;

use std::time::Duration;

use common::{Bench, Charge, Count, Mail, Pack, attribute, is_child, is_linked_root, worker};
use opentelemetry::{
    Context as OtelContext,
    propagation::{Extractor, Injector, TextMapPropagator, text_map_propagator::FieldIter},
    trace::{SpanId, SpanKind, Status, TraceContextExt as _},
};
use opentelemetry_sdk::trace::Sampler;
use optimus_core::{BoxError, Call, Client, Context, Task};
use optimus_otel::Traces;
use optimus_testkit::eventually;
use serde::{Deserialize, Serialize};
use tracing::Instrument as _;
use tracing_subscriber::layer::{Layer as SubscriberLayer, SubscriberExt as _};

const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_trace_goes_from_the_caller_through_the_submit_to_the_handler() {
    let bench = Bench::new();
    let client = bench.client().await;
    let request = tracing::info_span!("request");
    let call = Charge::default().call();
    let handle = client.submit(call).instrument(request).await.unwrap();
    let stored = bench.work(&handle).await;

    let [request, submit] = ["request", "submit charge"].map(|name| bench.one(name));
    let [run, bank] = ["run charge", "bank"].map(|name| bench.one(name));
    assert!(is_child(&submit, &request) && is_child(&run, &submit) && is_child(&bank, &run));
    let (trace, span) = (submit.span_context.trace_id(), submit.span_context.span_id());
    assert_eq!(stored, format!("00-{trace}-{span}-01"));
    assert_eq!(bench.finished().len(), 4, "the worker's own span is not beside that of the run");
}

#[tokio::test]
async fn spans_have_the_kinds_and_attributes_of_messaging() {
    let bench = Bench::new();
    let handle = bench.client().await.submit(Charge::default().call()).await.unwrap();
    bench.work(&handle).await;
    let id = handle.id().to_string();
    for (name, kind, operation) in [
        ("submit charge", SpanKind::Producer, ["create", "submit"]),
        ("run charge", SpanKind::Consumer, ["process", "run"]),
    ] {
        let span = bench.one(name);
        assert_eq!(span.span_kind, kind);
        for (key, value) in [
            ("messaging.system", "optimus"),
            ("messaging.operation.type", operation[0]),
            ("messaging.operation.name", operation[1]),
            ("messaging.destination.name", "money"),
            ("messaging.message.id", &id),
            ("optimus.task", "charge"),
        ] {
            assert_eq!(attribute(&span, key), value, "{key} of {name}");
        }
    }
    let run = bench.one("run charge");
    assert_eq!((&*attribute(&run, "optimus.attempt"), run.status), ("1", Status::Unset));
    assert_eq!(attribute(&bench.one("run charge"), "optimus.outcome"), "success");
}

#[tokio::test]
async fn a_retry_begins_a_trace_that_links_to_the_submit() {
    let bench = Bench::new();
    let call = Charge { failures: 2, mails: false }.call();
    let handle = bench.client().await.submit(call).await.unwrap();
    bench.work(&handle).await;

    let (submit, runs) = (bench.one("submit charge"), bench.all("run charge"));
    let [first, second, third] = &runs[..] else { panic!("{} attempts", runs.len()) };
    assert!(is_child(first, &submit));
    assert!(is_linked_root(second, &submit) && is_linked_root(third, &submit));
    assert_ne!(second.span_context.trace_id(), third.span_context.trace_id());
    for (run, number) in [(first, "1"), (second, "2")] {
        assert_eq!(attribute(run, "optimus.attempt"), number);
        assert_eq!(attribute(run, "optimus.outcome"), "retry");
        assert_eq!(attribute(run, "error.type"), "failed");
        assert_eq!(run.status, Status::error("the bank is away"));
    }
    assert_eq!((&*attribute(third, "error.type"), &third.status), ("", &Status::Unset));
}

#[tokio::test]
async fn a_task_that_waited_for_too_long_begins_a_trace_with_a_link() {
    let bench = Bench::new();
    let handle = bench.client().await.submit(Charge::default().call()).await.unwrap();
    bench.work_with(Traces::new().child_within(Duration::ZERO), &handle).await;
    assert!(is_linked_root(&bench.one("run charge"), &bench.one("submit charge")));
}

#[tokio::test]
async fn a_handler_submits_in_its_trace() {
    let bench = Bench::new();
    let client = bench.client().await;
    client.submit(Charge { failures: 0, mails: true }.call()).await.unwrap();
    let worker = worker(&bench.url).layer(Traces::new()).build().unwrap();
    let mailed = eventually("the mail is sent", SOON, async || bench.all("run mail").len() == 1);
    worker.run_until(mailed).await.unwrap();
    let [charge, submit] = ["run charge", "submit mail"].map(|name| bench.one(name));
    assert!(is_child(&submit, &charge) && is_child(&bench.one("run mail"), &submit));
}

#[tokio::test]
async fn a_handler_that_blocks_is_in_the_span_of_its_run() {
    let bench = Bench::new();
    let handle = bench.client().await.submit(Mail {}.call()).await.unwrap();
    let span = bench.work(&handle).await;
    assert_eq!(span, bench.one("run mail").span_context.span_id().to_string());
}

#[tokio::test]
async fn only_sampled_contexts_are_stored_unless_all_are_wanted() {
    let bench = Bench::sampling(Sampler::AlwaysOff);
    let handle = bench.client().await.submit(Count {}.call()).await.unwrap();
    assert_eq!(bench.work(&handle).await, "");
    let traces = Traces::new().store_unsampled();
    let handle = bench.client_with(traces).await.submit(Count {}.call()).await.unwrap();
    let stored = bench.work(&handle).await;
    assert!(stored.starts_with("traceparent=00-") && stored.ends_with("-00;"), "{stored}");
    assert_eq!(bench.finished().len(), 0);
}

#[tokio::test]
async fn a_header_that_is_no_context_is_ignored() {
    let long = "0".repeat(4000);
    let id = "4bf92f3577b34da6a3ce929d0e0e4736";
    let strange = [
        "",
        "-",
        "---",
        "00",
        "what",
        "\u{202e}00-\0-\n-01",
        &long,
        &format!("ff-{id}-00f067aa0ba902b7-01"),
        &format!("00-{id}-0000000000000000-01"),
        &format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
        &format!("00-{}-00f067aa0ba902b7-01", id.to_uppercase()),
        &format!("00-{id}-00f067aa0ba902b7"),
        &format!("00-{id}-00f067aa0ba902b7-01-what"),
        &format!("00-{id}ü-00f067aa0ba902b7-01"),
    ];
    let bench = Bench::new();
    let client = bench.plain_client().await;
    for (count, header) in strange.into_iter().enumerate() {
        let call = Charge::default().call().header("traceparent", header);
        let handle = client.submit(call.header("tracestate", "\u{1f980}=,==")).await.unwrap();
        assert_eq!(bench.work(&handle).await, header);
        let runs = bench.all("run charge");
        assert_eq!(runs.len(), count + 1);
        let run = &runs[count];
        assert_eq!((run.parent_span_id, run.links.links.len()), (SpanId::INVALID, 0), "{header}");
        assert!(run.span_context.is_valid());
    }
}

#[tokio::test]
async fn a_context_that_does_not_fit_into_the_headers_is_left_out() {
    let bench = Bench::new();
    let client = bench.client().await;
    let many = (0..32).fold(Count {}.call(), |call, n| call.header(format!("h{n}"), ""));
    let large = Count {}.call().header("large", "x".repeat(4_080));
    for call in [many, large] {
        let handle = client.submit(call).await.unwrap();
        assert!(!bench.work(&handle).await.contains("traceparent"));
    }
}

/// Passes the span on as one word of its own.
#[derive(Debug)]
struct OneWord;

impl TextMapPropagator for OneWord {
    fn inject_context(&self, cx: &OtelContext, injector: &mut dyn Injector) {
        injector.set("x-span", cx.span().span_context().span_id().to_string());
        injector.set("not a header\n", "value".to_owned());
    }

    fn extract_with_context(&self, cx: &OtelContext, extractor: &dyn Extractor) -> OtelContext {
        assert!(extractor.get("x-span").is_some_and(|span| span.len() == 16));
        panic!("a propagator of {:?} panics", cx.span().span_context());
    }

    fn fields(&self) -> FieldIter<'_> {
        FieldIter::new(&[])
    }
}

#[tokio::test]
async fn the_propagator_of_the_program_writes_the_headers_and_its_panic_costs_only_the_trace() {
    let bench = Bench::new();
    let traces = || Traces::new().propagator(OneWord);
    let handle = bench.client_with(traces()).await.submit(Count {}.call()).await.unwrap();
    let stored = bench.work_with(traces(), &handle).await;
    let span = bench.one("submit count").span_context.span_id();
    assert_eq!(stored, format!("x-span={span};"));
    assert_eq!(bench.all("run count").len(), 0);
    assert_eq!(bench.all("task").len(), 1, "the worker has a span of its own then");
}

/// A subscriber that can't stand spans.
struct Panicking;

impl<S: tracing::Subscriber> SubscriberLayer<S> for Panicking {
    fn on_new_span(
        &self,
        attributes: &tracing::span::Attributes<'_>,
        _: &tracing::Id,
        _: tracing_subscriber::layer::Context<'_, S>,
    ) {
        panic!("no span, and none of {}", attributes.metadata().name());
    }
}

#[tokio::test]
async fn a_subscriber_that_panics_or_has_no_opentelemetry_costs_only_the_trace() {
    let url = format!("memory://{}", optimus_testkit::namespace());
    let plain = tracing::subscriber::set_default(tracing_subscriber::registry());
    runs(&url).await;
    drop(plain);
    let panicking = tracing_subscriber::registry().with(Panicking);
    let _panicking = tracing::subscriber::set_default(panicking);
    runs(&url).await;
}

async fn runs(url: &str) {
    let client = Client::builder(url).layer(Traces::new()).connect().await.unwrap();
    let handle = client.submit(Count {}.call()).await.unwrap();
    let worker = worker(url).layer(Traces::new()).build().unwrap();
    assert_eq!(worker.run_until(handle.result()).await.unwrap().unwrap(), "");
}

#[tokio::test]
async fn the_span_of_a_dead_task_says_why() {
    let bench = Bench::new();
    let client = bench.client().await;
    let dead = client.submit(Charge { failures: 9, mails: false }.call().max_retry(0));
    let dead = dead.await.unwrap();
    let worker = worker(&bench.url).layer(Traces::new()).build().unwrap();
    worker.run_until(dead.result()).await.unwrap().unwrap_err();
    let run = bench.one("run charge");
    assert_eq!(attribute(&run, "optimus.outcome"), "dead");
    assert_eq!(run.status, Status::error("the bank is away"));
}

#[tokio::test]
async fn a_gathered_run_is_one_span_that_says_how_many_calls_it_has() {
    let bench = Bench::new();
    let client = bench.client().await;
    let mut last = None;
    for _ in 0..3 {
        last = Some(client.submit(Pack {}.call()).await.unwrap());
    }
    bench.work(&last.unwrap()).await;
    assert_eq!(bench.all("submit pack").len(), 3);
    assert_eq!(attribute(&bench.one("run pack"), "messaging.batch.message_count"), "3");
}

/// Blocks its thread for longer than the other task may take.
#[derive(Debug, Serialize, Deserialize)]
struct Blocks {}

impl Task for Blocks {
    const NAME: &'static str = "blocks";
    type Output = String;

    async fn run(self, _: Context) -> Result<String, BoxError> {
        std::thread::sleep(Duration::from_millis(1_500));
        Ok(String::new())
    }
}

/// Runs a task that blocks the only thread, and a short one that is claimed together with it.
async fn beside_one_that_blocks(bench: &Bench, call: Call<Count>) {
    let client = bench.client().await;
    client.submit(Blocks {}.call().queue("money")).await.unwrap();
    let waits = client.submit(call.queue("money")).await.unwrap();
    let worker = worker(&bench.url).task_type::<Blocks>().layer(Traces::new());
    let worker = worker.concurrency(4).build().unwrap();
    let _ = worker.run_until(waits.result()).await.unwrap();
}

#[tokio::test]
async fn the_span_of_a_run_that_waited_for_a_thread_ends_with_its_handler() {
    let bench = Bench::new();
    beside_one_that_blocks(&bench, Count {}.call()).await;
    let over = std::time::SystemTime::now();
    for name in ["run blocks", "run count"] {
        let span = bench.one(name);
        assert!(span.end_time <= over, "{name}: {span:?}");
    }
}

#[tokio::test]
async fn an_attempt_that_is_given_back_before_it_begins_has_no_span() {
    let bench = Bench::new();
    let call = Count {}.call().timeout(Duration::from_millis(500));
    beside_one_that_blocks(&bench, call).await;
    let spans = bench.all("run count");
    assert!(spans.len() == 1 && attribute(&spans[0], "optimus.outcome") == "success", "{spans:?}");
}
