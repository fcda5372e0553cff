//! The resources of processes, from `/proc`: processor time and memory. On a system without `/proc`
//! the results omit them.

use std::collections::BTreeMap;
use std::fs;

/// The ticks per second of `/proc`, which are a hundred on every system that has it.
const TICKS_PER_S: f64 = 100.0;
/// The most ticks by which a time may be too low, because user and system time are each rounded
/// down to a tick.
const TICKS_LOST: f64 = 2.0;

/// The processor time of some processes at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage {
    /// The time by process, in hundredths of a second, including threads that have ended.
    ticks: BTreeMap<u32, f64>,
    /// The time by thread, in ns.
    threads: BTreeMap<u32, u64>,
}

impl Usage {
    /// Returns the resources of these processes until now.
    pub(crate) fn of(pids: &[u32]) -> Self {
        let ticks = pids.iter().filter_map(|pid| Some((*pid, ticks(*pid)?)));
        Self {
            ticks: ticks.collect(),
            threads: pids.iter().flat_map(|pid| threads(*pid)).collect(),
        }
    }

    /// Returns the user and system seconds since `before`, or `None` without `/proc`.
    pub(crate) fn since(&self, before: &Self) -> Option<f64> {
        if self.ticks.is_empty() {
            return None;
        }
        let ticks = self.ticks.iter();
        let coarse: f64 = ticks.map(|(pid, t)| t - before.ticks.get(pid).unwrap_or(&0.0)).sum();
        let whole_s = coarse / TICKS_PER_S;
        let threads = self.threads.iter();
        let fine_ns: u64 = threads.map(|(id, ns)| ns - before.ns_of(*id).min(*ns)).sum();
        let precise_s = std::time::Duration::from_nanos(fine_ns).as_secs_f64();
        // The finer sum lacks threads that ended in between.
        let cut_off_s = self.ticks.len() as f64 * TICKS_LOST / TICKS_PER_S;
        Some(if whole_s - precise_s > cut_off_s { whole_s } else { precise_s })
    }

    fn ns_of(&self, thread: u32) -> u64 {
        self.threads.get(&thread).copied().unwrap_or(0)
    }
}

/// Returns these processes and their descendants.
pub(crate) fn tree(roots: &[u32]) -> Vec<u32> {
    let parents: Vec<(u32, u32)> =
        numbers_in("/proc").filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = roots.to_vec();
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        found.extend(parents.iter().filter(|(_, parent)| *parent == pid).map(|(child, _)| child));
        next += 1;
    }
    found
}

/// Returns the current resident memory of these processes in total, in MB.
pub(crate) fn rss_mb(pids: &[u32]) -> Option<f64> {
    status_mb(pids, "VmRSS:")
}

/// Returns the sum of the maximum resident memory of each of these processes, in MB.
pub(crate) fn peak_rss_mb(pids: &[u32]) -> Option<f64> {
    status_mb(pids, "VmHWM:")
}

fn status_mb(pids: &[u32], field: &str) -> Option<f64> {
    let kb = pids.iter().filter_map(|pid| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let value = status.lines().find_map(|line| line.strip_prefix(field))?;
        value.trim().trim_end_matches(" kB").parse::<f64>().ok()
    });
    let kb: Vec<f64> = kb.collect();
    (!kb.is_empty()).then(|| kb.iter().sum::<f64>() / 1024.0)
}

/// Returns the fields of `/proc/<pid>/stat` after the name, because the name may contain any text.
fn stat(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    Some(fields.split(' ').map(str::to_owned).collect())
}

fn ticks(pid: u32) -> Option<f64> {
    let stat = stat(pid)?;
    Some(stat.get(11)?.parse::<f64>().ok()? + stat.get(12)?.parse::<f64>().ok()?)
}

fn parent(pid: u32) -> Option<u32> {
    stat(pid)?.get(1)?.parse().ok()
}

fn threads(pid: u32) -> Vec<(u32, u64)> {
    let folder = format!("/proc/{pid}/task");
    let ns_of = |thread: u32| {
        let text = fs::read_to_string(format!("{folder}/{thread}/schedstat")).ok()?;
        text.split(' ').next()?.parse().ok()
    };
    numbers_in(&folder).filter_map(|thread| Some((thread, ns_of(thread)?))).collect()
}

fn numbers_in(folder: &str) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
