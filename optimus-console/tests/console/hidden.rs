//! What somebody who sees only some queues learns of the others: nothing.

use optimus::{Gate, Limit, Schedule};
use optimus_testkit::eventually;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::stage::{SOON, Stage, call};

/// Runs workers until they are aborted: three of hidden queues alone, and two that also serve one
/// of Tina's.
async fn workers(stage: &Stage) -> Vec<JoinHandle<()>> {
    let run = |queues: [&str; 2]| {
        let worker = stage.worker_of(queues);
        tokio::spawn(async move { worker.run_until(std::future::pending()).await.unwrap() })
    };
    let mut running: Vec<_> = (0..3).map(|_| run(["mail", "orders"])).collect();
    running.push(run(["mail", "tenant-a"]));
    running.push(run(["tenant-a", "tenant-b"]));
    eventually("they are listed", SOON, async || {
        stage.client.inspector().processes(None, 10).await.unwrap().total == running.len()
    })
    .await;
    running
}

fn ids(rows: &Value) -> Vec<String> {
    let rows = rows["rows"].as_array().unwrap().iter();
    rows.map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_of_hidden_queues_alone_is_not_there() {
    let stage = Stage::new().await;
    let running = workers(&stage).await;
    let served = stage.guarded();
    let (tina, ann) = (served.bearer("tina"), served.bearer("ann"));
    let (own, all) = (tina.look("processes").await, ann.look("processes").await);
    assert_eq!((&own["total"], &own["next"], &all["total"]), (&json!(2), &json!(null), &json!(5)));
    let (own, all) = (ids(&own), ids(&all));
    assert_eq!((own.len(), all.len()), (2, 5));
    let first = tina.look("processes?limit=1").await;
    assert_eq!((ids(&first), &first["next"]), (own[..1].to_vec(), &json!(own[0])));
    let second = tina.look(&format!("processes?limit=1&after={}", own[0])).await;
    assert_eq!((ids(&second), &second["next"]), (own[1..].to_vec(), &json!(null)));
    assert_eq!(tina.look("running?limit=1").await["next"], json!(own[0]));
    let last = tina.look(&format!("running?limit=1&after={}", own[0])).await;
    assert_eq!(last["next"], json!(null));
    let stop = json!({ "act": "stop" });
    let mut told = Vec::new();
    for id in all.iter().filter(|id| !own.contains(id)).map(String::as_str).chain(["a-1-0a0b0c0d"])
    {
        let answer = tina.act(&format!("processes/{id}/act"), &stop).await;
        answer.fails(404, "not_found");
        told.push(answer.body.replace(id, ""));
        let found = tina.look(&format!("search?q={id}")).await;
        assert_eq!(found["hits"], json!([]), "{id}");
    }
    told.dedup();
    assert_eq!(told.len(), 1, "{told:?}");
    for worker in running {
        worker.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_act_on_a_shared_process_is_refused_without_the_name_of_a_hidden_queue() {
    let stage = Stage::new().await;
    let running = workers(&stage).await;
    let served = stage.guarded();
    let mut statuses = Vec::new();
    for row in served.bearer("tina").look("processes").await["rows"].as_array().unwrap() {
        let path = format!("processes/{}/act", row["id"].as_str().unwrap());
        let answer = served.bearer("tina").act(&path, &json!({ "act": "quiet" })).await;
        assert!(!answer.body.contains("mail"), "{answer:?}");
        assert_eq!(answer.status == 403, row["queues"] == json!(["tenant-a"]), "{answer:?}");
        statuses.push(answer.status);
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 403]);
    for worker in running {
        worker.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_overview_counts_processes_slots_and_features_of_seen_queues() {
    let stage = Stage::new().await;
    for queue in ["mail", "tenant-c"] {
        stage.submit(call("x").queue(queue)).await;
    }
    let limit = stage.client.gate("mail", Gate::Named("stripe".into()));
    limit.set(Limit::new().max_working(8)).await.unwrap();
    let digest = Schedule::cron("digest", "0 8 * * *").call(call("x").queue("tenant-c"));
    stage.client.schedules().put(digest).await.unwrap();
    let running = workers(&stage).await;
    let served = stage.guarded();
    let (tina, ann) = (served.bearer("tina"), served.bearer("ann"));
    let own = tina.look("processes").await;
    let slots = own["rows"].as_array().unwrap().iter().map(|row| row["slots"].as_u64().unwrap());
    let (own, all) = (tina.look("overview").await, ann.look("overview").await);
    assert_eq!((&own["processes"], &all["processes"]), (&json!(2), &json!(5)));
    let allowed = |overview: &Value| overview["slots"]["allowed"].as_u64().unwrap();
    assert_eq!(allowed(&own), slots.sum::<u64>());
    assert!(allowed(&own) < allowed(&all), "{own} {all}");
    let features = |overview: &Value| {
        ["limits", "schedules"].map(|name| overview["features"][name] == json!(true))
    };
    assert_eq!((features(&own), features(&all)), ([false, true], [true, true]));
    for worker in running {
        worker.abort();
    }
}
