//! Queues, lanes, limits and schedules named `.` and `..`, which browsers take out of a path.

use optimus::{Due, Schedule};
use serde_json::json;

use crate::stage::{SOON, Stage, call};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_named_as_a_step_of_a_path_is_shown_and_changed() {
    let stage = Stage::new().await;
    let served = stage.open();
    let browser = &served.browser;
    for name in [".", ".."] {
        let waits = call("x").queue(name).lane(name).due(Due::In(SOON * 100));
        let id = stage.client.submit(waits).await.unwrap().id().to_string();
        let path = format!("queues/~{name}");
        assert_eq!(browser.look(&path).await["queue"], name);
        let page = browser.look(&format!("{path}/tasks?state=delayed")).await;
        assert_eq!(page["rows"][0]["id"], id);
        browser.look(&format!("{path}/stats?unit=hour&last=1")).await;
        browser.look(&format!("{path}/history")).await;
        let uuid = id.split_once('/').unwrap().1;
        assert_eq!(browser.look(&format!("tasks/~{name}/{uuid}")).await["id"], id);
        browser.act(&format!("{path}/pause"), &json!({ "reason": "dots" })).await.is(204);
        assert!(stage.client.inspector().counts(name).await.unwrap().paused);
        browser.act(&format!("{path}/resume"), &json!({})).await.is(204);
        assert!(!stage.client.inspector().counts(name).await.unwrap().paused);

        let schedule = Schedule::cron(name, "0 8 * * *").call(call("x").queue(name));
        stage.client.schedules().put(schedule).await.unwrap();
        for (kind, thing) in [
            ("limits", format!("limit:{name}")),
            ("limits", format!("lane:{name}")),
            ("lanes", name.to_owned()),
            ("schedules", name.to_owned()),
        ] {
            for verb in ["pause", "resume"] {
                let act = json!({ "queue": name, "name": thing, "act": verb });
                browser.act(&format!("things/{kind}/act"), &act).await.is(200);
            }
        }
        let listed = browser.look(&format!("schedules?queue={name}")).await;
        assert_eq!(listed["rows"][0]["name"], name);
    }
    browser.get("/api/v1/queues/~~..").await.fails(400, "invalid");
}
