//! How a handler ended: [`HandlerEnd`].

use std::any::Any;

use optimus_core::{PanicPlace, RunOutput};

/// How the handler ended.
#[derive(Debug)]
pub(crate) enum HandlerEnd {
    /// The handler returned.
    Returned(RunOutput),
    /// The handler panicked, at a place that may be known.
    Panicked(Box<dyn Any + Send>, Option<PanicPlace>),
    /// The deadline of the handler passed.
    TimedOut,
    /// The handler was asked to stop, did not stop, and was dropped.
    Abandoned,
}

impl HandlerEnd {
    /// Returns the end of a handler whose panic this thread has just caught.
    pub(crate) fn panicked(panic: Box<dyn Any + Send>) -> Self {
        let place = PanicPlace::take(&*panic);
        Self::Panicked(panic, place)
    }
}
