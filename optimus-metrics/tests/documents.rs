//! The guide, the dashboard and the manifests only name what exists.

use std::{collections::BTreeSet, fs, path::Path};

use optimus_metrics::names::{OF_EXPORTER, OF_WORKERS};
use serde_json::Value;

fn text_of(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(file);
    fs::read_to_string(&path).unwrap_or_else(|problem| panic!("{}: {problem}", path.display()))
}

fn names() -> BTreeSet<&'static str> {
    OF_WORKERS.iter().chain(OF_EXPORTER).map(|metric| metric.name).collect()
}

/// Returns the metrics that a text names.
fn named(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c: char| !is_part(c)).filter(|word| word.starts_with("optimus_"));
    let family = |word: &str| {
        let suffixes = ["_bucket", "_sum", "_count"];
        let of = suffixes.iter().find_map(|suffix| word.strip_suffix(suffix));
        of.unwrap_or(word).to_owned()
    };
    words.map(family).collect()
}

#[test]
fn the_guide_describes_each_metric_as_the_table_does_and_no_other() {
    let page = text_of("guides/metrics.md");
    for metric in OF_WORKERS.iter().chain(OF_EXPORTER) {
        let labels = match metric.labels {
            [] => String::new(),
            labels => format!("{{{}}}", labels.join(",")),
        };
        let kind = metric.kind.as_str();
        let row = format!("| `{}{labels}` | {kind} | {} |", metric.name, metric.help);
        assert!(page.contains(&row), "this row is not in docs/guides/metrics.md:\n{row}");
    }
    for name in named(&page) {
        assert!(names().contains(name.as_str()), "docs/guides/metrics.md names {name}");
    }
}

#[test]
fn each_expression_of_the_dashboard_names_metrics_and_labels_that_exist() {
    let dashboard: Value = serde_json::from_str(&text_of("monitoring/grafana.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let mut seen = BTreeSet::new();
    for expression in targets.map(|target| target["expr"].as_str().unwrap()) {
        let found = named(expression);
        assert!(!found.is_empty(), "{expression}");
        for name in &found {
            assert!(names().contains(name.as_str()), "{expression}");
        }
        let of = OF_WORKERS.iter().chain(OF_EXPORTER).filter(|one| found.contains(one.name));
        let labels: BTreeSet<&str> = of.flat_map(|one| one.labels).copied().collect();
        for label in ["queue", "task", "outcome", "state", "connection"] {
            let is_used = [format!("{label}=~"), format!("{label}=\""), format!("by ({label}")]
                .iter()
                .any(|use_of| expression.contains(use_of));
            assert!(!is_used || labels.contains(label), "{label} in {expression}");
        }
        seen.extend(found);
    }
    assert!(panels.len() >= 12 && seen.len() >= 12, "{seen:?}");
    let dashboard = dashboard.to_string();
    assert!(named(&dashboard).iter().all(|name| names().contains(name.as_str())));
}

#[test]
fn the_manifests_use_the_paths_of_the_servers() {
    let (pods, scaler) = (text_of("monitoring/kubernetes.yaml"), text_of("monitoring/keda.yaml"));
    for path in ["path: /livez", "path: /readyz", "OPTIMUS_METRICS", "optimus-exporter"] {
        assert!(pods.contains(path), "{path}");
    }
    assert!(scaler.contains("/scale?queue=mail") && scaler.contains("want_slots"));
}
