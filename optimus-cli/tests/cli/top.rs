//! The live view, on a real pseudo terminal.

use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Write as _},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use optimus::{Client, Gate};
use optimus_testkit::{RedisServer, eventually};
use rustix::{
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize},
};

use crate::{
    kit::optimus,
    stage::{Stage, send},
};

const SOON: Duration = Duration::from_secs(30);

/// The program on a terminal of its own.
pub(crate) struct OnTerminal {
    keyboard: File,
    line: File,
    shown: Arc<Mutex<Vec<u8>>>,
    child: Child,
}

impl OnTerminal {
    pub(crate) fn start(program: &Command) -> Self {
        let keyboard = File::from(openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap());
        grantpt(&keyboard).unwrap();
        unlockpt(&keyboard).unwrap();
        let name = ptsname(&keyboard, Vec::new()).unwrap().into_string().unwrap();
        let line = OpenOptions::new().read(true).write(true).open(name).unwrap();
        // A session of its own, of which this is the terminal.
        let mut command = Command::new("setsid");
        command.args(["--ctty"]).arg(program.get_program()).args(program.get_args());
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let side = || Stdio::from(line.try_clone().unwrap());
        let child = command.stdin(side()).stdout(side()).stderr(side()).spawn();
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (mut reader, sink) = (keyboard.try_clone().unwrap(), Arc::clone(&shown));
        thread::spawn(move || {
            let mut bytes = [0; 4_096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                sink.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        let child = child.expect("setsid is a part of util-linux");
        let own = Self { keyboard, line, shown, child };
        own.resize(80, 24);
        own
    }

    fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.keyboard, size).unwrap();
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    /// Waits until this word is drawn, returns what was drawn, and forgets it. Only what changes is
    /// drawn, so a space is not.
    pub(crate) async fn draws(&self, word: &str) -> String {
        eventually(&format!("{word:?} is drawn"), SOON, async || self.shown().contains(word)).await;
        String::from_utf8_lossy(&std::mem::take(&mut *self.shown.lock().unwrap())).into_owned()
    }

    /// Changes the size, so that all is drawn again, and returns it.
    async fn drawn_at(&self, columns: u16, rows: u16) -> String {
        self.shown.lock().unwrap().clear();
        self.resize(columns, rows);
        // The last word of the last line.
        self.draws("move").await
    }

    pub(crate) fn is_raw(&self) -> bool {
        !tcgetattr(&self.line).unwrap().local_modes.contains(LocalModes::ICANON)
    }

    /// Waits for the end. Returns the exit code.
    pub(crate) async fn code(&mut self) -> i32 {
        let mut status = None;
        eventually("the program ends", SOON, async || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        })
        .await;
        status.unwrap().code().unwrap()
    }

    /// Waits for the end. The terminal is as it was then.
    pub(crate) async fn ends(&mut self, code: i32) {
        assert_eq!(self.code().await, code, "{}", self.shown());
        assert!(!self.is_raw(), "keys are lines again");
        eventually("the old lines are back", SOON, async || {
            let shown = self.shown();
            shown.contains("\u{1b}[?1049l") && shown.contains("\u{1b}[?25h")
        })
        .await;
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn top_shows_what_changes_follows_keys_and_sizes_and_leaves_the_terminal_as_it_was() {
    let stage = Stage::new().await;
    stage.ended(["fail: connect to smtp-7: timed out"]).await;
    stage.client.gate("mail", Gate::Queue).pause("ann", "a deploy").await.unwrap();
    let mut top = OnTerminal::start(&stage.command(&["top", "--color", "never"]));
    top.draws("mail").await;
    assert!(top.is_raw());
    stage.client.submit(send("x".to_owned()).queue("images")).await.unwrap();
    top.draws("images").await;
    let large = top.drawn_at(140, 30).await;
    assert!(large.contains("BLOCKED") && large.contains("paused"), "{large:?}");
    top.press("\t");
    top.draws("worker.").await;
    top.press("3");
    top.draws("smtp-#:").await;
    top.press("1/ima");
    top.draws("keeps").await;
    top.press("\r");
    top.draws("leave").await;
    let filtered = top.drawn_at(80, 24).await;
    assert!(filtered.contains("images") && !filtered.contains("mail"), "{filtered:?}");
    top.press("\u{1b}");
    top.draws("mail").await;
    top.press("q");
    top.ends(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn top_says_that_redis_is_away_and_goes_on_when_it_is_back() {
    let mut redis = RedisServer::start();
    let client = Client::connect(&redis.url()).await.unwrap();
    client.submit(send("x".to_owned())).await.unwrap();
    let mut command = optimus();
    command.args(["top", "--url", &redis.url()]);
    let mut top = OnTerminal::start(&command);
    top.draws("mail").await;
    redis.kill();
    top.draws("numbers").await;
    redis.restart();
    eventually("the client is back", SOON, async || {
        client.submit(send("x".to_owned()).queue("images")).await.is_ok()
    })
    .await;
    top.draws("images").await;
    // Control-C is a key there.
    top.press("\u{3}");
    top.ends(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_top_and_gives_the_terminal_back() {
    let stage = Stage::new().await;
    let mut top = OnTerminal::start(&stage.command(&["top"]));
    top.draws("nobody").await;
    // `setsid` has become the program.
    kill_process(Pid::from_child(&top.child), Signal::TERM).unwrap();
    top.ends(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_terminal_top_names_what_prints_the_same() {
    let stage = Stage::new().await;
    let ran = stage.optimus(&["top"]).ended(2);
    assert!(ran.err.contains("`optimus queue list`") && ran.out.is_empty(), "{ran:?}");
    let ran = stage.optimus(&["top", "--json"]).ended(2);
    assert!(ran.err.contains("optimus queue list --json"), "{ran:?}");
    stage.optimus(&["top", "--every", "10ms"]).ended(2);
}
