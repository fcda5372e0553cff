//! The spans of attempts that layers bring.

use std::sync::{Arc, Mutex};

use optimus_core::{BoxError, Context, Layer, Span, Task};
use serde::{Deserialize, Serialize};

use crate::common::Bench;

/// What was called, in order.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn add(&self, note: impl Into<String>) {
        self.0.lock().unwrap().push(note.into());
    }
}

/// A task that notes its run.
#[derive(Serialize, Deserialize)]
struct Work {}

impl Task for Work {
    const NAME: &'static str = "work";
    type Output = ();

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        ctx.data::<Notes>().ok_or("the worker has notes")?.add("handler");
        Ok(())
    }
}

/// A layer whose spans are for the eye of the handler only, or that panics instead of making one.
struct Spanning {
    notes: Notes,
    panics: bool,
}

impl Layer for Spanning {
    fn span(&self, ctx: &Context) -> Option<Span> {
        assert_eq!(Context::current().unwrap().id(), ctx.id());
        self.notes.add(format!("a span of attempt {}", ctx.attempt()));
        assert!(!self.panics, "no span today");
        Some(Span::none())
    }
}

#[tokio::test]
async fn each_attempt_asks_for_a_span_and_runs_also_if_the_layer_panics() {
    let bench = Bench::on_memory().await;
    for panics in [false, true] {
        let notes = Notes::default();
        let outer = Spanning { notes: notes.clone(), panics };
        let inner = Spanning { notes: notes.clone(), panics: false };
        let builder = bench.worker().task_type::<Work>().data(notes.clone());
        let worker = bench.start(builder.layer(outer).layer(inner));
        let handle = bench.client.submit(Work {}.call()).await.unwrap();
        handle.result().await.unwrap();
        worker.stop().await;
        let notes = notes.0.lock().unwrap().clone();
        assert_eq!(notes, ["a span of attempt 1", "handler"], "the outermost has one");
    }
}
