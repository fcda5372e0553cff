//! The messages of a runner, one line each.

use std::time::Duration;

use crate::agent::protocol::Tallied;

/// A line of a runner for the harness.
#[derive(Debug, PartialEq)]
pub(super) enum Heard {
    /// The runner is connected. The text is the version of the library.
    Ready { version: String },
    /// All tasks are submitted.
    Done { took: Duration },
    /// The executions of a worker so far: the count, and the times when the first and the last one
    /// began.
    Ran { count: u64, first_ns: u64, last_ns: u64 },
    /// The wait of each stamped task.
    Waited { us: Vec<f64> },
    /// The number of executions of each task, by its number.
    Seen { runs: Vec<u8> },
}

impl Heard {
    /// Reads a line. Returns `None` if the line comes from the library or can't be read.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix("bench ")?.split_whitespace();
        match (words.next()?, &words.collect::<Vec<_>>()[..]) {
            ("ready", [version]) => Some(Self::Ready { version: (*version).to_owned() }),
            ("done", [ns]) => Some(Self::Done { took: Duration::from_nanos(ns.parse().ok()?) }),
            ("ran", [count, first, last]) => Some(Self::Ran {
                count: count.parse().ok()?,
                first_ns: first.parse().ok()?,
                last_ns: last.parse().ok()?,
            }),
            ("waited", waits) => {
                let us = |ns: &&str| Some(ns.parse::<f64>().ok()? / 1e3);
                Some(Self::Waited { us: waits.iter().map(us).collect::<Option<_>>()? })
            }
            ("seen", [hex]) => {
                let digits = hex.as_bytes().chunks(2).map(|two| std::str::from_utf8(two).ok());
                let runs = digits.map(|two| u8::from_str_radix(two?, 16).ok());
                Some(Self::Seen { runs: runs.collect::<Option<_>>()? })
            }
            _ => None,
        }
    }
}

/// Returns the executions of a worker, in the form that Optimus' workers have.
pub(super) fn tallied(runs: &[u8], latencies_us: Vec<f64>) -> Tallied {
    let word = |runs: &[u8]| {
        runs.iter().enumerate().fold(0, |word, (bit, runs)| word | u64::from(*runs > 0) << bit)
    };
    Tallied {
        words: runs.chunks(64).map(word).collect(),
        doubled: runs.iter().map(|runs| u64::from(runs.saturating_sub(1))).sum(),
        latencies_us,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runners_lines_are_distinguished_from_those_of_its_library() {
        let ready = Heard::Ready { version: "6.4.1".to_owned() };
        assert_eq!(Heard::parse("bench ready 6.4.1"), Some(ready));
        let ran = Heard::Ran { count: 3, first_ns: 10, last_ns: 20 };
        assert_eq!(Heard::parse("bench ran 3 10 20"), Some(ran));
        assert_eq!(Heard::parse("bench waited"), Some(Heard::Waited { us: vec![] }));
        let waited = Heard::Waited { us: vec![1.5, 2.0] };
        assert_eq!(Heard::parse("bench waited 1500 2000"), Some(waited));
        assert_eq!(Heard::parse("bench seen 0102ff"), Some(Heard::Seen { runs: vec![1, 2, 255] }));
        for line in ["ready", " -------------- celery@host v5.5.3", "bench seen 0x", "bench ", ""] {
            assert_eq!(Heard::parse(line), None, "{line}");
        }
    }

    #[test]
    fn second_executions_are_counted_separately() {
        let mut runs = vec![0; 66];
        (runs[1], runs[65]) = (1, 3);
        let tallied = tallied(&runs, Vec::new());
        assert_eq!((tallied.words, tallied.doubled), (vec![0b10, 0b10], 2));
    }
}
