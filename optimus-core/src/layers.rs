//! The layers of a client or a worker, in order: [`Layers`].

use std::{any::TypeId, fmt, pin::Pin, sync::Arc};

use crate::{
    attempt_end::End,
    context::Context,
    control_words::BoxError,
    data::DataKey,
    erased_task::{RunError, Running},
    guarded_drop::discard,
    layer::{Done, Layer, Next},
    submission::Submission,
};

type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A layer with its type erased. None of its code runs before a future is polled.
pub(crate) trait AnyLayer: Send + Sync {
    fn submit<'a>(&'a self, call: &'a mut Submission) -> Later<'a, Result<(), BoxError>>;
    fn run<'a>(&'a self, ctx: &'a Context, next: Next<'a>) -> Later<'a, Result<Done, BoxError>>;
    fn ended<'a>(&'a self, ctx: &'a Context, end: &'a End) -> Later<'a, ()>;
    fn provides(&self) -> Vec<DataKey>;
    fn type_id(&self) -> TypeId;
}

impl<L: Layer> AnyLayer for L {
    fn submit<'a>(&'a self, call: &'a mut Submission) -> Later<'a, Result<(), BoxError>> {
        Box::pin(async move { Layer::submit(self, call).await })
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

/// The last holder may be a part of the worker, which must survive a panic in the drop of a layer.
impl Drop for Chain {
    fn drop(&mut self) {
        self.0.drain(..).for_each(discard);
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
    pub fn provide(&self) -> Vec<DataKey> {
        self.all().iter().flat_map(|layer| layer.provides()).collect()
    }

    /// Passes a call through all layers; the error is from the layer that refuses it.
    pub(crate) async fn submit(&self, call: &mut Submission) -> Result<(), BoxError> {
        for layer in self.all() {
            layer.submit(call).await?;
        }
        Ok(())
    }

    /// Wraps a handler in the layers.
    pub fn around(&self, ctx: &Context, handler: Running) -> Running {
        if self.is_empty() {
            return handler;
        }
        let (layers, ctx) = (self.clone(), ctx.clone());
        Box::pin(async move {
            let next = Next { rest: layers.all().iter(), ctx: &ctx, handler };
            next.run().await.map(|Done(output)| output).map_err(RunError::Failed)
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
