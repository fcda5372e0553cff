//! A source has a definition under its own name, and its pages can be read without a worker.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use optimus::{Archive, Found, Page, Row};

#[derive(Clone)]
struct Db;

const TABLES: [&str; 2] = ["orders_0", "orders_1"];

#[optimus::task]
async fn bill(order: i64) -> Result<(), String> {
    Err(format!("no card for {order}"))
}

/// Finds what is not paid.
#[optimus::source(
    every = "3s", slices = 16, page = 100, high_water = 10_000, over = TABLES,
    demote(0 = "3s", 1..=5 = "30s", 6..=15 = "60s"), attempts = 16,
    before = still_due, on_failure = hooks::bump, archive(after = "30d", with = archive_paid)
)]
async fn unpaid(page: Page<i64>, #[data] _db: Db) -> Result<Vec<Found<i64>>, std::io::Error> {
    let after = page.after().copied().unwrap_or(0);
    let rows = after + 1..=after + i64::from(page.limit());
    Ok(rows.map(|id| Found::new(id).failures(1).task(bill(id))).collect())
}

async fn still_due(row: Row<i64>) -> Result<Option<u32>, std::io::Error> {
    Ok((*row.key() > 0).then_some(row.failures()))
}

mod hooks {
    pub async fn bump(row: optimus::Row<i64>) -> Result<(), optimus::Error> {
        let _: super::Db = row.data()?;
        Ok(())
    }
}

async fn archive_paid(old: Archive) -> Result<u64, String> {
    Ok(u64::from(old.limit()))
}

mod other {
    fn tables() -> Vec<String> {
        vec!["a".to_owned()]
    }

    async fn is_due(_: optimus::Row<String>) -> Result<bool, String> {
        Ok(true)
    }

    #[optimus::source(
        every = 60, name = "of.texts", over = tables(), demote(1.. = "5m"), before = is_due
    )]
    pub async fn texts(page: optimus::Page<String>) -> Result<Vec<optimus::Found<String>>, String> {
        Ok(page.after().cloned().map(optimus::Found::new).into_iter().collect())
    }
}

fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("it awaits nothing"),
    }
}

pub(super) fn main() {
    assert_eq!((unpaid().name(), other::texts().name()), ("unpaid", "of.texts"));
    let options = unpaid().options();
    assert_eq!((options.slices, options.page, options.high_water), (16, 100, 10_000));
    assert_eq!((options.attempts, options.idle), (Some(16), Duration::from_secs(6)));
    assert_eq!(options.archive_after, Some(Duration::from_secs(30 * 24 * 60 * 60)));
    let tiers = |source: optimus::Source| -> Vec<(u32, u32, u64)> {
        let tiers = source.options().tiers.iter();
        tiers.map(|tier| (tier.least, tier.most, tier.every.as_secs())).collect()
    };
    assert_eq!(tiers(unpaid()), [(0, 0, 3), (1, 5, 30), (6, 15, 60)]);
    assert_eq!(tiers(other::texts()), [(0, 0, 60), (1, u32::MAX, 300)]);
    assert_eq!(other::texts().options().attempts, None);
    assert_eq!(unpaid().required_data().len(), 1);
    assert_eq!(optimus::Source::registered().count(), 2);
    let rows = now(unpaid_body(Page::local(Some(7), 3), Db)).unwrap();
    assert_eq!(rows.iter().map(|row| *row.key()).collect::<Vec<_>>(), [8, 9, 10]);
    assert!(rows[0].has_task());
    let builder = optimus::Worker::builder("memory://x").source(unpaid).source(other::texts);
    let _ = builder.without_sources();
}
