//! The peers, each with its best settings.
//!
//! `benches/peers/README.md` gives the source of the settings.

use super::program::Runner;

/// A queue to compare with Optimus.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) name: &'static str,
    pub(super) runner: Runner,
    /// The peer's ways to submit. The last one fills its queue for the other measurements.
    pub(super) ways: &'static [Way],
    /// The settings for submits.
    pub(super) client: Settings,
    /// The settings for drains, the simplest first.
    pub(super) drains: &'static [Setup],
    /// The divisor of the peer's tasks. A slow peer would take an hour for all of them.
    pub(super) share: u64,
    /// The maximum number of tasks that the peer drains.
    pub(super) most: u64,
    /// An extra step between fill and drain, if the peer needs one.
    pub(super) between: Option<Between>,
}

/// Settings by their name in the results. The runner has them in capitals in its environment.
pub(super) type Settings = &'static [(&'static str, &'static str)];

/// A way to submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// One call after another, each awaited.
    Seq,
    /// This many calls at once.
    Concurrent(u64),
    /// This many tasks in each call.
    All(u64),
}

/// Worker processes, and the settings of each.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) processes: usize,
    pub(super) settings: Settings,
}

/// A script that is called until it replies 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Between {
    pub(super) script: &'static str,
    pub(super) keys: [&'static str; 2],
}

const fn one(settings: Settings) -> Setup {
    Setup { processes: 1, settings }
}

/// Returns a peer with the whole count and without special settings.
const fn peer(name: &'static str, runner: Runner, drains: &'static [Setup]) -> Peer {
    let ways = &[Way::Seq, Way::Concurrent(256), Way::All(1_000)];
    Peer { name, runner, ways, client: &[], drains, share: 1, most: u64::MAX, between: None }
}

/// A step for apalis. With more than some 8,000 due tasks, the script of apalis that makes them
/// ready fails, because it unpacks all of them at once. This script does the same in steps.
const PROMOTE: Between = Between {
    script: "
        local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '+inf', 'LIMIT', 0, 5000)
        if #due > 0 then
            redis.call('RPUSH', KEYS[2], unpack(due))
            redis.call('ZREM', KEYS[1], unpack(due))
        end
        return #due",
    keys: ["bench:scheduled", "bench:active"],
};

pub(super) const PEERS: &[Peer] = &[
    Peer {
        // The threads of Sidekiq share one core, so it has a second process and no concurrent
        // callers.
        ways: &[Way::Seq, Way::All(1_000)],
        client: &[("rubyopt", "--yjit")],
        ..peer(
            "sidekiq",
            Runner::Sidekiq,
            &[
                one(&[("in_flight", "10"), ("rubyopt", "--yjit")]),
                Setup { processes: 2, settings: &[("in_flight", "5"), ("rubyopt", "--yjit")] },
            ],
        )
    },
    Peer {
        ways: &[Way::Seq, Way::All(1_000), Way::Concurrent(256)],
        ..peer("bullmq", Runner::BullMq, &[one(&[("in_flight", "100")])])
    },
    Peer {
        ways: &[Way::Seq, Way::All(100), Way::Concurrent(256)],
        ..peer("bullmq-official", Runner::Cargo("bullmq-official"), &[one(&[("in_flight", "100")])])
    },
    Peer {
        // With more due tasks, the peer's own script makes none of them ready.
        most: 7_000,
        ..peer(
            "apalis",
            Runner::Cargo("apalis"),
            &[one(&[("locks", "true"), ("in_flight", "100"), ("batch", "100")])],
        )
    },
    Peer {
        client: &[("locks", "false")],
        between: Some(PROMOTE),
        ..peer(
            "apalis-no-locks",
            Runner::Cargo("apalis"),
            &[
                one(&[("locks", "false"), ("in_flight", "100"), ("batch", "100")]),
                one(&[("locks", "false"), ("in_flight", "1000"), ("batch", "500")]),
            ],
        )
    },
    Peer {
        ways: &[Way::Seq, Way::Concurrent(256)],
        ..peer("rusty-sidekiq", Runner::Cargo("rusty-sidekiq"), &[one(&[("in_flight", "10")])])
    },
    Peer {
        client: &[("pool", "42")],
        ..peer(
            "oxana",
            Runner::Cargo("oxana"),
            &[
                one(&[("in_flight", "50"), ("pool", "60"), ("poll_ms", "5")]),
                Setup {
                    processes: 3,
                    settings: &[
                        ("in_flight", "200"),
                        ("pool", "210"),
                        ("poll_ms", "5"),
                        ("batch", "100"),
                        ("threads", "1"),
                    ],
                },
            ],
        )
    },
    Peer {
        ways: &[Way::Seq, Way::All(1_000)],
        share: 10,
        ..peer(
            "celery",
            Runner::Celery,
            &[Setup { processes: 2, settings: &[("in_flight", "1"), ("prefetch", "100")] }],
        )
    },
    Peer {
        ways: &[Way::Seq, Way::Concurrent(256)],
        share: 10,
        ..peer("arq", Runner::Arq, &[one(&[("in_flight", "100"), ("poll_ms", "10")])])
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_named_once_and_can_be_filled_and_drained() {
        for (index, peer) in PEERS.iter().enumerate() {
            assert!(PEERS[..index].iter().all(|other| other.name != peer.name), "{}", peer.name);
            assert!(!peer.ways.is_empty() && !peer.drains.is_empty(), "{}", peer.name);
            assert_ne!(peer.name, super::super::ALL);
        }
    }
}
