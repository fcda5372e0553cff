//! `optimus dev`: the server lives as long as the command.

use std::time::Duration;

use optimus::Client;
use optimus_testkit::{Proc, eventually};

use crate::kit::{optimus, run};

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
fn a_machine_without_a_server_is_told_what_to_install() {
    let ran =
        run(optimus().arg("dev").env("PATH", "/nowhere").env_remove("OPTIMUS_REDIS_SERVER"), "");
    assert!(ran.ended(3).err.contains("apt install redis-server"));
}
