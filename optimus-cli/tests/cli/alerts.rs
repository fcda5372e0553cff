//! Each alert of `docs/monitoring/alerts.yaml` fires in its case, and in no other.

use std::{fs, path::Path};

use optimus_testkit::{find_prometheus, promtool};

#[test]
fn each_alert_fires_in_its_case_and_has_a_severity() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rules = fs::read_to_string(folder.join("../docs/monitoring/alerts.yaml")).unwrap();
    let cases_file = folder.join("tests/cli/alerts_test.yaml");
    let cases = fs::read_to_string(&cases_file).unwrap();
    let names: Vec<&str> =
        rules.lines().filter_map(|l| l.trim().strip_prefix("- alert: ")).collect();
    assert!(names.len() >= 10, "{names:?}");
    assert_eq!(rules.matches("severity: ").count(), names.len(), "each has one");
    for name in names {
        assert!(cases.contains(&format!("alertname: {name}\n")), "no case has {name}");
    }
    if find_prometheus("promtool").is_none() {
        println!("skipped: no promtool in PATH; its package is `prometheus` on most systems");
        return;
    }
    promtool(&["test", "rules", cases_file.to_str().unwrap()]);
}
