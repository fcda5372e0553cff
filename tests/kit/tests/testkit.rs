//! The helpers keep the promises that other tests rely on. The most important promise is that no
//! process outlives a test.

use std::path::Path;
use std::time::Duration;

use optimus_testkit::{Gate, Proc, RedisServer, Signal, eventually, namespace, shared_redis};
use redis::AsyncCommands as _;

const SOON: Duration = Duration::from_secs(20);

/// Returns whether a process runs. A process that was killed but not yet collected by its parent
/// does not run.
fn runs(pid: u32) -> bool {
    let seen = std::process::Command::new("sh")
        .args(["-c", r#"kill -0 "$1" 2>/dev/null && ! grep -qs '^State:.Z' "/proc/$1/status""#])
        .args(["runs", &pid.to_string()])
        .status();
    seen.expect("a shell starts").success()
}

#[tokio::test]
async fn a_killed_server_is_gone_and_a_restarted_one_has_what_it_wrote() {
    let mut server = RedisServer::builder().appendonly_always().start();
    let url = server.url();
    let () = server.admin().await.set("kept", "yes").await.unwrap();

    let first = server.pid();
    server.kill();
    assert!(!runs(first));
    let client = redis::Client::open(url.as_str()).unwrap();
    assert!(client.get_connection().is_err());

    server.restart();
    assert_eq!(server.url(), url);
    assert_ne!(server.pid(), first);
    let kept: String = server.admin().await.get("kept").await.unwrap();
    assert_eq!(kept, "yes");
}

#[tokio::test]
async fn a_server_without_persistence_forgets_on_restart() {
    let mut server = RedisServer::start();
    let () = server.admin().await.set("kept", "yes").await.unwrap();
    server.restart();
    let kept: Option<String> = server.admin().await.get("kept").await.unwrap();
    assert_eq!(kept, None);
}

#[tokio::test]
async fn a_tcp_server_keeps_its_port_and_asks_for_its_password() {
    let mut server = RedisServer::builder().tcp().password("open1sesame").start();
    assert!(server.url().starts_with("redis://:open1sesame@127.0.0.1:"), "{}", server.url());
    let url = server.url();
    server.restart();
    assert_eq!(server.url(), url);
    let () = redis::cmd("PING").query_async(&mut server.admin().await).await.unwrap();

    let stranger = redis::Client::open(url.replace(":open1sesame@", "")).unwrap();
    let mut stranger = stranger.get_connection().unwrap();
    let refusal = redis::cmd("PING").query::<()>(&mut stranger).unwrap_err();
    assert_eq!(refusal.code(), Some("NOAUTH"));
}

#[tokio::test]
async fn a_socket_server_accepts_its_password_from_the_url() {
    let server = RedisServer::builder().password("open1sesame").start();
    let () = redis::cmd("PING").query_async(&mut server.admin().await).await.unwrap();
}

#[tokio::test]
async fn an_option_of_the_test_wins_over_the_defaults() {
    let server = RedisServer::builder().arg("--maxmemory", "64mb").start();
    let mut admin = server.admin().await;
    let limit: Vec<String> =
        redis::cmd("CONFIG").arg("GET").arg("maxmemory").query_async(&mut admin).await.unwrap();
    assert_eq!(limit, ["maxmemory", "67108864"]);
}

#[test]
#[should_panic(expected = "must be one of the following")]
fn a_server_that_does_not_start_shows_its_log() {
    RedisServer::builder().arg("--maxmemory-policy", "no-such-policy").start();
}

#[tokio::test]
async fn a_paused_server_answers_only_after_it_is_resumed() {
    let server = RedisServer::start();
    let mut admin = server.admin().await;
    server.pause();
    let ping =
        tokio::spawn(
            async move { redis::cmd("PING").query_async::<String>(&mut admin).await.unwrap() },
        );
    let early = tokio::time::timeout(Duration::from_millis(100), async {
        while !ping.is_finished() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(early.await.is_err(), "a paused server answered");
    server.resume();
    assert_eq!(ping.await.unwrap(), "PONG");
}

#[test]
fn a_dropped_server_leaves_nothing_behind() {
    let server = RedisServer::start();
    let (pid, folder) = (server.pid(), server.folder().to_owned());
    assert!(runs(pid) && folder.is_dir());
    drop(server);
    assert!(!runs(pid) && !folder.exists());
}

#[tokio::test]
async fn a_server_dies_with_its_parent_even_if_that_is_killed() {
    let mut parent = Proc::program(env!("CARGO_BIN_EXE_hold-redis")).start();
    parent.wait_for_line("listening on unix://", SOON).await;
    let word = |line: String| line.rsplit(' ').next().unwrap().to_owned();
    let pid = word(parent.wait_for_line("pid ", SOON).await).parse().unwrap();
    let folder = word(parent.wait_for_line("folder ", SOON).await);
    assert!(runs(pid));

    parent.kill9();
    eventually("the orphaned server is dead", SOON, async || !runs(pid)).await;
    eventually("the folder of the server is removed", SOON, async || !Path::new(&folder).exists())
        .await;
}

#[tokio::test]
async fn a_process_is_read_signalled_and_waited_for() {
    let script = "trap 'echo bye >&2; exit 3' TERM; echo hello; while :; do sleep 0.01; done";
    let mut shell = Proc::program("/bin/sh").arg("-c").arg(script).start();
    shell.wait_for_line("hello", SOON).await;
    shell.sigterm();
    assert_eq!(shell.wait(SOON).await.code(), Some(3));
    shell.wait_for_line("bye", SOON).await;
    assert_eq!(shell.lines(), ["hello", "bye"]);
}

#[tokio::test]
async fn what_cargo_built_is_found_by_its_name() {
    let mut server = Proc::built("hold-redis").start();
    server.wait_for_line("listening on", SOON).await;
    assert!(!server.kill9().success());
}

#[tokio::test]
#[should_panic(expected = "not within 10ms: the moon is full")]
async fn a_condition_that_never_holds_is_named() {
    eventually("the moon is full", Duration::from_millis(10), async || false).await;
}

#[tokio::test]
async fn a_signal_counts_and_wakes() {
    let signal = Signal::new();
    let hitter = signal.clone();
    let hits = tokio::spawn(async move { (0..3).for_each(|_| hitter.hit()) });
    signal.wait_for(3).await;
    hits.await.unwrap();
    assert_eq!(signal.hits(), 3);
}

#[tokio::test]
async fn a_gate_holds_arrivals_until_it_is_opened() {
    let gate = Gate::new();
    let handler = tokio::spawn({
        let gate = gate.clone();
        async move { gate.pass().await }
    });
    gate.arrivals().wait_for(1).await;
    assert!(!handler.is_finished());
    gate.open();
    handler.await.unwrap();
    gate.pass().await;
    assert_eq!(gate.arrivals().hits(), 2);
}

#[test]
fn no_two_namespaces_are_equal() {
    let names: std::collections::HashSet<String> = (0..100).map(|_| namespace()).collect();
    assert_eq!(names.len(), 100);
}

#[tokio::test]
async fn the_shared_server_serves() {
    let shared = shared_redis();
    let client = redis::Client::open(shared.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let key = namespace();
    let () = connection.set_ex(&key, "x", 60).await.unwrap();
    let value: String = connection.get(&key).await.unwrap();
    assert_eq!(value, "x");
}

#[tokio::test]
async fn a_full_disk_fails_writes_until_it_is_freed() {
    let persistent = RedisServer::builder().arg("--appendonly", "yes").survives_a_full_disk();
    let mut server = persistent.start();
    let mut admin = server.admin().await;
    server.fill_disk().unwrap();
    // The first writes succeed before the server notices the full disk.
    let refused = async || admin.set::<_, _, ()>("key", "value").await.is_err();
    eventually("writes are refused", SOON, refused).await;
    assert!(!server.has_ended());
    server.free_disk().unwrap();
    let mut admin = server.admin().await;
    let taken = async || admin.set::<_, _, ()>("key", "value").await.is_ok();
    eventually("the server accepts writes again", SOON, taken).await;
}
