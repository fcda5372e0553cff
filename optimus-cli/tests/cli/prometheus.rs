//! A real Prometheus scrapes a worker and the exporter: their texts, the alerts and the dashboard
//! are what it understands.

use std::{
    collections::BTreeSet,
    fs,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use optimus::Worker;
use optimus_metrics::names::{Kind, Metric, OF_EXPORTER, OF_WORKERS};
use optimus_testkit::{PrometheusServer, eventually, find_prometheus, promtool};
use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::{
    exporter::Exporter,
    stage::{Stage, send},
};

const SOON: Duration = Duration::from_secs(60);
/// The metrics that no event of this test makes: nothing is lost, snoozed or broken.
const NOT_SEEN: [&str; 1] = ["optimus_attempts_lost_total"];

fn document(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/monitoring").join(name)
}

/// Scrapes both programs, and evaluates the alerts.
fn config(worker: SocketAddr, exporter: SocketAddr) -> String {
    format!(
        "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n\
         rule_files: [{}]\n\
         scrape_configs:\n\
         - {{job_name: worker, static_configs: [{{targets: ['{worker}']}}]}}\n\
         - {{job_name: exporter, static_configs: [{{targets: ['{exporter}']}}]}}\n",
        document("alerts.yaml").canonicalize().unwrap().display()
    )
}

#[derive(Clone)]
struct Scraper(Arc<PrometheusServer>);

impl Scraper {
    async fn start(config: String) -> Self {
        let started = spawn_blocking(move || {
            let server = PrometheusServer::start(&config, &[]);
            let file = server.file("prometheus.yml");
            promtool(&["check", "config", file.to_str().unwrap()]);
            server
        });
        Self(Arc::new(started.await.unwrap()))
    }

    /// Asks the API, and returns its data.
    async fn api(&self, path: &'static str, parameter: Option<String>) -> Value {
        let server = self.0.clone();
        let asked = parameter.clone();
        let answer = spawn_blocking(move || {
            let parameters = asked.as_deref().map(|query| ("query", query));
            server.api(path, parameters.as_slice())
        });
        let answer = answer.await.unwrap();
        assert_eq!(answer.status, 200, "{path} {parameter:?}: {}", answer.body);
        let mut body: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(body["status"], "success", "{path} {parameter:?}: {body}");
        body["data"].take()
    }

    /// Returns the rows of a query now.
    async fn query(&self, expression: &str) -> Vec<Value> {
        let mut data = self.api("query", Some(expression.to_owned())).await;
        data["result"].as_array_mut().map(std::mem::take).unwrap_or_default()
    }

    async fn has(&self, expression: &str) -> bool {
        !self.query(expression).await.is_empty()
    }
}

/// Returns the expressions of the dashboard, as Grafana sends them for all queues.
fn expressions() -> Vec<String> {
    let text = fs::read_to_string(document("grafana.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let expressions = targets.map(|target| target["expr"].as_str().unwrap());
    expressions.map(|text| text.replace("$__rate_interval", "1m").replace("$queue", ".*")).collect()
}

/// Returns the name of a series of a metric.
fn series(metric: &Metric) -> String {
    let suffix = if metric.kind == Kind::Histogram { "_bucket" } else { "" };
    format!("{}{suffix}", metric.name)
}

/// Runs tasks until all series and all charts have data.
async fn expect_data(stage: &Stage, scraper: &Scraper) {
    let tables = OF_WORKERS.iter().chain(OF_EXPORTER);
    let names = tables.filter(|metric| !NOT_SEEN.contains(&metric.name)).map(series);
    // A chart of what is too high is empty while nothing is: then its left side has data.
    let charts = expressions().into_iter().map(|text| match text.split_once(" > ") {
        Some((left, _)) => left.to_owned(),
        None => text,
    });
    let mut missing: BTreeSet<String> = names.chain(charts).collect();
    assert!(missing.len() > 40, "{missing:?}");
    eventually("each series and each chart has data", SOON, async || {
        for how in ["sent to ann", "fatal", "retry"] {
            stage.client.submit(send(how.to_owned()).max_retry(3)).await.unwrap();
        }
        for name in missing.clone() {
            if scraper.has(&name).await {
                missing.remove(&name);
            }
        }
        println!("without data: {missing:?}");
        missing.is_empty()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_prometheus_reads_all_metrics_and_evaluates_the_alerts_and_the_dashboard() {
    if ["prometheus", "promtool"].iter().any(|name| find_prometheus(name).is_none()) {
        println!("skipped: no Prometheus in PATH; its package is `prometheus` on most systems");
        return;
    }
    promtool(&["check", "rules", document("alerts.yaml").to_str().unwrap()]);
    let stage = Stage::new().await;
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let worker = Worker::builder(stage.url()).namespace(&stage.namespace).concurrency(4);
    let worker = worker.metrics(address.to_string()).build().unwrap();
    let running = tokio::spawn(worker.run_until(std::future::pending::<()>()));
    let (url, namespace) = (stage.url().to_owned(), stage.namespace.clone());
    let exporter = Exporter::start(&url, &namespace, &["--every", "1s"]).await;
    let scraper = Scraper::start(config(address, exporter.address)).await;
    for job in ["worker", "exporter"] {
        let up = format!("up{{job=\"{job}\"}} == 1");
        eventually("Prometheus scrapes it", SOON, async || scraper.has(&up).await).await;
    }
    expect_data(&stage, &scraper).await;
    // The number that Prometheus stores is that of Redis.
    let [_, _] = stage.ended(["cancel", "sent to ann"]).await;
    let cancels = stage.inspector().totals("mail").await.unwrap().cancels;
    let same = format!(
        "optimus_queue_attempts_total{{queue=\"mail\",outcome=\"cancelled\"}} == {cancels}"
    );
    eventually("the total arrives", SOON, async || scraper.has(&same).await).await;
    let mut rules = Value::Null;
    eventually("each alert is evaluated", SOON, async || {
        rules = scraper.api("rules", None).await;
        let all = rules["groups"][0]["rules"].as_array().unwrap();
        assert_eq!(all.len(), 11, "{rules}");
        assert!(all.iter().all(|rule| rule["health"] != "err"), "{rules}");
        all.iter().all(|rule| rule["health"] == "ok")
    })
    .await;
    running.abort();
}
