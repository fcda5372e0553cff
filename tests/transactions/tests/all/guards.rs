//! Guards of many transactions at once.

use std::{sync::Arc, time::Instant};

use optimus_core::{AttemptFacts, Context, Data, TaskId};
use optimus_sql::Guard as _;

use crate::{
    databases::TestDb,
    setup::{SOON, Setup},
};

const AT_ONCE: usize = 4;
const EACH: usize = 50;

crate::on_each_database! {
    guards_of_one_key_wait_for_each_other
}

async fn guards_of_one_key_wait_for_each_other<DB: TestDb>(setup: Setup<DB>) {
    let id = TaskId::new("default".parse().unwrap());
    let facts = AttemptFacts { fence: 1_000, ..AttemptFacts::first(id, Instant::now() + SOON) };
    let ctx = Context::new(facts, Arc::new(Data::new()));
    let passes = (0..AT_ONCE).map(|_| {
        let (ctx, pool) = (ctx.clone(), setup.pool.clone());
        tokio::spawn(async move {
            for _ in 0..EACH {
                let mut tx = pool.begin().await.unwrap();
                ctx.guard(&mut tx, "account-7").await.unwrap();
                tx.commit().await.unwrap();
            }
        })
    });
    for passed in futures_util::future::join_all(passes).await {
        passed.unwrap();
    }
}
