//! `survey` and `rescan`: what workers and operators tell of sources.

use std::{collections::BTreeMap, time::Duration};

use super::{
    Broker, BrokerError,
    inspect::{get, texts, whole},
    roster::pairs,
    scripts,
};
use crate::roster::RosterName;

/// How many tasks of a source have ended since the last call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ended {
    /// How many have succeeded.
    pub ok: u64,
    /// How many have failed.
    pub failed: u64,
    /// The last request to scan at once that the worker has heard of, in ms. If there was another
    /// one since, these ends do not count.
    pub scan_at_ms: u64,
}

/// What a worker learns of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SourceStanding {
    /// Redis' clock, in ms.
    pub now_ms: u64,
    /// When an operator has last asked to scan at once, in ms; 0 for never.
    pub scan_at_ms: u64,
    /// Since when the source is slow, in ms; 0 if it is not.
    pub slow_since_ms: u64,
    /// Whether the caller may probe.
    pub may_probe: bool,
}

impl SourceStanding {
    /// Returns whether the source reads only probes.
    pub fn is_slow(&self) -> bool {
        self.slow_since_ms > 0
    }
}

/// A source as it is stored.
#[derive(Debug, Default)]
pub struct SourceSeen {
    /// Since when it is slow, in ms; 0 if it is not.
    pub slow_since_ms: u64,
    /// How many of the last attempts have succeeded and failed; older ones count less.
    pub ended: (f64, f64),
    /// The figures of each slice as JSON.
    pub scans: BTreeMap<u16, String>,
}

impl Broker {
    /// Tells how many tasks of a source have succeeded and failed since the last call, and the
    /// figures of slices. Asks for a probe if there is a time between probes. A lost answer is
    /// not repeated, so that nothing counts twice.
    pub async fn survey(
        &self,
        roster: &RosterName,
        Ended { ok, failed, scan_at_ms }: Ended,
        probes: Option<Duration>,
        figures: &BTreeMap<u16, String>,
    ) -> Result<SourceStanding, BrokerError> {
        let probes = probes.map(|between| between.as_millis().to_string()).unwrap_or_default();
        let call = self.call(&scripts::SURVEY, roster.slot(), "").arg(ok).arg(failed);
        let mut call = call.arg(probes).arg(scan_at_ms);
        for (slice, json) in figures {
            call.push(slice);
            call.push(json);
        }
        let mut reply = self.run(call).await?;
        Ok(SourceStanding {
            now_ms: reply.number()?,
            scan_at_ms: reply.number()?,
            slow_since_ms: reply.number()?,
            may_probe: reply.flag()?,
        })
    }

    /// Asks all holders of a source to scan at once.
    pub async fn rescan(&self, roster: &RosterName) -> Result<(), BrokerError> {
        self.run_surely(self.call(&scripts::RESCAN, roster.slot(), "")).await.map(drop)
    }

    /// Reads what is stored of a source, except its roster.
    pub async fn source_seen(&self, roster: &RosterName) -> Result<SourceSeen, BrokerError> {
        let keys = self.keys(roster.slot());
        let mut answers = self
            .read(vec![
                get(&["HMGET", &keys.of("control"), "slow_since", "ok", "failed"]),
                get(&["HGETALL", &keys.of("scans")]),
            ])
            .await
            .into_iter();
        let mut next = |verb| texts(verb, answers.next().expect("an answer for each call")?);
        let control = next("HMGET")?;
        let figure = |at: usize| control.get(at).and_then(|text| text.parse().ok()).unwrap_or(0.0);
        let scans = pairs(next("HGETALL")?);
        Ok(SourceSeen {
            slow_since_ms: whole(figure(0)),
            ended: (figure(1), figure(2)),
            scans: scans.filter_map(|(slice, json)| Some((slice.parse().ok()?, json))).collect(),
        })
    }
}
