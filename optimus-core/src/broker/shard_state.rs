//! `checkpoint` and `demote`: how far shards have come, and the rows that failed.

use std::{collections::BTreeMap, time::Duration};

use super::{
    Broker, BrokerError, ScriptCall,
    inspect::{get, texts, whole},
    roster::pairs,
    scripts,
};
use crate::{
    id::WorkerId,
    roster::{Granted, Post, RosterName},
};

/// The last of the rows that are set aside which are read. Those that wait for the longest time
/// come first.
const ASIDE_LAST: &str = "999";

/// Who holds which post, as a fenced call shows it.
#[derive(Debug, Clone)]
pub struct Holder {
    /// The roster.
    pub roster: RosterName,
    /// The member.
    pub worker: WorkerId,
    /// The post and its fence.
    pub granted: Granted,
}

/// How far the posts of a roster have come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Positions {
    /// The count of each generation whose positions may still be needed.
    pub generations: BTreeMap<u64, u16>,
    /// The positions as JSON; empty at the end of a pass.
    pub posts: BTreeMap<Post, String>,
    /// The generation with which an operator has begun the last pass, if one has.
    pub restarted: Option<u64>,
}

impl Broker {
    /// Stores how far the holder of a post has come; an empty text is the end of its pass.
    pub async fn checkpoint(&self, holder: &Holder, position: &str) -> Result<(), BrokerError> {
        let (post, fence) = holder.granted;
        let keys = self.keys(holder.roster.slot());
        let call = ScriptCall::new(&scripts::CHECKPOINT, &keys, "").arg(&holder.worker);
        let call = call.arg(post).arg(fence).arg(post.generation).arg(position);
        self.run_surely(call).await.map(drop)
    }

    /// Counts a failure of a row and sets it aside: for `waits.0` after the first failure, twice as
    /// long after each one more, and at most for `waits.1`. Returns how often it has failed.
    pub async fn demote(
        &self,
        holder: &Holder,
        row: &str,
        waits: (Duration, Duration),
    ) -> Result<u32, BrokerError> {
        let call = self.demote_call(holder, row).arg(waits.0.as_millis());
        self.run(call.arg(waits.1.as_millis())).await?.number()
    }

    /// Forgets the failures of a row.
    pub async fn forget_failures(&self, holder: &Holder, row: &str) -> Result<(), BrokerError> {
        self.run_surely(self.demote_call(holder, row).arg("").arg("")).await.map(drop)
    }

    fn demote_call(&self, holder: &Holder, row: &str) -> ScriptCall {
        let (post, fence) = holder.granted;
        let call = self.call(&scripts::DEMOTE, holder.roster.slot(), "").arg(&holder.worker);
        call.arg(post).arg(fence).arg(row)
    }

    /// Reads the rows that are set aside now by Redis' clock, up to 1,000; the one that is due last
    /// comes first.
    pub async fn set_aside(&self, roster: &RosterName) -> Result<Vec<String>, BrokerError> {
        let aside = self.keys(roster.slot()).of("aside");
        let rows = get(&["ZRANGE", &aside, "0", ASIDE_LAST, "REV", "WITHSCORES"]);
        let mut answers = self.read(vec![get(&["TIME"]), rows]).await.into_iter();
        let mut next = || answers.next().expect("an answer for each call");
        let (now_ms, rows) = (self.time_ms(next()?)?, texts("ZRANGE", next()?)?);
        let waits = |until: &String| until.parse::<f64>().is_ok_and(|until| whole(until) >= now_ms);
        let rows = pairs(rows).take_while(|(_, until)| waits(until));
        Ok(rows.map(|(row, _)| row).collect())
    }

    /// Reads how far the posts have come.
    pub async fn positions(&self, roster: &RosterName) -> Result<Positions, BrokerError> {
        let keys = self.keys(roster.slot());
        let reads = vec![
            get(&["HGETALL", &keys.of("generations")]),
            get(&["HGETALL", &keys.of("positions")]),
            get(&["HMGET", &keys.of("meta"), "restarted"]),
        ];
        let mut answers = self.read(reads).await.into_iter();
        let mut next = || texts("HGETALL", answers.next().expect("an answer for each call")?);
        let generations = pairs(next()?);
        let generations =
            generations.filter_map(|(one, count)| Some((one.parse().ok()?, count.parse().ok()?)));
        let generations = generations.collect();
        let posts = pairs(next()?).filter_map(|(post, text)| Some((post.parse().ok()?, text)));
        let posts = posts.collect();
        let restarted = next()?.first().and_then(|text| text.parse().ok());
        Ok(Positions { generations, posts, restarted })
    }
}
