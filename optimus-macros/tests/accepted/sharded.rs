//! A sharded function has a definition under its own name, and its rounds can run without a worker.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use optimus::{Round, Shard, Walk};

#[derive(Clone)]
struct Db;

/// Sends what is due.
#[optimus::sharded(shards = 10, idle = "3s")]
async fn orders(mut shard: Shard, #[data] _db: Db) -> Result<Round, std::io::Error> {
    shard.checkpoint(&7).await.map_err(std::io::Error::other)?;
    Ok(if shard.index() == 0 { Round::Again } else { Round::Idle })
}

mod other {
    #[optimus::sharded(shards = 1, walk = "once", name = "pass.of-all")]
    pub async fn all(shard: optimus::Shard) -> Result<optimus::Round, String> {
        let _ = shard.stopping();
        Err("not yet".to_owned())
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
    assert_eq!((orders().name(), other::all().name()), ("orders", "pass.of-all"));
    let options = orders().options();
    assert_eq!(
        (options.shards, options.idle, options.walk),
        (10, Duration::from_secs(3), Walk::Forever)
    );
    assert_eq!(
        (other::all().options().walk, other::all().options().idle),
        (Walk::Once, Duration::from_secs(8))
    );
    assert_eq!(orders().required_data().len(), 1);
    assert_eq!(optimus::Sharded::registered().count(), 2);
    assert_eq!(now(orders_body(Shard::local(0, 2), Db)).unwrap(), Round::Again);
    assert_eq!(now(orders_body(Shard::local(1, 2), Db)).unwrap(), Round::Idle);
    let _ = optimus::Worker::builder("memory://x").sharded(orders).sharded(other::all);
}
