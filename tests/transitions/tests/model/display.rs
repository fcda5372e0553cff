//! How calls and answers are printed in the report of a failed run, one line each.

use std::fmt::{self, Display, Formatter};

use optimus_core::{
    Lease,
    broker::{Keep, Reported},
};

use crate::{
    answer::{Answer, Granted, NotAdmitted},
    call::{Call, DueMs, SubmitCall, Wait, Wanted},
};

impl Display for Call {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Submit(submit_call) => write!(f, "{submit_call}"),
            Self::Claim { worker, seq, alone: true, .. } => {
                write!(f, "{worker} claims one to run alone under {seq}")
            }
            Self::Claim { worker, seq, want, .. } => {
                write!(f, "{worker} claims {want} under {seq}")
            }
            Self::Complete { worker, done } => {
                let done = list(done.iter().map(|d| held(&d.lease)));
                write!(f, "{worker} completes {done}")
            }
            Self::Fail { worker, failed } => {
                let failed =
                    list(failed.iter().map(|f| format!("{} {:?}", held(&f.lease), f.outcome)));
                write!(f, "{worker} fails {failed}")
            }
            Self::Release { worker, given } => {
                let given = list(given.iter().map(|g| format!("{} {:?}", held(&g.lease), g.give)));
                write!(f, "{worker} releases {given}")
            }
            Self::Register { worker, lease_ms } => {
                write!(f, "{worker} registers for {lease_ms} ms")
            }
            Self::Renew { worker, lease_ms } => write!(f, "{worker} renews for {lease_ms} ms"),
            Self::Reap { worker, lease_ms, limit } => {
                write!(f, "{worker}, its lease {lease_ms} ms, reaps up to {limit}")
            }
            Self::Leave { worker } => write!(f, "{worker} leaves"),
            Self::Cancel { ids } => {
                write!(f, "cancel {}", list(ids.iter().map(ToString::to_string)))
            }
            Self::Requeue { id } => write!(f, "requeue {id}"),
            Self::Pause { paused } => f.write_str(if *paused { "pause" } else { "resume" }),
            Self::Resize { lane, width: Some(width) } => {
                write!(f, "lane {lane} becomes {width} wide")
            }
            Self::Resize { lane, .. } => write!(f, "lane {lane} is as wide as its tasks"),
            Self::Delete { ids } => {
                write!(f, "delete {}", list(ids.iter().map(ToString::to_string)))
            }
            Self::Purge { keep: Keep { tasks, recent, bytes, age } } => write!(
                f,
                "purge above {tasks} that ended {recent:?} ago, {bytes} bytes and {age:?}"
            ),
            Self::Retire { idle_ms } => write!(f, "retire if unused for {idle_ms} ms"),
            Self::Await(Wait { id, client, along, .. }) => {
                write!(f, "{client} awaits {id}, and asks for {} others", along.len())
            }
            Self::State { id, .. } => write!(f, "the state of {id}"),
            Self::Inspect { id } => write!(f, "inspect {id}"),
            Self::Read => f.write_str("read the queue"),
            Self::Apply { effects } => write!(f, "apply {}", effects.join(", ")),
            Self::Reask => f.write_str("ask again"),
        }
    }
}

impl Display for SubmitCall {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { client, ahead_ms, number, since: _, keep, tasks } = self;
        write!(f, "{client} submits #{number}")?;
        if *ahead_ms != 0 {
            write!(f, " ({ahead_ms} ms ahead)")?;
        }
        let kept = if *keep { ", ledger kept" } else { "" };
        write!(f, ": {}{kept}", list(tasks.iter().map(Wanted::to_string)))
    }
}

impl Display for Wanted {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id, self.task())?;
        match self.due {
            DueMs::Now => {}
            due => write!(f, " {due:?}")?,
        }
        if self.priority != 0 {
            write!(f, " priority {}", self.priority)?;
        }
        if let Some(biz) = &self.biz {
            write!(f, " biz {biz}")?;
        }
        if let Some(lane) = &self.lane {
            write!(f, " lane {} of {} {:?}", lane.key, lane.width, lane.on_failure)?;
        }
        if let Some(after) = &self.after {
            let all = list(after.prerequisites.iter().map(ToString::to_string));
            write!(f, " after {all} or {:?}", after.on_failure)?;
        }
        let notes = [
            (self.window_ms.is_some() && self.biz.is_some(), " window"),
            (self.on_lost == optimus_core::OnLost::Dead, " at most once"),
            (self.expires_in_ms.is_some(), " expires"),
            (self.given, " given"),
            (self.large, " large"),
        ];
        notes.into_iter().filter(|(is, _)| *is).try_for_each(|(_, note)| f.write_str(note))
    }
}

impl Display for Answer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Receipts(owners, _) => {
                let owner = |owner: &Option<NotAdmitted>| match owner {
                    Some(NotAdmitted::Owner(owner)) => format!("taken by {owner}"),
                    Some(NotAdmitted::Cycle(path)) => {
                        format!(
                            "waits for itself through {}",
                            list(path.iter().map(ToString::to_string))
                        )
                    }
                    None => "accepted".to_owned(),
                };
                f.write_str(&list(owners.iter().map(owner)))
            }
            Self::Granted(Granted { token, more, next_due_ms, grants }) => {
                let grants = list(grants.iter().map(|grant| match grant.tries {
                    (0, 0, 0) => grant.id.to_string(),
                    tries => format!("{} {tries:?}", grant.id),
                }));
                let more = if *more { ", more" } else { "" };
                let due = next_due_ms.map_or(String::new(), |ms| format!(", next due in {ms} ms"));
                write!(f, "{grants} under {token}{more}{due}")
            }
            Self::Reported(told) if *told == Reported::default() => f.write_str("done"),
            Self::Reported(Reported { stale, cancelled, dead, .. }) => {
                write!(f, "stale at {stale:?}, cancelled at {cancelled:?}, dead at {dead:?}")
            }
            Self::Applied { last, posted, left } => {
                write!(f, "applied up to {last}, posted {posted}, {left} left")
            }
            Self::Reasked { tasks, posted, next_ms } => {
                write!(f, "{tasks} gave up, posted {posted}, next in {next_ms:?}")
            }
            Self::Refused(refusal, detail) => write!(f, "{refusal:?} {detail}"),
            other => write!(f, "{other:?}"),
        }
    }
}

fn held(lease: &Lease) -> String {
    format!("{} under {}", lease.id, lease.token)
}

fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() { "nothing".to_owned() } else { items.join(" · ") }
}
