//! Work on a connection that always runs to its end: [`whole`].
//!
//! If a future of sqlx is dropped while a transaction begins, such as by the time limit of a
//! handler, sqlx does not roll back: the connection returns to its pool within the transaction.
//! What its next user writes is then part of that transaction, although its statement has
//! succeeded. So no statement of ours is dropped: it runs in a task of its own.

use std::panic;

use tracing::Instrument as _;

use crate::Error;

/// Runs a future to its end, also if this one is dropped. A transaction that it returns is rolled
/// back then.
pub(crate) async fn whole<T, F>(work: F) -> Result<T, Error>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Error>> + Send + 'static,
{
    match tokio::spawn(work.in_current_span()).await {
        Ok(done) => done,
        Err(ended) => match ended.try_into_panic() {
            // Hooks of a pool are user code.
            Ok(panic) => panic::resume_unwind(panic),
            // The runtime shuts down.
            Err(_) => Err(sqlx::Error::PoolClosed.into()),
        },
    }
}
