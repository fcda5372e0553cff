//! A proxy between clients and a Redis that does what networks do: [`FaultProxy`].
//!
//! It knows Redis' protocol just far enough to count commands and to pair them with their
//! replies, so that a test can lose exactly the k-th request or the k-th reply.

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

/// A proxy on a free port of the loopback interface. Everything can be set while it runs, and
/// applies to what is sent from then on. It ends, and cuts its connections, when dropped.
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
    /// How the connections of this moment end; each change is told to all of them.
    ending: watch::Sender<Ending>,
    counter: Counter,
}

#[derive(Clone, Copy, Debug)]
enum Ending {
    /// In good order (FIN).
    Close,
    /// With RST.
    Reset,
    /// Not at all: nothing comes through any more, and nobody is told.
    Freeze,
}

impl FaultProxy {
    /// A proxy to the server at `url` (`redis://host:port/` or `unix:///path`), which lets
    /// everything pass. It runs on the runtime of the caller.
    ///
    /// # Panics
    ///
    /// If the URL is none of a server of the test kit.
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

    /// Where clients connect: `redis://127.0.0.1:…/`.
    pub fn url(&self) -> String {
        format!("redis://{}/", self.address)
    }

    /// Takes new connections to that server from now on, as a name does after a failover.
    ///
    /// # Panics
    ///
    /// If the URL is none of a server of the test kit.
    pub fn lead_to(&self, url: &str) {
        self.shared.upstream.send_replace(Upstream::parse(url));
    }

    /// Ends every delay, rate, hole and slicing.
    pub fn pass(&self) {
        self.shared.flow.send_replace(Flow::default());
    }

    /// Delivers everything so much later, each way.
    pub fn delay(&self, by: Duration) {
        self.set(Way::Both, Pace::Delay(by));
    }

    /// Delivers byte by byte, each a packet of its own.
    pub fn slices(&self) {
        self.set(Way::Both, Pace::Slices);
    }

    /// Delivers so many bytes per second that way, on each connection.
    pub fn rate(&self, way: Way, per_second: usize) {
        self.set(way, Pace::Rate(per_second));
    }

    /// Delivers nothing that way. As in a network that lost its packets, what was sent arrives
    /// late, after [`pass`](Self::pass), unless the connection ends first.
    pub fn black_hole(&self, way: Way) {
        self.set(way, Pace::Hole);
    }

    /// Closes every connection (FIN). New ones are taken.
    pub fn cut(&self) {
        self.shared.ending.send_replace(Ending::Close);
    }

    /// Resets every connection (RST). New ones are taken.
    pub fn reset(&self) {
        self.shared.ending.send_replace(Ending::Reset);
    }

    /// Makes every connection a half-open one: it stays, and nothing passes it ever again. New
    /// ones are taken.
    pub fn half_open(&self) {
        self.shared.ending.send_replace(Ending::Freeze);
    }

    /// Loses the `k`-th request from now, counted from 1 over all connections, before it reaches
    /// the server, and its connection with it.
    pub fn drop_request(&self, k: u64) {
        self.shared.counter.arm(k, Fault::DropRequest);
    }

    /// Loses the reply to the `k`-th request from now, and its connection with it: the command
    /// was executed, and the client can't know.
    pub fn drop_reply(&self, k: u64) {
        self.shared.counter.arm(k, Fault::DropReply);
    }

    /// Sends the `k`-th request from now twice; the client hears the second answer.
    pub fn duplicate(&self, k: u64) {
        self.shared.counter.arm(k, Fault::Duplicate);
    }

    /// The requests since the last of the three above was called, without those that set up a
    /// connection: each as its command, of a script with the script's hash.
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

/// Until the task is aborted, and all connections with it.
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
