//! Runs the program and compares what it prints.

use std::{
    env,
    fmt::Write as _,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use crate::scrub::scrub;

/// Writes a text to a key of a server that listens on a Unix socket.
pub(crate) fn set_text(url: &str, key: &str) {
    assert_eq!(raw(url, &["SET", key, "text"]), "+OK");
}

/// Sends a command to a server that listens on a Unix socket, and returns the first line of its
/// answer.
pub(crate) fn raw(url: &str, words: &[&str]) -> String {
    let socket = url.strip_prefix("unix://").expect("a private server has a socket");
    let mut stream = UnixStream::connect(socket).unwrap();
    let mut command = format!("*{}\r\n", words.len());
    for word in words {
        write!(command, "${}\r\n{word}\r\n", word.len()).expect("a text takes any text");
    }
    stream.write_all(command.as_bytes()).unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    assert!(!answer.starts_with('-'), "{words:?}: {answer}");
    answer.trim_end().to_owned()
}

/// What the program has printed, and its exit code.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code().expect("no signal ends the program"),
            out: String::from_utf8(output.stdout).expect("the output is text"),
            err: String::from_utf8(output.stderr).expect("the output is text"),
        }
    }

    /// Fails unless the program has ended with this code.
    pub(crate) fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }

    /// Returns the lines of JSON.
    pub(crate) fn json(&self) -> Vec<serde_json::Value> {
        let read =
            |line: &str| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}"));
        self.out.lines().map(read).collect()
    }

    /// Compares the scrubbed output with a file of `golden/`. `OPTIMUS_GOLDEN=write` writes it.
    pub(crate) fn matches(&self, name: &str) {
        let mut text = scrub(&self.out);
        if !self.err.is_empty() {
            text.push_str("--- stderr\n");
            text.push_str(&scrub(&self.err));
        }
        if self.code != 0 {
            writeln!(text, "--- exit {}", self.code).expect("a text takes any text");
        }
        let file =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/cli/golden/{name}.txt"));
        if env::var("OPTIMUS_GOLDEN").is_ok_and(|value| value == "write") {
            fs::write(&file, text).unwrap();
            return;
        }
        let golden = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(
            text,
            golden,
            "{} differs; OPTIMUS_GOLDEN=write cargo test -p optimus-tasks-cli writes it",
            file.display()
        );
    }
}

/// Returns the program with no variable of this process that it would read.
pub(crate) fn optimus() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_optimus"));
    for name in [
        "OPTIMUS_URL",
        "REDIS_URL",
        "OPTIMUS_NAMESPACE",
        "NO_COLOR",
        "OPTIMUS_TEST_REDIS",
        "OPTIMUS_GOLDEN",
    ] {
        command.env_remove(name);
    }
    command.env("USER", "ann");
    command
}

/// Runs the program to its end.
pub(crate) fn run(command: &mut Command, input: &str) -> Ran {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("cargo has built the program");
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    // A program that does not read has ended before.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    Ran::of(child.wait_with_output().expect("the program ends"))
}
