//! The description of the API is current, and describes what the API answers.

use std::{env, fs, path::Path};

use serde_json::Value;

use crate::stage::Stage;

#[test]
fn the_checked_in_description_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
    if env::var("OPTIMUS_GOLDEN").is_ok_and(|value| value == "write") {
        fs::write(&file, optimus_console::openapi_json()).unwrap();
    }
    let current = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        current == optimus_console::openapi_json(),
        "OPTIMUS_GOLDEN=write cargo test -p optimus-tasks-console openapi writes openapi.json"
    );
}

#[test]
fn acts_on_tasks_and_on_things_have_their_own_words() {
    let all: Value = serde_json::from_str(&optimus_console::openapi_json()).unwrap();
    let schemas = &all["components"]["schemas"];
    for (order, word, other) in [("TasksAct", "retry", "set"), ("ThingAct", "set", "retry")] {
        let name = schemas[order]["properties"]["act"]["$ref"].as_str().unwrap();
        let words = &schemas[name.rsplit('/').next().unwrap()]["enum"];
        let has = |word: &str| words.as_array().unwrap().contains(&word.into());
        assert!(has(word) && !has(other), "{order}: {words}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_described_path_is_there_and_says_so() {
    let stage = Stage::new().await;
    let served = stage.open();
    let described = served.browser.look("openapi.json").await;
    let paths = described["paths"].as_object().unwrap();
    assert!(paths.len() >= 29, "{}", paths.len());
    for (path, methods) in paths {
        let path = path.replace("{queue}", "mail").replace("{id}", "a-1-0a0b0c0d");
        let path = path.replace("{uuid}", "01890a5d-ac96-774b-bcce-b302099a8057");
        let path = path.replace("{kind}", "lanes");
        for method in methods.as_object().unwrap().keys() {
            if path.ends_with("/events") {
                continue;
            }
            let body = (method == "post").then_some("[]");
            let answer = served.browser.send(&method.to_uppercase(), &path, body).await;
            let is_known = match &answer.body {
                body if body.is_empty() => answer.status == 204,
                body => !body.contains("openapi.json lists all") && answer.status != 405,
            };
            assert!(is_known, "{method} {path}: {answer:?}");
        }
    }
}

/// Returns whether a value has the fields of a schema, and no others.
fn fits(schema: &Value, value: &Value, all: &Value) -> Result<(), String> {
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
        return fits(&all["components"]["schemas"][name], value, all);
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(each) = schema[key].as_array() {
            let found = each.iter().any(|one| fits(one, value, all).is_ok());
            return if found { Ok(()) } else { Err(format!("none of {schema}: {value}")) };
        }
    }
    if let Some(parts) = schema["allOf"].as_array() {
        let known: Vec<&Value> = parts
            .iter()
            .map(|part| match part["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
                Some(name) => &all["components"]["schemas"][name],
                None => part,
            })
            .collect();
        for (name, field) in value.as_object().into_iter().flatten() {
            let of = known.iter().map(|part| &part["properties"][name]).find(|of| !of.is_null());
            fits(of.ok_or_else(|| format!("unknown field {name}"))?, field, all)?;
        }
        return Ok(());
    }
    if let (Some(items), Some(values)) = (schema.get("items"), value.as_array()) {
        return values.iter().try_for_each(|value| fits(items, value, all));
    }
    if let (Some(known), Some(fields)) = (schema["properties"].as_object(), value.as_object()) {
        for (name, field) in fields {
            let of = known.get(name).ok_or_else(|| format!("unknown field {name}"))?;
            fits(of, field, all).map_err(|why| format!("{name}: {why}"))?;
        }
        let required = schema["required"].as_array().into_iter().flatten();
        for name in required.filter_map(Value::as_str) {
            if !fields.contains_key(name) {
                return Err(format!("{name} is missing"));
            }
        }
        return Ok(());
    }
    let is_of = |kind: &str| match kind {
        "null" => value.is_null(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    };
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return Ok(()),
    };
    if kinds.iter().any(|kind| is_of(kind)) { Ok(()) } else { Err(format!("{kinds:?}: {value}")) }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_have_the_described_form() {
    let stage = Stage::new().await;
    let filled = stage.fill().await;
    stage.furnish().await;
    let served = stage.open();
    let all = served.browser.look("openapi.json").await;
    for (described, path) in [
        ("session", "session".to_owned()),
        ("overview", "overview".into()),
        ("queues", "queues".into()),
        ("queues/{queue}", "queues/mail".into()),
        ("queues/{queue}/tasks", "queues/mail/tasks?state=dead".into()),
        ("queues/{queue}/stats", "queues/mail/stats".into()),
        ("stats", "stats".into()),
        ("queues/{queue}/history", "queues/mail/history".into()),
        ("tasks/{queue}/{uuid}", format!("tasks/{}", filled.dead)),
        ("tasks/{queue}/{uuid}", format!("tasks/{}", filled.success)),
        ("failures", "failures".into()),
        ("processes", "processes".into()),
        ("running", "running".into()),
        ("search", "search?q=mail".into()),
        ("redis", "redis".into()),
        ("lanes", "lanes".into()),
        ("limits", "limits".into()),
        ("schedules", "schedules".into()),
        ("audit", "audit".into()),
        ("operations", "operations".into()),
    ] {
        let path_of = format!("/api/v1/{described}");
        let answers = &all["paths"][&path_of]["get"]["responses"]["200"];
        let schema = &answers["content"]["application/json"]["schema"];
        assert!(!schema.is_null(), "{described} is described");
        let answer = served.browser.look(&path).await;
        fits(schema, &answer, &all).unwrap_or_else(|why| panic!("{path}: {why}"));
    }
}
