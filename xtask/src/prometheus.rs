//! Finds the Prometheus that scrapes metrics in a test, and installs one if there is none.

use optimus_testkit::find_prometheus;

use crate::install;

/// Installs Prometheus with the system's package manager, unless it is there. Not each distribution
/// has a package of it, so its test is skipped on a machine without one, and says so.
pub(crate) fn find_or_install() {
    let is_missing =
        || ["prometheus", "promtool"].iter().any(|name| find_prometheus(name).is_none());
    if is_missing()
        && let Err(problem) = install::prometheus()
    {
        println!("Prometheus can't be installed, so its test is skipped: {problem:#}");
    } else if is_missing() {
        println!("Prometheus was installed but is not found; its test is skipped");
    }
}
