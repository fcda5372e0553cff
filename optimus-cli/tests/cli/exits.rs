//! The exit codes, and errors that say what to do.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
    time::Duration,
};

use optimus::{Client, Schedule, TaskId, TaskState, Worker};
use optimus_testkit::{RedisServer, eventually};

use crate::{
    kit::{optimus, run, set_text},
    stage::{SOON, Stage, send},
};

#[test]
fn a_wrong_command_line_ends_with_2() {
    for line in [
        &["queue"][..],
        &["queue", "lost"],
        &["task", "list", "a b"],
        &["task", "list", "mail", "--state", "gone"],
        &["dead", "list", "--older", "5"],
        &["task", "list", "mail", "--cause", "bored"],
        &["--color", "pink", "queue", "list"],
    ] {
        run(optimus().args(line), "").ended(2);
    }
    let missing = run(optimus().args(["queue", "list"]), "").ended(2);
    assert!(missing.err.contains("OPTIMUS_URL") && missing.err.contains("--url"), "{missing:?}");
    let memory = run(optimus().args(["queue", "list", "--url", "memory://x"]), "").ended(2);
    assert!(memory.err.contains("optimus dev"), "{memory:?}");
    run(optimus().args(["--help"]), "").ended(0);
}

#[test]
fn a_server_that_is_not_there_or_refuses_has_its_own_codes() {
    let away = ["queue", "list", "--url", "redis://127.0.0.1:1/"];
    let gone = run(optimus().args(away), "").ended(6);
    assert!(gone.err.starts_with("error: "), "{gone:?}");
    let gone = run(optimus().args(away).arg("--json"), "").ended(6);
    let error: serde_json::Value = serde_json::from_str(&gone.err).unwrap();
    assert_eq!((error["exit"].as_u64(), gone.out.as_str()), (Some(6), ""));
    let server = RedisServer::builder().password("s3cret").start();
    run(optimus().args(["queue", "list"]).env("OPTIMUS_URL", server.url()), "").ended(0);
    let without = server.url().replace("s3cret", "wrong");
    let refused = run(optimus().args(["queue", "list", "--url", &without]), "").ended(7);
    assert!(!refused.err.contains("wrong@"), "no password is printed: {refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_nobody_has_used_is_not_found() {
    let stage = Stage::new().await;
    stage.fill().await;
    for line in [
        &["queue", "show", "mial"][..],
        &["queue", "clear", "mial", "--yes"],
        &["task", "list", "mial"],
        &["task", "cancel", "--state", "ready", "--queue", "mial", "--yes"],
        &["dead", "list", "mial"],
        &["dead", "fingerprints", "mial"],
        &["dead", "retry", "mial", "--yes"],
        &["stats", "mial"],
        &["history", "list", "mial"],
        &["history", "show", "mial"],
        &["lane", "list", "mial"],
        &["limit", "list", "mial"],
        &["schedule", "list", "mial"],
        &["group", "list", "mial"],
        &["worker", "list", "mial"],
        &["queue", "forget", "mial"],
    ] {
        let ran = stage.optimus(line).ended(3);
        assert!(ran.err.contains("is its name misspelt?"), "{line:?}: {ran:?}");
    }
    // Nothing is wrong with a queue in which nothing is found, nor with one that waits for a use.
    for line in [&["schedule", "list", "mail"][..], &["group", "list", "mail"]] {
        stage.optimus(line).ended(0);
    }
    stage.optimus(&["queue", "pause", "new"]).ended(0);
    assert!(stage.optimus(&["queue", "show", "new"]).ended(0).out.contains("paused"));
    stage.optimus(&["limit", "set", "other", "task:send", "--rate", "5/s"]).ended(0);
    assert!(stage.optimus(&["limit", "list", "other"]).ended(0).out.contains("task:send"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_redis_refuses_to_read_is_named_and_hides_no_other() {
    let server = RedisServer::start();
    let (url, broken) = (server.url(), "queue broken can't be read");
    let client = Client::connect(&url).await.unwrap();
    for queue in ["broken", "mail"] {
        client.pause(queue).await.unwrap();
    }
    set_text(&url, "{optimus:broken:0}:ready");
    let ran = |line: &[&str]| run(optimus().args(line).env("OPTIMUS_URL", &url), "");
    let listed = ran(&["queue", "list"]).ended(5);
    assert!(listed.out.contains("mail") && listed.err.contains(broken), "{listed:?}");
    let listed = ran(&["queue", "list", "--json"]).ended(5);
    assert_eq!(listed.json()[0]["queue"], "mail", "{listed:?}");
    let doctor = ran(&["doctor"]).ended(8).out;
    assert!(doctor.contains(broken) && doctor.contains("queue mail is paused"), "{doctor}");
    set_text(&url, "{optimus:mail:0}:ready");
    let none = ran(&["queue", "list"]).ended(1);
    assert!(none.out.is_empty() && none.err.contains("queue mail can't be read"), "{none:?}");
    ran(&["doctor"]).ended(8);
}

/// Ends a task of each queue as dead, and returns their ids.
async fn dead_in<const N: usize>(url: &str, client: &Client, queues: [&str; N]) -> [TaskId; N] {
    let mut ids = Vec::new();
    for queue in queues {
        let call = send("fail: no route".to_owned()).queue(queue).biz_id("o-17");
        ids.push(client.submit(call).await.unwrap().id().clone());
    }
    let worker = Worker::builder(url).only_named_tasks().task(send).queues(queues).build().unwrap();
    let are_dead = eventually("they are dead", SOON, async || {
        let inspector = client.inspector();
        for id in &ids {
            if inspector.get(id).await.unwrap().unwrap().state != TaskState::Dead {
                return false;
            }
        }
        true
    });
    worker.run_until(are_dead).await.unwrap();
    ids.try_into().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_redis_refuses_to_read_is_left_out_of_what_is_listed_of_all_queues() {
    let server = RedisServer::start();
    let (url, broken) = (server.url(), "warning: queue broken can't be read");
    let client = Client::connect(&url).await.unwrap();
    let [lost, mail] = dead_in(&url, &client, ["broken", "mail"]).await;
    for queue in ["broken", "mail"] {
        let call = send(String::new()).queue(queue);
        let schedule = Schedule::every(format!("each-{queue}"), SOON).call(call);
        client.schedules().put(schedule).await.unwrap();
    }
    for key in ["tasks", "dead", "errors", "schedules"] {
        set_text(&url, &format!("{{optimus:broken:0}}:{key}"));
    }
    let ran = |line: &[&str]| run(optimus().args(line).env("OPTIMUS_URL", &url), "");
    for line in [
        &["dead", "list"][..],
        &["dead", "fingerprints"],
        &["dead", "export"],
        &["schedule", "list"],
        &["search", mail.uuid().to_string().as_str()],
        &["search", "o-17", "--task", "send"],
    ] {
        let listed = ran(line).ended(5);
        assert!(listed.out.contains("mail") && !listed.out.contains("broken"), "{listed:?}");
        assert_eq!(listed.err.matches(broken).count(), 1, "{line:?}: {listed:?}");
    }
    let none = ran(&["search", &lost.uuid().to_string()]).ended(5);
    assert!(none.out.contains("Nothing was found") && none.err.contains(broken), "{none:?}");
    let shown = ran(&["task", "show", &mail.uuid().to_string()]).ended(0);
    assert!(shown.out.contains("no route") && shown.err.is_empty(), "it was found: {shown:?}");
    let hidden = ran(&["task", "show", &lost.uuid().to_string()]).ended(1).err;
    let why = "no queue that can be read has a task";
    assert!(hidden.contains(why) && hidden.contains("queue broken can't be read"), "{hidden}");
    for line in ["dead list --queue broken", "dead export --queue broken"] {
        let refused = ran(&line.split(' ').collect::<Vec<_>>()).ended(1);
        assert!(refused.err.contains("queue broken can't be read"), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_exist_ends_with_3() {
    let stage = Stage::new().await;
    stage.waiting("x").await;
    let unknown = "019aa6f0-1111-7abc-8def-0123456789ab";
    for line in [
        &["task", "show", unknown][..],
        &["task", "show", &format!("mail/{unknown}")],
        &["task", "explain", &format!("mail/{unknown}")],
        &["task", "cancel", &format!("mail/{unknown}")],
        &["group", "show", &format!("mail/{unknown}")],
        &["flow", "show", &format!("mail/{unknown}")],
        &["worker", "show", "vm-1-0a0b0c0d"],
        &["schedule", "pause", "nothing"],
        &["shard", "show", "nothing"],
        &["shard", "pause", "nothing"],
        &["dispenser", "show", "nothing"],
        &["dispenser", "open", "nothing"],
        &["dispenser", "assigned", "nothing"],
        &["dispenser", "assignees", "nothing"],
        &["dispenser", "release", "nothing", "ann", "--yes"],
        &["search", unknown],
    ] {
        stage.optimus(line).ended(3);
    }
    stage.optimus(&["task", "show", "x"]).ended(2);
    stage.client.dispenser("review").add(["photo"]).await.unwrap();
    let unknown = stage.optimus(&["dispenser", "show", "reviews"]).ended(3).err;
    assert!(unknown.contains("added items to reviews; there are: review"), "{unknown}");
    let left = stage.client.dispenser("nothing").peek().await.unwrap();
    assert!(!left.is_known && left.assignees == 0, "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_ends_with_8_if_something_needs_a_look() {
    let stage = Stage::new().await;
    let server = RedisServer::builder().appendonly_always().start();
    let on = |line: &[&str]| run(optimus().args(line).env("OPTIMUS_URL", server.url()), "");
    let client = Client::connect(&server.url()).await.unwrap();
    client.dispenser("review").add(["photo"]).await.unwrap();
    let fine = on(&["doctor"]).ended(0);
    assert!(fine.out.contains("no task was submitted"), "{fine:?}");
    assert_eq!(on(&["doctor", "--quiet"]).ended(0).out, "");

    stage.waiting("x").await;
    stage.client.pause("mail").await.unwrap();
    let bad = stage.optimus(&["doctor", "--quiet"]).ended(8);
    for part in ["queue mail is paused", "no worker serves the queue"] {
        assert!(bad.out.contains(part), "{part}: {bad:?}");
    }
    let rows = stage.optimus(&["doctor", "--json"]).ended(8).json();
    let checks: Vec<&str> = rows.iter().filter_map(|row| row["check"].as_str()).collect();
    for check in ["server", "eviction", "persistence", "memory", "clock", "paused", "unserved"] {
        assert!(checks.contains(&check), "{check} is not in {checks:?}");
    }
    let server = RedisServer::builder().arg("--maxmemory-policy", "allkeys-lru");
    let server = server.arg("--maxmemory", "1mb").start();
    let evicts = run(optimus().args(["doctor"]).env("OPTIMUS_URL", server.url()), "").ended(8);
    assert!(evicts.out.contains("noeviction"), "{evicts:?}");
    assert!(evicts.out.contains("of 1.0 MB in use"), "{evicts:?}");
    assert!(evicts.out.contains("loses every task"), "{evicts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_sees_that_the_disk_is_full() {
    let server = RedisServer::builder().survives_a_full_disk().arg("--appendonly", "yes").start();
    let on = |line: &[&str]| run(optimus().args(line).env("OPTIMUS_URL", server.url()), "");
    on(&["queue", "pause", "mail"]).ended(0);
    assert!(!on(&["doctor"]).out.contains("full disk"));
    server.fill_disk().unwrap();
    eventually("a write fails", Duration::from_secs(20), async || {
        on(&["queue", "pause", "mail"]);
        on(&["doctor"]).out.contains("look for a full disk")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_goes_away_is_no_failure() {
    let stage = Stage::new().await;
    // More than a pipe holds.
    for number in 0..30 {
        stage.waiting(&format!("{number} {}", "x".repeat(10_000))).await;
    }
    let mut command = stage.command(&["task", "list", "mail", "--all", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr.len()), (Some(0), 0), "{ended:?}");
}

#[test]
fn a_misspelt_variable_is_named() {
    let ran = run(
        optimus()
            .args(["queue", "list", "--url", "redis://127.0.0.1:1/"])
            .env("OPTIMUS_NAMESPCE", "x"),
        "",
    );
    assert!(ran.err.contains("did you mean OPTIMUS_NAMESPACE?"), "{ran:?}");
}

#[test]
fn completions_and_the_man_page_are_printed() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(run(optimus().args(["completions", shell]), "").ended(0).out.contains("optimus"));
    }
    let page = run(optimus().arg("man"), "").ended(0).out;
    assert!(page.contains(".TH") && page.contains("OPTIMUS_URL"), "{page}");
    let folder = tempfile::tempdir().unwrap();
    run(optimus().args(["man", "--to"]).arg(folder.path()), "").ended(0);
    assert!(folder.path().join("optimus-dead-retry.1").is_file());
}
