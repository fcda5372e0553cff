//! Programs that store calls while no relay runs: they say so.

use std::sync::{Arc, Mutex};

use optimus_sql::{Error, PerformInTx as _, transaction};
use optimus_testkit::{EachEvent, LogEvent, eventually};
use tracing::{Level, subscriber::set_default};

use crate::{
    databases::TestDb,
    setup::{SOON, Setup, note},
};

crate::on_each_database! {
    a_program_whose_calls_no_relay_sends_logs_what_to_do
}

async fn a_program_whose_calls_no_relay_sends_logs_what_to_do<DB: TestDb>(setup: Setup<DB>) {
    let lines = Arc::<Mutex<Vec<LogEvent>>>::default();
    let kept = lines.clone();
    let keep = move |event: LogEvent| kept.lock().unwrap().push(event);
    let _heard = set_default(EachEvent::new(keep).of("optimus").at(Level::WARN));
    setup.commit(1).await;
    setup.sql("UPDATE optimus_outbox SET at_ms = at_ms - 90000").await;
    transaction(&setup.pool, async |mut tx| {
        note(1, 2).perform_in_tx(&mut tx).await?;
        Ok::<_, Error>(())
    })
    .await
    .unwrap();
    let told = async || !lines.lock().unwrap().is_empty();
    eventually("it is logged", SOON, told).await;
    let lines = lines.lock().unwrap();
    let line = &lines[0];
    assert!(line.message().contains("a worker with `.outbox(&pool)`"), "{line:?}");
    assert_eq!(line.get("database"), DB::NAME);
    let waited: u64 = line.get("oldest_s").parse().unwrap();
    assert!((90..600).contains(&waited), "{waited}");
}
