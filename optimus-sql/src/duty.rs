//! Which of the relays of a database looks for calls all the time: [`Duty`], by a roster in Redis.
//!
//! This only spares work. A relay that is not on duty looks seldom, and works as any other if it
//! finds something: what is noted in the database keeps relays from sending anything twice. So a
//! roster that is lost or wrong costs some reads, and no call.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use optimus_core::{
    Client, Granted, HeldPosts, RosterName, WorkerDescription, WorkerId,
    broker::{Broker, Hold},
    platform,
};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// How long a relay that is gone stays on duty.
const LEASE: Duration = Duration::from_secs(15);
/// How often a relay renews its lease.
const BEAT: Duration = Duration::from_secs(5);
/// How long Redis may take to answer.
const BEAT_WITHIN: Duration = Duration::from_secs(2);
/// How long a relay waits before it takes the post of one that is gone, so that not all do at once.
const SPREAD: Duration = Duration::from_millis(200);

/// Whether a relay is on duty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rank {
    /// It looks often, because no other relay does, as far as it knows.
    On,
    /// Another relay is on duty.
    Off,
}

/// What a relay knows of its duty. At first, and while Redis does not answer, it is on duty.
#[derive(Debug, Clone, Default)]
pub(crate) struct Duty(Arc<AtomicBool>);

impl Duty {
    pub(crate) fn is_on(&self) -> bool {
        !self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, rank: Rank) {
        self.0.store(rank == Rank::Off, Ordering::Relaxed);
    }

    /// Keeps the duty up to date, until the relay stops; then another one gets it.
    pub(crate) async fn keep(&self, mut member: Member, stop: &CancellationToken) {
        while !stop.is_cancelled() {
            let (rank, wait) = member.beat().await;
            self.set(rank);
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = sleep(wait) => {}
            }
        }
        // The lease ends by itself otherwise.
        drop(timeout(BEAT_WITHIN, member.leave()).await);
    }
}

/// A relay as a member of the roster of its database, which has one post.
pub(crate) struct Member {
    broker: Broker,
    roster: RosterName,
    worker: WorkerId,
    description: String,
    held: HeldPosts,
    /// The number of the last heartbeat.
    beats: u64,
    epoch: Instant,
}

impl Member {
    /// `name` is the same for all relays of the database.
    pub(crate) fn new(client: &Client, name: &str) -> Option<Self> {
        let worker = WorkerId::generate(&platform::host(), platform::process_id());
        let description = WorkerDescription {
            name: None,
            host: platform::host(),
            pid: platform::process_id(),
            started: platform::instant(platform::now_ms()),
            queues: Vec::new(),
            concurrency: 0,
            tasks: Vec::new(),
            limits: std::collections::BTreeMap::default(),
        };
        Some(Self {
            broker: client.broker().separate("relay duty"),
            roster: RosterName::relays(name).ok()?,
            worker,
            description: serde_json::to_string(&description).ok()?,
            held: HeldPosts::default(),
            beats: 0,
            epoch: Instant::now(),
        })
    }

    /// Sends a heartbeat. Returns the rank from now on, and when to send the next one.
    async fn beat(&mut self) -> (Rank, Duration) {
        let shown = self.held.shown();
        self.beats += 1;
        let hold = Hold {
            worker: &self.worker,
            lease: LEASE,
            asked: 1,
            heard: self.held.heard(),
            shown: &shown,
            // Two relays on duty do no harm.
            quiet: Duration::ZERO,
            is_leaving: false,
            description: &self.description,
            number: self.beats,
        };
        let sent = self.epoch.elapsed();
        let answer = timeout(BEAT_WITHIN, self.broker.hold(&self.roster, &hold)).await;
        let Ok(Ok(holding)) = answer else { return (Rank::On, BEAT) };
        let times = (sent, self.epoch.elapsed());
        let changes = self.held.answered(times, LEASE, holding.heard, &holding.posts);
        let given_up: Vec<Granted> = changes.drain.into_iter().chain(changes.back).collect();
        if !given_up.is_empty() {
            for granted in &given_up {
                self.held.ended(*granted);
            }
            // If this fails, the next heartbeat does not name it, which is the same.
            drop(self.broker.yield_posts(&self.roster, &self.worker, &given_up).await);
        }
        let rank = if self.held.shown().is_empty() { Rank::Off } else { Rank::On };
        let spread = SPREAD.mul_f64(fastrand::f64());
        let expiry = holding.next_expiry.filter(|_| rank == Rank::Off).map(|next| next + spread);
        let wait = [expiry, holding.soon].into_iter().flatten().fold(BEAT, Duration::min);
        (rank, wait.max(SPREAD))
    }

    async fn leave(&self) {
        let shown = self.held.shown();
        drop(self.broker.leave_roster(&self.roster, &self.worker, &shown).await);
    }
}
