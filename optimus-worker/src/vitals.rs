//! The memory and the CPU time of this process, as Linux shows them.

use std::{fs, time::Duration};

use tokio::time::Instant;

/// Linux counts CPU time in these parts of a second for programs, on every architecture.
const TICKS_A_SECOND: u64 = 100;
/// The shortest time over which the use of the CPU is measured. A tick is a hundredth of it.
const MEASURED_FOR: Duration = Duration::from_secs(1);

/// How many cores the process uses.
#[derive(Debug, Default)]
pub(crate) struct CpuUse {
    /// The CPU time at the start of the present measurement, and when that was.
    since: Option<(Duration, Instant)>,
    /// The result of the last measurement.
    cores: Option<f64>,
}

impl CpuUse {
    /// Takes in the CPU time that the process has used until now. Returns how many cores it used
    /// between the last two calls that were long enough apart.
    pub(crate) fn measure(&mut self, used: Option<Duration>, now: Instant) -> Option<f64> {
        let used = used?;
        let (before, since) = *self.since.get_or_insert((used, now));
        let elapsed = now.duration_since(since);
        if elapsed >= MEASURED_FOR {
            let cores = used.saturating_sub(before).as_secs_f64() / elapsed.as_secs_f64();
            self.cores = Some((cores * 1_000.0).round() / 1_000.0);
            self.since = Some((used, now));
        }
        self.cores
    }
}

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
    fn the_use_of_the_cpu_is_measured_over_a_second_or_longer() {
        let (start, mut cpu) = (Instant::now(), CpuUse::default());
        let mut at = |used_ms: u64, now_ms: u64| {
            let used = Duration::from_millis(used_ms);
            cpu.measure(Some(used), start + Duration::from_millis(now_ms))
        };
        assert_eq!((at(70, 0), at(80, 1)), (None, None), "no measurement has ended");
        assert_eq!(at(570, 1_000), Some(0.5), "it began at the first call");
        assert_eq!(at(580, 1_001), Some(0.5), "a tick in a millisecond is not ten cores");
        assert_eq!(at(8_570, 3_000), Some(4.0));
        assert_eq!(cpu.measure(None, start + 9 * MEASURED_FOR), None, "on other systems");
    }

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
