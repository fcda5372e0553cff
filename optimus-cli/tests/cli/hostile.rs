//! Texts that would change what a terminal shows.

use optimus::{Gate, Item, Schedule};
use serde_json::json;

use crate::{
    stage::{Stage, send},
    statistics::{PROCESS, attend},
};

/// Colours, a new title, an erased screen, another direction, nothing visible, an end of line.
const HOSTILE: &str = "a\u{1b}[31mred\u{1b}]0;title\u{7}\u{9b}2J\u{202e}gnp.exe\u{200b}\u{e0041}\
    \r\nsecond\u{7f}\u{2028}";

#[tokio::test(flavor = "multi_thread")]
async fn no_text_of_a_task_reaches_the_terminal_as_it_is() {
    let stage = Stage::new().await;
    let [dead] = stage.ended([&*format!("fail: {HOSTILE}")]).await;
    let [talks] = stage.ended([&*format!("log: {HOSTILE}")]).await;
    let talks = talks.to_string();
    let rich = send(HOSTILE.to_owned()).biz_id("o\u{202e}17").header("note", "x\u{202e}y\u{9b}z");
    let rich = stage.client.submit(rich.lane("lane\u{202e}7")).await.unwrap().id().to_string();
    let behind = send("b".to_owned()).lane("lane\u{202e}7");
    let behind = stage.client.submit(behind).await.unwrap().id().to_string();
    let lane = stage.client.gate("mail", Gate::Lane("lane\u{202e}7".to_owned()));
    lane.pause("a\u{1b}[31mb", HOSTILE).await.unwrap();
    let schedule = Schedule::cron("digest", "0 8 * * *").call(send(HOSTILE.to_owned()));
    stage.client.schedules().put(schedule).await.unwrap();
    stage.client.schedules().pause("digest", "a\u{1b}[31m\u{202e}b").await.unwrap();
    let review = stage.client.dispenser("review");
    review.add([Item::new(HOSTILE), Item::new("x\u{1b}[2J")]).await.unwrap();
    review.assign("a\u{1b}c\u{202e}", 1).await.unwrap();
    let progress = json!({ "part": 0.5, "text": HOSTILE });
    let running = json!([{ "id": HOSTILE, "task": HOSTILE, "attempt": 1, "since_ms": 0,
        "progress": progress }]);
    attend(&stage, &json!({ "running": running }).to_string()).await;
    let dead = dead.to_string();
    for words in [
        &["queue", "show", "mail"][..],
        &["task", "list", "mail"],
        &["task", "show", &dead],
        &["task", "show", &talks],
        &["task", "show", &rich],
        &["task", "explain", &behind],
        &["dead", "list"],
        &["dead", "export"],
        &["dead", "retry"],
        &["dead", "fingerprints"],
        &["process", "show", PROCESS],
        &["process", "show", "a\u{1b}[2J"],
        &["stats"],
        &["lane", "list", "mail"],
        &["limit", "list"],
        &["schedule", "list"],
        &["schedule", "show", "digest"],
        &["dispenser", "open", "review"],
        &["dispenser", "assigned", "review"],
        &["dispenser", "assignees", "review"],
        &["search", HOSTILE, "--task", "send"],
        &["search", "o\u{202e}17", "--task", "send"],
        &["flow", "show", &rich],
        &["worker", "show", "a\u{1b}[2J"],
        &["lane", "width", "mail", "lane\u{202e}7"],
        &["schedule", "show", "a\u{1b}[2J"],
        &["doctor"],
    ] {
        for form in [&[][..], &["--json"]] {
            let command = [words, form].concat();
            let ran = stage.optimus(&command);
            let shown = format!("{}{}", ran.out, ran.err);
            let bad = shown.chars().find(|c| {
                (c.is_control() && *c != '\n')
                    || matches!(*c, '\u{200b}' | '\u{2028}' | '\u{202e}' | '\u{e0041}')
            });
            assert_eq!(bad, None, "{command:?}: {shown:?}");
        }
    }
    // Nothing is lost in JSON.
    let found = stage.optimus(&["task", "show", &dead, "--json"]).ended(0).json();
    assert_eq!(found[0]["errors"][0]["message"], HOSTILE);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_task_can_not_add_a_line_that_looks_like_another_one() {
    let stage = Stage::new().await;
    let forged = "x\nqueue/forged  root  attempt 1  3 s";
    let progress = json!({ "part": 0.5, "text": forged });
    let running = json!([{ "id": "mail/a", "task": forged, "attempt": 1, "since_ms": 0,
        "progress": progress }]);
    attend(&stage, &json!({ "running": running }).to_string()).await;
    let shown = stage.optimus(&["process", "show", PROCESS]).ended(0).out;
    let lines: Vec<&str> = shown.lines().filter(|line| line.contains("queue/forged")).collect();
    assert!(lines.len() == 1 && lines[0].contains("mail/a"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_text_is_cut_unless_all_is_asked_for() {
    let stage = Stage::new().await;
    let id = stage.waiting(&"x".repeat(50_000)).await.to_string();
    let shown = stage.optimus(&["task", "show", &id]).ended(0).out;
    assert!(shown.len() < 4_000 && shown.contains("50 kB; --full prints all"), "{}", shown.len());
    assert!(stage.optimus(&["task", "show", &id, "--full"]).ended(0).out.len() > 50_000);
}
