//! A queue of which another program has written a key hides no other queue.

use optimus_testkit::eventually;
use serde_json::{Value, json};

use crate::stage::{SOON, Stage, call};

/// Writes a key of a queue as another program would.
async fn damage(stage: &Stage, queue: &str, key: &str) {
    let client = redis::Client::open(stage.url()).unwrap();
    let mut admin = client.get_multiplexed_async_connection().await.unwrap();
    let key = format!("{{{}:{queue}:0}}:{key}", stage.namespace);
    redis::cmd("DEL").arg(&key).query_async::<()>(&mut admin).await.unwrap();
    redis::cmd("SET").arg(key).arg("x").query_async::<()>(&mut admin).await.unwrap();
}

fn kinds(page: &Value) -> Vec<&str> {
    let hits = page["hits"].as_array().unwrap().iter();
    hits.map(|hit| hit["kind"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_skips_a_queue_with_a_damaged_key_and_names_it() {
    let stage = Stage::new().await;
    let filled = stage.fill().await;
    for queue in ["no-workers", "no-tasks"] {
        stage.submit(call("x").queue(queue).biz_id("o-17")).await;
    }
    damage(&stage, "no-workers", "workers").await;
    damage(&stage, "no-tasks", "tasks").await;
    let served = stage.guarded();
    let olga = served.bearer("olga");
    let uuid = filled.ready.to_string().split_once('/').unwrap().1.to_owned();
    for (q, unread) in [
        (filled.ready.to_string(), json!(["no-workers"])),
        (uuid, json!(["no-tasks", "no-workers"])),
        ("smtp".to_owned(), json!(["no-workers"])),
    ] {
        let page = olga.look(&format!("search?q={q}")).await;
        assert_eq!(page["unread"], unread, "{page}");
        assert_eq!(kinds(&page), [if q == "smtp" { "failure" } else { "task" }], "{page}");
    }
    // The names of damaged queues are told to nobody who may not see them.
    let tina = served.bearer("tina").look("search?q=smtp").await;
    assert_eq!(tina["unread"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_is_searched_again_as_soon_as_it_can_be_read() {
    let stage = Stage::new().await;
    let id = stage.submit(call("x").biz_id("o-18")).await;
    damage(&stage, "mail", "workers").await;
    let served = stage.open();
    let page = served.browser.look("search?q=o-18").await;
    assert_eq!((kinds(&page), &page["unread"]), (vec![], &json!(["mail"])));
    let client = redis::Client::open(stage.url()).unwrap();
    let mut admin = client.get_multiplexed_async_connection().await.unwrap();
    let key = format!("{{{}:mail:0}}:workers", stage.namespace);
    redis::cmd("DEL").arg(key).query_async::<()>(&mut admin).await.unwrap();
    stage.client.pause("mail").await.unwrap();
    let found = eventually("it is found by its biz id", SOON, async || {
        let page = served.browser.look("search?q=o-18").await;
        page["unread"] == json!([]) && page["hits"][0]["id"] == id.to_string()
    });
    stage.worker().run_until(found).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_causes_of_deaths_in_other_queues_are_listed_beside_a_damaged_queue() {
    let stage = Stage::new().await;
    for queue in ["mail", "broken"] {
        stage.submit(call("fail: no route").queue(queue)).await;
    }
    let inspector = stage.client.inspector();
    let died = eventually("both have died", SOON, async || {
        let seen = inspector.overview(&inspector.queues().await.unwrap()).await.unwrap();
        seen.iter().filter(|seen| seen.counts.dead > 0).count() == 2
    });
    stage.worker_of(["mail", "broken"]).run_until(died).await.unwrap();
    damage(&stage, "broken", "errors").await;
    let served = stage.open();
    let page = served.browser.look("failures").await;
    assert_eq!(page["rows"][0]["queue"], json!("mail"), "{page}");
    let overview = served.browser.look("overview").await;
    assert_eq!(overview["failures"][0]["queue"], json!("mail"), "{overview}");
}
