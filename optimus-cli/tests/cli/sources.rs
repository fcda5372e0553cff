//! What the commands print of sources, and what they change.

use std::collections::BTreeMap;

use optimus_core::{RosterName, broker::Ended};
use serde_json::json;

use crate::{outputs::compare, shards::Holder, stage::Stage};

/// Lets a worker hold the two slices of source `rows`, one of which can't read its page.
pub(crate) async fn rows(stage: &Stage) -> RosterName {
    let rows = RosterName::sources("rows").unwrap();
    Holder::of(stage, rows.clone()).await;
    let error = "no database at postgres://ann:hunter2@db";
    let figures = BTreeMap::from([
        (0, json!({ "rows": 1200, "submitted": 1100, "known": 90, "given_up": 10 }).to_string()),
        (1, json!({ "rows": 7, "refused": 7, "failed": 3, "error": error }).to_string()),
    ]);
    let ended = Ended { ok: 10, failed: 90, scan_at_ms: 0 };
    stage.client.broker().survey(&rows, ended, None, &figures).await.unwrap();
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn sources_are_listed_and_shown_with_what_they_have_read() {
    let stage = Stage::new().await;
    let nothing = stage.optimus(&["source", "list"]).ended(0).out;
    assert!(nothing.contains("No worker has served a source."), "{nothing}");
    rows(&stage).await;
    compare(
        &stage,
        &[("source_list", &["source", "list"]), ("source_show", &["source", "show", "rows"])],
    );
    let listed = stage.optimus(&["source", "list", "--json"]).ended(0).json().remove(0);
    assert!(listed["slow_since_ms"].is_number() && listed["pause"].is_null(), "{listed}");
    assert_eq!((&listed["rows"], &listed["submitted"]), (&json!(1207), &json!(1100)), "{listed}");
    let shown = stage.optimus(&["source", "show", "rows", "--json", "--redact"]).ended(0);
    assert!(
        !shown.out.contains("hunter2") && shown.out.contains("no database at"),
        "{}",
        shown.out
    );
    assert_eq!(shown.json()[1]["refused"], 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_is_paused_resumed_scanned_and_cut_into_other_slices() {
    let stage = Stage::new().await;
    let roster = rows(&stage).await;
    let said = |line: &[&str]| stage.optimus(line).ended(0).out;
    let paused = said(&["source", "pause", "rows", "--reason", "repair"]);
    assert_eq!(paused, "source rows is paused\n");
    let shown = said(&["source", "show", "rows"]);
    assert!(shown.contains("paused by ann (repair)"), "{shown}");
    assert_eq!(said(&["source", "pause", "rows"]), "source rows is paused already\n");
    assert_eq!(said(&["source", "resume", "rows"]), "source rows is resumed\n");
    assert_eq!(said(&["source", "resume", "rows"]), "source rows is not paused\n");
    let seen = async || stage.client.broker().source_seen(&roster).await.unwrap();
    assert!(seen().await.slow_since_ms > 0);
    assert_eq!(said(&["source", "scan", "rows"]), "source rows is scanned now\n");
    assert_eq!(seen().await.slow_since_ms, 0);
    stage.optimus(&["source", "slices", "rows", "4"]).ended(9);
    let cut = said(&["source", "slices", "rows", "4", "--yes"]);
    assert_eq!(cut, "source rows has 4 slices; it had 2\n");
    let audit = said(&["audit", "list"]);
    for act in ["source.pause", "source.resume", "source.run_now", "source.slices"] {
        assert!(audit.contains(act), "{act}: {audit}");
    }
    for line in [&["pause", "row"][..], &["show", "row"], &["slices", "row", "4"]] {
        let refused = stage.optimus(&[&["source"], line].concat()).ended(3).err;
        assert!(refused.contains("source row;") && refused.contains(": rows"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_whose_workers_are_all_dead_is_lost_and_a_warning() {
    let stage = Stage::new().await;
    Holder::that_dies(&stage, RosterName::sources("rows").unwrap()).await;
    let row = stage.optimus(&["source", "list", "--json"]).ended(0).json().remove(0);
    assert_eq!((&row["slices"], &row["held"], &row["workers"]), (&json!(2), &json!(0), &json!(0)));
    let shown = stage.optimus(&["source", "show", "rows"]).ended(0).out;
    assert!(shown.contains(" lost") && !shown.contains(" held"), "{shown}");
    assert_eq!(stage.optimus(&["source", "show", "rows", "--json"]).json()[1]["lost"], true);
    let found = stage.optimus(&["doctor", "--quiet"]).ended(8).out;
    let what = "source rows: nobody scans it: the lease of its last worker ended ";
    assert!(found.contains(what), "{found}");
    stage.optimus(&["source", "pause", "rows"]).ended(0);
    let found = stage.optimus(&["doctor", "--quiet"]).out;
    assert!(!found.contains("nobody scans"), "nobody wants it: {found}");
}
