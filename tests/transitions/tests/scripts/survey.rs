//! `survey` and `rescan`: what workers and operators tell of a source.

use std::collections::BTreeMap;

use optimus_core::broker::{BrokerError, Ended, Refusal, SourceStanding};

use crate::{
    acts::ms,
    bench::{Bench, START},
    rosters::RosterMember,
};

fn ended(ok: u64, failed: u64) -> Ended {
    Ended { ok, failed, scan_at_ms: 0 }
}

/// Tells so many successes and failures at a time, and asks for a probe each 10 s.
async fn tell(bench: &Bench, at: u64, (ok, failed): (u64, u64)) -> SourceStanding {
    tell_all(bench, at, ended(ok, failed)).await
}

async fn tell_all(bench: &Bench, at: u64, ended: Ended) -> SourceStanding {
    let (roster, none) = (bench.roster(), BTreeMap::new());
    bench.at(at).survey(&roster, ended, Some(ms(10_000)), &none).await.unwrap()
}

fn is_absent<T>(answer: &Result<T, BrokerError>) -> bool {
    matches!(answer, Err(BrokerError::Refused(Refusal::Absent, _)))
}

async fn a_source_that_nobody_has_held_is_unknown(bench: Bench) {
    let (broker, roster) = (bench.at(0), bench.roster());
    assert!(is_absent(&broker.survey(&roster, ended(1, 1), None, &BTreeMap::new()).await));
    assert!(is_absent(&broker.rescan(&roster).await));
    assert_eq!(bench.names().await, [""; 0]);
}

async fn a_source_is_slow_once_half_of_the_last_attempts_have_failed(bench: Bench) {
    bench.hold(0, &mut RosterMember::new("w1", 1)).await;
    assert_eq!(tell(&bench, 1, (0, 19)).await.slow_since_ms, 0, "too few attempts show nothing");
    assert_eq!(tell(&bench, 2, (81, 0)).await.slow_since_ms, 0);
    // Older attempts count less: of the last hundred, 46 have failed, and then 64.
    assert_eq!(tell(&bench, 3, (0, 50)).await.slow_since_ms, 0);
    let slow = tell(&bench, 4, (0, 50)).await;
    assert_eq!((slow.slow_since_ms, slow.may_probe), (START + 4, false));
    assert_eq!(tell(&bench, 5, (3, 3)).await.slow_since_ms, START + 4);
    assert_eq!(tell(&bench, 6, (2, 1)).await.slow_since_ms, 0, "more have succeeded");
    assert_eq!(tell(&bench, 7, (0, 19)).await.slow_since_ms, 0, "it begins again");
    assert_eq!(tell(&bench, 8, (0, 1)).await.slow_since_ms, START + 8);
    bench.assert_sound().await;
}

async fn one_caller_may_probe_a_slow_source_at_a_time(bench: Bench) {
    bench.hold(0, &mut RosterMember::new("w1", 1)).await;
    assert!(!tell(&bench, 0, (0, 0)).await.may_probe, "it is not slow");
    tell(&bench, 1, (0, 20)).await;
    let probes = [9_999, 10_001, 10_002, 19_000, 20_001, 20_002];
    let mut granted = Vec::new();
    for at in probes {
        if tell(&bench, at, (0, 0)).await.may_probe {
            granted.push(at);
        }
    }
    assert_eq!(granted, [10_001, 20_001]);
    let (roster, none) = (bench.roster(), BTreeMap::new());
    let unasked = bench.at(90_000).survey(&roster, ended(0, 0), None, &none).await.unwrap();
    assert!(!unasked.may_probe && unasked.slow_since_ms > 0);
    assert!(tell(&bench, 0, (0, 0)).await.may_probe, "the clock was set back");
}

async fn an_operator_asks_to_scan_at_once(bench: Bench) {
    bench.hold(0, &mut RosterMember::new("w1", 1)).await;
    tell(&bench, 1, (0, 20)).await;
    let (broker, roster) = (bench.at(5), bench.roster());
    for expected in [5, 6] {
        broker.rescan(&roster).await.unwrap();
        let standing = tell(&bench, 7, (0, 0)).await;
        assert_eq!((standing.scan_at_ms, standing.slow_since_ms), (START + expected, 0));
    }
    bench.assert_sound().await;
}

async fn attempts_from_before_a_request_that_their_worker_has_not_heard_of_do_not_count(
    bench: Bench,
) {
    bench.hold(0, &mut RosterMember::new("w1", 1)).await;
    assert!(tell(&bench, 1, (0, 20)).await.slow_since_ms > 0);
    bench.at(5).rescan(&bench.roster()).await.unwrap();
    let heard = tell(&bench, 6, (0, 50)).await;
    assert_eq!(heard.slow_since_ms, 0, "these have failed before the request");
    let since = Ended { scan_at_ms: heard.scan_at_ms, ..ended(0, 19) };
    assert_eq!(tell_all(&bench, 7, since).await.slow_since_ms, 0);
    assert_eq!(tell_all(&bench, 8, since).await.slow_since_ms, START + 8);
    bench.assert_sound().await;
}

async fn the_figures_of_each_slice_are_those_that_were_told_last(bench: Bench) {
    bench.hold(0, &mut RosterMember::new("w1", 4)).await;
    let (broker, roster) = (bench.at(1), bench.roster());
    for (slice, text) in [(0, "{\"rows\":1}"), (3, "{\"rows\":2}"), (0, "{\"rows\":9}")] {
        let figures = BTreeMap::from([(slice, text.to_owned())]);
        broker.survey(&roster, ended(1, 2), None, &figures).await.unwrap();
    }
    let seen = broker.source_seen(&roster).await.unwrap();
    assert_eq!((&*seen.scans[&0], &*seen.scans[&3]), ("{\"rows\":9}", "{\"rows\":2}"));
    assert_eq!((seen.scans.len(), seen.ended, seen.slow_since_ms), (2, (3.0, 6.0), 0));
    bench.assert_sound().await;
}

on_both![
    a_source_that_nobody_has_held_is_unknown,
    a_source_is_slow_once_half_of_the_last_attempts_have_failed,
    one_caller_may_probe_a_slow_source_at_a_time,
    an_operator_asks_to_scan_at_once,
    attempts_from_before_a_request_that_their_worker_has_not_heard_of_do_not_count,
    the_figures_of_each_slice_are_those_that_were_told_last,
];
