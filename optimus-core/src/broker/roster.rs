//! `hold`, `yield`, `recount` and `suspend`: rosters of posts, and plain reads of them.

use std::{collections::BTreeMap, time::Duration};

use super::{
    Broker, BrokerError, Reply, ScriptCall,
    inspect::{get, texts, whole},
    keys, reply, scripts,
};
use crate::{
    id::WorkerId,
    operator_answers::PauseAnswer,
    roster::{Granted, Heard, Post, RosterName, Stay},
};

/// What a member asks for in one heartbeat.
#[derive(Debug, Clone, Copy)]
pub struct Hold<'a> {
    /// The member.
    pub worker: &'a WorkerId,
    /// Its lease.
    pub lease: Duration,
    /// How many posts its code asks for. It counts only for a roster that nobody knows.
    pub asked: u16,
    /// What it heard last.
    pub heard: Heard,
    /// What it holds.
    pub shown: &'a [Granted],
    /// For how long at least nothing is granted if Redis does not know the roster, because others
    /// may hold posts. Zero for a store that can't have lost anything.
    pub quiet: Duration,
    /// Whether it leaves, so that it takes nothing and gives back all.
    pub is_leaving: bool,
    /// Its description, as JSON.
    pub description: &'a str,
    /// The number of the call, above that of its last one. Redis refuses a call that arrives after
    /// a later one, or a second time.
    pub number: u64,
}

/// The answer to a [`Hold`].
#[derive(Debug)]
pub struct Holding {
    /// Redis' clock, in ms.
    pub now_ms: u64,
    /// The time until the earliest lease of another member is over.
    pub next_expiry: Option<Duration>,
    /// When the member should call again, if that is before its next heartbeat.
    pub soon: Option<Duration>,
    /// What it must repeat in its next call.
    pub heard: Heard,
    /// The posts that it holds from now on.
    pub posts: Vec<(Post, u64, Stay)>,
}

/// A roster as it is stored.
#[derive(Debug, Default)]
pub struct RosterSeen {
    /// The present generation; 0 if no member was ever there, or nothing was granted yet.
    pub generation: u64,
    /// How many posts it has.
    pub count: u16,
    /// Each post that is held: by whom, the fence, and since when in ms.
    pub holders: BTreeMap<Post, (WorkerId, u64, u64)>,
    /// The suspended posts by their numbers, `*` for all, with the text of each suspension.
    pub suspended: BTreeMap<String, String>,
    /// The members.
    pub members: BTreeMap<WorkerId, MemberSeen>,
    /// When it was read, by Redis' clock.
    pub now_ms: u64,
}

/// A member of a roster as it is stored. One that is dead stays until another one calls.
#[derive(Debug, Default)]
pub struct MemberSeen {
    /// Its description, as JSON.
    pub description: String,
    /// When its lease is over unless it is renewed, in ms.
    pub lease_until_ms: u64,
}

/// After this part of its lease, a new member counts for what others give back: 10 s of 15 s.
const SETTLES_AFTER: (u32, u32) = (2, 3);

impl Broker {
    /// Returns the heartbeat of a member, which also takes posts and names those to give back.
    pub fn hold_call(&self, roster: &RosterName, hold: &Hold<'_>) -> ScriptCall {
        let (parts, of) = SETTLES_AFTER;
        let longest = hold.lease.max(hold.heard.longest);
        let call = self.call(&scripts::HOLD, roster.slot(), hold.worker.as_str());
        let mut call = call
            .arg(hold.worker)
            .arg(hold.lease.as_millis())
            .arg(hold.asked)
            .arg(hold.heard.generation)
            .arg(hold.heard.count)
            .arg(longest.as_millis())
            .arg(hold.quiet.as_millis())
            .arg((hold.lease * parts / of).as_millis())
            .arg(u8::from(hold.is_leaving))
            .arg(hold.description)
            .arg(hold.number);
        push_posts(&mut call, hold.shown);
        call
    }

    /// Reads the answer to a [`hold_call`](Self::hold_call).
    pub fn read_hold(mut reply: Reply) -> Result<Holding, BrokerError> {
        let (now_ms, next_expiry, soon) = (reply.number()?, reply.wait()?, reply.wait()?);
        let heard = Heard {
            generation: reply.number()?,
            count: reply.number()?,
            longest: Duration::from_millis(reply.number()?),
        };
        let rest = reply.rest()?;
        let unexpected = || BrokerError::UnexpectedReply(format!("hold answered {rest:?}"));
        let posts = rest.iter().map(|word| read_held(word).ok_or_else(unexpected));
        let posts = posts.collect::<Result<_, _>>()?;
        Ok(Holding { now_ms, next_expiry, soon, heard, posts })
    }

    /// Sends the heartbeat of a member.
    pub async fn hold(&self, roster: &RosterName, hold: &Hold<'_>) -> Result<Holding, BrokerError> {
        Self::read_hold(self.run(self.hold_call(roster, hold)).await?)
    }

    /// Gives posts back; returns how many were given back, and how many the member still holds.
    pub async fn yield_posts(
        &self,
        roster: &RosterName,
        worker: &WorkerId,
        posts: &[Granted],
    ) -> Result<(usize, usize), BrokerError> {
        self.yield_and(roster, worker, posts, "0").await
    }

    /// Gives posts back and leaves the roster, unless the member still holds others; returns how
    /// many these are.
    pub async fn leave_roster(
        &self,
        roster: &RosterName,
        worker: &WorkerId,
        posts: &[Granted],
    ) -> Result<usize, BrokerError> {
        Ok(self.yield_and(roster, worker, posts, "1").await?.1)
    }

    async fn yield_and(
        &self,
        roster: &RosterName,
        worker: &WorkerId,
        posts: &[Granted],
        leaves: &str,
    ) -> Result<(usize, usize), BrokerError> {
        let keys = self.keys(roster.slot());
        let call = ScriptCall::new(&scripts::YIELD, &keys, worker.as_str());
        let mut call = call.arg(worker).arg(leaves);
        push_posts(&mut call, posts);
        let mut reply = self.run_surely(call).await?;
        Ok((reply.number()?, reply.number()?))
    }

    /// Begins a new generation with another count; returns the count before.
    pub async fn recount(&self, roster: &RosterName, count: u16) -> Result<u16, BrokerError> {
        let call = self.call(&scripts::RECOUNT, roster.slot(), "").arg(count).arg("0");
        Self::read_recount(self.run_surely(call).await?)
    }

    /// Begins a new generation with the same count and without positions.
    pub async fn restart(&self, roster: &RosterName) -> Result<u16, BrokerError> {
        let call = self.call(&scripts::RECOUNT, roster.slot(), "").arg("").arg("1");
        Self::read_recount(self.run_surely(call).await?)
    }

    fn read_recount(mut reply: Reply) -> Result<u16, BrokerError> {
        let _generation = reply.text()?;
        let _count = reply.text()?;
        reply.number()
    }

    /// Suspends one post, or all with `None`.
    pub async fn suspend(
        &self,
        roster: &RosterName,
        post: Option<u16>,
        by: &str,
        why: &str,
    ) -> Result<PauseAnswer, BrokerError> {
        let call = self.call(&scripts::SUSPEND, roster.slot(), "").arg("1").arg(number(post));
        let by = by.replace(['\n', '\r'], " ");
        read_pause(self.run_surely(call.arg(by).arg(why)).await?)
    }

    /// Resumes one post, or all with `None`.
    pub async fn resume_posts(
        &self,
        roster: &RosterName,
        post: Option<u16>,
    ) -> Result<PauseAnswer, BrokerError> {
        let call = self.call(&scripts::SUSPEND, roster.slot(), "").arg("0").arg(number(post));
        read_pause(self.run_surely(call.arg("").arg("")).await?)
    }

    /// Reads a roster.
    pub async fn roster(&self, roster: &RosterName) -> Result<RosterSeen, BrokerError> {
        let keys = self.keys(roster.slot());
        let mut answers = self
            .read(vec![
                get(&["HMGET", &keys.of("meta"), "generation", "count"]),
                get(&["HGETALL", &keys.of("posts")]),
                get(&["HGETALL", &keys.of("suspended")]),
                get(&["ZRANGE", &keys.of("workers"), "0", "-1", "WITHSCORES"]),
                get(&["TIME"]),
            ])
            .await
            .into_iter();
        let mut answer = || answers.next().expect("an answer for each call");
        let mut next = |verb| texts(verb, answer()?);
        let meta = next("HMGET")?;
        let digits = |at: usize| meta.get(at).and_then(|text| text.parse::<u64>().ok());
        let mut seen = RosterSeen {
            generation: digits(0).unwrap_or(0),
            count: u16::try_from(digits(1).unwrap_or(0)).unwrap_or(u16::MAX),
            ..RosterSeen::default()
        };
        let holders = next("HGETALL")?;
        seen.holders.extend(holders.chunks_exact(2).filter_map(read_holder));
        seen.suspended.extend(pairs(next("HGETALL")?));
        let members: Vec<(String, String)> = pairs(next("ZRANGE")?).collect();
        seen.now_ms = self.time_ms(answer()?)?;
        let told = |name: &String| get(&["HGET", &keys.worker(name), "description"]);
        let described = members.iter().map(|(name, _)| told(name)).collect();
        for ((name, lease), answer) in members.iter().zip(self.read(described).await) {
            let text = reply::plain_bytes("HGET", answer?)?.unwrap_or_default();
            let description = String::from_utf8_lossy(&text).into_owned();
            let lease_until_ms = lease.parse().map_or(0, whole);
            let member = MemberSeen { description, lease_until_ms };
            seen.members.insert(WorkerId::from_stored(name), member);
        }
        Ok(seen)
    }

    /// Adds a roster to the list of those of the namespace.
    pub async fn announce_roster(&self, roster: &RosterName) -> Result<(), BrokerError> {
        self.announce(roster.slot()).await
    }

    /// Reads the names of all rosters of shards that a worker has ever served.
    pub async fn shard_rosters(&self) -> Result<Vec<String>, BrokerError> {
        self.rosters_of("@shards.").await
    }

    /// Reads the names of all rosters of sources that a worker has ever served.
    pub async fn source_rosters(&self) -> Result<Vec<String>, BrokerError> {
        self.rosters_of("@sources.").await
    }

    /// Reads the names behind a prefix of all slots that were ever announced.
    pub(super) async fn rosters_of(&self, prefix: &str) -> Result<Vec<String>, BrokerError> {
        let set = self.read_one(get(&["SMEMBERS", &keys::queues(&self.namespace)])).await?;
        let all = texts("SMEMBERS", set)?;
        let name = |slot: &String| slot.strip_prefix(prefix).map(str::to_owned);
        let mut names: Vec<String> = all.iter().filter_map(name).collect();
        names.sort();
        Ok(names)
    }
}

fn push_posts(call: &mut ScriptCall, posts: &[Granted]) {
    for (post, fence) in posts {
        call.push(post);
        call.push(fence);
    }
}

fn read_pause(mut reply: Reply) -> Result<PauseAnswer, BrokerError> {
    Ok(PauseAnswer { is_changed: reply.flag()?, is_known: reply.flag()? })
}

fn number(post: Option<u16>) -> String {
    post.map_or_else(|| "*".to_owned(), |post| post.to_string())
}

/// Reads `<post> <fence> <keep or drop>`.
fn read_held(text: &str) -> Option<(Post, u64, Stay)> {
    let words: Vec<&str> = text.split(' ').collect();
    let [post, fence, stay] = words[..] else { return None };
    let stay = match stay {
        "keep" => Stay::Keep,
        "drop" => Stay::Drop,
        _ => return None,
    };
    Some((post.parse().ok()?, fence.parse().ok()?, stay))
}

/// Reads a post and `<worker> <fence> <keep or drop> <ms since when>`.
fn read_holder(pair: &[String]) -> Option<(Post, (WorkerId, u64, u64))> {
    let words: Vec<&str> = pair[1].split(' ').collect();
    let [worker, fence, _, since] = words[..] else { return None };
    let worker = WorkerId::from_stored(worker);
    let since = since.parse::<f64>().map(whole).ok()?;
    Some((pair[0].parse().ok()?, (worker, fence.parse().ok()?, since)))
}

pub(super) fn pairs(texts: Vec<String>) -> impl Iterator<Item = (String, String)> {
    let mut texts = texts.into_iter();
    std::iter::from_fn(move || Some((texts.next()?, texts.next()?)))
}
