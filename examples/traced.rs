//! A request of an axum server submits a task, which fails once. Prints the trace as a tree: the
//! request, the submit, each attempt, and the spans of the handlers.
//!
//! `cargo run --example traced` needs no server. A real program has another exporter, such as that
//! of `opentelemetry-otlp`; nothing else changes.

use std::{fmt::Write as _, net::SocketAddr, time::Duration};

use anyhow::{Context as _, ensure};
use axum::{Router, extract::Path, http::StatusCode, routing::post};
use opentelemetry::trace::{SpanId, Status, TracerProvider as _};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use optimus::{Client, Context, Worker, otel::Traces};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::sleep,
};
use tracing::instrument;
use tracing_subscriber::layer::SubscriberExt as _;

#[optimus::task(backoff = "fixed(wait = 100ms, jitter = 0)")]
async fn charge(order: u64, ctx: Context) -> anyhow::Result<()> {
    ask_bank(order, ctx.attempt()).await?;
    receipt(order).perform_async().await?;
    Ok(())
}

#[instrument(name = "ask the bank")]
async fn ask_bank(order: u64, attempt: u32) -> anyhow::Result<()> {
    ensure!(attempt > 1, "the bank does not answer");
    Ok(())
}

#[optimus::task]
fn receipt(order: u64) {
    tracing::info_span!("print").in_scope(|| tracing::info!(order, "printed"));
}

/// The route. Its span is the parent of the submit.
#[instrument(name = "POST /orders", fields(otel.kind = "server"))]
async fn order(Path(order): Path<u64>) -> Result<&'static str, StatusCode> {
    let submitted = charge(order).perform_async().await;
    submitted.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    Ok("ordered\n")
}

async fn request(server: SocketAddr) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect(server).await?;
    let text = "POST /orders/7 HTTP/1.1\r\nHost: shop\r\nContent-Length: 0\r\n\
                Connection: close\r\n\r\n";
    stream.write_all(text.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    Ok(())
}

fn attribute(span: &SpanData, name: &str) -> Option<String> {
    let pair = span.attributes.iter().find(|pair| pair.key.as_str() == name)?;
    Some(pair.value.to_string())
}

/// Returns a line about the span.
fn line(span: &SpanData, all: &[SpanData]) -> String {
    let mut line = format!("{} ({:?})", span.name, span.span_kind).to_lowercase();
    if let Some(attempt) = attribute(span, "optimus.attempt") {
        let _ = write!(line, ", attempt {attempt}");
    }
    if let Status::Error { description } = &span.status {
        let _ = write!(line, ": error: {description}");
    }
    for link in &span.links.links {
        let to = |other: &&SpanData| other.span_context.span_id() == link.span_context.span_id();
        line += all.iter().find(to).map_or(", linked", |_| ", linked to the submit");
    }
    line
}

fn print_children(of: SpanId, indent: usize, all: &[SpanData]) {
    let mut children: Vec<_> = all.iter().filter(|span| span.parent_span_id == of).collect();
    children.sort_by_key(|span| span.start_time);
    for span in children {
        println!("{:indent$}{}", "", line(span, all));
        print_children(span.span_context.span_id(), indent + 2, all);
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let spans = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(spans.clone()).build();
    let otel = tracing_opentelemetry::layer().with_tracer(provider.tracer("shop"));
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(otel))?;

    let client = Client::builder("memory://traced").layer(Traces::new()).connect().await?;
    client.install();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let server = listener.local_addr()?;
    let router = Router::new().route("/orders/{order}", post(order));
    tokio::spawn(async move { axum::serve(listener, router).await });

    let worker = Worker::builder("memory://traced").layer(Traces::new()).quiet().build()?;
    let ordered = async {
        request(server).await?;
        while !spans.get_finished_spans()?.iter().any(|span| span.name == "run receipt") {
            sleep(Duration::from_millis(20)).await;
        }
        anyhow::Ok(())
    };
    worker.run_until(ordered).await??;
    // The worker has ended, and with it the spans of all attempts.
    let all = spans.get_finished_spans()?;
    ensure!(!all.is_empty(), "no span");
    print_children(SpanId::INVALID, 0, &all);
    provider.shutdown().context("the exporter")?;
    Ok(())
}
