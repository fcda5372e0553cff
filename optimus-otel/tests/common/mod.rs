//! A store in memory, a task that does what its arguments say, and the spans that were exported.
#![allow(dead_code, reason = "each test binary uses a part of this module")]

use std::{fmt::Write as _, time::Duration};

use opentelemetry::{
    Context as OtelContext, KeyValue,
    baggage::BaggageExt as _,
    trace::{SpanId, TraceContextExt as _, TracerProvider as _},
};
use opentelemetry_sdk::trace::{
    InMemorySpanExporter, Sampler, SdkTracerProvider, SpanData, SpanExporter,
};
use optimus_core::{Backoff, BoxError, Client, Context, Task, TaskHandle, TaskOptions};
use optimus_otel::Traces;
use optimus_testkit::namespace;
use optimus_worker::{Worker, WorkerBuilder};
use serde::{Deserialize, Serialize};
use tracing::{Instrument as _, subscriber::DefaultGuard};
use tracing_subscriber::layer::SubscriberExt as _;

/// A store, and a subscriber of this thread whose spans are exported.
pub struct Bench {
    pub url: String,
    pub spans: InMemorySpanExporter,
    provider: SdkTracerProvider,
    _subscriber: DefaultGuard,
}

impl Bench {
    pub fn sampling(sampler: Sampler) -> Self {
        let spans = InMemorySpanExporter::default();
        let provider = provider(spans.clone(), sampler);
        let otel = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
        let subscriber = tracing_subscriber::registry().with(otel);
        let guard = tracing::subscriber::set_default(subscriber);
        Self { url: format!("memory://{}", namespace()), spans, provider, _subscriber: guard }
    }

    pub fn new() -> Self {
        Self::sampling(Sampler::AlwaysOn)
    }

    pub async fn client(&self) -> Client {
        self.client_with(Traces::new()).await
    }

    pub async fn client_with(&self, traces: Traces) -> Client {
        Client::builder(&self.url).layer(traces).connect().await.unwrap()
    }

    pub async fn plain_client(&self) -> Client {
        Client::connect(&self.url).await.unwrap()
    }

    /// Runs tasks until the task has ended, and the worker, too.
    pub async fn work(&self, handle: &TaskHandle<String>) -> String {
        self.work_with(Traces::new(), handle).await
    }

    pub async fn work_with(&self, traces: Traces, handle: &TaskHandle<String>) -> String {
        let worker = worker(&self.url).layer(traces).build().unwrap();
        worker.run_until(handle.result()).await.unwrap().unwrap()
    }

    /// Returns the spans that have ended.
    pub fn finished(&self) -> Vec<SpanData> {
        self.provider.force_flush().unwrap();
        self.spans.get_finished_spans().unwrap()
    }

    /// Returns the spans of that name, in the order in which they ended.
    pub fn all(&self, name: &str) -> Vec<SpanData> {
        self.finished().into_iter().filter(|span| span.name == name).collect()
    }

    /// Returns the only span of that name.
    pub fn one(&self, name: &str) -> SpanData {
        let mut found = self.all(name);
        let known: Vec<_> = self.finished().into_iter().map(|span| span.name).collect();
        assert_eq!(found.len(), 1, "{name} among {known:?}");
        found.remove(0)
    }
}

pub fn provider(exporter: impl SpanExporter + 'static, sampler: Sampler) -> SdkTracerProvider {
    SdkTracerProvider::builder()
        .with_simple_exporter(exporter)
        .with_sampler(Sampler::ParentBased(Box::new(sampler)))
        .build()
}

pub fn worker(url: &str) -> WorkerBuilder {
    Worker::builder(url)
        .only_named_tasks()
        .task_type::<Charge>()
        .task_type::<Mail>()
        .task_type::<Count>()
        .task_type::<Pack>()
        .quiet()
}

pub fn is_child(child: &SpanData, parent: &SpanData) -> bool {
    child.parent_span_id == parent.span_context.span_id()
        && child.span_context.trace_id() == parent.span_context.trace_id()
}

/// Returns whether the span begins a trace and links to the other one.
pub fn is_linked_root(span: &SpanData, to: &SpanData) -> bool {
    let links = &span.links.links;
    span.parent_span_id == SpanId::INVALID
        && span.span_context.trace_id() != to.span_context.trace_id()
        && links.len() == 1
        && links[0].span_context.span_id() == to.span_context.span_id()
        && links[0].span_context.trace_id() == to.span_context.trace_id()
}

/// Returns the text of an attribute; empty if it is missing.
pub fn attribute(span: &SpanData, name: &str) -> String {
    let value = |pair: &KeyValue| pair.value.as_str().into_owned();
    span.attributes.iter().find(|pair| pair.key.as_str() == name).map(value).unwrap_or_default()
}

/// A task that fails this often, and may submit another.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Charge {
    pub failures: u32,
    pub mails: bool,
}

impl Task for Charge {
    const NAME: &'static str = "charge";
    type Output = String;

    fn options() -> TaskOptions {
        let soon = Backoff::Fixed { wait: Duration::from_millis(1), jitter: 0.0 };
        TaskOptions::new().queue("money").max_retry(2).backoff(soon)
    }

    async fn run(self, ctx: Context) -> Result<String, BoxError> {
        let bank = tracing::info_span!("bank");
        async { tracing::info!("asked") }.instrument(bank).await;
        if ctx.attempt() <= self.failures {
            return Err("the bank is away".into());
        }
        if self.mails {
            Mail {}.call().perform_async().await?;
        }
        Ok(ctx.header("traceparent").unwrap_or("none").to_owned())
    }
}

/// A task whose handler blocks, and returns the span in which it does.
#[derive(Debug, Serialize, Deserialize)]
pub struct Mail {}

impl Task for Mail {
    const NAME: &'static str = "mail";
    type Output = String;

    fn options() -> TaskOptions {
        TaskOptions::new().queue("money")
    }

    async fn run(self, ctx: Context) -> Result<String, BoxError> {
        let current = || OtelContext::current().span().span_context().span_id().to_string();
        Ok(ctx.run_blocking(current).await)
    }
}

/// A task that returns its headers, and the tenant in whose baggage it runs.
#[derive(Debug, Serialize, Deserialize)]
pub struct Count {}

impl Task for Count {
    const NAME: &'static str = "count";
    type Output = String;

    fn options() -> TaskOptions {
        TaskOptions::new().queue("money")
    }

    async fn run(self, ctx: Context) -> Result<String, BoxError> {
        let mut all = String::new();
        for (name, value) in ctx.headers() {
            let _ = write!(all, "{name}={value};");
        }
        if let Some(tenant) = OtelContext::current().baggage().get("tenant") {
            let _ = write!(all, "handler of {tenant}");
        }
        Ok(all)
    }
}

/// Three calls of it are one run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Pack {}

impl Task for Pack {
    const NAME: &'static str = "pack";
    type Output = String;

    fn options() -> TaskOptions {
        TaskOptions::new().queue("money").gather(Duration::from_secs(600), 3)
    }

    async fn run(self, _: Context) -> Result<String, BoxError> {
        Ok(String::new())
    }
}
