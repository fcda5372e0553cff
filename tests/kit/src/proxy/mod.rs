//! A proxy between clients and a Redis that causes network faults: [`FaultProxy`].
//!
//! It parses Redis' protocol only to count commands and to pair them with their replies. So a test
//! can lose exactly the k-th request or the k-th reply.

mod carry;
mod fault;
mod flow;
mod frame;
pub(crate) mod upstream;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use fault::{Counter, Fault};
use flow::{Flow, Pace};
use upstream::Upstream;

pub use flow::Way;

/// A proxy on a free port of the loopback interface. All settings can change while it runs, and
/// apply to bytes that are sent later. When the proxy is dropped, it ends and closes its
/// connections.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    upstream: watch::Sender<Upstream>,
    flow: watch::Sender<Flow>,
    /// How the current connections end. Every connection receives each change.
    ending: watch::Sender<Ending>,
    counter: Counter,
}

#[derive(Clone, Copy, Debug)]
enum Ending {
    /// The connections end with a normal close (FIN).
    Close,
    /// The connections end with a reset (RST).
    Reset,
    /// The connections never end: no byte passes any more, and neither side receives an end.
    Freeze,
}

impl FaultProxy {
    /// Starts a proxy to the server at `url` (`redis://host:port/` or `unix:///path`). At first, it
    /// passes everything. It runs on the caller's runtime.
    ///
    /// # Panics
    ///
    /// If the URL does not belong to a server of the test kit.
    pub async fn start(url: &str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.expect("a port of the loopback interface is free");
        let address = listener.local_addr().expect("a listener has an address");
        let shared = Arc::new(Shared {
            upstream: watch::Sender::new(Upstream::parse(url)),
            flow: watch::Sender::new(Flow::default()),
            ending: watch::Sender::new(Ending::Close),
            counter: Counter::default(),
        });
        let accepting = tokio::spawn(accept(listener, shared.clone()));
        Self { address, shared, accepting }
    }

    /// Returns the address for clients: `redis://127.0.0.1:…/`.
    pub fn url(&self) -> String {
        format!("redis://{}/", self.address)
    }

    /// Connects new clients to that server from now on, as a name service does after a failover.
    ///
    /// # Panics
    ///
    /// If the URL does not belong to a server of the test kit.
    pub fn lead_to(&self, url: &str) {
        self.shared.upstream.send_replace(Upstream::parse(url));
    }

    /// Removes every delay, rate, hole and slicing.
    pub fn pass(&self) {
        self.shared.flow.send_replace(Flow::default());
    }

    /// Delays everything by this time, in each direction.
    pub fn delay(&self, by: Duration) {
        self.set(Way::Both, Pace::Delay(by));
    }

    /// Delivers byte by byte, with each byte in its own packet.
    pub fn slices(&self) {
        self.set(Way::Both, Pace::Slices);
    }

    /// Delivers this many bytes per second in that direction, on each connection.
    pub fn rate(&self, way: Way, per_second: usize) {
        self.set(way, Pace::Rate(per_second));
    }

    /// Delivers nothing in that direction until [`pass`](Self::pass) is called. As in a network
    /// that lost packets, the data then arrives late, unless the connection has ended.
    pub fn black_hole(&self, way: Way) {
        self.set(way, Pace::Hole);
    }

    /// Closes every connection (FIN). New connections are accepted.
    pub fn cut(&self) {
        self.shared.ending.send_replace(Ending::Close);
    }

    /// Resets every connection (RST). New connections are accepted.
    pub fn reset(&self) {
        self.shared.ending.send_replace(Ending::Reset);
    }

    /// Makes every connection half-open: the connection stays, but no byte passes it again. New
    /// connections are accepted.
    pub fn half_open(&self) {
        self.shared.ending.send_replace(Ending::Freeze);
    }

    /// Drops the `k`-th request from now, counted from 1 over all connections, before it reaches
    /// the server. Its connection ends too.
    pub fn drop_request(&self, k: u64) {
        self.shared.counter.arm(k, Fault::DropRequest);
    }

    /// Drops the reply to the `k`-th request from now, and ends its connection. The command was
    /// executed, but the client can't know that.
    pub fn drop_reply(&self, k: u64) {
        self.shared.counter.arm(k, Fault::DropReply);
    }

    /// Sends the `k`-th request from now twice. The client receives the second reply.
    pub fn duplicate(&self, k: u64) {
        self.shared.counter.arm(k, Fault::Duplicate);
    }

    /// Returns the requests since the last call of one of the three methods above, without the
    /// requests that set up a connection. A request is its command, and for a script call also the
    /// script's hash.
    pub fn requests(&self) -> Vec<String> {
        self.shared.counter.requests()
    }

    /// Returns whether that fault has happened.
    pub fn struck(&self) -> bool {
        self.shared.counter.struck()
    }

    fn set(&self, way: Way, pace: Pace) {
        self.shared.flow.send_modify(|flow| flow.set(way, pace));
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Runs until the task is aborted, with all its connections.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((client, _)) = listener.accept() => {
                connections.spawn(carry::carry(shared.clone(), client));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}
