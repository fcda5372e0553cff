//! OpenTelemetry traces through the Optimus task queue: [`Traces`] is a
//! [`Layer`](optimus_core::Layer) of clients and workers.
//!
//! A submit is a span, and so is each attempt. The context of the submit travels with the task, in
//! the headers of the record, so the trace of a request goes on in the worker. The crate works with
//! the spans of [`tracing`] that a program has, through `tracing-opentelemetry`.
//!
//! Programs use this crate as the feature `otel` of `optimus-tasks`.

mod carrier;
mod names;
mod propagation;
mod run_span;
mod submit_span;
mod traces;

pub use traces::Traces;
