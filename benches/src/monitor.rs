//! Reads the commands that clients send, as `MONITOR` shows them.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use redis::{ConnectionLike as _, Value};

use crate::agent::protocol::{Load, PAYLOAD_BYTES, Way};
use crate::bench_redis::BenchRedis;
use crate::submitter::Submitter;

/// The time limit of a read, which is enough for one submit.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection that receives the commands of all others.
struct Monitor(redis::Connection);

/// A command that MONITOR shows.
struct Monitored {
    words: Vec<Vec<u8>>,
    by_script: bool,
}

/// Returns the number of commands that clients send within a time, without those of scripts.
///
/// # Errors
///
/// When Redis does not reply.
pub(crate) fn commands_within(redis: &BenchRedis, window: Duration) -> anyhow::Result<u64> {
    let mut monitor = Monitor::start(redis)?;
    let until = Instant::now() + window;
    let mut commands = 0;
    while let Some(monitor) = monitor.next(until)? {
        commands += u64::from(!monitor.by_script);
    }
    Ok(commands)
}

/// Returns the words of one submit after the hash of its script: the number of keys, the keys, and
/// the arguments.
///
/// # Errors
///
/// When a submit is not one call of a script.
pub(crate) fn words_of_a_submit(redis: &BenchRedis) -> anyhow::Result<Vec<Vec<u8>>> {
    redis.probe().flush()?;
    let mut submitter = Submitter::start(redis)?;
    // The first submit announces the queue and loads the script.
    submitter.submit(redis, Load::new(Way::Sequential, 1))?;
    let mut monitor = Monitor::start(redis)?;
    submitter.begin(Load::new(Way::Sequential, 1).first(1))?;
    let until = Instant::now() + PATIENCE;
    while let Some(monitor) = monitor.next(until)? {
        let mut words = monitor.words.into_iter();
        let verb = words.next().unwrap_or_default();
        let carries = words.as_slice().iter().any(|word| word.len() >= PAYLOAD_BYTES);
        if !monitor.by_script && carries {
            ensure!(verb.eq_ignore_ascii_case(b"EVALSHA"), "a submit is no longer an EVALSHA");
            submitter.end()?;
            return Ok(words.skip(1).collect());
        }
    }
    bail!("MONITOR did not show a submit")
}

impl Monitor {
    fn start(redis: &BenchRedis) -> anyhow::Result<Self> {
        let mut connection = redis::Client::open(redis.url())?.get_connection()?;
        connection.req_command(&redis::cmd("MONITOR"))?;
        Ok(Self(connection))
    }

    /// Returns the next command, if one arrives before this time.
    fn next(&mut self, until: Instant) -> anyhow::Result<Option<Monitored>> {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        self.0.set_read_timeout(Some(left))?;
        match self.0.recv_response() {
            Ok(Value::SimpleString(line)) => {
                Ok(Some(parse(&line).with_context(|| format!("MONITOR replied {line:?}"))?))
            }
            Ok(other) => bail!("MONITOR replied {other:?}"),
            Err(error) if error.is_timeout() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Reads a line such as `1700000000.123456 [0 127.0.0.1:4242] "EVALSHA" "…"`. The address of a
/// script's command is `lua`.
fn parse(line: &str) -> Option<Monitored> {
    let (_, line) = line.split_once(" [")?;
    let (source, words) = line.split_once("] ")?;
    Some(Monitored { words: unquote(words.as_bytes())?, by_script: source.ends_with(" lua") })
}

/// Returns the words of a line, which have Redis' quoting.
fn unquote(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut words, mut bytes) = (Vec::new(), line.iter().copied());
    while bytes.next()? == b'"' {
        let mut word = Vec::new();
        loop {
            match bytes.next()? {
                b'"' => break,
                b'\\' => word.push(match bytes.next()? {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'a' => 7,
                    b'b' => 8,
                    b'x' => {
                        let digits = [bytes.next()?, bytes.next()?];
                        u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
                    }
                    other => other,
                }),
                byte => word.push(byte),
            }
        }
        words.push(word);
        if bytes.next().is_none() {
            return Some(words);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_monitor_becomes_its_words_and_whether_a_script_sent_them() {
        let sent = parse(r#"1.5 [0 127.0.0.1:4] "SET" "a \"b\"" "\x00\n\\" """#).unwrap();
        assert_eq!(sent.words, [&b"SET"[..], b"a \"b\"", b"\0\n\\", b""]);
        assert!(!sent.by_script && parse(r#"1.5 [0 lua] "GET" "a""#).unwrap().by_script);
        assert!(parse("OK").is_none() && parse(r#"1 [0 lua] "GET"#).is_none());
    }
}
