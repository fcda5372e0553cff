//! A cluster slot that is being migrated. During a migration, Redis stops a script at a missing
//! key, even if the script itself has emptied that key, and does not roll back. Each call must be
//! refused or done as a whole.

use std::{collections::BTreeSet, pin::pin, time::Duration};

use futures_util::StreamExt;
use optimus_core::broker::BrokerError;
use optimus_testkit::{RedisServer, eventually};
use redis::{Cmd, cmd};

use crate::{
    bench::Bench,
    dump::{Content, Dump},
    situations::{SITUATIONS, text_of},
    world::World,
    world_dispenser,
    wrong_type::{in_world, named_keys},
};

/// A server that has the slot of the bench's queue, and one to which that slot can migrate.
struct Cluster {
    bench: Bench,
    url: String,
    slot: u32,
    target: String,
    _servers: [RedisServer; 2],
}

impl Cluster {
    async fn start() -> Self {
        let node = || {
            let server = RedisServer::builder().tcp().arg("--cluster-enabled", "yes");
            server.arg("--cluster-require-full-coverage", "no").start()
        };
        let servers = [node(), node()];
        let (bench, other) = (Bench::on(&servers[0]).await, Bench::on(&servers[1]).await);
        let slot: u32 = bench.raw(cmd("CLUSTER").arg("KEYSLOT").arg(bench.key("meta"))).await;
        // A new schedule looks at all queues.
        let queues = format!("{}:queues", bench.now().namespace());
        let of_queues: u32 = bench.raw(cmd("CLUSTER").arg("KEYSLOT").arg(queues)).await;
        let _: () = bench.raw(cmd("CLUSTER").arg("ADDSLOTS").arg(slot).arg(of_queues)).await;
        let target: String = other.raw(cmd("CLUSTER").arg("MYID")).await;
        let url = servers[1].url();
        let port = url.trim_end_matches('/').rsplit(':').next().expect("a port");
        let _: () = bench.raw(cmd("CLUSTER").arg("MEET").arg("127.0.0.1").arg(port)).await;
        eventually("the cluster is up", Duration::from_secs(30), async || {
            let info: String = bench.raw(cmd("CLUSTER").arg("INFO")).await;
            let nodes: String = bench.raw(cmd("CLUSTER").arg("NODES")).await;
            info.contains("cluster_state:ok") && nodes.contains(&target)
        })
        .await;
        Self { bench, url: servers[0].url(), slot, target, _servers: servers }
    }

    async fn set_migrating(&self, migrating: bool) {
        let mut set_slot = Cmd::new();
        set_slot.arg("CLUSTER").arg("SETSLOT").arg(self.slot);
        if migrating {
            set_slot.arg("MIGRATING").arg(&self.target);
        } else {
            set_slot.arg("STABLE");
        }
        let _: () = self.bench.raw(&set_slot).await;
    }
}

impl Cluster {
    /// Returns a filler for each key that a call names, also for those that do not exist; `None` if
    /// the call does not work.
    async fn touched(&self, call: impl Future<Output = Result<(), BrokerError>>) -> Option<Dump> {
        let client = redis::Client::open(&*self.url).expect("the testkit's URL is valid");
        let monitor = client.get_async_monitor().await.expect("the server answers");
        let mut lines = pin!(monitor.into_on_message::<String>());
        call.await.ok()?;
        let _: String = self.bench.raw(cmd("ECHO").arg("the call is over")).await;
        let (prefix, mut fillers, mut others) = (self.bench.key(""), Dump::new(), Dump::new());
        while let Some(line) = lines.next().await {
            if line.contains("the call is over") {
                break;
            }
            let mut words = line.split('"').skip(1).step_by(2);
            let command = words.next().unwrap_or_default();
            for name in words.filter_map(|word| word.strip_prefix(&prefix)) {
                if let Some(filler) = filler_for(command) {
                    fillers.insert(name.to_owned(), filler);
                } else {
                    others.insert(name.to_owned(), filler(name));
                }
            }
        }
        others.extend(fillers);
        Some(others)
    }

    /// Adds a filler for each key that the call names and that is not there, until none is left:
    /// with them, the call may name others.
    async fn fill(&self, world: &World, (script, situation): (&str, &str), full: &mut Dump) {
        let mut more = full.clone();
        // Some calls make new ids, and name keys of these.
        for _ in 0..4 {
            self.bench.restore(&more).await;
            let touched = self.touched(world.act(&self.bench, script, situation)).await;
            // Some calls can't read a filler.
            let Some(touched) = touched else { return };
            more.clone_into(full);
            for (name, filler) in touched {
                more.entry(name).or_insert(filler);
            }
            if more.len() == full.len() {
                return;
            }
        }
    }
}

/// The calls that Redis refuses in each of the stores, so that their writes are not tried.
const UNREACHED: [(&str, &str); 10] = [
    ("submit", "flow"),
    ("cancel", "offered"),
    ("cancel", "waits"),
    ("cancel", "ranked lane, offered"),
    ("requeue", "a live task"),
    ("requeue", "a success"),
    ("delete", "offered"),
    ("delete", "waits"),
    ("delete", "blocks"),
    ("delete", "ranked lane, offered"),
];

/// Returns a key of the type that the command takes, with an element that no call reads; `None` if
/// it takes several types.
fn filler_for(command: &str) -> Option<Content> {
    let element = b"filler".to_vec();
    match (command, command.as_bytes().first()) {
        ("GET" | "SET" | "MGET", _) => Some(Content::Text(b"filler:0:D".to_vec())),
        (_, Some(b'Z')) => Some(Content::Zset(vec![(element, b"9000000000000000".to_vec())])),
        (_, Some(b'L')) | ("RPUSH", _) => Some(Content::List(vec![b"1".to_vec()])),
        (_, Some(b'H')) => Some(Content::Hash(vec![(element, b"0:0:0".to_vec())])),
        _ => None,
    }
}

/// Returns a key with an element that no call reads.
fn filler(name: &str) -> Content {
    let kind = name.split_inclusive(':').next().unwrap_or(name);
    match kind {
        "ready" | "success" | "success:" | "dead:" | "wake" | "wake:" | "completions:"
        | "ticks:" => Content::List(vec![b"1".to_vec()]),
        "priority" | "delayed" | "retry" | "dead" | "cancelled" | "deleted" | "workers"
        | "ledgers" | "lane:" | "lanes" | "asks" | "giveups" | "outboxes" | "outbox:"
        | "groups" | "shut" | "spent" | "loans" | "wait:" | "waits" | "gate:" | "gates"
        | "busy:" | "gathers" | "schedules" | "code_schedules" | "aside" | "pool" | "assignees"
        | "deadlines" | "bucket:" | "histories" | "logged" | "operations" | "carried" | "audit" => {
            Content::Zset(vec![(b"filler".to_vec(), b"9000000000000000".to_vec())])
        }
        "posts" => Content::Hash(vec![(b"1/9".to_vec(), b"filler 1 keep 1".to_vec())]),
        "generations" | "positions" => Content::Hash(vec![(b"1".to_vec(), b"1".to_vec())]),
        // The mark of the last claim, which is not a task that the worker holds.
        "working:" => Content::Hash(vec![(b"#".to_vec(), b"0:0".to_vec())]),
        "biz:" | "result:" => Content::Text(b"filler:0:D".to_vec()),
        _ => Content::Hash(vec![(b"filler".to_vec(), b"0:0:0".to_vec())]),
    }
}

/// Returns the elements of a key that the call removes or replaces, so that it empties the key.
fn thinned(before: &Content, after: Option<&Content>) -> Option<Content> {
    let missing = |pairs: &[(Vec<u8>, Vec<u8>)], left: &[(Vec<u8>, Vec<u8>)]| {
        pairs.iter().filter(|pair| !left.contains(pair)).cloned().collect::<Vec<_>>()
    };
    let kept = match (before, after) {
        (Content::List(items), Some(Content::List(left))) => {
            Content::List(items.iter().filter(|item| !left.contains(item)).cloned().collect())
        }
        (Content::Hash(pairs), Some(Content::Hash(left))) => Content::Hash(missing(pairs, left)),
        (Content::Zset(pairs), Some(Content::Zset(left))) => Content::Zset(missing(pairs, left)),
        _ => return None,
    };
    let is_empty = match &kept {
        Content::List(items) => items.is_empty(),
        Content::Hash(pairs) | Content::Zset(pairs) => pairs.is_empty(),
        Content::Text(_) => true,
    };
    (!is_empty && kept != *before).then_some(kept)
}

/// Returns the fields of a hash that the call removes, and does not replace.
fn gone(before: &Content, after: Option<&Content>) -> Option<Content> {
    let (Content::Hash(pairs), Some(Content::Hash(left))) = (before, after) else { return None };
    let is_left = |field: &[u8]| left.iter().any(|(other, _)| other == field);
    let gone: Vec<_> = pairs.iter().filter(|(field, _)| !is_left(field)).cloned().collect();
    (!gone.is_empty() && gone.len() < pairs.len()).then_some(Content::Hash(gone))
}

/// Stores in which the call finds every key that it needs: one with many elements in each key, then
/// one for each key that has only the elements that the call removes, and one in which all keys
/// have only such elements.
async fn stores(
    cluster: &Cluster,
    world: &World,
    (script, situation): (&str, &str),
    (before, after): (&Dump, &Dump),
) -> Vec<Dump> {
    let mut full = before.clone();
    for (name, content) in after {
        full.entry(name.clone()).or_insert_with(|| content.clone());
    }
    for name in named_keys(&text_of(script)).iter().map(|name| in_world(name, situation)) {
        full.entry(name.clone()).or_insert_with(|| filler(&name));
    }
    let of_tasks = world.names().flat_map(|name| {
        [format!("biz:job:{name}"), format!("result:{}", world.id(name).stored())]
    });
    let of_workers = ["busy", "idle", "lost"]
        .into_iter()
        .flat_map(|worker| ["working:", "worker:", "wake:"].map(|kind| [kind, worker].concat()));
    let of_limits = [
        "waits",
        "wait:task:job",
        "gates",
        "gate:limit:x",
        "limits",
        "widths",
        "shut",
        "spent",
        "permits",
        "busy:limit:x",
        "gathers",
        "schedules",
    ];
    let of_limits = of_limits.into_iter().map(str::to_owned);
    let of_dispensers = world_dispenser::OTHER_KEYS.map(str::to_owned);
    for name in of_tasks.chain(of_workers).chain(of_limits).chain(of_dispensers) {
        full.entry(name.clone()).or_insert_with(|| filler(&name));
    }
    cluster.fill(world, (script, situation), &mut full).await;
    let thin = full.iter().filter_map(|(name, content)| {
        thinned(content, after.get(name)).map(|content| (name.clone(), content))
    });
    let thin: Dump = thin.collect();
    let mut stores = vec![before.clone(), full.clone()];
    let gone =
        full.iter().filter_map(|(name, content)| Some((name, gone(content, after.get(name))?)));
    let gone: Vec<_> = gone.map(|(name, content)| (name.clone(), content)).collect();
    for (name, content) in thin.iter().chain(gone.iter().map(|(name, content)| (name, content))) {
        let mut store = full.clone();
        store.insert(name.clone(), content.clone());
        stores.push(store);
    }
    full.extend(thin);
    // The call removes only a field that a pause writes again.
    let mut paused = full.clone();
    paused.insert("meta".into(), Content::Hash(vec![(b"paused".to_vec(), b"1".to_vec())]));
    stores.extend([full, paused]);
    stores
}

#[tokio::test]
async fn a_call_in_a_migrating_slot_is_refused_or_done_as_a_whole() {
    let cluster = Cluster::start().await;
    let bench = &cluster.bench;
    let (mut halves, mut done) = (Vec::new(), BTreeSet::new());
    for (script, situations) in SITUATIONS {
        for situation in *situations {
            bench.restore(&Dump::new()).await;
            let world = World::build_for(bench, situation).await;
            let before = bench.dump().await;
            world.act(bench, script, situation).await.expect(situation);
            let after = bench.dump().await;
            for store in stores(&cluster, &world, (script, situation), (&before, &after)).await {
                bench.restore(&store).await;
                cluster.set_migrating(true).await;
                let answer = world.act(bench, script, situation).await;
                cluster.set_migrating(false).await;
                if let Err(problem) = answer {
                    let changed = bench.changes(&store).await;
                    if !changed.is_empty() {
                        halves.push(format!("{script}, {situation}: {changed:?}: {problem:?}"));
                    }
                } else {
                    done.insert((*script, *situation));
                }
            }
        }
    }
    assert_eq!(halves, [""; 0], "half a transition");
    let all = SITUATIONS.iter().flat_map(|(script, situations)| {
        situations.iter().map(move |situation| (*script, *situation))
    });
    let undone: Vec<_> = all.filter(|call| !done.contains(call)).collect();
    assert_eq!(undone, UNREACHED, "each other call succeeds in some store");
}
