//! `rescan`: an operator asks to scan at once. `survey.rs` shows what workers hear of it.

use std::collections::BTreeMap;

use optimus_core::broker::Ended;

use crate::{bench::Bench, rosters::RosterMember};

async fn a_request_keeps_the_figures_and_the_posts(bench: Bench) {
    let mut one = RosterMember::new("w1", 2);
    bench.hold(0, &mut one).await;
    let (broker, roster) = (bench.at(1), bench.roster());
    let figures = BTreeMap::from([(1, "{}".to_owned())]);
    let ended = Ended { ok: 4, failed: 3, scan_at_ms: 0 };
    broker.survey(&roster, ended, None, &figures).await.unwrap();
    broker.rescan(&roster).await.unwrap();
    let seen = broker.source_seen(&roster).await.unwrap();
    assert_eq!((seen.scans.len(), seen.ended), (1, (0.0, 0.0)));
    assert_eq!(broker.roster(&roster).await.unwrap().holders.len(), 2);
    bench.assert_sound().await;
}

on_both![a_request_keeps_the_figures_and_the_posts];
