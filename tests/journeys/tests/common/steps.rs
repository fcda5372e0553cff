//! Tasks of lanes that record when they begin and end, and the check of these records.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use optimus_core::{Backoff, BoxError, Call, Context, DataKey, Fatal, Task, TaskOptions};
use serde::{Deserialize, Serialize};

use super::Raw;

/// The records of steps. Several processes may share one journal in Redis.
#[derive(Clone)]
pub enum Journal {
    Here(Arc<Mutex<Vec<String>>>),
    Redis(Arc<tokio::sync::Mutex<Raw>>),
}

/// The list in Redis.
const LIST: &str = "journal";

impl Journal {
    pub fn new() -> Self {
        Self::Here(Arc::default())
    }

    pub async fn in_redis(url: &str) -> Self {
        Self::Redis(Arc::new(Raw::connect(url).await.into()))
    }

    pub async fn write(&self, line: String) {
        match self {
            Self::Here(lines) => lines.lock().unwrap().push(line),
            Self::Redis(raw) => {
                let words = [b"RPUSH", LIST.as_bytes(), line.as_bytes()];
                raw.lock().await.run_words(&words).await;
            }
        }
    }

    /// Returns the number of lines.
    pub async fn len(&self) -> usize {
        match self {
            Self::Here(lines) => lines.lock().unwrap().len(),
            Self::Redis(raw) => {
                let length = raw.lock().await.run(&format!("LLEN {LIST}")).await.remove(0);
                String::from_utf8(length).unwrap().parse().unwrap()
            }
        }
    }

    pub async fn lines(&self) -> Vec<String> {
        match self {
            Self::Here(lines) => lines.lock().unwrap().clone(),
            Self::Redis(raw) => {
                let lines = raw.lock().await.run(&format!("LRANGE {LIST} 0 -1")).await;
                lines.into_iter().map(|line| String::from_utf8(line).unwrap()).collect()
            }
        }
    }

    /// Returns the keys of the store with this prefix.
    pub async fn keys(&self, prefix: &str) -> Vec<Vec<u8>> {
        let Self::Redis(raw) = self else { return Vec::new() };
        raw.lock().await.run(&format!("KEYS {prefix}*")).await
    }

    /// Returns the steps that began, as `<lane> <number>`, in order.
    pub async fn begun(&self) -> Vec<String> {
        let begins = |line: String| line.strip_prefix("begins ").map(str::to_owned);
        self.lines().await.into_iter().filter_map(begins).collect()
    }
}

/// One task of a lane.
#[derive(Serialize, Deserialize)]
pub struct Step {
    pub lane: u32,
    /// Its place in the lane, from 0.
    pub number: u32,
    /// The number of attempts that fail.
    pub fails: u32,
    /// Whether the step is Dead after its first attempt.
    pub dies: bool,
}

/// A step that succeeds, in its lane.
pub fn step(lane: u32, number: u32) -> Call<Step> {
    Step { lane, number, fails: 0, dies: false }.call()
}

impl Task for Step {
    const NAME: &'static str = "step";
    type Output = ();

    fn options() -> TaskOptions {
        let wait = Duration::from_millis(20);
        TaskOptions::new().backoff(Backoff::Fixed { wait, jitter: 0.0 })
    }

    fn lane(&self) -> Option<String> {
        Some(format!("lane-{}", self.lane))
    }

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Journal>()]
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let journal: Journal = ctx.data().unwrap();
        let Self { lane, number, fails, dies } = self;
        let note = async |what| journal.write(format!("{what} {lane} {number}")).await;
        note("begins").await;
        tokio::task::yield_now().await;
        if dies {
            note("ends").await;
            return Err(Fatal::new("asked to die").into());
        }
        if ctx.attempt() <= fails {
            note("fails").await;
            return Err("asked to fail".into());
        }
        note("ends").await;
        Ok(())
    }
}

/// What a journal shows about lanes of width 1.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Steps that ran out of order, or at the same time as another step of their lane.
    pub problems: Vec<String>,
    /// Attempts of a step whose previous attempt has not ended, or has ended without its report.
    pub reruns: usize,
    /// How many steps have ended.
    pub ended: usize,
}

/// A lane while its journal is read.
#[derive(Default)]
struct Turn {
    /// How many of its steps have ended.
    ended: u32,
    /// The step whose attempt has begun, and whether that attempt has failed.
    begun: Option<(u32, bool)>,
}

impl Verdict {
    /// Reads a journal.
    pub fn of(lines: &[String]) -> Self {
        let (mut verdict, mut turns) = (Self::default(), HashMap::<&str, Turn>::new());
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            let [what, lane, number] = words[..] else { panic!("{line}") };
            let (turn, number) = (turns.entry(lane).or_default(), number.parse().unwrap());
            if !verdict.takes(turn, what, number) {
                let Turn { ended, begun } = turn;
                let problem = format!("{line}, after {ended} have ended and {begun:?} has begun");
                verdict.problems.push(problem);
            }
        }
        verdict.ended = turns.values().map(|turn| turn.ended as usize).sum();
        verdict
    }

    /// Returns whether the lane allows this step to begin. A worker may die before it reports a
    /// step that has ended. So the last step may begin again until the next one has begun.
    fn takes(&mut self, turn: &mut Turn, what: &str, number: u32) -> bool {
        match (what, turn.begun) {
            ("begins", None) if number == turn.ended => {}
            ("begins", None) if number + 1 == turn.ended => {
                (self.reruns, turn.ended) = (self.reruns + 1, number);
            }
            ("begins", Some((begun, has_failed))) if begun == number => {
                self.reruns += usize::from(!has_failed);
            }
            ("fails", Some((begun, false))) if begun == number => {
                turn.begun = Some((number, true));
                return true;
            }
            ("ends", Some((begun, false))) if begun == number => {
                (turn.begun, turn.ended) = (None, number + 1);
                return true;
            }
            _ => return false,
        }
        turn.begun = Some((number, false));
        true
    }
}
