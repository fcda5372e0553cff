//! Creates the tables: [`migrate`].

use sqlx::Pool;

use crate::{Dialect, Error, OutboxDb};

/// Several programs may create the tables at once; PostgreSQL would refuse all but one of them. A
/// notice of each table that is there already would be logged at each start of a program.
const LOCK: &str =
    "BEGIN; SET LOCAL client_min_messages = warning; SELECT pg_advisory_xact_lock(7020671893)";

/// Creates the tables that are missing. Safe to run at each start of a program, and in several
/// programs at once. For migrations of your own, take the statements of [`Dialect::migration`].
///
/// # Errors
/// [`Error::Database`], for example if the user may not create tables.
pub async fn migrate<DB: OutboxDb>(pool: &Pool<DB>) -> Result<(), Error> {
    let mut connection = pool.acquire().await?;
    if DB::DIALECT == Dialect::Postgres {
        // If this fails, the connection is dropped with its transaction.
        let mut connection = connection.detach();
        DB::run_plain(&mut connection, LOCK).await?;
        DB::run_plain(&mut connection, DB::DIALECT.migration()).await?;
        DB::run_plain(&mut connection, "COMMIT").await?;
    } else {
        DB::run_plain(&mut connection, DB::DIALECT.migration()).await?;
    }
    Ok(())
}
