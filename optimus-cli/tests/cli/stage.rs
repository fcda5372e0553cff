//! A namespace of a real Redis, with tasks in it.

use std::{path::Path, process::Command, sync::Arc, thread, time::Duration};

use optimus::{
    Cancel, Client, Due, Fatal, Gate, Inspector, Item, Limit, Rate, Retry, Schedule, TaskId,
    TaskState, Worker,
};
use optimus_testkit::{SharedRedis, eventually, namespace, shared_redis};

use crate::kit::{Ran, optimus, run};

pub(crate) const SOON: Duration = Duration::from_secs(20);

/// A handler that ends as its argument says.
#[optimus::task(queue = "mail", max_retry = 0, outcome_ttl = "1h")]
pub(crate) async fn send(how: String, ctx: optimus::Context) -> Result<String, optimus::BoxError> {
    match how.as_str() {
        "cancel" => Err(Cancel.into()),
        "retry" => Err(Retry::after(Duration::from_secs(3_600)).into()),
        "fatal" => Err(Fatal::new("the address does not exist").into()),
        "hang" => {
            ctx.progress(0.15, "second 61");
            std::future::pending::<()>().await;
            Ok(String::new())
        }
        text if text.starts_with("shut: ") => {
            let wait = Retry::after(Duration::from_secs(3_600)).pause_queue();
            Err(wait.because(&text["shut: ".len()..]).into())
        }
        text if text.starts_with("log: ") => {
            ctx.log(&text["log: ".len()..]);
            Err(Fatal::new("it has said enough").into())
        }
        // It can't be stopped before the folder is removed.
        text if text.starts_with("block: ") => {
            while Path::new(&text["block: ".len()..]).exists() {
                thread::park_timeout(Duration::from_millis(5));
            }
            Ok(String::new())
        }
        text if text.starts_with("fail: ") => Err(text["fail: ".len()..].to_owned().into()),
        text => Ok(text.to_owned()),
    }
}

/// A namespace of a real Redis.
pub(crate) struct Stage {
    redis: SharedRedis,
    pub(crate) namespace: String,
    pub(crate) client: Client,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        let (redis, namespace) = (shared_redis(), namespace());
        let builder = Client::builder(redis.url()).namespace(&namespace);
        let client = builder.connect().await.expect("the server of the tests answers");
        Self { redis, namespace, client }
    }

    pub(crate) fn inspector(&self) -> Inspector {
        self.client.inspector()
    }

    pub(crate) fn url(&self) -> &str {
        self.redis.url()
    }

    /// Returns the program with these arguments, for this namespace.
    pub(crate) fn command(&self, line: &[&str]) -> Command {
        let mut command = optimus();
        command.env("OPTIMUS_URL", self.redis.url()).env("OPTIMUS_NAMESPACE", &self.namespace);
        command.args(line);
        command
    }

    pub(crate) fn optimus(&self, line: &[&str]) -> Ran {
        run(&mut self.command(line), "")
    }

    pub(crate) fn worker(&self) -> Worker {
        let builder = Worker::builder(self.redis.url()).namespace(&self.namespace);
        builder.concurrency(4).build().expect("the worker has tasks")
    }

    /// Submits tasks, lets a worker end them or put them aside, and returns their ids.
    pub(crate) async fn ended<const N: usize>(&self, hows: [&str; N]) -> [TaskId; N] {
        let mut ids = Vec::new();
        for how in hows {
            let retries = if how == "retry" { 3 } else { 0 };
            let call = send(how.to_owned()).max_retry(retries);
            ids.push(self.client.submit(call).await.unwrap().id().clone());
        }
        let ran =
            self.worker().run_until(eventually("they leave their worker", SOON, async || {
                for id in &ids {
                    if matches!(self.state(id).await, TaskState::Ready | TaskState::Working) {
                        return false;
                    }
                }
                true
            }));
        ran.await.unwrap();
        ids.try_into().expect("an id for each")
    }

    pub(crate) async fn waiting(&self, how: &str) -> TaskId {
        self.client.submit(send(how.to_owned())).await.unwrap().id().clone()
    }

    pub(crate) async fn state(&self, id: &TaskId) -> TaskState {
        let found = self.inspector().get(id).await.unwrap();
        found.map_or(TaskState::Forgotten, |task| task.state)
    }

    /// Fills queue `mail` with tasks in each state but working.
    pub(crate) async fn fill(&self) -> Filled {
        let failed = "fail: connect to smtp-7: timed out\ncaused by: no route";
        // One after the other, so that lists have them in this order.
        let [dead] = self.ended([failed]).await;
        let [fatal, _, retry, success] =
            self.ended(["fatal", "cancel", "retry", "sent to ann"]).await;
        let delayed = send("later".to_owned()).due(Due::In(Duration::from_secs(7_200)));
        let delayed = self.client.submit(delayed).await.unwrap().id().clone();
        let ready = send("now".to_owned()).biz_id("o-17").header("tenant", "acme").priority(5);
        let ready = self.client.submit(ready).await.unwrap().id().clone();
        let lane = || send("in order".to_owned()).lane("user-7");
        self.client.submit(lane()).await.unwrap();
        let blocked = self.client.submit(lane()).await.unwrap().id().clone();
        Filled { dead, fatal, retry, success, delayed, ready, blocked }
    }

    /// Adds a limit, a pause, schedules and a dispenser.
    pub(crate) async fn furnish(&self) {
        let stripe = self.client.gate("mail", Gate::Named("stripe".into()));
        stripe.set(Limit::new().rate(Rate::per_second(100)).max_working(8)).await.unwrap();
        let lane = self.client.gate("mail", Gate::Lane("user-7".into()));
        lane.pause("bob", "their API is down").await.unwrap();
        let digest = Schedule::cron("digest", "0 8 * * *").call(send("digest".to_owned()));
        self.client.schedules().put(digest).await.unwrap();
        let review = self.client.dispenser("review");
        review
            .add([Item::new("photo-1"), Item::new("photo-2"), Item::new("photo-3")])
            .await
            .unwrap();
        review.assign("carol", 1).await.unwrap();
    }
}

/// The tasks of [`Stage::fill`].
pub(crate) struct Filled {
    pub(crate) dead: TaskId,
    pub(crate) fatal: TaskId,
    pub(crate) retry: TaskId,
    pub(crate) success: TaskId,
    pub(crate) delayed: TaskId,
    pub(crate) ready: TaskId,
    pub(crate) blocked: TaskId,
}

/// A worker that runs until it is dropped, with one task that hangs.
pub(crate) async fn busy(stage: &Arc<Stage>) -> (TaskId, tokio::task::JoinHandle<()>) {
    busy_with(stage, "hang").await
}

/// A worker that runs until it is dropped, with a task that does this.
pub(crate) async fn busy_with(
    stage: &Arc<Stage>,
    how: &str,
) -> (TaskId, tokio::task::JoinHandle<()>) {
    let id = stage.waiting(how).await;
    let own = Arc::clone(stage);
    let running = tokio::spawn(async move {
        own.worker().run_until(std::future::pending::<()>()).await.unwrap();
    });
    eventually("the worker runs the task", SOON, async || {
        stage.state(&id).await == TaskState::Working
    })
    .await;
    (id, running)
}
