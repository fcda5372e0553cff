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
/// apply to what is sent from then on. When dropped, it ends and closes its connections.
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
    /// How the current connections end; every connection receives each change.
    ending: watch::Sender<Ending>,
    counter: Counter,
}

#[derive(Clone, Copy, Debug)]
enum Ending {
    /// With a normal close (FIN).
    Close,
    /// With RST.
    Reset,
    /// Never: nothing passes any more, and neither side receives an end.
    Freeze,
}

impl FaultProxy {
    /// A proxy to the server at `url` (`redis://host:port/` or `unix:///path`), which passes
    /// everything at first. It runs on the caller's runtime.
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

    /// The address for clients: `redis://127.0.0.1:…/`.
    pub fn url(&self) -> String {
        format!("redis://{}/", self.address)
    }

    /// Connects new clients to that server from now on, as a name does after a failover.
    ///
    /// # Panics
    ///
    /// If the URL does not belong to a server of the test kit.
    pub fn lead_to(&self, url: &str) {
        self.shared.upstream.send_replace(Upstream::parse(url));
    }

    /// Ends every delay, rate, hole and slicing.
    pub fn pass(&self) {
        self.shared.flow.send_replace(Flow::default());
    }

    /// Delays everything by this time, in each direction.
    pub fn delay(&self, by: Duration) {
        self.set(Way::Both, Pace::Delay(by));
    }

    /// Delivers byte by byte, each in its own packet.
    pub fn slices(&self) {
        self.set(Way::Both, Pace::Slices);
    }

    /// Delivers this many bytes per second in that direction, on each connection.
    pub fn rate(&self, way: Way, per_second: usize) {
        self.set(way, Pace::Rate(per_second));
    }

    /// Delivers nothing in that direction. As in a network that lost its packets, the data arrives
    /// late, after [`pass`](Self::pass), unless the connection ends first.
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

    /// Makes every connection half-open: it stays, and nothing passes it again. New connections are
    /// accepted.
    pub fn half_open(&self) {
        self.shared.ending.send_replace(Ending::Freeze);
    }

    /// Drops the `k`-th request from now, counted from 1 over all connections, before it reaches
    /// the server. Its connection ends too.
    pub fn drop_request(&self, k: u64) {
        self.shared.counter.arm(k, Fault::DropRequest);
    }

    /// Drops the reply to the `k`-th request from now, and ends its connection: the command was
    /// executed, and the client cannot know that.
    pub fn drop_reply(&self, k: u64) {
        self.shared.counter.arm(k, Fault::DropReply);
    }

    /// Sends the `k`-th request from now twice; the client receives the second reply.
    pub fn duplicate(&self, k: u64) {
        self.shared.counter.arm(k, Fault::Duplicate);
    }

    /// The requests since the last call of one of the three methods above, without those that set
    /// up a connection. Each is its command; a script call also has the script's hash.
    pub fn requests(&self) -> Vec<String> {
        self.shared.counter.requests()
    }

    /// Whether that fault has happened.
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
