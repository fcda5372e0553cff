//! `optimus dev`: the server lives as long as the command.

use std::{io::Write, net::TcpStream, process::Command, time::Duration};

use optimus::Client;
use optimus_testkit::{Proc, ProcBuilder, eventually};

use crate::{
    kit::{optimus, run},
    top::OnTerminal,
};

const SOON: Duration = Duration::from_secs(20);

async fn start() -> (Proc, String) {
    let program = Proc::program(env!("CARGO_BIN_EXE_optimus")).arg("dev").arg("--json").start();
    let line = program.wait_for_line("redis://127.0.0.1:", SOON).await;
    let started: serde_json::Value = serde_json::from_str(&line).unwrap();
    let url = started["url"].as_str().unwrap().to_owned();
    Client::connect(&url).await.expect("the server answers");
    (program, url)
}

async fn is_gone(url: &str) {
    let gone = async || Client::connect(url).await.is_err();
    eventually("the server ends", SOON, gone).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_ends_with_the_program_however_that_ends() {
    for signal in ["INT", "TERM"] {
        let (mut program, url) = start().await;
        program.signal(signal);
        assert!(program.wait(SOON).await.success(), "{signal}");
        is_gone(&url).await;
    }
    let (mut program, url) = start().await;
    program.kill9();
    is_gone(&url).await;
}

#[test]
fn a_command_runs_beside_the_server_and_decides_the_exit_code() {
    let script = r#"echo "$OPTIMUS_URL $OPTIMUS_NAMESPACE"; exit 7"#;
    let ran =
        run(optimus().args(["dev", "--namespace", "shop", "--", "sh", "-c", script]), "").ended(7);
    assert!(ran.out.starts_with("redis://127.0.0.1:") && ran.out.ends_with("/ shop\n"), "{ran:?}");
    let url = ran.out.split(' ').next().unwrap();
    run(optimus().args(["queue", "list", "--url", url]), "").ended(6);
    run(optimus().args(["dev", "--", "/no/such/program"]), "").ended(3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_beside_its_command_is_a_warning_and_the_command_goes_on() {
    let program = Proc::program(env!("CARGO_BIN_EXE_optimus"));
    let script = r#"echo "at $OPTIMUS_URL"; exec sleep 60"#;
    let command = ["dev", "--", "sh", "-c", script];
    let mut dev = command.iter().fold(program, ProcBuilder::arg).start();
    let line = dev.wait_for_line("at redis://", SOON).await;
    let address = line.rsplit("redis://").next().unwrap().trim_end_matches('/');
    let mut server = TcpStream::connect(address).unwrap();
    server.write_all(b"SHUTDOWN NOSAVE\r\n").unwrap();
    dev.wait_for_line("the server has ended by itself", SOON).await;
    dev.sigterm();
    assert_eq!(dev.wait(SOON).await.code(), Some(128 + 15), "the end of the command counts");
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_of_a_terminal_reaches_the_command_once() {
    let folder = tempfile::tempdir().unwrap();
    let (heard, ends) = (folder.path().join("heard"), folder.path().join("ends"));
    let script = r#"
        trap 'echo INT >> "$0"' INT; trap 'echo TERM >> "$0"' TERM
        echo it runs; while [ ! -e "$1" ]; do sleep 0.01; done; exit 7"#;
    let mut program = Command::new("sh");
    // Its input may be another file than the terminal.
    program.args(["-c", r#"exec "$0" "$@" < /dev/null"#, env!("CARGO_BIN_EXE_optimus")]);
    program.args(["dev", "--", "sh", "-c", script]).args([&heard, &ends]);
    let mut dev = OnTerminal::start(&program);
    dev.draws("it runs").await;
    dev.press("\u{3}");
    eventually("the command has heard it", SOON, async || heard.exists()).await;
    std::fs::write(&ends, "").unwrap();
    assert_eq!(dev.code().await, 7);
    assert_eq!(std::fs::read_to_string(&heard).unwrap(), "INT\n");
}

#[test]
fn kept_tasks_are_there_again() {
    let folder = tempfile::tempdir().unwrap();
    let exe = env!("CARGO_BIN_EXE_optimus");
    let dev = |script: &str| {
        let mut command = optimus();
        command.args(["dev", "--keep"]).arg(folder.path()).args(["--", "sh", "-c", script, exe]);
        run(&mut command, "").ended(0)
    };
    dev(r#"exec "$0" queue pause mail"#);
    let listed = dev(r#"exec "$0" queue list"#);
    assert!(listed.out.contains("mail") && listed.out.contains("paused"), "{listed:?}");
}

#[test]
fn two_servers_do_not_share_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (exe, kept) = (env!("CARGO_BIN_EXE_optimus"), folder.path().to_str().unwrap());
    let mut command = optimus();
    let script = r#"exec "$0" dev --keep "$1" -- true"#;
    command.args(["dev", "--keep", kept, "--", "sh", "-c", script, exe, kept]);
    let second = run(&mut command, "").ended(4);
    assert!(second.err.contains("another `optimus dev` keeps its tasks in"), "{second:?}");
    run(optimus().args(["dev", "--keep", kept, "--", "true"]), "").ended(0);
}

#[test]
fn a_machine_without_a_server_is_told_what_to_install() {
    let ran =
        run(optimus().arg("dev").env("PATH", "/nowhere").env_remove("OPTIMUS_REDIS_SERVER"), "");
    assert!(ran.ended(3).err.contains("apt install redis-server"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_another_server_has_is_refused() {
    let (_other, url) = start().await;
    let port = url.trim_end_matches('/').rsplit(':').next().unwrap().to_owned();
    for _ in 0..3 {
        let mut command = optimus();
        command.args(["dev", "--port", &port, "--", "echo", "it runs"]);
        let ran = tokio::task::spawn_blocking(move || run(&mut command, "")).await.unwrap();
        let ran = ran.ended(1);
        assert!(ran.out.is_empty() && ran.err.contains("Address already in use"), "{ran:?}");
    }
}

/// Asks a console over HTTP.
fn ask(page: &str, path: &str) -> optimus_testkit::HttpAnswer {
    let address = page.trim_start_matches("http://").trim_end_matches('/').parse().unwrap();
    optimus_testkit::http_get(address, &format!("GET {path}")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_console_is_beside_the_server_and_shows_its_queues() {
    let mut program =
        Proc::program(env!("CARGO_BIN_EXE_optimus")).arg("dev").arg("--json").arg("--stay").start();
    let line = program.wait_for_line("\"console\"", SOON).await;
    let started: serde_json::Value = serde_json::from_str(&line).unwrap();
    let client = Client::connect(started["url"].as_str().unwrap()).await.unwrap();
    client.pause("mail").await.unwrap();
    let page = started["console"].as_str().unwrap().to_owned();
    let answer = ask(&page, "/api/v1/queues");
    assert!(answer.status == 200 && answer.body.contains("\"mail\""), "{answer:?}");
    assert!(ask(&page, "/").body.contains("<base href=\"/\""));
    program.signal("INT");
    assert!(program.wait(SOON).await.success());
}

#[test]
fn a_console_that_others_could_reach_needs_tokens() {
    let url = optimus_testkit::shared_redis();
    let console = |arguments: &[&str]| {
        let mut command = optimus();
        command.args(["console", "--url", url.url()]).args(arguments);
        run(&mut command, "")
    };
    let refused = console(&["--listen", "0.0.0.0:0"]).ended(2);
    assert!(refused.err.contains("no authentication"), "{refused:?}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    let hash = "0".repeat(64);
    let with = |queues: &str| format!("ann admin {hash} {queues}");
    let wrong = ":1: after the SHA-256, write nothing or the queues";
    for (text, why) in [
        (&*with(" -"), wrong),
        (&*with("mail, tenant-*"), wrong),
        (&*with("mail tenant-*"), wrong),
        ("", "has no secret"),
        ("ann", ":1: write a name, a role and the SHA-256"),
        ("# people\nann boss 00", ":2: \"boss\" is not viewer, operator or admin"),
        ("ann admin 00", ":1: the SHA-256 of \"ann\" is not 64"),
    ] {
        std::fs::write(&file, text).unwrap();
        let tokens = file.to_str().unwrap();
        let refused = console(&["--listen", "127.0.0.1:0", "--tokens", tokens]).ended(2);
        assert!(refused.err.contains(why), "{refused:?}");
    }
    assert!(console(&["--payloads", "all"]).ended(2).err.contains("admin=full"));
}
