//! The macros know the zones that the library knows.

use optimus::{Call, Schedule};

#[optimus::task]
async fn nothing() {}

const ZONES: &str = include_str!("../../optimus-macros/src/parse/time_zones.txt");

fn is_known(zone: &str) -> bool {
    let call: Call<_> = nothing();
    Schedule::cron("s", "@daily").tz(zone).call(call).check().is_ok()
}

#[test]
fn each_zone_that_the_compiler_accepts_can_be_used() {
    let unknown: Vec<&str> = ZONES.lines().filter(|zone| !is_known(zone)).collect();
    assert!(unknown.is_empty() && ZONES.lines().count() > 500, "{unknown:?}");
    assert!(!is_known("Asia/Shangai") && !is_known(""));
}
