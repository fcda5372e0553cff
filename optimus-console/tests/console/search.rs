//! What a search finds, and what it says of the rest.

use std::sync::Arc;

use optimus_testkit::eventually;
use serde_json::{Value, json};

use crate::stage::{SOON, Stage, busy, call};

#[tokio::test(flavor = "multi_thread")]
async fn a_search_finds_ids_biz_ids_queues_causes_and_processes() {
    let stage = Arc::new(Stage::new().await);
    let filled = stage.fill().await;
    let (_, running) = busy(&stage).await;
    stage.client.pause("mail").await.unwrap();
    let o17 = stage.client.submit(call("x").biz_id("o-18")).await.unwrap().id().clone();
    let served = stage.open();
    let found = async |q: &str, kind: &str, id: &str| {
        let seen = served.browser.look(&format!("search?q={q}")).await;
        let hits = seen["hits"].as_array().unwrap();
        let is_there = hits.iter().any(|hit| hit["kind"] == kind && hit["id"] == id);
        assert!(is_there, "{q}: {seen}");
        let plain = |hit: &Value| hit["href"].as_str().unwrap().starts_with("#/");
        assert!(hits.iter().all(plain), "{seen}");
    };
    let id = filled.dead.to_string();
    found(&id.replace('/', "%2F"), "task", &id).await;
    found(id.split('/').nth(1).unwrap(), "task", &id).await;
    found("o-18", "biz_id", &o17.to_string()).await;
    found("MAI", "queue", "mail").await;
    let causes = served.browser.look("search?q=smtp-").await;
    assert_eq!(causes["hits"][0]["kind"], "failure");
    let process = served.browser.look("processes").await["rows"][0]["id"].clone();
    found(process.as_str().unwrap(), "process", process.as_str().unwrap()).await;
    let scan = served.browser.look("search?q=%3Cx%3E%26").await;
    assert_eq!(scan["scan"][0]["href"], "#/queues/mail?text=%3Cx%3E%26");
    served.browser.get("/api/v1/search?q=").await.fails(400, "invalid");
    served
        .browser
        .get(&format!("/api/v1/search?q={}", "x".repeat(201)))
        .await
        .fails(400, "invalid");
    running.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_looks_for_causes_in_more_queues_than_the_overview_shows() {
    const QUEUES: [&str; 7] = ["q-0", "q-1", "q-2", "q-3", "q-4", "q-5", "q-6"];
    let stage = Stage::new().await;
    let mut ids = vec![stage.submit(call("fail: a rare cause").queue(QUEUES[0])).await];
    for queue in QUEUES[1..].iter().flat_map(|queue| [queue; 2]) {
        ids.push(stage.submit(call("fatal").queue(*queue)).await);
    }
    let is_over = async || {
        for id in &ids {
            if stage.state(id).await != optimus::TaskState::Dead {
                return false;
            }
        }
        true
    };
    let ended = eventually("all are dead", SOON, is_over);
    stage.worker_of(QUEUES).run_until(ended).await.unwrap();
    let served = stage.open();
    let overview = served.browser.look("overview").await;
    assert!(!overview["failures"].to_string().contains("a rare cause"), "{overview}");
    let page = served.browser.look("search?q=rare").await;
    assert_eq!(page["hits"][0]["kind"], "failure", "{page}");
    assert_eq!((&page["more"], &page["causes_left_out"]), (&json!([]), &json!(0)));
    let queues = served.browser.look("search?q=q-").await;
    assert_eq!(queues["hits"].as_array().unwrap().len(), 7, "{queues}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_says_of_which_kinds_there_are_more_hits_than_it_shows() {
    let stage = Stage::new().await;
    for number in 0..11 {
        stage.client.pause(format!("q-{number}")).await.unwrap();
        stage.submit(call("x").queue(format!("q-{number}"))).await;
    }
    let served = stage.open();
    let page = served.browser.look("search?q=q-").await;
    assert_eq!(page["hits"].as_array().unwrap().len(), 10, "{page}");
    assert_eq!(page["more"], json!(["queue"]));
    assert_eq!(served.browser.look("search?q=q-1").await["more"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_says_in_how_many_queues_it_has_looked_up_no_biz_id() {
    let stage = Arc::new(Stage::new().await);
    for queue in ["tenant-a", "orders", "mail"] {
        stage.submit(call("x").queue(queue).biz_id("o-9")).await;
    }
    let (_, running) = busy(&stage).await;
    let served = stage.guarded();
    let ann = served.bearer("ann").look("search?q=o-9").await;
    assert_eq!(ann["biz_ids_left_out"], 2, "{ann}");
    let tina = served.bearer("tina").look("search?q=o-9").await;
    assert_eq!((&tina["hits"], &tina["biz_ids_left_out"]), (&json!([]), &json!(1)));
    running.abort();
}
