//! The global propagator of a program is respected: with it, baggage travels, too. It is the only
//! test of its process.

mod common;

use common::{Bench, Count};
use opentelemetry::{
    Context, KeyValue, baggage::BaggageExt as _, context::FutureExt as _, global,
    propagation::TextMapCompositePropagator,
};
use opentelemetry_sdk::propagation::{BaggagePropagator, TraceContextPropagator};
use optimus_core::Task as _;

#[tokio::test]
async fn baggage_travels_if_the_global_propagator_carries_it() {
    global::set_text_map_propagator(TextMapCompositePropagator::new(vec![
        Box::new(TraceContextPropagator::new()),
        Box::new(BaggagePropagator::new()),
    ]));
    let bench = Bench::new();
    let client = bench.client().await;
    let cx = Context::current_with_baggage([KeyValue::new("tenant", "acme")]);
    let handle = client.submit(Count {}.call()).with_context(cx).await.unwrap();
    let stored = bench.work(&handle).await;
    assert!(stored.contains("baggage=tenant=acme;"), "{stored}");
    assert!(stored.contains("traceparent=00-"), "{stored}");
    assert!(stored.ends_with("handler of acme"), "{stored}");
}
