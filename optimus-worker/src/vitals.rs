//! The memory and the CPU time of this process, as Linux shows them.

use std::{fs, time::Duration};

/// Linux counts CPU time in these parts of a second for programs, on every architecture.
const TICKS_A_SECOND: u64 = 100;

/// Returns the memory that the process has in RAM; `None` on other systems.
pub(crate) fn rss_bytes() -> Option<u64> {
    rss_in(&read("/proc/self/status")?)
}

/// Returns the CPU time that the process has used; `None` on other systems.
pub(crate) fn cpu_time() -> Option<Duration> {
    cpu_in(&read("/proc/self/stat")?)
}

/// In a simulation, all that a worker sends must repeat exactly.
fn read(path: &str) -> Option<String> {
    #[cfg(feature = "simulation")]
    if optimus_core::platform::is_simulated() {
        return None;
    }
    fs::read_to_string(path).ok()
}

fn rss_in(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1_024)
}

/// Reads fields 14 and 15. The second field is the name of the program, in parentheses, and may
/// have any characters.
fn cpu_in(stat: &str) -> Option<Duration> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    let (user, system) = (ticks()?, ticks()?);
    let ticks = user.checked_add(system)?;
    ticks.checked_mul(1_000 / TICKS_A_SECOND).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_cpu_time_are_read_also_if_the_name_of_the_program_is_strange() {
        assert_eq!(rss_in("Name:\tx\nVmRSS:\t    2048 kB\nThreads: 4\n"), Some(2 << 20));
        let fields = "S 1 2 3 4 5 6 7 8 9 10 250 50 0 0";
        assert_eq!(cpu_in(&format!("7 (a) b) {fields}")), Some(Duration::from_secs(3)));
        let long = "7 (a) S 1 2 3 4 5 6 7 8 9 10 4294967296 4294967296 0 0";
        assert_eq!(cpu_in(long), Some(Duration::from_millis(10 << 33)), "a year of CPU time");
        for strange in ["", "7 (a)", "7 (a) S 1 2", "VmRSS: many kB"] {
            assert_eq!((rss_in(strange), cpu_in(strange)), (None, None), "{strange}");
        }
        if cfg!(target_os = "linux") {
            assert!(rss_bytes().is_some_and(|bytes| bytes > 1 << 20) && cpu_time().is_some());
        }
    }
}
