//! One random call of a dispenser: [`Step`].

use std::time::Duration;

/// How long an assignee may be silent, and keep an item, in ms.
pub(super) const HOLD: u64 = 10_000;
pub(super) const HOLD_MAX: u64 = 35_000;

const ASSIGNEES: [&str; 5] = ["ann", "bob", "eve", "a:b", "☃"];
const ITEMS: u8 = 24;

/// A call with its arguments.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Add(Vec<(String, i8)>),
    Assign(&'static str, usize),
    Check(&'static str),
    Done(&'static str, Vec<String>),
    GiveBack(&'static str, Vec<String>),
    Begin(String),
    Page(String, Vec<(String, i8)>),
    End(String),
    Counts,
    /// The clock goes on by so many ms.
    Wait(Duration),
    /// The clock is set back by so many ms.
    Back(Duration),
}

impl Step {
    /// Draws a step.
    pub(super) fn drawn(chance: &mut fastrand::Rng) -> Self {
        let who = ASSIGNEES[chance.usize(..ASSIGNEES.len())];
        match chance.u8(..100) {
            0..=17 => Self::Add(ranked(chance)),
            18..=42 => Self::Assign(who, chance.usize(..7)),
            43..=48 => Self::Check(who),
            49..=60 => Self::Done(who, ids(chance)),
            61..=69 => Self::GiveBack(who, ids(chance)),
            70..=71 => Self::Begin(rebuild(chance)),
            72..=76 => Self::Page(rebuild(chance), ranked(chance)),
            77..=78 => Self::End(rebuild(chance)),
            79..=82 => Self::Counts,
            83..=96 => Self::Wait(Duration::from_millis(chance.u64(..9_000))),
            97 => Self::Back(Duration::from_millis(chance.u64(..9_000_000))),
            _ => Self::Wait(Duration::from_millis(chance.u64(..4_000_000))),
        }
    }
}

fn item(chance: &mut fastrand::Rng) -> String {
    format!("i{}", chance.u8(..ITEMS))
}

fn ids(chance: &mut fastrand::Rng) -> Vec<String> {
    (0..chance.usize(1..6)).map(|_| item(chance)).collect()
}

fn ranked(chance: &mut fastrand::Rng) -> Vec<(String, i8)> {
    let priority = |chance: &mut fastrand::Rng| [0, 0, 0, 1, -1, 100][chance.usize(..6)];
    (0..chance.usize(1..6)).map(|_| (item(chance), priority(chance))).collect()
}

fn rebuild(chance: &mut fastrand::Rng) -> String {
    format!("r{}", chance.u8(..2))
}
