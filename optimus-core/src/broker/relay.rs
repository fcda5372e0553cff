//! `apply`, `relay`, `reask`: how queues tell each other that prerequisites are met.
//!
//! A script changes one queue. What it means for another queue is an effect in its outbox. A relay
//! reads the outbox, applies the effects at the other queue, and removes them. Every step can be
//! repeated, and several relays can work at once.

use std::{borrow::Cow, collections::VecDeque, time::Duration};

use super::{
    Broker, BrokerError, ScriptCall,
    inspect::{get, size, texts},
    scripts,
};
use crate::id::{QueueName, TaskId};

/// How many effects one call applies at most.
const EFFECTS_MAX: usize = 128;

/// Results that one call hands on have about this many bytes at most.
const FETCHED_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How many outboxes of the queue one turn carries at most.
const OUTBOXES_MAX: usize = 64;
/// How many outboxes of further queues one turn carries at most, with what follows from the first.
const FOLLOWED_MAX: usize = 4 * OUTBOXES_MAX;

/// The result of one turn of a relay.
#[derive(Debug, Default)]
pub struct RelayTurn {
    /// How many effects were applied.
    pub moved: usize,
    /// Whether more can be done at once.
    pub more: bool,
    /// When a task of the queue next asks again or gives up; `None` if none waits for that.
    pub next_ask: Option<Duration>,
    /// The queues that could not be reached. Their effects stay in the outbox.
    pub failed: Vec<(QueueName, BrokerError)>,
}

/// The effects of one outbox, and where they go.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// The queue that has the outbox.
    pub source: QueueName,
    /// The queue on which the effects work.
    pub target: QueueName,
    /// The effects, in their order.
    pub effects: Vec<String>,
}

/// What a call applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Applied {
    /// The number of the last effect of the source that the target has applied.
    pub last: u64,
    /// Whether the target itself has posted effects.
    pub posted: bool,
}

/// The tasks of a queue that asked again or gave up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reasked {
    /// How many tasks.
    pub tasks: usize,
    /// Whether effects were posted.
    pub posted: bool,
    /// When the next task asks or gives up.
    pub next: Option<Duration>,
}

impl Broker {
    /// Carries effects of a queue to other queues, and what follows from them there: answers, and
    /// ends of tasks that mean something for further queues. Asks again for prerequisites
    /// elsewhere. It does a limited part of the work.
    pub async fn relay(&self, source: &QueueName) -> Result<RelayTurn, BrokerError> {
        let mut turn = RelayTurn::default();
        let reasked = self.reask(source).await?;
        turn.next_ask = reasked.next;
        turn.more = reasked.next.is_some_and(|next| next.is_zero());
        let mut sources = VecDeque::from([source.clone()]);
        let (mut carried, mut followed) = (0, 0);
        while let Some(from) = sources.pop_front() {
            for outgoing in self.outgoing(&from).await? {
                let is_own = from == *source;
                let (count, most) = if is_own {
                    (&mut carried, OUTBOXES_MAX)
                } else {
                    (&mut followed, FOLLOWED_MAX)
                };
                if *count == most {
                    // Of further queues, other relays carry the rest.
                    turn.more |= is_own;
                    break;
                }
                *count += 1;
                match self.carry(&outgoing).await {
                    Ok((applied, left)) => {
                        turn.moved += outgoing.moved(applied.last);
                        turn.more |= left > 0 && is_own;
                        // Nobody may serve the target, or look at it soon, so this relay carries
                        // what follows there, too.
                        if (applied.posted || left > 0) && !sources.contains(&outgoing.target) {
                            sources.push_back(outgoing.target);
                        }
                    }
                    Err(problem) => turn.failed.push((outgoing.target, problem)),
                }
            }
        }
        Ok(turn)
    }

    async fn carry(&self, outgoing: &Outgoing) -> Result<(Applied, u64), BrokerError> {
        let whole = self.with_results(outgoing).await?;
        let applied = self.apply(&whole).await?;
        let left = self.relayed(outgoing, applied.last).await?;
        Ok((applied, left))
    }

    /// Puts results that are too large for an outbox into the effects that hand them on. Returns
    /// the first effects, with a limited number of bytes. An effect whose result is gone has none.
    pub async fn with_results<'a>(
        &self,
        outgoing: &'a Outgoing,
    ) -> Result<Cow<'a, Outgoing>, BrokerError> {
        if !outgoing.effects.iter().any(|effect| fetched_result(effect).is_some()) {
            return Ok(Cow::Borrowed(outgoing));
        }
        let keys = self.keys(&outgoing.source);
        let (mut effects, mut bytes) = (Vec::new(), 0);
        for effect in &outgoing.effects {
            let Some((before, id)) = fetched_result(effect) else {
                effects.push(effect.clone());
                continue;
            };
            let found = self.read_one(get(&["MGET", &keys.of(&format!("result:{id}"))])).await?;
            let result = texts("MGET", found)?.pop().unwrap_or_default();
            bytes += result.len();
            effects.push(match &*result {
                "" => before.to_owned(),
                result => format!("{before} ={result}"),
            });
            if bytes > FETCHED_BYTES_MAX {
                break;
            }
        }
        Ok(Cow::Owned(Outgoing { effects, ..outgoing.clone() }))
    }

    /// Reads the first effects of each outbox of a queue.
    pub async fn outgoing(&self, source: &QueueName) -> Result<Vec<Outgoing>, BrokerError> {
        let keys = self.keys(source);
        let targets = self.read_one(get(&["ZRANGE", &keys.of("outboxes"), "0", "-1"])).await?;
        let targets: Vec<QueueName> = texts("ZRANGE", targets)?
            .into_iter()
            .filter_map(|name| QueueName::new(name).ok())
            .collect();
        let last = (EFFECTS_MAX - 1).to_string();
        let outbox = |target| get(&["ZRANGE", &keys.outbox(target), "0", &last]);
        let mut found = Vec::new();
        let answers = self.read(targets.iter().map(outbox).collect()).await;
        for (target, answer) in targets.into_iter().zip(answers) {
            let effects = texts("ZRANGE", answer?)?;
            found.push(Outgoing { source: source.clone(), target, effects });
        }
        Ok(found)
    }

    /// Applies effects at their target. A repetition changes nothing.
    pub async fn apply(&self, outgoing: &Outgoing) -> Result<Applied, BrokerError> {
        let mut call = self.call(&scripts::APPLY, &outgoing.target, "").arg(&outgoing.source);
        for effect in &outgoing.effects {
            call.push(effect);
        }
        let mut reply = self.run_surely(call).await?;
        Ok(Applied { last: reply.number()?, posted: reply.flag()? })
    }

    /// Removes the effects from the outbox that were applied, up to this number. Returns how many
    /// are left.
    pub async fn relayed(&self, outgoing: &Outgoing, last: u64) -> Result<u64, BrokerError> {
        let Outgoing { source, target, .. } = outgoing;
        let call = ScriptCall::new(&scripts::RELAY, &self.keys(source), target.as_str());
        let own = if source == target { "1" } else { "" };
        self.run_surely(call.arg(target).arg(last).arg(own)).await?.number()
    }

    /// Asks again for the prerequisites elsewhere of some tasks, and ends some that give up.
    pub async fn reask(&self, queue: &QueueName) -> Result<Reasked, BrokerError> {
        self.reask_of(queue, []).await
    }

    /// Lets up to 64 tasks that an operation has requeued ask for their prerequisites now. Those
    /// that do not wait, or have asked, change nothing.
    pub async fn reask_of(
        &self,
        queue: &QueueName,
        tasks: impl IntoIterator<Item = &TaskId>,
    ) -> Result<Reasked, BrokerError> {
        let mut call = self.call(&scripts::REASK, queue, "");
        for id in tasks {
            call.push(id.stored());
        }
        let mut reply = self.run_surely(call).await?;
        Ok(Reasked { tasks: reply.number()?, posted: reply.flag()?, next: reply.wait()? })
    }

    /// Returns whether a queue has tasks that ended while they waited for their prerequisites.
    pub async fn has_ended_waiting(&self, queue: &QueueName) -> Result<bool, BrokerError> {
        let exists = get(&["EXISTS", &self.keys(queue).of("unmet_ended")]);
        Ok(size(&self.read_one(exists).await?) > 0)
    }

    /// Returns for each queue whether a relay has work there: effects, or tasks that ask again or
    /// give up, now or later.
    pub async fn outboxes(&self, queues: &[QueueName]) -> Result<Vec<bool>, BrokerError> {
        let exists = |queue| {
            let keys = self.keys(queue);
            let [asks, giveups, asked] = ["asks", "giveups", "asked"].map(|name| keys.of(name));
            get(&["EXISTS", &keys.of("outboxes"), &asks, &giveups, &asked])
        };
        let answers = self.read(queues.iter().map(exists).collect()).await;
        answers.into_iter().map(|answer| Ok(size(&answer?) > 0)).collect()
    }
}

/// Returns the parts of an effect that hands on a large result: what comes before it, and the task
/// that has it.
fn fetched_result(effect: &str) -> Option<(&str, &str)> {
    let verb = effect.split(' ').nth(1)?;
    let words = match verb {
        "met" => 3,
        "member" => 6,
        _ => return None,
    };
    let (at, _) = effect.match_indices(' ').nth(words - 1)?;
    let id = effect[at + 1..].strip_prefix('*')?;
    Some((&effect[..at], id))
}

impl Outgoing {
    /// How many of these effects are applied up to this number.
    fn moved(&self, last: u64) -> usize {
        let number = |effect: &&String| effect.split(' ').next()?.parse::<u64>().ok();
        self.effects.iter().filter(|effect| number(effect).is_some_and(|n| n <= last)).count()
    }
}
