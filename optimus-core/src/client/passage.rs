//! Passes calls through the layers of their client: [`Passage`].

use std::{panic::AssertUnwindSafe, time::Duration};

use futures_util::FutureExt;
use tokio::{task_local, time::timeout};

use crate::{
    Error,
    control::BoxError,
    discard::{discard, panic_text},
    layers::Layers,
    submission::Submission,
};

/// How deeply the submits of layers may be nested.
const DEPTH_MAX: u32 = 8;

task_local! {
    /// How many submits of layers this one is nested in.
    static DEPTH: u32;
}

/// The calls of one caller, one after another.
pub(super) struct Passage<'a> {
    layers: &'a Layers,
    within: Duration,
    /// Set once a layer did not return in time: each further call would take that time again.
    given_up: Option<Error>,
}

impl<'a> Passage<'a> {
    pub(super) fn new(layers: &'a Layers, within: Duration) -> Self {
        Self { layers, within, given_up: None }
    }

    /// Passes a call through the layers; an error if a layer refuses it.
    pub(super) async fn pass(&mut self, call: &mut Submission) -> Result<(), Error> {
        if self.layers.is_empty() { Ok(()) } else { Box::pin(self.through(call)).await }
    }

    async fn through(&mut self, call: &mut Submission) -> Result<(), Error> {
        if let Some(problem) = &self.given_up {
            return Err(problem.clone());
        }
        let (task, depth) = (call.task.clone(), DEPTH.try_with(|depth| *depth).unwrap_or_default());
        let refused = |why: BoxError| Err(Error::refused(&task, why));
        if depth >= DEPTH_MAX {
            let why = "the `submit` of a layer submits, and so on: let it pass what it submits";
            return refused(why.into());
        }
        let layers = DEPTH.scope(depth + 1, self.layers.submit(call));
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
