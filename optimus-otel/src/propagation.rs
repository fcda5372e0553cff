//! How contexts become headers: by the propagator of the program, or else as W3C Trace Context:
//! [`Propagation`].

use std::{fmt, sync::Arc};

use opentelemetry::{
    Context, global,
    propagation::{Extractor, Injector, TextMapPropagator},
};
use opentelemetry_sdk::propagation::TraceContextPropagator;

/// Writes and reads contexts.
#[derive(Clone, Default)]
pub(crate) struct Propagation(Option<Arc<dyn TextMapPropagator + Send + Sync>>);

impl Propagation {
    /// Uses this propagator, whatever the global one is.
    pub(crate) fn by(propagator: impl TextMapPropagator + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(propagator)))
    }

    pub(crate) fn inject(&self, cx: &Context, carrier: &mut dyn Injector) {
        self.with(|propagator| propagator.inject_context(cx, carrier));
    }

    /// Reads a context without the one that is current here.
    pub(crate) fn extract(&self, carrier: &dyn Extractor) -> Context {
        let mut cx = Context::new();
        self.with(|propagator| cx = propagator.extract_with_context(&Context::new(), carrier));
        cx
    }

    /// A program that has set no global propagator has one that writes nothing.
    fn with(&self, mut act: impl FnMut(&dyn TextMapPropagator)) {
        if let Some(own) = &self.0 {
            return act(&**own);
        }
        global::get_text_map_propagator(|set| {
            if set.fields().next().is_some() {
                act(set);
            } else {
                act(&TraceContextPropagator::new());
            }
        });
    }
}

impl fmt::Debug for Propagation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "own" } else { "global" })
    }
}
