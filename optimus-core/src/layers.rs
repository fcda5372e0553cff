//! The layers of a client or a worker, in order: [`Layers`].

use std::{
    any::TypeId,
    fmt, mem,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use tracing::Span;

use crate::{
    attempt_end::End,
    context::Context,
    control_words::BoxError,
    data::DataKey,
    erased_task::{RunError, Running},
    error::Error,
    guarded_drop::{discard, panic_text},
    layer::{Done, Layer, Mark, Next},
    submission::Submission,
};

/// How long the drop of a client or worker waits for that of its layers. A layer may send its last
/// data then, before the process ends.
const DROP_WAIT: Duration = Duration::from_millis(100);

type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A layer with its type erased. The code of a method that returns a future runs only when that is
/// polled.
pub(crate) trait AnyLayer: Send + Sync {
    fn submit<'a>(&'a self, call: &'a mut Submission) -> Later<'a, Result<(), BoxError>>;
    fn span(&self, ctx: &Context) -> Option<Span>;
    fn run<'a>(&'a self, ctx: &'a Context, next: Next<'a>) -> Later<'a, Result<Done, BoxError>>;
    fn ended<'a>(&'a self, ctx: &'a Context, end: &'a End) -> Later<'a, ()>;
    fn provides(&self) -> Vec<DataKey>;
    fn type_id(&self) -> TypeId;
}

impl<L: Layer> AnyLayer for L {
    fn submit<'a>(&'a self, call: &'a mut Submission) -> Later<'a, Result<(), BoxError>> {
        Box::pin(async move { Layer::submit(self, call).await })
    }

    fn span(&self, ctx: &Context) -> Option<Span> {
        Layer::span(self, ctx)
    }

    fn run<'a>(&'a self, ctx: &'a Context, next: Next<'a>) -> Later<'a, Result<Done, BoxError>> {
        Box::pin(async move { Layer::run(self, ctx, next).await })
    }

    fn ended<'a>(&'a self, ctx: &'a Context, end: &'a End) -> Later<'a, ()> {
        Box::pin(async move { Layer::ended(self, ctx, end).await })
    }

    fn provides(&self) -> Vec<DataKey> {
        Layer::provides(self)
    }

    fn type_id(&self) -> TypeId {
        TypeId::of::<L>()
    }
}

/// Layers, the outermost first. An empty list allocates nothing.
#[derive(Clone, Default)]
pub struct Layers(Option<Arc<Chain>>);

#[derive(Clone, Default)]
struct Chain(Vec<Arc<dyn AnyLayer>>);

/// The last holder may be a thread of the worker or of the program, which must survive a drop of a
/// layer that panics or blocks.
impl Drop for Chain {
    fn drop(&mut self) {
        let layers = mem::take(&mut self.0);
        if layers.iter().all(|layer| Arc::strong_count(layer) > 1) {
            return layers.into_iter().for_each(discard);
        }
        let (ended, end) = mpsc::channel::<()>();
        let work = move || {
            layers.into_iter().for_each(discard);
            drop(ended);
        };
        let start = || thread::Builder::new().name("optimus-layers".into()).spawn(work);
        match catch_unwind(AssertUnwindSafe(start)) {
            Ok(Ok(_)) => drop(end.recv_timeout(DROP_WAIT)),
            Ok(Err(_)) => {}
            // Without a thread, the layers are dropped here.
            Err(panic) => mem::forget(panic),
        }
    }
}

impl Layers {
    /// Adds a layer inside the others.
    pub fn add(&mut self, layer: impl Layer) {
        Arc::make_mut(self.0.get_or_insert_default()).0.push(Arc::new(layer));
    }

    /// Returns whether there are no layers.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn all(&self) -> &[Arc<dyn AnyLayer>] {
        self.0.as_ref().map_or(&[], |chain| &chain.0)
    }

    /// Returns these layers without those of a type that is among the others: code that both have
    /// is called once.
    pub(crate) fn without(&self, others: &Self) -> Self {
        let has = |layer: &Arc<dyn AnyLayer>| {
            others
                .all()
                .iter()
                .any(|other| AnyLayer::type_id(&**other) == AnyLayer::type_id(&**layer))
        };
        let left: Vec<_> = self.all().iter().filter(|layer| !has(layer)).cloned().collect();
        Self((!left.is_empty()).then(|| Arc::new(Chain(left))))
    }

    /// Returns the values that the layers add to each context.
    ///
    /// # Errors
    /// [`Error::is_invalid`] if a layer panics.
    pub fn provide(&self) -> Result<Vec<DataKey>, Error> {
        let mut provided = Vec::new();
        for layer in self.all() {
            let keys = catch_unwind(AssertUnwindSafe(|| layer.provides()));
            provided.extend(keys.map_err(|panic| {
                let text = panic_text(&*panic);
                discard(panic);
                Error::invalid(format!("worker: a layer panicked in `provides`: {text}"))
            })?);
        }
        Ok(provided)
    }

    /// Passes a call through all layers; the error is from the layer that refuses it.
    pub(crate) async fn submit(&self, call: &mut Submission) -> Result<(), BoxError> {
        for layer in self.all() {
            layer.submit(call).await?;
        }
        Ok(())
    }

    /// Returns the span of the outermost layer that has one for this attempt. Layers are user code,
    /// so this may panic.
    pub fn span(&self, ctx: &Context) -> Option<Span> {
        ctx.enter(|| self.all().iter().find_map(|layer| layer.span(ctx)))
    }

    /// Wraps a handler in the layers.
    pub fn around(&self, ctx: &Context, handler: Running) -> Running {
        if self.is_empty() {
            return handler;
        }
        let (layers, ctx) = (self.clone(), ctx.clone());
        Box::pin(async move {
            let mark = Mark::default();
            let next = Next { rest: layers.all().iter(), ctx: &ctx, handler, mark: mark.clone() };
            next.run().await.and_then(|done| done.output_of(&mark)).map_err(RunError::Failed)
        })
    }

    /// Returns the `ended` future of each layer, in order.
    pub fn ended<'a>(
        &'a self,
        ctx: &'a Context,
        end: &'a End,
    ) -> impl Iterator<Item = Pin<Box<dyn Future<Output = ()> + Send + 'a>>> {
        self.all().iter().map(|layer| layer.ended(ctx, end))
    }
}

impl fmt::Debug for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} layers", self.all().len())
    }
}
