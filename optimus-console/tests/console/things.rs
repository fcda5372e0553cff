//! Lanes, schedules and dispensers: what their pages say of pauses, and which are listed.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use optimus::{Client, Gate, LaneFailure, NamedCall, Schedule, TaskState, Worker, group};
use optimus_core::{RosterName, store_schedule};
use optimus_testkit::{RedisServer, eventually};
use serde_json::{Value, json};

use crate::{
    client::Browser,
    stage::{SOON, Served, Stage, busy, call},
};

async fn rows(served: &Served, path: &str) -> Vec<Value> {
    served.browser.look(path).await["rows"].as_array().expect("a page has rows").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_lane_says_by_whom_and_why_and_can_only_be_resumed() {
    let stage = Stage::new().await;
    stage.fill().await;
    let served = stage.open();
    let lane = rows(&served, "lanes?queue=mail").await.remove(0);
    assert_eq!((&lane["state"], &lane["acts"]), (&json!("open"), &json!(["pause"])), "{lane}");
    stage.furnish().await;
    for path in ["lanes?queue=mail", "lanes"] {
        let lane = rows(&served, path).await.remove(0);
        let paused = "paused by bob (their API is down) until it is resumed";
        assert_eq!((&lane["state"], &lane["acts"]), (&json!(paused), &json!(["resume"])));
        assert!(lane["facts"].to_string().contains(r#""name":"waiting","value":"1""#), "{lane}");
    }
    let resume = json!({ "queue": "mail", "name": "user-7", "act": "resume" });
    served.browser.act("things/lanes/act", &resume).await.is(200);
    assert_eq!(rows(&served, "lanes?queue=mail").await[0]["state"], "open");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_lane_is_listed_while_only_its_pause_holds_its_tasks() {
    let stage = Stage::new().await;
    let lane = stage.client.gate("mail", Gate::Lane("user-8".into()));
    lane.pause("bob", "").await.unwrap();
    let served = stage.open();
    stage.submit(call("alone").lane("user-8")).await;
    assert_eq!(
        rows(&served, "lanes?queue=mail").await,
        [Value::Null; 0],
        "it waits for no pause yet"
    );
    // A claim finds the lane paused, and lets its task wait.
    let worker: Worker = stage.worker();
    let listed = eventually("the lane is listed", SOON, async || {
        rows(&served, "lanes?queue=mail").await.iter().any(|row| row["name"] == "user-8")
    });
    worker.run_until(listed).await.unwrap();
    let row = rows(&served, "lanes").await.remove(0);
    assert_eq!((&row["title"], &row["acts"]), (&json!("user-8"), &json!(["resume"])), "{row}");
    lane.resume().await.unwrap();
    assert_eq!(rows(&served, "lanes?queue=mail").await, [Value::Null; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lane_that_a_dead_task_keeps_is_blocked_by_that_task() {
    let stage = Stage::new().await;
    let in_lane =
        |how: &str| call(how).max_retry(0).lane("user-9").on_lane_failure(LaneFailure::Block);
    let dead = stage.submit(in_lane("fail: no such user")).await;
    stage.submit(in_lane("sent")).await;
    let served = stage.open();
    assert_eq!(rows(&served, "lanes?queue=mail").await[0]["state"], "open");
    let is_dead = async || stage.state(&dead).await == TaskState::Dead;
    stage.worker().run_until(eventually("it is dead", SOON, is_dead)).await.unwrap();
    let lane = rows(&served, "lanes?queue=mail").await.remove(0);
    assert_eq!(lane["state"], "blocked by dead tasks: requeue or delete them");
    let fact = json!({ "name": "dead", "value": dead.to_string(), "kind": "tasks" });
    assert!(lane["facts"].as_array().unwrap().contains(&fact), "{lane}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_schedule_says_by_whom_and_why() {
    let stage = Stage::new().await;
    stage.furnish().await;
    let served = stage.open();
    let pause = json!({ "name": "digest", "act": "pause", "reason": "the quarter ends" });
    served.browser.act("things/schedules/act", &pause).await.is(200);
    let found = stage.client.schedules().get("digest").await.unwrap().unwrap();
    assert_eq!(found.paused_why, "the quarter ends");
    let row = rows(&served, "schedules").await.remove(0);
    assert_eq!(row["state"], "paused by tester (the quarter ends)");
    assert_eq!(row["acts"], json!(["resume", "run_now"]));
    let audit = rows(&served, "audit").await.remove(0);
    assert_eq!((&audit["act"], &audit["reason"]), (&json!("schedule.pause"), &pause["reason"]));
}

/// Stores a schedule as if it had been stored 90 s ago.
async fn put_late(stage: &Stage, schedule: Schedule) {
    let broker = stage.client.broker();
    let past = broker.now_ms().await.unwrap() - 90_000;
    store_schedule(&broker.at(past), &schedule.check().unwrap()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overdue_schedule_says_by_how_much_and_why() {
    let stage = Arc::new(Stage::new().await);
    let served = stage.open();
    let each = |name: &str| Schedule::every(name, Duration::from_secs(10));
    let unknown = NamedCall::new("mail", "no_longer_in_code", "{}").unwrap();
    put_late(&stage, each("in-code").call(call("x")).release("1.0.0")).await;
    put_late(&stage, each("removed").call(unknown).release("1.0.0")).await;
    put_late(&stage, each("run-time").call(call("x"))).await;
    let shown = async |name: &str| {
        let rows = rows(&served, "schedules?queue=mail").await;
        let row = rows.iter().find(|row| row["name"] == name).expect("it is listed");
        row["state"].as_str().unwrap().to_owned()
    };
    for name in ["in-code", "removed", "run-time"] {
        assert_eq!(shown(name).await, "overdue by 1 min: no worker serves the queue");
    }
    let (_, running) = busy(&stage).await;
    eventually("a worker ticks it", SOON, async || shown("run-time").await == "active").await;
    let removed = "overdue by 1 min: no worker of the queue has it in its code";
    assert_eq!(shown("removed").await, removed);
    let in_code = "overdue by 1 min: no worker ticks it, though some serve the queue";
    assert_eq!(shown("in-code").await, in_code);
    running.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_that_nobody_ticks_is_removed_by_those_who_may_delete() {
    let stage = Stage::new().await;
    let each = |name: &str| Schedule::every(name, Duration::from_secs(10)).call(call("x"));
    put_late(&stage, each("old")).await;
    stage.client.schedules().put(each("new")).await.unwrap();
    let served = stage.guarded();
    let [olga, ann] = ["olga", "ann"].map(|name| served.bearer(name));
    let acts = async |of: &Browser, name: &str| {
        let rows = of.look("schedules?queue=mail").await["rows"].clone();
        let row = rows.as_array().unwrap().iter().find(|row| row["name"] == name).cloned();
        row.map(|row| row["acts"].clone())
    };
    let all = json!(["pause", "run_now", "remove"]);
    let usual = json!(["pause", "run_now"]);
    assert_eq!(acts(&ann, "old").await, Some(all));
    assert_eq!(acts(&ann, "new").await, Some(usual.clone()));
    assert_eq!(acts(&olga, "old").await, Some(usual));
    let remove = json!({ "name": "old", "act": "remove", "reason": "OPS-9" });
    let path = "things/schedules/act";
    olga.act(path, &remove).await.fails(403, "forbidden");
    assert_eq!(ann.act(path, &remove).await.is(200).json()["text"], "removed");
    assert_eq!(acts(&ann, "old").await, None);
    ann.act(path, &remove).await.fails(404, "not_found");
    let audit = ann.look("audit").await["rows"][0].clone();
    let noted = json!([audit["who"], audit["act"], audit["target"], audit["reason"]]);
    assert_eq!(noted, json!(["ann", "schedule.remove", "old", "OPS-9"]));
    let shards = json!({ "name": "old", "act": "remove" });
    ann.act("things/shards/act", &shards).await.fails(400, "invalid");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dispenser_is_listed_while_it_has_items_and_a_day_after_its_last_use() {
    let mut redis = RedisServer::start();
    let client = Client::connect(&redis.url()).await.unwrap();
    let mut admin = redis.admin().await;
    let days_ago = async |admin: &mut _, name: &str| {
        let key = format!("{{optimus:@d.{name}:0}}:dispenser");
        let mut set = redis::cmd("HSET");
        set.arg(&key).arg("place").arg("1024").arg("span").arg("1");
        set.query_async::<()>(admin).await.unwrap();
    };
    for name in ["full", "held", "fresh", "old"] {
        client.dispenser(name).add(["a", "b"]).await.unwrap();
    }
    client.dispenser("held").assign("ann", 2).await.unwrap();
    for name in ["fresh", "old"] {
        let dispenser = client.dispenser(name);
        dispenser.assign("ann", 2).await.unwrap();
        dispenser.done("ann", ["a", "b"]).await.unwrap().all().unwrap();
        dispenser.release("ann").await.unwrap();
    }
    for name in ["full", "held", "old"] {
        days_ago(&mut admin, name).await;
    }
    let named = client.dispenser_names().await.unwrap();
    assert_eq!(named, ["fresh", "full", "held"]);
    client.dispenser("old").add(["c"]).await.unwrap();
    assert_eq!(client.dispenser_names().await.unwrap(), ["fresh", "full", "held", "old"]);
    // One that Redis refuses to read is listed, too: somebody must see it.
    let mut wrong = redis::cmd("SET");
    wrong.arg("{optimus:@d.old:0}:pool").arg("x");
    wrong.query_async::<()>(&mut admin).await.unwrap();
    days_ago(&mut admin, "old").await;
    assert_eq!(client.dispenser_names().await.unwrap(), ["fresh", "full", "held", "old"]);
    redis.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn times_and_ids_of_things_are_marked_so_that_pages_can_show_them() {
    let stage = Stage::new().await;
    let filled = stage.fill().await;
    stage.furnish().await;
    let served = stage.open();
    let run = json!({ "name": "digest", "act": "run_now" });
    served.browser.act("things/schedules/act", &run).await.is(200);
    let fact = |row: &Value, name: &str| -> (String, String) {
        let facts = row["facts"].as_array().unwrap();
        let found = facts.iter().find(|fact| fact["name"] == name).expect("it has this fact");
        let text = |of: &str| found[of].as_str().unwrap().to_owned();
        (text("kind"), text("value"))
    };
    let schedule = rows(&served, "schedules").await.remove(0);
    let (kind, next) = fact(&schedule, "next");
    assert_eq!((kind.as_str(), next.len(), next.ends_with('Z')), ("instant", 20, true), "{next}");
    let (kind, last) = fact(&schedule, "last task");
    assert!(kind == "tasks" && last.starts_with("mail/"), "{last}");
    assert_eq!(fact(&schedule, "pace").0, "text");
    let lane = rows(&served, "lanes?queue=mail").await.remove(0);
    assert_eq!(fact(&lane, "since").0, "instant");
    let (kind, holders) = fact(&lane, "holders");
    assert!(kind == "tasks" && holders.parse::<optimus::TaskId>().is_ok(), "{holders}");
    assert_ne!(holders, filled.blocked.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn all_schedules_of_a_queue_are_listed_a_page_at_a_time() {
    let stage = Stage::new().await;
    for number in 0..101 {
        let digest = Schedule::cron(format!("digest-{number}"), "0 8 * * *").call(call("digest"));
        stage.client.schedules().put(digest).await.unwrap();
    }
    let served = stage.open();
    let (mut names, mut after) = (BTreeSet::new(), String::new());
    loop {
        let page = served.browser.look(&format!("schedules?queue=mail&after={after}")).await;
        let rows = page["rows"].as_array().unwrap().iter();
        names.extend(rows.map(|row| row["name"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        after = next.to_owned();
    }
    assert_eq!(names.len(), 101);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_is_cut_ends_with_a_row_that_says_so() {
    let stage = Stage::new().await;
    let broker = stage.client.broker();
    let add = async |number: u32| {
        let name = &format!("n{number:03}");
        let lane = |how: &str| call(how).lane(name);
        stage.client.submit_all([lane("runs first"), lane("waits")]).await.unwrap();
        stage.client.submit_group(group([call("x").queue("parts")])).await.unwrap();
        let each = Schedule::every(name, Duration::from_secs(3_600)).call(call("x"));
        stage.client.schedules().put(each).await.unwrap();
        broker.announce_roster(&RosterName::shards(name).unwrap()).await.unwrap();
        broker.announce_roster(&RosterName::sources(name).unwrap()).await.unwrap();
    };
    for number in 0..99 {
        add(number).await;
    }
    let served = stage.open();
    let last = async |path: &str| {
        let rows = rows(&served, path).await;
        (rows.len(), rows.last().map(|row| (row["title"].clone(), row["state"].clone())))
    };
    for path in ["lanes", "groups", "schedules", "shards", "sources"] {
        let (count, last) = last(path).await;
        assert_eq!((count, last.is_some_and(|(title, _)| title != "more")), (99, true), "{path}");
    }
    add(99).await;
    add(100).await;
    for (path, state) in [
        ("lanes", "queue mail may have more lanes than the 100 that were read"),
        ("lanes?queue=mail", "queue mail may have more lanes than the 100 that were read"),
        ("groups", "queue parts may have more groups than the 100 that were read"),
        ("schedules", "queue mail may have more schedules than the 100 that were read"),
        (
            "shards",
            "100 of 101 sharded functions are listed; `optimus shard list` lists all of them",
        ),
        ("sources", "100 of 101 sources are listed; `optimus source list` lists all of them"),
    ] {
        assert_eq!(last(path).await, (101, Some((json!("more"), json!(state)))), "{path}");
    }
}
