//! A migration at each start of a program says nothing, and changes no setting.

use std::sync::{Arc, Mutex};

use optimus_sql::{Dialect, migrate};
use optimus_testkit::{EachEvent, LogEvent};
use sqlx::{Postgres, pool::PoolOptions};
use tracing::subscriber::set_default;

use crate::{databases::TestDb, setup::Setup};

#[tokio::test]
async fn a_migration_that_finds_its_tables_logs_nothing() {
    let setup = Setup::<Postgres>::start().await;
    let options = PoolOptions::<Postgres>::new().max_connections(1);
    let pool = options.connect(&setup.database).await.unwrap();
    let lines = Arc::<Mutex<Vec<LogEvent>>>::default();
    let kept = lines.clone();
    let keep = move |event: LogEvent| kept.lock().unwrap().push(event);
    let _heard = set_default(EachEvent::new(keep).of("sqlx::postgres::notice"));
    migrate(&pool).await.unwrap();
    assert!(lines.lock().unwrap().is_empty(), "{lines:?}");
    assert_eq!(Postgres::text(&pool, "SHOW client_min_messages").await, "notice");
    let plain = Dialect::Postgres.migration();
    Postgres::run_text(&mut *pool.acquire().await.unwrap(), plain.to_owned()).await.unwrap();
    assert!(!lines.lock().unwrap().is_empty(), "the tables were there");
}
