//! Passes calls through layers: those of the worker whose handler submits, then those of the
//! client: [`Passage`].

use std::{panic::AssertUnwindSafe, time::Duration};

use futures_util::FutureExt;
use tokio::{task_local, time::timeout};

use crate::{
    Error,
    context::Context,
    control_words::BoxError,
    guarded_drop::{discard, panic_text},
    layers::Layers,
    submission::Submission,
};

/// How deeply the submits of layers may be nested.
const DEPTH_MAX: u32 = 8;

task_local! {
    /// How many submits of layers this one is nested in.
    static DEPTH: u32;
}

fn depth() -> u32 {
    DEPTH.try_with(|depth| *depth).unwrap_or_default()
}

/// The calls of one caller, one after another.
pub(super) struct Passage<'a> {
    /// The layers of the worker that the client does not have.
    outer: Layers,
    layers: &'a Layers,
    within: Duration,
    /// The error of a layer that did not return in time. Further calls are refused with it, because
    /// each would take that time again.
    given_up: Option<Error>,
}

impl<'a> Passage<'a> {
    /// For the code that is running. In a handler the layers of its worker come first. What a layer
    /// submits itself passes only those of its client, so that a layer can't call itself without
    /// end.
    pub(super) fn of(layers: &'a Layers, within: Duration) -> Self {
        let outer = if depth() == 0 { Context::worker_layers(layers) } else { Layers::default() };
        Self { outer, layers, within, given_up: None }
    }

    /// Passes a call through the layers; an error if a layer refuses it.
    pub(super) async fn pass(&mut self, call: &mut Submission) -> Result<(), Error> {
        let none = self.layers.is_empty() && self.outer.is_empty();
        if none { Ok(()) } else { Box::pin(self.through(call)).await }
    }

    async fn through(&mut self, call: &mut Submission) -> Result<(), Error> {
        if let Some(problem) = &self.given_up {
            return Err(problem.clone());
        }
        let (task, depth) = (call.task.clone(), depth());
        let refused = |why: BoxError| Err(Error::refused(&task, why));
        if depth >= DEPTH_MAX {
            let why = "the `submit` of a layer submits a task, whose layers submit again, and so \
                       on: let it return early for the tasks that it submits";
            return refused(why.into());
        }
        let layers = DEPTH.scope(depth + 1, async {
            self.outer.submit(call).await?;
            self.layers.submit(call).await
        });
        let mut layers = Box::pin(AssertUnwindSafe(layers).catch_unwind());
        let passed = timeout(self.within, layers.as_mut()).await;
        discard(layers);
        match passed {
            Ok(Ok(Ok(()))) => Ok(()),
            Ok(Ok(Err(why))) => refused(why),
            Ok(Err(panic)) => {
                let why = format!("it panicked: {}", panic_text(&*panic));
                discard(panic);
                refused(why.into())
            }
            Err(_) => {
                let why = format!("it did not return within {:?}", self.within);
                let problem = Error::refused(&task, why.into());
                self.given_up = Some(problem.clone());
                Err(problem)
            }
        }
    }
}
