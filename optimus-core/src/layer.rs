//! User code around submits and attempts: [`Layer`].

use std::{fmt, slice, sync::Arc};

use tracing::Span;

use crate::{
    attempt_end::End,
    context::Context,
    control_words::BoxError,
    data::DataKey,
    erased_task::{Ran, RunError, Running},
    layers::AnyLayer,
    submission::Submission,
};

/// Code that runs for every task of a client or worker, such as tenancy, authentication, metrics or
/// error tracking.
///
/// Each method has a default that does nothing, so a layer only implements those that it needs. A
/// layer is added to [a client](crate::ClientBuilder::layer), which calls [`submit`](Self::submit),
/// or to a worker (`WorkerBuilder::layer`), which calls all of them, or to both. The layer that was
/// added first is the outermost.
///
/// ```
/// # use optimus_core as optimus;
/// use optimus::{BoxError, Context, Done, Layer, Next, Submission};
///
/// /// Passes the tenant on from the task that submits, and refuses tasks without one.
/// struct Tenancy;
///
/// impl Layer for Tenancy {
///     async fn submit(&self, call: &mut Submission) -> Result<(), BoxError> {
///         let parent = Context::current();
///         if let Some(tenant) = parent.as_ref().and_then(|ctx| ctx.header("tenant")) {
///             call.set_header("tenant", tenant);
///         }
///         call.header("tenant").map(drop).ok_or_else(|| "a task needs a tenant".into())
///     }
///
///     async fn run(&self, ctx: &Context, next: Next<'_>) -> Result<Done, BoxError> {
///         let tenant = ctx.header("tenant").unwrap_or("nobody").to_owned();
///         let begun = std::time::Instant::now();
///         let done = next.run().await;
///         println!("{} of {tenant} took {:?}", ctx.task(), begun.elapsed());
///         done
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), optimus_core::Error> {
/// let client = optimus::Client::builder("memory://layer").layer(Tenancy).connect().await?;
/// # drop(client);
/// # Ok(())
/// # }
/// ```
///
/// If a layer panics or does not return in `submit`, `run` or `ended`, only its own submit or
/// attempt fails. A layer is dropped on a thread of its own; the drop of the client or worker waits
/// 100 ms for it.
pub trait Layer: Send + Sync + 'static {
    /// Called before each call is sent, in the tokio task of the caller. This method may read the
    /// call, change its headers, or refuse it with an error, which the caller gets as
    /// [`Error::is_refused`](crate::Error::is_refused). The caller gets the same error if this
    /// method panics or takes longer than the client's submit timeout.
    ///
    /// Submits of a handler pass the layers of its worker, with any client. A client that the
    /// program gave to the handler, for example as `#[data]`, has its own layers called after them;
    /// a layer of the worker is left out if the client has one of the same type.
    /// [`Context::current`] is then the attempt of that handler. What a layer submits passes only
    /// the layers of the client that it uses. A future that a handler spawns is not a part of it,
    /// and submits through [`Context::client`].
    fn submit(&self, call: &mut Submission) -> impl Future<Output = Result<(), BoxError>> + Send {
        let _ = call;
        async { Ok(()) }
    }

    /// Called for each attempt before it begins. Returns the span in which the attempt runs, with
    /// [`run`](Self::run), the handler and what it logs; for code that passes traces on. Without
    /// one, the attempt runs in the span `task` of the worker. If several layers return a span, the
    /// one of the outermost is used.
    ///
    /// If this method panics, the attempt runs in the span of the worker.
    fn span(&self, ctx: &Context) -> Option<Span> {
        let _ = ctx;
        None
    }

    /// Called for each attempt, around the handler, which [`next`](Next::run) runs. This method may
    /// [add values](Context::insert) to the context, set a task-local around the handler, or read
    /// its error. It may also return another error or a control word such as
    /// [`Snooze`](crate::Snooze), even without calling the handler. The returned error counts as
    /// the error of the handler.
    ///
    /// The future is a part of the attempt: its time counts for the task's timeout, and it is
    /// dropped with the handler if the attempt times out or is cancelled. So code that must see
    /// every end belongs in [`ended`](Self::ended). A handler that is a plain `fn` runs on another
    /// thread, without the task-locals of a layer, but with the context and its values.
    ///
    /// This method is not called if the arguments do not fit the task.
    fn run(
        &self,
        ctx: &Context,
        next: Next<'_>,
    ) -> impl Future<Output = Result<Done, BoxError>> + Send {
        let _ = ctx;
        next.run()
    }

    /// Called once for each attempt that has started and ended, also after a timeout, a panic, a
    /// cancel or the loss of the lease. The report of the attempt was sent before, so this method
    /// delays only the slot of the attempt, for at most 5 s. Layers are called in the order in
    /// which they were added.
    ///
    /// The outcome is what Redis did with the report: it is `Cancelled` if a cancel came before the
    /// report of a failure, and `Stale` if the lease was over. If Redis does not answer within 2 s,
    /// the outcome is the one that this worker has reported.
    ///
    /// This method is not called if the process ends first.
    fn ended(&self, ctx: &Context, end: &End) -> impl Future<Output = ()> + Send {
        let _ = (ctx, end);
        async {}
    }

    /// Returns the types of values that [`run`](Self::run) adds to each context, so that a worker
    /// can start without this `#[data]`. Called while the worker is built; a panic is an error of
    /// the build.
    fn provides(&self) -> Vec<DataKey> {
        Vec::new()
    }
}

/// An `Arc` lets the program keep a reference to a layer that it has added.
impl<L: Layer> Layer for Arc<L> {
    fn submit(&self, call: &mut Submission) -> impl Future<Output = Result<(), BoxError>> + Send {
        Layer::submit(&**self, call)
    }

    fn span(&self, ctx: &Context) -> Option<Span> {
        Layer::span(&**self, ctx)
    }

    fn run(
        &self,
        ctx: &Context,
        next: Next<'_>,
    ) -> impl Future<Output = Result<Done, BoxError>> + Send {
        Layer::run(&**self, ctx, next)
    }

    fn ended(&self, ctx: &Context, end: &End) -> impl Future<Output = ()> + Send {
        Layer::ended(&**self, ctx, end)
    }

    fn provides(&self) -> Vec<DataKey> {
        Layer::provides(&**self)
    }
}

/// The rest of the chain inside a layer: the layers that were added after it, and the handler.
#[must_use = "the handler runs only if this does"]
pub struct Next<'a> {
    pub(crate) rest: slice::Iter<'a, Arc<dyn AnyLayer>>,
    pub(crate) ctx: &'a Context,
    pub(crate) handler: Running,
    pub(crate) mark: Mark,
}

/// Proof that a handler has succeeded, with its result. Only [`Next::run`] returns it, so a layer
/// can't fake a success. An attempt fails if a layer returns the proof of another attempt.
#[derive(Debug)]
pub struct Done {
    output: Ran,
    mark: Mark,
}

/// Marks one attempt. While a proof has the mark, no other attempt gets one that is equal.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mark(Arc<u8>);

impl Done {
    /// Returns the result of the attempt with this mark.
    pub(crate) fn output_of(self, mark: &Mark) -> Result<Ran, BoxError> {
        self.checked(mark).map(|done| done.output)
    }

    fn checked(self, mark: &Mark) -> Result<Self, BoxError> {
        if Arc::ptr_eq(&self.mark.0, &mark.0) {
            return Ok(self);
        }
        Err("a layer returned the `Done` of another attempt; return the one of `next.run().await`"
            .into())
    }
}

impl Next<'_> {
    /// Runs the handler and returns its outcome.
    ///
    /// # Errors
    /// The error of the handler, or of a layer inside this one.
    pub async fn run(mut self) -> Result<Done, BoxError> {
        if let Some(layer) = self.rest.next() {
            let mark = self.mark.clone();
            return AnyLayer::run(&**layer, self.ctx, self).await?.checked(&mark);
        }
        match self.handler.await {
            Ok(output) => Ok(Done { output, mark: self.mark }),
            Err(RunError::Failed(problem)) => Err(problem),
            Err(other) => Err(other.into()),
        }
    }
}

impl fmt::Debug for Next<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Next({})", self.ctx.id())
    }
}
