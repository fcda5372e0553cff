//! The attempt whose code is running: [`Context::current`].

use tokio::{task::futures::TaskLocalFuture, task_local};

use crate::{context::Context, layers::Layers};

task_local! {
    /// Set while a handler or its layers are polled, and on the threads of its blocking work.
    static CURRENT: Context;
}

impl Context {
    /// Returns the attempt whose handler or layers are running, also on the thread of a blocking
    /// handler. `None` in a future that a handler has spawned, and outside of handlers.
    ///
    /// ```
    /// # use optimus_core as optimus;
    /// use optimus::Context;
    ///
    /// /// For code that is called in handlers and elsewhere.
    /// fn tenant() -> Option<String> {
    ///     Context::current()?.header("tenant").map(str::to_owned)
    /// }
    ///
    /// assert_eq!(tenant(), None);
    /// ```
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Self::clone).ok()
    }

    /// Returns the layers of the worker whose handler is running, without those that a client has
    /// too.
    pub(crate) fn worker_layers(of_client: &Layers) -> Layers {
        let without = |ctx: &Self| Some(ctx.layers()?.without(of_client));
        CURRENT.try_with(without).ok().flatten().unwrap_or_default()
    }

    /// Calls a closure as a part of the attempt; for workers.
    #[doc(hidden)]
    pub fn enter<T>(&self, part: impl FnOnce() -> T) -> T {
        CURRENT.sync_scope(self.clone(), part)
    }

    /// Wraps a future that is a part of the attempt; for workers.
    #[doc(hidden)]
    pub fn within<F: Future>(&self, part: F) -> TaskLocalFuture<Self, F> {
        CURRENT.scope(self.clone(), part)
    }
}
