//! A relay that a worker runs: [`Outbox`].

use futures_util::FutureExt;
use optimus_core::{Durability, Service, WithService};
use sqlx::Pool;

use crate::{OutboxDb, Relay};

/// Relays in workers, for `WorkerBuilder`.
///
/// ```ignore
/// use optimus_sql::Outbox as _;
///
/// Worker::from_env()?.outbox(&pool).run().await
/// ```
pub trait Outbox: WithService {
    /// Runs a [`Relay`] from this database to the store of the worker. It starts with the worker
    /// and ends after its handlers, so that one program does both. If the database can't be
    /// reached within the `acquire_timeout` of its pool, or has no tables, the worker does not
    /// start. A database that goes away later is waited for, and other tasks run meanwhile.
    #[must_use = "a builder does nothing until `.run().await`"]
    fn outbox<DB: OutboxDb>(self, pool: &Pool<DB>) -> Self {
        self.outbox_with(pool, Durability::Memory)
    }

    /// Runs a relay that deletes a call from the database only after Redis has confirmed it; see
    /// [`Relay::durability`].
    #[must_use = "a builder does nothing until `.run().await`"]
    fn outbox_with<DB: OutboxDb>(self, pool: &Pool<DB>, durability: Durability) -> Self {
        let pool = pool.clone();
        let name = format!("the relay of the outbox in {}", DB::NAME);
        self.service(Service::new(name.clone(), async move |host| {
            let relay = Relay::new(&pool, &host.client).durability(durability);
            let ready = relay.prepare().await;
            let ready = ready.map_err(|problem| problem.into_task_error(&name))?;
            Ok(ready.carry(host.stopping).boxed())
        }))
    }
}

impl<W: WithService> Outbox for W {}
