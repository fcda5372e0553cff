//! `doctor --deep` names each kind of damage, and what it says to do repairs it.

use std::time::Duration;

use optimus::{Client, Inspector, TaskId, TaskState, Worker};
use optimus_testkit::{RedisServer, eventually};
use serde_json::Value;

use crate::{
    kit::{Ran, optimus, raw, run, set_text},
    stage::send,
};

pub(crate) const SOON: Duration = Duration::from_secs(20);

/// A server of its own, whose keys a test damages.
pub(crate) struct Ward {
    pub(crate) server: RedisServer,
    pub(crate) client: Client,
}

impl Ward {
    pub(crate) async fn open() -> Self {
        let server = RedisServer::builder().appendonly_always().start();
        let client = Client::connect(&server.url()).await.unwrap();
        Self { server, client }
    }

    pub(crate) fn worker(&self) -> Worker {
        Worker::builder(&self.server.url()).concurrency(8).build().unwrap()
    }

    pub(crate) fn optimus(&self, line: &[&str]) -> Ran {
        run(optimus().args(line).env("OPTIMUS_URL", self.server.url()), "")
    }

    pub(crate) fn inspector(&self) -> Inspector {
        self.client.inspector()
    }

    /// Submits a task that waits.
    async fn waiting(&self) -> TaskId {
        self.client.submit(send("x".to_owned())).await.unwrap().id().clone()
    }

    /// Submits a task and lets a worker end it.
    async fn ended(&self, how: &str) -> TaskId {
        let id = self.client.submit(send(how.to_owned())).await.unwrap().id().clone();
        self.runs_until_gone(&id).await;
        id
    }

    async fn runs_until_gone(&self, id: &TaskId) {
        let ran = self.worker().run_until(eventually("it ends", SOON, async || {
            let task = self.inspector().get(id).await.unwrap();
            task.is_none_or(|task| {
                task.state != TaskState::Ready && task.state != TaskState::Working
            })
        }));
        ran.await.unwrap();
    }

    /// Sends a command in which `$key` is a key of the queue `mail`.
    fn raw(&self, command: &str) {
        let words = command.split(' ').map(|word| match word.strip_prefix('$') {
            Some(key) => format!("{{optimus:mail:0}}:{key}"),
            None => word.to_owned(),
        });
        let words: Vec<String> = words.collect();
        raw(&self.server.url(), &words.iter().map(String::as_str).collect::<Vec<_>>());
    }

    /// Returns what `doctor --deep` warns of in the keys: the key and the text of each.
    fn violations(&self) -> Vec<(String, String)> {
        let ran = self.optimus(&["doctor", "--deep", "--queue", "mail", "--json"]);
        let is_wrong = |row: &Value| row["check"] == "deep" && row["level"] == "warning";
        let wrong: Vec<Value> = ran.json().into_iter().filter(is_wrong).collect();
        assert!(wrong.iter().all(|row| row["queue"] == "mail"), "{wrong:?}");
        assert!(wrong.is_empty() || ran.code == 8, "{ran:?}");
        let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
        wrong.iter().map(|row| (text(row, "key"), text(row, "text"))).collect()
    }
}

/// A damage, what mends it, the key that is named, what is wrong, and a part of the advice.
/// `@ready` and `@dead` are tasks.
const DAMAGES: [(&str, &str, &str, &str, &str); 14] = [
    ("LREM $ready 0 @ready", "RPUSH $ready @ready", "ready", "is in no state", "with RPUSH"),
    ("ZADD $delayed 5 @ready", "ZREM $delayed @ready", "tasks", "in delayed and ready", "twice"),
    ("RPUSH $ready gone", "LREM $ready 0 gone", "tasks", "gone is in ready and has", "lost"),
    ("HSET $working:w # 2:7", "DEL $working:w", "working:w", "not registered", "with ZADD"),
    ("HSET $permits @ready g", "HDEL $permits @ready", "permits", "no worker holds it", "HDEL"),
    ("ZADD $busy:g 5 @ready", "DEL $busy:g", "busy:g", "that nothing gives back", "ZREM"),
    ("HINCRBY $meta dead_bytes 7", "HINCRBY $meta dead_bytes -7", "meta", "7 too high", "HINCRBY"),
    ("HINCRBY $meta blocked 2", "HINCRBY $meta blocked -2", "meta", "2 too high", "HINCRBY"),
    ("HDEL $tries @dead", "HSET $tries @dead 1:0:0", "errors", "and no tries", "HDEL"),
    ("HSET $priorities gone 1", "HDEL $priorities gone", "priorities", "has gone", "only takes"),
    ("SET $biz:send:o @ready:0:L", "DEL $biz:send:o", "biz:send:o", "no task has that", "UNLINK"),
    ("SET $stranger 5", "DEL $stranger", "stranger", "an unknown key", "another program"),
    ("PEXPIRE $tasks 500000", "PERSIST $tasks", "tasks", "and must not", "PERSIST"),
    ("RPUSH $completions:c x", "DEL $completions:c", "completions:c", "no expiry", "PEXPIRE"),
];

#[tokio::test(flavor = "multi_thread")]
async fn each_damage_is_named_with_its_queue_and_key_and_what_to_do() {
    let ward = Ward::open().await;
    let dead = ward.ended("fatal").await.stored();
    let ready = ward.waiting().await.stored();
    assert_eq!(ward.violations(), []);
    let of_tasks = |text: &str| text.replace("@ready", &ready).replace("@dead", &dead);
    for (damage, mend, key, what, advice) in DAMAGES {
        ward.raw(&of_tasks(damage));
        let found = ward.violations();
        let key = format!("{{optimus:mail:0}}:{key}");
        let begin = format!("queue mail, key {key}: ");
        let is_named = |(at, text): &(String, String)| {
            let parts = text.split_once('\n').filter(|(first, _)| first.starts_with(&begin));
            *at == key && parts.is_some_and(|(a, b)| a.contains(what) && b.contains(advice))
        };
        assert!(found.iter().any(is_named), "{damage}: {found:?}");
        ward.raw(&of_tasks(mend));
    }
    assert_eq!(ward.violations(), [], "all is mended");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_says_to_do_brings_a_lost_task_and_a_lost_worker_back() {
    let ward = Ward::open().await;
    let lost = ward.waiting().await;
    ward.raw(&format!("LREM $ready 0 {}", lost.stored()));
    assert!(ward.violations()[0].1.contains(&lost.to_string()), "the id is one for `optimus task`");
    let why = ward.optimus(&["task", "explain", &lost.to_string()]).ended(0).out;
    assert!(why.contains("it is in none of the lists of its queue"), "{why}");
    ward.raw(&format!("RPUSH $ready {}", lost.stored()));
    assert_eq!(ward.violations(), []);
    ward.raw("HSET $working:ghost # 2:7");
    assert!(ward.violations()[0].1.contains("ghost"));
    ward.raw("ZADD $workers 0 ghost");
    ward.runs_until_gone(&lost).await;
    assert_eq!(ward.violations(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_the_wrong_type_is_named_and_hides_no_other_queue() {
    let ward = Ward::open().await;
    let lost = ward.waiting().await;
    ward.raw(&format!("LREM $ready 0 {}", lost.stored()));
    ward.client.pause("broken").await.unwrap();
    set_text(&ward.server.url(), "{optimus:broken:0}:ready");
    let mut ran = ward.optimus(&["doctor", "--deep", "--quiet"]).ended(8);
    ran.out = ran.out.replace(&lost.stored(), "<stored>");
    ran.matches("doctor_deep");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sound_store_is_said_to_be_sound_and_a_queue_without_keys_is_named() {
    let ward = Ward::open().await;
    ward.ended("fatal").await;
    let fine = ward.optimus(&["doctor", "--deep", "--queue", "mail"]).ended(0);
    assert!(fine.out.contains("of 1 queue are sound; 1 task read"), "{fine:?}");
    let none = ward.optimus(&["doctor", "--deep", "--queue", "mial"]).ended(0);
    assert!(none.out.contains("queue mial has no keys: is the name right?"), "{none:?}");
    assert!(!ward.optimus(&["doctor"]).ended(0).out.contains("sound"), "only --deep reads keys");
    ward.optimus(&["doctor", "--queue", "mail"]).ended(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_queue_is_read_in_steps_and_said_to_be() {
    let ward = Ward::open().await;
    let call = |number: usize| send(format!("{number} {}", "x".repeat(12_000)));
    ward.client.submit_all((0..500).map(call)).await.unwrap();
    let lost = ward.waiting().await.stored();
    ward.waiting().await;
    let read = ward.optimus(&["doctor", "--deep"]).out;
    assert!(read.contains("queue mail (502 tasks, ") && read.contains("in steps"), "{read}");
    assert!(!read.contains(&lost), "{read}");
    ward.raw(&format!("LREM $ready 0 {lost}"));
    let found = ward.violations();
    assert!(found.len() == 1 && found[0].1.contains(&lost), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_of_redis_that_may_not_read_whole_queues_learns_what_it_needs() {
    let ward = Ward::open().await;
    ward.waiting().await;
    let url = ward.server.url();
    let allow = |more: &str| {
        let rules = format!("ACL SETUSER eve on >pw resetkeys ~* +@all -@admin -scan {more}");
        raw(&url, &rules.split_whitespace().collect::<Vec<_>>());
    };
    let socket = url.trim_start_matches("unix://");
    let as_eve = || {
        let login = format!("unix://{socket}?user=eve&pass=pw");
        run(optimus().args(["doctor", "--deep"]).env("OPTIMUS_URL", login), "")
    };
    allow("");
    let denied = as_eve();
    assert!(denied.code != 0 && denied.err.contains("+scan +type +pttl"), "{denied:?}");
    allow("+scan +type +pttl +memory|usage +zscan +multi +exec");
    assert!(as_eve().out.contains("are sound"));
}
