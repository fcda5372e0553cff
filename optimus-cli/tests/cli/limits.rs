//! `limit` names who has set a limit, and refuses what no limit can be.

use optimus::{AuditAct, Gate, Limit};
use serde_json::{Value, json};

use crate::{kit::raw, stage::Stage};

/// Returns who has set the limit of a queue.
fn setter(stage: &Stage, gate: &str) -> Value {
    let rows = stage.optimus(&["limit", "list", "mail", "--json"]).ended(0).json();
    let row = rows.iter().find(|row| row["gate"] == gate).expect("the limit is listed");
    assert_eq!(row["is_set"], json!(true));
    row["set"]["by"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_named_for_a_limit_that_a_program_has_set_after_the_last_operator() {
    let stage = Stage::new().await;
    let gate = stage.client.gate("mail", Gate::Queue);
    stage.optimus(&["limit", "set", "mail", "queue", "--max-working", "2"]).ended(0);
    assert_eq!(setter(&stage, "queue"), json!("ann"));
    stage.optimus(&["limit", "remove", "mail", "queue"]).ended(0);
    let again = stage.optimus(&["limit", "remove", "mail", "queue"]).ended(0).out;
    assert_eq!(again, "no limit was set for queue mail; what tasks declare stays\n");
    gate.set(Limit::new().max_working(3)).await.unwrap();
    assert_eq!(setter(&stage, "queue"), json!(null));
    let listed = stage.optimus(&["limit", "list", "mail"]).ended(0).out;
    assert!(listed.contains("operator") && !listed.contains("ann"), "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_set_a_limit_is_known_also_after_many_other_acts() {
    let stage = Stage::new().await;
    stage.optimus(&["limit", "set", "mail", "queue", "--max-working", "2"]).ended(0);
    for number in 0..200 {
        let target = number.to_string();
        let other = AuditAct { act: "task.retry".to_owned(), target, ..AuditAct::default() };
        stage.client.audit(other).await.unwrap().outcome("done").await.unwrap();
    }
    assert_eq!(setter(&stage, "queue"), json!("ann"));
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_listed_also_if_the_audit_is_damaged() {
    let stage = Stage::new().await;
    stage.optimus(&["limit", "set", "mail", "lane:a b", "--max-working", "2"]).ended(0);
    assert_eq!(setter(&stage, "lane:a b"), json!("ann"));
    let key = format!("{{{}:@audit:0}}:audit", stage.namespace);
    raw(stage.url(), &["SET", &key, "no list"]);
    assert_eq!(setter(&stage, "lane:a b"), json!(null));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_limit_can_be_is_refused_before_the_audit_shows_it() {
    let stage = Stage::new().await;
    let long = format!("lane:{}", "x".repeat(513));
    for (gate, options) in [
        ("task:a b", ["--rate", "5/m"]),
        ("limit:", ["--rate", "5/m"]),
        (&long, ["--rate", "5/m"]),
        ("stripe", ["--rate", "5/m"]),
        ("queue", ["--rate", "0/s"]),
        ("queue", ["--rate", "5/week"]),
        ("queue", ["--rate", "200000/s"]),
        ("queue", ["--max-working", "0"]),
    ] {
        stage.optimus(&[&["limit", "set", "mail", gate], &options[..]].concat()).ended(2);
    }
    let burst = ["limit", "set", "mail", "queue", "--rate", "5/s", "--burst", "0"];
    assert!(stage.optimus(&burst).ended(2).err.contains("with 0 no task starts"));
    assert_eq!(stage.optimus(&["audit", "list"]).ended(0).out, "Nobody has acted yet.\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limit_of_a_task_that_waits_is_known_though_no_worker_runs() {
    let stage = Stage::new().await;
    stage.waiting("hang").await;
    let set = |gate| stage.optimus(&["limit", "set", "mail", gate, "--max-working", "2"]).ended(0);
    assert_eq!(set("task:send").err, "");
    let says = "applies to no task that a worker of the queue knows now; is its name misspelt?";
    assert!(set("task:sned").err.contains(says));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_says_that_a_queue_may_have_more_limits_than_it_shows() {
    let stage = Stage::new().await;
    let listed = || stage.optimus(&["limit", "list", "mail"]).ended(0);
    for number in 0..130 {
        let gate = stage.client.gate("mail", Gate::Named(format!("bank-{number}")));
        gate.set(Limit::new().max_working(2)).await.unwrap();
        if number == 0 {
            assert!(!listed().err.contains("may have more"));
        }
    }
    let text = listed();
    assert!(text.err.contains("queue mail may have more limits than these"), "{text:?}");
}
