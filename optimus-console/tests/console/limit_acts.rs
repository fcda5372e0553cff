//! Operators set and remove limits, and each sees who has set which.

use optimus::{AuditAct, Gate, Limit, Rate};
use serde_json::{Value, json};

use crate::{
    client::Browser,
    stage::{Stage, call},
};

const ACT: &str = "things/limits/act";

fn set(name: &str, limit: &Value) -> Value {
    json!({ "queue": "mail", "name": name, "act": "set", "reason": "bank asked", "limit": limit })
}

/// Returns the facts of a limit by their names, and what can be done with it.
async fn limit(browser: &Browser, name: &str) -> (Value, Value) {
    let page = browser.look("limits?queue=mail").await;
    let rows = page["rows"].as_array().unwrap();
    let Some(row) = rows.iter().find(|row| row["name"] == name) else {
        return (json!({}), json!([]));
    };
    let facts = row["facts"].as_array().unwrap().iter();
    let named =
        facts.map(|fact| (fact["name"].as_str().unwrap().to_owned(), fact["value"].clone()));
    (named.collect(), row["acts"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_sets_and_removes_a_limit_and_everybody_sees_who_has_set_it() {
    let stage = Stage::new().await;
    stage.submit(call("x")).await;
    let served = stage.guarded();
    let (olga, vera) = (served.bearer("olga"), served.bearer("vera"));
    let wanted = json!({ "rate": "5/m", "burst": 2, "max_working": 3 });
    for name in ["queue", "task:send_mail", "lane:user-7", "limit:bank"] {
        let said = olga.act(ACT, &set(name, &wanted)).await.is(200).json();
        let text = said["text"].as_str().unwrap().to_owned();
        assert!(text.starts_with("set to 5/m with bursts of 2 and 3 at once; it "), "{text}");
        let (facts, acts) = limit(&vera, name).await;
        assert_eq!((&facts["rate"], &facts["burst"]), (&json!("5/m"), &json!("2")), "{facts}");
        assert_eq!((&facts["max_working"], &facts["from"]), (&json!("3"), &json!("operator")));
        assert_eq!(facts["set by"], "olga (bank asked)", "{facts}");
        assert!(facts["set at"].as_str().unwrap().starts_with("20"), "{facts}");
        assert_eq!(acts, json!(["pause", "set", "remove"]));
    }
    let bank = stage.client.limit("bank").queue("mail").get().await.unwrap().unwrap();
    let expected = Limit::new().rate(Rate::per_minute(5)).burst(2).max_working(3);
    assert_eq!(bank.limit, expected);
    let remove = json!({ "queue": "mail", "name": "limit:bank", "act": "remove" });
    let said = olga.act(ACT, &remove).await.is(200).json();
    assert!(said["text"].as_str().unwrap().starts_with("removed; it "), "{said}");
    assert!(stage.client.limit("bank").queue("mail").get().await.unwrap().is_none());
    let again = olga.act(ACT, &remove).await.is(200).json();
    assert!(again["text"].as_str().unwrap().starts_with("no limit was set; it "), "{again}");
    let audit = olga.look("audit").await;
    let (removed, last_set) = (&audit["rows"][1], &audit["rows"][2]);
    assert_eq!(last_set["act"], "limit.set");
    assert_eq!(
        (&last_set["target"], &last_set["reason"]),
        (&json!("mail limit:bank"), &json!("bank asked"))
    );
    assert!(last_set["outcome"].as_str().unwrap().starts_with("set to 5/m"), "{last_set}");
    assert_eq!(removed["act"], "limit.remove");
    assert!(removed["outcome"].as_str().unwrap().starts_with("removed"), "{removed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_that_can_not_be_is_refused_before_anything_is_written() {
    let stage = Stage::new().await;
    stage.submit(call("x")).await;
    let served = stage.open();
    for wrong in [
        json!({}),
        json!({ "rate": "" }),
        json!({ "rate": "many" }),
        json!({ "rate": "0/s" }),
        json!({ "rate": "5/week" }),
        json!({ "burst": 3 }),
        json!({ "burst": 3, "max_working": 1 }),
        json!({ "rate": "5/s", "burst": 0 }),
        json!({ "max_working": 0 }),
        json!({ "max_working": -1 }),
        json!({ "max_working": 4_294_967_296_u64 }),
        json!({ "max_working": 1, "other": 1 }),
        json!(null),
    ] {
        served.browser.act(ACT, &set("queue", &wrong)).await.fails(400, "invalid");
    }
    let limited = json!({ "max_working": 1 });
    served.browser.act(ACT, &set("", &limited)).await.fails(400, "invalid");
    for name in ["mail", "task:a b", "limit:", "lane:\n"] {
        served.browser.act(ACT, &set(name, &limited)).await.fails(400, "invalid");
    }
    let lane = json!({ "queue": "mail", "name": "a\nb", "act": "pause" });
    served.browser.act("things/lanes/act", &lane).await.fails(400, "invalid");
    served.browser.act("things/lanes/act", &set("a", &limited)).await.fails(400, "invalid");
    let pause = json!({ "queue": "mail", "name": "queue", "act": "pause", "limit": limited });
    served.browser.act(ACT, &pause).await.fails(400, "invalid");
    assert_eq!(served.browser.look("audit").await["rows"], json!([]));
    assert!(stage.client.gate("mail", Gate::Queue).get().await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn only_operators_of_the_queue_set_limits_and_only_from_the_console_s_own_page() {
    let stage = Stage::new().await;
    stage.submit(call("x")).await;
    let served = stage.guarded();
    let body = set("queue", &json!({ "max_working": 1 }));
    served.bearer("vera").act(ACT, &body).await.fails(403, "forbidden");
    served.bearer("tina").act(ACT, &body).await.fails(403, "forbidden");
    let olga = served.signed_in("olga").await;
    olga.with("sec-fetch-site", "cross-site").act(ACT, &body).await.fails(403, "forbidden");
    assert!(stage.client.gate("mail", Gate::Queue).get().await.unwrap().is_none());
    olga.act(ACT, &body).await.is(200);
    let remove = json!({ "queue": "mail", "name": "queue", "act": "remove" });
    served.bearer("vera").act(ACT, &remove).await.fails(403, "forbidden");
    assert!(stage.client.gate("mail", Gate::Queue).get().await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_named_for_a_limit_that_a_program_has_set() {
    let stage = Stage::new().await;
    stage.submit(call("x")).await;
    let served = stage.open();
    let gate = stage.client.gate("mail", Gate::Queue);
    let act = |verb: &str| AuditAct {
        who: "ann".to_owned(),
        act: format!("limit.{verb}"),
        target: "mail queue".to_owned(),
        ..AuditAct::default()
    };
    let note = async |verb: &str, outcome: &str| {
        stage.client.audit(act(verb)).await.unwrap().outcome(outcome).await.unwrap();
    };
    let set_by = async || limit(&served.browser, "queue").await.0["set by"].clone();
    gate.set(Limit::new().max_working(2)).await.unwrap();
    assert_eq!(set_by().await, json!(null));
    note("set", "failed: Redis was away").await;
    assert_eq!(set_by().await, json!(null));
    note("set", "set to 2 at once").await;
    assert_eq!(set_by().await, "ann");
    gate.set(Limit::new().max_working(3)).await.unwrap();
    assert_eq!(set_by().await, json!(null), "a program has set it over hers");
    gate.set(Limit::new().max_working(2)).await.unwrap();
    note("remove", "removed").await;
    assert_eq!(set_by().await, json!(null));
    note("set", "set to 2 at once; it had none before").await;
    assert_eq!(set_by().await, "ann");
    // Its program has ended before it could tell what came of this act.
    let _ = stage.client.audit(act("set")).await.unwrap();
    assert_eq!(set_by().await, json!(null));
}
