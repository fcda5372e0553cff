//! Spans of a submit and its attempts arrive at a collector over OTLP, as the protocol's own types
//! decode them.

mod common;

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::Duration,
};

use common::{Charge, worker};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::any_value::Value,
    trace::v1::{Span, span::SpanKind, status::StatusCode},
};
use opentelemetry_sdk::trace::SdkTracerProvider;
use optimus_core::{Client, Task as _};
use optimus_otel::Traces;
use optimus_testkit::{namespace, shared_redis};
use prost::Message as _;
use tracing_subscriber::layer::SubscriberExt as _;

/// A collector on loopback that passes on what it receives.
fn collector() -> (String, Receiver<ExportTraceServiceRequest>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
    let (received, requests) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let received = received.clone();
            thread::spawn(move || serve(stream, &received));
        }
    });
    (url, requests)
}

/// Answers the requests of a connection until it is closed.
fn serve(mut stream: TcpStream, received: &Sender<ExportTraceServiceRequest>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let (mut length, mut line) = (0, String::new());
        while reader.read_line(&mut line).ok()? > 2 {
            let (name, value) = line.split_once(':').unwrap_or_default();
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().ok()?;
            }
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok().filter(|()| length > 0)?;
        received.send(ExportTraceServiceRequest::decode(&*body).unwrap()).ok()?;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").ok()?;
    }
}

fn attribute<'a>(span: &'a Span, name: &str) -> Option<&'a str> {
    let pair = span.attributes.iter().find(|pair| pair.key == name)?;
    match pair.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text),
        _ => None,
    }
}

#[tokio::test]
async fn a_collector_receives_the_submit_its_attempt_and_the_retry() {
    let (collector, requests) = collector();
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(collector)
        .with_timeout(Duration::from_secs(20))
        .build()
        .unwrap();
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).build();
    let otel = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(otel));

    let (redis, namespace) = (shared_redis(), namespace());
    let client = Client::builder(redis.url()).namespace(&namespace).layer(Traces::new());
    let client = client.connect().await.unwrap();
    let handle = client.submit(Charge { failures: 1, mails: false }.call()).await.unwrap();
    let worker = worker(redis.url()).namespace(&namespace).layer(Traces::new()).build().unwrap();
    worker.run_until(handle.result()).await.unwrap().unwrap();
    let flushed = tokio::task::spawn_blocking(move || provider.shutdown()).await.unwrap();
    flushed.unwrap();

    let spans: Vec<Span> = requests
        .try_iter()
        .flat_map(|request| request.resource_spans)
        .flat_map(|resource| resource.scope_spans)
        .flat_map(|scope| scope.spans)
        .collect();
    let all = |name: &str| spans.iter().filter(|span| span.name == name).collect::<Vec<_>>();
    let [submits, runs] = ["submit charge", "run charge"].map(all);
    let ([submit], [first, retry]) = (&submits[..], &runs[..]) else { panic!("{spans:#?}") };
    assert_eq!((submit.kind(), first.kind()), (SpanKind::Producer, SpanKind::Consumer));
    assert_eq!((&first.parent_span_id, &first.trace_id), (&submit.span_id, &submit.trace_id));
    assert_eq!(attribute(first, "messaging.message.id"), Some(&*handle.id().to_string()));
    assert_eq!(attribute(first, "error.type"), Some("failed"));
    assert_eq!(first.status.as_ref().unwrap().code(), StatusCode::Error);
    assert!(retry.parent_span_id.is_empty() && retry.trace_id != submit.trace_id);
    assert_eq!(retry.links[0].span_id, submit.span_id);
    assert!(first.end_time_unix_nano >= first.start_time_unix_nano);
    assert!(submit.end_time_unix_nano <= first.end_time_unix_nano);
}
