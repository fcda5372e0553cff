//! One turn of a relay: [`Turner::turn`] sends what is noted, and then notes what comes next.
//!
//! What is noted was committed before it is sent, and is deleted only after Redis has it. So after
//! a crash at any moment, the next relay sends the same calls under the same number, and the
//! ledger in Redis answers those that it had. No relay leads: all of them may send, and one
//! transaction lets one of them go on.

use std::time::Duration;

use futures_util::future::join_all;
use sqlx::Pool;
use tokio::time::{Instant, sleep_until};

use crate::{
    Error, OutboxDb,
    advance::{Advanced, Loaded, Plan, advance},
    calls::{StoredCall, read_noted_calls},
    floor::Floor,
    noted::{GONE, Noted, Share},
    patience::Patience,
    push::{Marks, Pushed, Pusher},
    spacing::Spacing,
    stream::Stream,
};

/// How long a relay leaves a batch to the one that has noted it.
const STANDBY: Duration = Duration::from_millis(250);

/// A relay with a batch of so many calls does not keep up, so it does not wait.
const BACKLOG: usize = 256;

/// How often an idle relay looks below its floor, where no row should appear.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The most of its time that it spends with that, as a divisor. Under an old snapshot, PostgreSQL
/// passes all deleted rows.
const LOOK_SHARE: u32 = 50;

/// What a turn has done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Calls were noted or sent, so there may be more.
    Worked,
    /// No call waits.
    Idle,
    /// Another relay works.
    Standby,
    /// Calls wait for the reason given.
    Stuck(String),
    /// The ledgers know another history, so the calls are sent again under another name.
    NewEpoch,
}

/// The state of a relay between its turns.
pub(crate) struct Turner<DB: OutboxDb> {
    pool: Pool<DB>,
    pusher: Pusher,
    stream: Option<Stream<DB>>,
    /// What this relay has noted, if no other one has noted anything since as far as it knows.
    mine: Option<Noted>,
    loaded: Loaded,
    floor: Floor,
    /// What another relay has noted, and when this one has seen it first.
    others: Option<(String, u64, Instant)>,
    /// When the last transaction began.
    advanced: Option<Instant>,
    spacing: Spacing,
    /// When to look below the floor next.
    look_below: Option<Instant>,
    patience: Patience,
}

impl<DB: OutboxDb> Turner<DB> {
    pub(crate) fn new(pool: Pool<DB>, pusher: Pusher) -> Self {
        let (loaded, floor) = (Loaded::new(), Floor::default());
        Self {
            pool,
            pusher,
            stream: None,
            mine: None,
            loaded,
            floor,
            others: None,
            advanced: None,
            spacing: Spacing::default(),
            look_below: None,
            patience: Patience::default(),
        }
    }

    pub(crate) fn pusher(&self) -> &Pusher {
        &self.pusher
    }

    /// Takes a turn. The future must not be dropped while it runs: a connection that is dropped
    /// within a transaction may return to it later.
    pub(crate) async fn turn(&mut self) -> Result<Turn, Error> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => self.open().await?,
        };
        let began = Instant::now();
        let turned = self.turn_over(&mut stream).await;
        match &turned {
            Ok(_) => {
                self.patience.worked(began.elapsed());
                self.stream = Some(stream);
            }
            Err(problem) => {
                // The connection is dropped with its transaction.
                self.patience.failed(problem);
                self.forget();
            }
        }
        turned
    }

    async fn open(&mut self) -> Result<Stream<DB>, Error> {
        let (namespace, limit) = (self.pusher.broker().namespace(), self.patience.limit());
        let opened = Stream::open(&self.pool, namespace, limit).await;
        if let Err(problem) = &opened {
            self.patience.failed(problem);
        }
        opened
    }

    /// Returns to the start, because what it knows may be wrong.
    pub(crate) fn forget(&mut self) {
        self.mine = None;
        self.loaded.clear();
        self.floor.reset();
    }

    async fn turn_over(&mut self, stream: &mut Stream<DB>) -> Result<Turn, Error> {
        let noted = if let Some(mine) = self.mine.take() {
            // If another relay has noted something since, the transaction finds that out.
            mine
        } else {
            let found = stream.noted().await?;
            self.forget();
            if self.leaves_to_others(&found) {
                return Ok(Turn::Standby);
            }
            found
        };
        match self.load(stream, &noted).await? {
            Read::All => {}
            Read::Newer(why) => return Ok(Turn::Stuck(why)),
            Read::Damaged(rows) => {
                let plan = set_aside(&noted, &rows);
                return self.go_on(stream, noted, plan, None).await;
            }
        }
        // A mark that this relay learns now may be that of a ledger which does not know the batch
        // any more. So the batch must still be noted afterwards.
        if self.pusher.learn_marks(&noted).await == Marks::Learned && stream.noted().await? != noted
        {
            self.forget();
            return Ok(Turn::Standby);
        }
        let (plan, stuck) = push_all(&self.pusher, &self.loaded, &noted).await;
        if let Some(next) = self.next_advance(&noted) {
            sleep_until(next).await;
        }
        self.go_on(stream, noted, plan, stuck).await
    }

    /// Returns when the next transaction begins: calls that are committed until then go with it.
    /// What is noted was sent before.
    fn next_advance(&self, noted: &Noted) -> Option<Instant> {
        let sent: usize = noted.shares.iter().map(|share| share.seqs.len()).sum();
        let advanced = self.advanced.filter(|_| (1..BACKLOG).contains(&sent))?;
        Some(advanced + self.spacing.time(DB::DIALECT, sent))
    }

    /// Returns whether rows wait below the floor, which it then leaves. A table that is truncated
    /// and begins again with 1, as in tests, has such rows.
    async fn has_rows_below(
        &mut self,
        stream: &mut Stream<DB>,
        noted: &Noted,
    ) -> Result<bool, Error> {
        let began = Instant::now();
        if self.floor.seq() == 0 || self.look_below.is_some_and(|next| began < next) {
            return Ok(false);
        }
        let has_rows = stream.has_rows(0, &noted.queues()).await?;
        self.look_below = Some(Instant::now() + LOOK_EVERY.max(began.elapsed() * LOOK_SHARE));
        if has_rows {
            self.floor.reset();
        }
        Ok(has_rows)
    }

    /// Notes what comes next, and ends what was sent.
    async fn go_on(
        &mut self,
        stream: &mut Stream<DB>,
        before: Noted,
        plan: Plan,
        stuck: Option<String>,
    ) -> Result<Turn, Error> {
        let begins_epoch = plan.begins_epoch;
        if begins_epoch || !plan.again.is_empty() {
            // Rows that were read go back.
            self.floor.reset();
        }
        let client = self.pusher.client().clone();
        let began = Instant::now();
        let advanced = advance(stream, &client, &mut self.floor, &before, plan).await?;
        self.spacing.note(began.elapsed());
        self.advanced = Some(began);
        match advanced {
            Advanced::Moved => {
                self.forget();
                Ok(Turn::Standby)
            }
            Advanced::Unchanged { newer } => {
                let has_more = self.has_rows_below(stream, &before).await?;
                self.mine = Some(before);
                Ok(match stuck.or(newer) {
                    _ if has_more => Turn::Worked,
                    Some(why) => Turn::Stuck(why),
                    None => Turn::Idle,
                })
            }
            Advanced::Noted { noted, loaded } => {
                let is_waiting = |queue: &_| noted.shares.iter().any(|share| share.queue == *queue);
                self.loaded.retain(|queue, _| is_waiting(queue));
                self.loaded.extend(loaded);
                self.mine = Some(noted);
                Ok(if begins_epoch { Turn::NewEpoch } else { Turn::Worked })
            }
        }
    }

    /// Returns whether another relay has noted this a moment ago, and probably sends it now.
    fn leaves_to_others(&mut self, found: &Noted) -> bool {
        if found.shares.is_empty() {
            self.others = None;
            return false;
        }
        match &self.others {
            Some((epoch, number, since)) if *epoch == found.epoch && *number == found.number => {
                since.elapsed() < STANDBY
            }
            _ => {
                self.others = Some((found.epoch.clone(), found.number, Instant::now()));
                true
            }
        }
    }

    /// Reads the calls of shares that another relay has noted.
    async fn load(&mut self, stream: &mut Stream<DB>, noted: &Noted) -> Result<Read, Error> {
        let mut damaged = Vec::new();
        for share in &noted.shares {
            if self.loaded.contains_key(&share.queue) {
                continue;
            }
            let seqs: Vec<i64> = share.seqs.iter().copied().filter(|seq| *seq != GONE).collect();
            let rows = stream.rows_of(&seqs).await?;
            let calls = read_noted_calls(rows);
            if let Some(newer) = calls.newer {
                return Ok(Read::Newer(newer));
            }
            self.loaded.insert(share.queue.clone(), calls.good);
            damaged.extend(calls.bad);
        }
        Ok(if damaged.is_empty() { Read::All } else { Read::Damaged(damaged) })
    }
}

/// What became of the rows of shares that another relay has noted.
enum Read {
    All,
    /// A newer program has stored one of them.
    Newer(String),
    /// Some were damaged since they were noted.
    Damaged(Vec<(i64, String)>),
}

/// Puts damaged rows of noted shares aside. The others are sent only after this is committed:
/// otherwise a relay that finds the rows repaired would take them for submitted.
fn set_aside(noted: &Noted, damaged: &[(i64, String)]) -> Plan {
    let is_damaged = |seq: &i64| damaged.iter().any(|(bad, _)| bad == seq);
    let rest = |share: &Share| {
        let left = |seq: &i64| if is_damaged(seq) { GONE } else { *seq };
        Share { seqs: share.seqs.iter().map(left).collect(), ..share.clone() }
    };
    let has_rows = |share: &Share| share.seqs.iter().any(|seq| *seq != GONE);
    let kept = noted.shares.iter().map(rest).filter(has_rows).collect();
    let note = "a relay has noted it before, so the task may be submitted";
    let parked = damaged.iter().map(|(seq, why)| (*seq, format!("{why}; {note}"))).collect();
    Plan { parked, kept, ..Plan::default() }
}

/// Sends all shares at once. Returns what is to be done about them, and why some wait.
async fn push_all(pusher: &Pusher, loaded: &Loaded, noted: &Noted) -> (Plan, Option<String>) {
    let ledger = noted.ledger();
    let sends = noted.shares.iter().map(|share| {
        let calls = loaded.get(&share.queue).map_or(&[][..], Vec::as_slice);
        let ledger = &ledger;
        async move { (share, calls, push_one(pusher, ledger, share, calls).await) }
    });
    let (mut plan, mut stuck) = (Plan::default(), None);
    for (share, calls, pushed) in join_all(sends).await {
        match pushed {
            Pushed::Done(refused) => {
                let is_refused = |seq: &i64| refused.iter().any(|(bad, _)| bad == seq);
                // Nothing but what was sent: other rows of the share are gone.
                let sent = calls.iter().map(|stored| stored.seq);
                plan.done.extend(sent.filter(|seq| !is_refused(seq)));
                plan.parked.extend(refused);
            }
            Pushed::Wait(why) => {
                plan.kept.push(share.clone());
                stuck = Some(why);
            }
            Pushed::Refused(why) => refuse(&mut plan, share, calls, why),
            Pushed::Forgotten => {
                plan.begins_epoch = true;
                plan.again.insert(share.queue.clone(), calls.to_vec());
            }
        }
    }
    if plan.begins_epoch {
        // The numbers of the others belong to the old ledgers.
        for share in std::mem::take(&mut plan.kept) {
            let calls = loaded.get(&share.queue).cloned().unwrap_or_default();
            plan.again.insert(share.queue, calls);
        }
    }
    (plan, stuck)
}

/// Rows of a share that are gone were deleted by hand, or by a relay that went on.
async fn push_one(pusher: &Pusher, ledger: &str, share: &Share, calls: &[StoredCall]) -> Pushed {
    if calls.is_empty() {
        return Pushed::Done(Vec::new());
    }
    pusher.push(ledger, share, calls).await
}

/// Finds the call that Redis refuses: half of the calls are sent next, and one alone is put aside.
fn refuse(plan: &mut Plan, share: &Share, calls: &[StoredCall], why: String) {
    if let [one] = calls {
        plan.parked.push((one.seq, why));
    } else {
        let half = calls[..calls.len() / 2].to_vec();
        plan.again.insert(share.queue.clone(), half);
    }
}
