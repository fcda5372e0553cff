//! Lists with a filter or a limit, and names that nothing has.

use std::{collections::BTreeSet, sync::Arc};

use optimus::Due;
use optimus_testkit::{RedisServer, eventually};

use crate::{
    kit::{optimus, raw, run},
    stage::{SOON, Stage, busy, send},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_filtered_list_has_no_more_rows_than_its_limit_and_goes_on_after_them() {
    let stage = Stage::new().await;
    for number in 0..8 {
        stage.waiting(&format!("task {number}")).await;
    }
    let line = ["task", "list", "mail", "--state", "ready", "--task", "send", "--limit", "3"];
    let (mut seen, mut after) = (BTreeSet::new(), None);
    for expected in [3, 3, 2] {
        let place: Vec<&str> = after.iter().flat_map(|after: &String| ["--after", after]).collect();
        let line = [&line[..], &place].concat();
        let rows = stage.optimus(&[&line[..], &["--json"]].concat()).ended(0).json();
        assert_eq!(rows.len(), expected, "{rows:?}");
        seen.extend(rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()));
        let hint = stage.optimus(&line).ended(0).err;
        after = hint.trim().split_once("--after ").map(|(_, after)| after.to_owned());
    }
    assert_eq!((seen.len(), after), (8, None), "each task is on one list");
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_that_wait_for_others_are_listed_up_to_the_limit_and_none_is_left_out() {
    let stage = Stage::new().await;
    let later = send("later".to_owned()).due(Due::In(SOON * 100));
    let first = stage.client.submit(later).await.unwrap().id().clone();
    let wait = |number| {
        let name = if number % 2 == 0 { "even" } else { "odd" };
        send(format!("task {number}")).header("number", name).after(&first)
    };
    stage.client.submit_all((0..400).map(wait)).await.unwrap();
    for limit in ["1", "49", "50", "58", "60", "128"] {
        let line = ["task", "list", "mail", "--json", "--limit", limit];
        assert_eq!(stage.optimus(&line).ended(0).json().len().to_string(), limit);
    }
    let line = ["task", "list", "mail", "--state", "blocked", "--header", "number=odd"];
    let line = [&line[..], &["--limit", "25", "--json"]].concat();
    let (mut seen, mut after) = (BTreeSet::new(), None);
    loop {
        let place: Vec<&str> = after.iter().flat_map(|after: &String| ["--after", after]).collect();
        let listed = stage.optimus(&[&line[..], &place].concat()).ended(0);
        let rows = listed.json();
        assert!(rows.len() <= 25);
        seen.extend(rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()));
        after = listed.err.trim().split_once("--after ").map(|(_, after)| after.to_owned());
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen.len(), 200);
}

#[test]
fn a_list_of_no_rows_is_refused() {
    for line in ["task list mail", "dead list", "op list", "group list mail", "audit list"] {
        let mut command = optimus();
        command.args(line.split(' ')).args(["--limit", "0"]);
        let refused = run(&mut command, "").ended(2).err;
        assert!(refused.contains("ask for 1 or more"), "{line}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_that_nothing_matches_does_not_say_that_nothing_is_there() {
    let stage = Stage::new().await;
    stage.fill().await;
    for filter in [["--error", "zzz"], ["--header", "a=b"], ["--cause", "lost"]] {
        let none = stage.optimus(&[&["dead", "list"], &filter[..]].concat()).ended(0).out;
        assert_eq!(none, "No dead task matches the filter.\n");
    }
    let none = stage.optimus(&["task", "list", "mail", "--task", "zzz"]).ended(0).out;
    assert_eq!(none, "No task in these states matches the filter.\n");
    let none = stage.optimus(&["task", "list", "mail", "--state", "working"]).ended(0).out;
    assert_eq!(none, "No task is in these states.\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_without_a_history_says_so_beside_its_last_successes() {
    let stage = Stage::new().await;
    stage.ended(["sent"]).await;
    let line = ["history", "list", "mail"];
    let listed = stage.optimus(&line).ended(0);
    let said = "this queue keeps no history: these are its last successes; \
                `optimus history keep mail` keeps one\n";
    assert!(listed.out.contains("success") && listed.err == said, "{listed:?}");
    stage.optimus(&["history", "keep", "mail"]).ended(0);
    assert_eq!(stage.optimus(&line).ended(0).err, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_is_said_to_use_no_more_slots_than_it_has() {
    let stage = Arc::new(Stage::new().await);
    let (_, worker) = busy(&stage).await;
    let processes = async || stage.inspector().processes(None, 9).await.unwrap().rows;
    eventually("the process is listed", SOON, async || !processes().await.is_empty()).await;
    let process = processes().await.remove(0).id;
    let asked =
        |count: &str| stage.optimus(&["process", "slots", process.as_str(), count]).ended(0).out;
    assert!(asked("999").ends_with("soon uses up to 4 slots\n"));
    assert!(asked("2").ends_with("soon uses up to 2 slots\n"));
    worker.abort();
}

#[test]
fn a_user_of_redis_who_may_use_another_namespace_learns_which_keys_are_missing() {
    let server = RedisServer::start();
    let url = server.url();
    let rules = "ACL SETUSER eve on >pw resetkeys ~{shop:*}:* ~shop:queues +@all";
    raw(&url, &rules.split_whitespace().collect::<Vec<_>>());
    let login = format!("{url}?user=eve&pass=pw");
    let listed = |namespace: &str| {
        let line = ["--namespace", namespace, "queue", "list"];
        run(optimus().args(line).env("OPTIMUS_URL", &login), "")
    };
    listed("shop").ended(0);
    let denied = listed("optimus").ended(7);
    for part in ["~{optimus:*}:* ~optimus:queues", "OPTIMUS_NAMESPACE / --namespace"] {
        assert!(denied.err.contains(part), "{denied:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_may_be_named_with_an_option_where_it_is_an_argument() {
    let stage = Stage::new().await;
    stage.ended(["fatal"]).await;
    stage.client.pause("other").await.unwrap();
    for line in ["dead list", "dead fingerprints", "dead export", "limit list", "worker list"] {
        let verb: Vec<&str> = line.split(' ').chain(["--json"]).collect();
        let ran = |rest: &[&str]| stage.optimus(&[&verb, rest].concat());
        assert_eq!(ran(&["--queue", "mail"]).ended(0).out, ran(&["mail"]).ended(0).out, "{line}");
        let two = ran(&["--queue", "other", "--queue", "mail"]).ended(0).out;
        assert_eq!(two, ran(&["other", "mail"]).ended(0).out, "{line}");
        let both = ran(&["other", "--queue", "mail"]).ended(2).err;
        assert!(both.contains("cannot be used with"), "{both}");
    }
    stage.optimus(&["stats", "--queue", "mail"]).ended(0);
    stage.optimus(&["schedule", "list", "--queue", "mail"]).ended(0);
    stage.optimus(&["dead", "list", "--queue", "nothing"]).ended(3);
    let none = ["dead", "retry", "--queue", "other", "--expect", "1", "--yes"];
    stage.optimus(&none).ended(4);
    let one = ["dead", "retry", "--queue", "mail", "--expect", "1", "--yes"];
    assert_eq!(stage.optimus(&one).ended(0).out, "1 requeued\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_lanes_says_that_the_queue_may_have_more() {
    let stage = Stage::new().await;
    let listed = |line: &[&str]| stage.optimus(&[&["lane", "list", "mail"], line].concat());
    for number in 0..128 {
        let lane = |how: &str| send(how.to_owned()).lane(format!("user-{number}"));
        stage.client.submit_all([lane("runs first"), lane("waits")]).await.unwrap();
        if number == 0 {
            assert_eq!(listed(&[]).ended(0).err, "");
        }
    }
    let more = "queue mail may have more lanes than these";
    for line in [&["--limit", "500"][..], &["--json"], &[]] {
        assert_eq!(listed(line).ended(0).err, format!("{more}\n"));
    }
    let few = listed(&["--limit", "2"]).ended(0);
    assert_eq!((few.out.lines().count(), few.err), (3, format!("{more}; --limit shows more\n")));
}
