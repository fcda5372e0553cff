//! A namespace of a real Redis with tasks in it, and its console.

use std::{sync::Arc, time::Duration};

use optimus::{
    Call, Cancel, Client, Due, Fatal, Gate, Limit, Rate, Retry, Schedule, TaskId, TaskState, Worker,
};
use optimus_console::{Auth, Console, ConsoleListener, Identity, Role, Secrets};
use optimus_testkit::{SharedRedis, eventually, namespace, shared_redis};
use tokio::task::JoinHandle;

use crate::client::Browser;

pub(crate) const SOON: Duration = Duration::from_secs(30);

/// A handler that ends as its argument says.
#[optimus::task(queue = "mail", max_retry = 0, outcome_ttl = "1h", result_ttl = "1h")]
pub(crate) async fn send_mail(
    how: String,
    extra: optimus::Value,
    ctx: optimus::Context,
) -> Result<optimus::Value, optimus::BoxError> {
    let _ = &extra;
    match how.as_str() {
        "cancel" => Err(Cancel.into()),
        "retry" => Err(Retry::after(Duration::from_secs(3_600)).into()),
        "fatal" => Err(Fatal::new("the address does not exist").into()),
        "hang" => {
            ctx.progress(0.42, "copied 42");
            ctx.cancelled().await;
            Err(Cancel.into())
        }
        text if text.starts_with("shut: ") => {
            let wait = Retry::after(Duration::from_secs(3_600)).pause_queue();
            Err(wait.because(&text["shut: ".len()..]).into())
        }
        text if text.starts_with("log: ") => {
            ctx.log(&text["log: ".len()..]);
            Err(Fatal::new("it has said enough").into())
        }
        text if text.starts_with("fail: ") => Err(text["fail: ".len()..].to_owned().into()),
        _ => Ok(extra),
    }
}

pub(crate) fn call(how: &str) -> Call<impl optimus::Task<Output = optimus::Value> + use<>> {
    send_mail(how.to_owned(), optimus::Value::Null)
}

/// A namespace of a real Redis.
pub(crate) struct Stage {
    redis: SharedRedis,
    pub(crate) namespace: String,
    pub(crate) client: Client,
}

/// A console that runs until it is dropped.
pub(crate) struct Served {
    pub(crate) browser: Browser,
    serving: JoinHandle<()>,
}

impl Served {
    /// Serves a console at a free port.
    pub(crate) fn of(console: Console) -> Self {
        let listener = ConsoleListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let browser = Browser::new(listener.address().unwrap());
        let serving = tokio::spawn(console.serve(listener).expect("it may listen there"));
        Self { browser, serving }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// The tasks of [`Stage::fill`].
pub(crate) struct Filled {
    pub(crate) dead: TaskId,
    pub(crate) retry: TaskId,
    pub(crate) success: TaskId,
    pub(crate) cancelled: TaskId,
    pub(crate) delayed: TaskId,
    pub(crate) ready: TaskId,
    pub(crate) blocked: TaskId,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        let (redis, namespace) = (shared_redis(), namespace());
        let builder = Client::builder(redis.url()).namespace(&namespace);
        let client = builder.connect().await.expect("the server of the tests answers");
        Self { redis, namespace, client }
    }

    pub(crate) fn console(&self) -> Console {
        Console::new(self.client.clone()).operator("tester")
    }

    /// Serves a console without authentication.
    pub(crate) fn open(&self) -> Served {
        Served::of(self.console())
    }

    /// Serves a console with a token for each role, and one for the queues `tenant-*`.
    pub(crate) fn guarded(&self) -> Served {
        Served::of(self.console().auth(Auth::Token(secrets())))
    }

    pub(crate) fn url(&self) -> &str {
        self.redis.url()
    }

    /// Returns a worker without sharded functions and sources.
    pub(crate) fn worker(&self) -> Worker {
        let builder = Worker::builder(self.redis.url()).namespace(&self.namespace);
        builder
            .concurrency(4)
            .only_named_tasks()
            .task(send_mail)
            .build()
            .expect("the worker has tasks")
    }

    /// Returns a worker of these queues alone.
    pub(crate) fn worker_of<const N: usize>(&self, queues: [&str; N]) -> Worker {
        let builder = Worker::builder(self.redis.url()).namespace(&self.namespace);
        let builder = builder.only_named_tasks().task(send_mail).queues(queues);
        builder.build().expect("the worker has tasks")
    }

    /// Submits tasks, lets a worker end them or put them aside, and returns their ids.
    pub(crate) async fn ended<const N: usize>(&self, hows: [&str; N]) -> [TaskId; N] {
        let mut ids = Vec::new();
        for how in hows {
            let retries = if how == "retry" { 3 } else { 0 };
            ids.push(self.client.submit(call(how).max_retry(retries)).await.unwrap().id().clone());
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

    pub(crate) async fn state(&self, id: &TaskId) -> TaskState {
        let found = self.client.inspector().get(id).await.unwrap();
        found.map_or(TaskState::Forgotten, |task| task.state)
    }

    pub(crate) async fn submit<T: optimus::Task>(&self, call: Call<T>) -> TaskId {
        self.client.submit(call).await.unwrap().id().clone()
    }

    /// Fills queue `mail` with tasks in each state but working.
    pub(crate) async fn fill(&self) -> Filled {
        let failed = "fail: connect to smtp-7: timed out\ncaused by: no route";
        let [dead] = self.ended([failed]).await;
        let [cancelled, retry, success] = self.ended(["cancel", "retry", "sent"]).await;
        let delayed = self.submit(call("later").due(Due::In(Duration::from_secs(7_200)))).await;
        let ready = call("now").biz_id("o-17").header("tenant", "acme").priority(5);
        let ready = self.submit(ready).await;
        self.submit(call("in order").lane("user-7")).await;
        let blocked = self.submit(call("in order").lane("user-7")).await;
        Filled { dead, retry, success, cancelled, delayed, ready, blocked }
    }

    /// Adds a limit, a pause, and a schedule.
    pub(crate) async fn furnish(&self) {
        let stripe = self.client.gate("mail", Gate::Named("stripe".into()));
        stripe.set(Limit::new().rate(Rate::per_second(100)).max_working(8)).await.unwrap();
        let lane = self.client.gate("mail", Gate::Lane("user-7".into()));
        lane.pause("bob", "their API is down").await.unwrap();
        let digest = Schedule::cron("digest", "0 8 * * *").call(call("digest"));
        self.client.schedules().put(digest).await.unwrap();
    }
}

/// Tokens of people with each role.
pub(crate) fn secrets() -> Secrets {
    let tenant = Identity::new("tina", Role::Admin).queues(["tenant-*"]);
    Secrets::new()
        .add(Identity::new("vera", Role::Viewer), "the token of vera")
        .and_then(|secrets| secrets.add(Identity::new("olga", Role::Operator), "the token of olga"))
        .and_then(|secrets| secrets.add(Identity::new("ann", Role::Admin), "the token of ann"))
        .and_then(|secrets| secrets.add(tenant, "the token of tina"))
        .expect("they are long enough")
}

impl Served {
    /// Returns a program with a token.
    pub(crate) fn bearer(&self, name: &str) -> Browser {
        let token = format!("Bearer the token of {name}");
        self.browser.without("sec-fetch-site").with("authorization", &token)
    }

    /// Signs a browser in, which then has a cookie.
    pub(crate) async fn signed_in(&self, name: &str) -> Browser {
        let token = serde_json::json!({ "token": format!("the token of {name}") });
        let answer = self.browser.act("sign-in", &token).await.is(204);
        let cookie = answer.header("set-cookie").split(';').next().unwrap().to_owned();
        self.browser.with("cookie", &cookie)
    }
}

/// A worker that runs until it is dropped, with one task that hangs.
pub(crate) async fn busy(stage: &Arc<Stage>) -> (TaskId, JoinHandle<()>) {
    let id = stage.client.submit(call("hang")).await.unwrap().id().clone();
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
