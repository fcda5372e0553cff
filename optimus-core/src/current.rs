//! The attempt whose code runs here: [`Context::current`].

use tokio::{task::futures::TaskLocalFuture, task_local};

use crate::context::Context;

task_local! {
    /// Set while a handler or its layers are polled, and on the threads of its blocking work.
    static CURRENT: Context;
}

impl Context {
    /// The attempt whose handler or layers run here, also on the thread of a handler that blocks.
    /// There is none in a future that a handler has spawned, nor outside of handlers.
    ///
    /// ```
    /// use optimus_core::Context;
    ///
    /// /// For code that is called by handlers and by others.
    /// fn tenant() -> Option<String> {
    ///     Context::current()?.header("tenant").map(str::to_owned)
    /// }
    ///
    /// assert_eq!(tenant(), None);
    /// ```
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Self::clone).ok()
    }

    /// Calls a part of the attempt; for workers.
    #[doc(hidden)]
    pub fn enter<T>(&self, part: impl FnOnce() -> T) -> T {
        CURRENT.sync_scope(self.clone(), part)
    }

    /// A future that is a part of the attempt; for workers.
    #[doc(hidden)]
    pub fn within<F: Future>(&self, part: F) -> TaskLocalFuture<Self, F> {
        CURRENT.scope(self.clone(), part)
    }
}
