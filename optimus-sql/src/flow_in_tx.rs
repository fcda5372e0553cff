//! Stores flows in a transaction of sqlx: [`FlowInTx`], [`PromisedFlow`].

use std::{fmt, marker::PhantomData};

use optimus_core::{Client, Flow, FlowHandle, StoredFlow, TaskId};
use sqlx::Transaction;

use crate::{Error, OutboxDb, perform_in_tx::insert};

/// Flows of tasks that are submitted in a transaction: what `chain![…]` or `then` made.
pub trait FlowInTx<Out>: Sized {
    /// Stores the steps of the flow in this transaction. After the commit a [relay](crate::Relay)
    /// submits each of them exactly once; after a rollback none. A step runs after the one before
    /// it, in whichever order their queues get them.
    ///
    /// # Errors
    /// [`Error::Task`] for a flow with a group, or with a biz id of a step before the last one: let
    /// a task of the transaction submit such a flow in its handler. [`Error::Task`] for a step that
    /// can't be submitted; then nothing of the flow is stored. [`Error::Database`].
    fn perform_in_tx<DB: OutboxDb>(
        self,
        tx: &mut Transaction<'_, DB>,
    ) -> impl Future<Output = Result<PromisedFlow<Out>, Error>> + Send;
}

impl<Out: Send> FlowInTx<Out> for Flow<'_, Out> {
    async fn perform_in_tx<DB: OutboxDb>(
        self,
        tx: &mut Transaction<'_, DB>,
    ) -> Result<PromisedFlow<Out>, Error> {
        let flow = Client::admit_flow_here(self).await?;
        insert::<DB>(tx, flow.steps()).await?;
        Ok(PromisedFlow { flow: flow.without_arguments(), output: PhantomData })
    }
}

/// A flow that is stored in a transaction. Dropping this value changes nothing.
pub struct PromisedFlow<T> {
    flow: StoredFlow,
    output: PhantomData<fn() -> T>,
}

impl<T> PromisedFlow<T> {
    /// Returns the ids of the steps, in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = &TaskId> {
        self.flow.ids()
    }

    /// Returns the handle of a client. Its waits begin before the steps are in Redis. After a
    /// rollback they never end, so limit them.
    pub fn handle(&self, client: &Client) -> FlowHandle<T> {
        client.promised_flow(&self.flow)
    }
}

impl<T> fmt::Debug for PromisedFlow<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PromisedFlow").field(&self.ids().collect::<Vec<_>>()).finish()
    }
}
