//! Holds the worker's posts in all rosters: [`Posts`]. It is one role for all of them, on the
//! maintenance thread, so that handlers which block every thread of their runtime do not cost the
//! worker its posts.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use optimus_core::{
    broker::{Broker, BrokerError},
    log_event,
};
use tokio::time::{Instant, timeout};

use crate::{
    config::FOREVER, post_function::PostFunction, role::Role, roster_member::Member, shared::Shared,
};

/// How long work that was dropped at the end may take to end.
const END_WITHIN: Duration = Duration::from_millis(500);
const LEAVE_WITHIN: Duration = Duration::from_secs(1);
/// The names of rosters are announced again after so many leases, because Redis may have lost them:
/// a minute.
const ANNOUNCES_AFTER: u32 = 4;
/// A call has at least this much time.
const CALL_LEAST: Duration = Duration::from_millis(20);

/// What the end of the worker must know of its posts.
#[derive(Debug, Default)]
pub(crate) struct OpenPosts {
    count: AtomicUsize,
    is_abandoned: AtomicBool,
}

impl OpenPosts {
    /// Returns how many posts have work that runs, or must be given back.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Asks the role to drop all work.
    pub(crate) fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Release);
    }
}

/// The role that holds the worker's posts.
pub(crate) struct Posts {
    shared: Arc<Shared>,
    broker: Broker,
    members: Vec<Member>,
    announced_at: Option<Instant>,
}

impl Posts {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        // The names were checked when the worker was built.
        let member = |function| Member::new(shared.clone(), function).ok();
        let functions = shared.shardeds.iter().copied().map(PostFunction::Sharded);
        let sources = shared.sources.scanned().cloned().map(PostFunction::Source);
        let members = functions.chain(sources).filter_map(member).collect();
        Self { broker: shared.maintenance.clone(), members, shared, announced_at: None }
    }

    /// Gives all posts back and leaves. A post whose work can't be ended stays until the lease is
    /// over.
    pub(crate) async fn leave(&mut self) {
        let ended = async {
            loop {
                for member in &mut self.members {
                    if !member.is_leaving {
                        member.leave(Duration::ZERO);
                    }
                    member.abandon();
                    member.check();
                }
                if self.members.iter().all(Member::is_idle) {
                    return;
                }
                self.shared.wakeups.posts.woken().await;
            }
        };
        // What has not ended then stays.
        drop(timeout(END_WITHIN, ended).await);
        if timeout(LEAVE_WITHIN, self.give_back()).await.is_err() {
            let text =
                "could not give the shards or slices back in time; the lease there ends by itself";
            log_event!(self.shared.log, WARN, "{text}");
        }
        self.count();
    }

    /// Begins the end of the worker.
    fn begin_end(&mut self) {
        let shutdown = &self.shared.shutdown;
        for member in &mut self.members {
            if shutdown.is_quiet() && !member.is_leaving {
                member.leave(self.shared.config.shutdown_grace);
            }
            if self.shared.posts.is_abandoned.load(Ordering::Acquire) {
                member.abandon();
            }
            member.check();
        }
    }

    /// Gives back the posts whose work has ended. If that fails, the next heartbeat does not name
    /// them, which is the same.
    async fn give_back(&mut self) {
        let worker = self.shared.member.clone();
        for member in &mut self.members {
            let back = member.take_back();
            let roster = member.roster().clone();
            if member.can_leave() {
                let left = self.broker.leave_roster(&roster, &worker, &back).await;
                member.has_left = left.is_ok();
            } else if !back.is_empty() {
                // The answer changes nothing.
                drop(self.broker.yield_posts(&roster, &worker, &back).await);
            }
        }
    }

    /// Sends the heartbeats that are due, in one write.
    async fn beat(&mut self) {
        let (now, patience) = (Instant::now(), self.patience());
        let due = |member: &&mut Member| member.next_at <= now && !member.has_left;
        let mut members: Vec<&mut Member> = self.members.iter_mut().filter(due).collect();
        if members.is_empty() {
            return;
        }
        let calls = members.iter_mut().map(|member| member.hold_call(&self.broker)).collect();
        let answers = timeout(patience, self.broker.run_all(calls)).await;
        let Ok(answers) = answers else {
            self.broker.reconnect();
            let late = BrokerError::Unknown("Redis did not answer in time".into());
            for member in members {
                member.failed(&late);
            }
            return;
        };
        let mut has_worked = false;
        for (member, answer) in members.into_iter().zip(answers) {
            match answer.and_then(Broker::read_hold) {
                Ok(holding) => {
                    member.answered(now, &holding);
                    has_worked = true;
                }
                Err(problem) => member.failed(&problem),
            }
        }
        let again_after = self.shared.config.lease * ANNOUNCES_AFTER;
        if has_worked && self.announced_at.is_none_or(|at| at + again_after <= now) {
            // Otherwise after a later heartbeat.
            if let Ok(Ok(())) = timeout(self.patience(), self.announce()).await {
                self.announced_at = Some(now);
            }
        }
    }

    /// Adds the rosters to the list of those of the namespace.
    async fn announce(&self) -> Result<(), BrokerError> {
        for member in &self.members {
            self.broker.announce_roster(member.roster()).await?;
        }
        Ok(())
    }

    /// Returns how long a call may take. The work must end with the lease, also while Redis does
    /// not answer.
    fn patience(&self) -> Duration {
        let (now, lease) = (Instant::now(), self.shared.config.lease);
        let ends = self.members.iter().filter_map(Member::lease_ends).min();
        let within = ends.map_or(lease, |at| at.saturating_duration_since(now));
        within.min(lease / 2).max(CALL_LEAST)
    }

    /// Gives back what it can in time.
    async fn give_back_in_time(&mut self) {
        if timeout(self.patience(), self.give_back()).await.is_err() {
            self.broker.reconnect();
        }
    }

    fn count(&self) {
        let open = self.members.iter().map(Member::open).sum();
        if self.shared.posts.count.swap(open, Ordering::AcqRel) == 0 && open > 0 {
            self.shared.wakeups.posts_began();
        }
        if open == 0 {
            self.shared.wakeups.posts_given_back();
        }
    }
}

impl Drop for Posts {
    /// If the role has panicked, nobody else drops its work, and the end of the worker must not
    /// wait for it.
    fn drop(&mut self) {
        self.members.clear();
        self.count();
    }
}

impl Role for Posts {
    async fn tick(&mut self) -> Duration {
        if self.members.is_empty() {
            return FOREVER;
        }
        self.begin_end();
        self.give_back_in_time().await;
        self.beat().await;
        for member in &mut self.members {
            member.check();
        }
        self.give_back_in_time().await;
        self.count();
        let next = self.members.iter().map(Member::next_check).min();
        let rest = next.map_or(FOREVER, |at| at.saturating_duration_since(Instant::now()));
        rest.max(Duration::from_millis(1))
    }
}

#[cfg(test)]
mod tests {
    use std::{future::pending, sync::LazyLock};

    use optimus_core::{Sharded, ShardedOptions, Walk};
    use optimus_testkit::Signal;

    use super::*;
    use crate::{Worker, role::supervise, test_worker::Nothing};

    static BEGAN: LazyLock<Signal> = LazyLock::new(Signal::new);
    static ENDED: LazyLock<Signal> = LazyLock::new(Signal::new);

    struct Ends;

    impl Drop for Ends {
        fn drop(&mut self) {
            ENDED.hit();
        }
    }

    /// Its rounds never end.
    fn endless() -> Sharded {
        let options =
            ShardedOptions { shards: 1, idle: Duration::from_secs(1), walk: Walk::Forever };
        Sharded::new(("endless", "endless"), options, Vec::new, |_| {
            Ok(Box::pin(async move {
                let _ends = Ends;
                BEGAN.hit();
                pending().await
            }))
        })
    }

    #[tokio::test]
    async fn a_round_ends_with_the_role_that_controls_it_and_the_worker_does_not_wait() {
        let worker = Worker::builder("memory://posts-that-panic").quiet().only_named_tasks();
        let worker = worker.task_type::<Nothing>().sharded(endless).build().unwrap();
        let shared = worker.idle_worker().await;
        let role = async {
            let mut posts = Posts::new(shared.clone());
            while BEGAN.hits() == 0 {
                // The next turn hears of the shard.
                let rest = posts.tick().await;
                drop(timeout(rest, BEGAN.wait_for(1)).await);
            }
            assert_eq!(shared.posts.count(), 1);
            panic!("boom");
        };
        supervise("posts", &shared.shutdown, role).await;
        let why = shared.shutdown.failure().unwrap();
        assert!(why.ends_with(": boom"), "{why}");
        assert_eq!(shared.posts.count(), 0);
        ENDED.wait_for(1).await;
    }
}
