//! Clients whose connection or runtime ends during a call, or while they are idle.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use crate::common::{Bench, Double};
use optimus_core::{CancelAnswer, Client, DeleteAnswer, Error, QueueName, Task, TaskId, TaskState};
use optimus_testkit::{FaultProxy, RedisServer, Way, eventually};
use tokio::{runtime::Builder, sync::oneshot};

const SOON: Duration = Duration::from_secs(20);

/// A client behind a proxy, and a client without a proxy, which sees the real state.
struct Both {
    proxy: Arc<FaultProxy>,
    near: Bench,
    far: Bench,
}

impl Both {
    async fn new() -> Self {
        let near = Bench::on_redis().await;
        let proxy = Arc::new(FaultProxy::start(&near.url()).await);
        let far = Bench::shared(&proxy.url(), near.namespace()).await;
        Self { proxy, near, far }
    }

    /// Makes a call and loses all its answers.
    async fn unanswered<T: Send + 'static>(
        &self,
        call: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Error {
        self.far.client.broker().ping().await.expect("the connection works");
        self.proxy.black_hole(Way::Down);
        let call = tokio::spawn(call);
        while !call.is_finished() {
            // This fault never occurs. It only starts the count of requests.
            self.proxy.drop_request(1_000);
            let sent = async || call.is_finished() || !self.proxy.requests().is_empty();
            eventually("a request is sent", SOON, sent).await;
            self.proxy.reset();
        }
        self.proxy.pass();
        call.await.unwrap().err().expect("the request was not answered")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operators_call_whose_answer_is_lost_is_sent_again_and_done_once() {
    let Both { proxy, near, far } = &Both::new().await;
    let queue = QueueName::new("default").unwrap();
    let handle = near.client.submit(Double { number: 1 }.call()).await.unwrap();
    proxy.drop_reply(1);
    assert_eq!(far.client.cancel(handle.id()).await.unwrap(), CancelAnswer::Cancelled);
    assert!(proxy.struck());
    proxy.drop_reply(1);
    far.client.requeue(handle.id()).await.unwrap();
    assert!(proxy.struck());
    assert_eq!(handle.status().await.unwrap(), TaskState::Ready);
    // After this call, the server knows the script, so the lost answer is not an error about the
    // script.
    assert_eq!(
        near.client.delete(&TaskId::new(queue.clone())).await.unwrap(),
        DeleteAnswer::NothingThere
    );
    proxy.drop_reply(1);
    assert_eq!(
        far.client.delete(handle.id()).await.unwrap(),
        DeleteAnswer::NothingThere,
        "the first call has deleted the task"
    );
    assert!(proxy.struck());
    assert_eq!(handle.status().await.unwrap(), TaskState::Forgotten);
    proxy.drop_reply(1);
    far.client.pause(&queue).await.unwrap();
    assert!(proxy.struck());
    assert!(near.client.inspector().counts(&queue).await.unwrap().paused);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operators_call_without_an_answer_is_reported_as_possibly_done() {
    let all = Both::new().await;
    let queue = QueueName::new("default").unwrap();
    let handle = all.near.client.submit(Double { number: 1 }.call()).await.unwrap();
    let (client, id) = (all.far.client.clone(), handle.id().clone());
    let problem = all.unanswered(async move { client.cancel(&id).await }).await;
    assert!(problem.is_unknown_outcome() && !problem.is_unavailable(), "{problem}");
    assert_eq!(problem.task_ids(), std::slice::from_ref(handle.id()));
    let (client, id) = (all.far.client.clone(), handle.id().clone());
    let problem = all.unanswered(async move { client.requeue(&id).await }).await;
    assert!(problem.is_unknown_outcome() && !problem.is_unavailable(), "{problem}");
    assert_eq!(problem.task_ids(), std::slice::from_ref(handle.id()));
    assert_eq!(handle.status().await.unwrap(), TaskState::Ready, "Redis has done both calls");
    let (client, id) = (all.far.client.clone(), handle.id().clone());
    let problem = all.unanswered(async move { client.delete(&id).await }).await;
    assert!(problem.is_unknown_outcome() && !problem.is_unavailable(), "{problem}");
    assert_eq!(problem.task_ids(), std::slice::from_ref(handle.id()));
    let client = all.far.client.clone();
    let problem = all.unanswered(async move { client.pause(&queue).await }).await;
    assert!(problem.is_unknown_outcome(), "{problem}");
}

/// Redis closes connections that are idle for longer than its option `timeout`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_after_an_idle_time_meets_a_closed_connection_and_is_answered() {
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let queue = QueueName::new("default").unwrap();
    let handle = bench.client.submit(Double { number: 1 }.call()).await.unwrap();
    let (client, inspector) = (&bench.client, bench.client.inspector());
    let mut raw = bench.raw().await;
    // This command closes idle connections like the option, but at once.
    let mut close = async || raw.run("CLIENT KILL TYPE normal SKIPME yes").await;
    close().await;
    assert_eq!(handle.status().await.unwrap(), TaskState::Ready);
    close().await;
    assert_eq!(inspector.counts(&queue).await.unwrap().ready, 1);
    close().await;
    assert_eq!(inspector.queues().await.unwrap(), [queue]);
    close().await;
    assert_eq!(client.cancel(handle.id()).await.unwrap(), CancelAnswer::Cancelled);
    close().await;
    client.requeue(handle.id()).await.unwrap();
    close().await;
    assert_eq!(inspector.get(handle.id()).await.unwrap().unwrap().state, TaskState::Ready);
    close().await;
    assert!(inspector.server().await.unwrap().version.is_some());
}

/// A client lives on the runtime on which it was made. Other runtimes may use it.
#[tokio::test]
async fn a_submit_whose_client_ends_before_the_answer_may_be_stored() {
    let near = Bench::on_redis().await;
    let proxy = FaultProxy::start(&near.url()).await;
    let builder = Client::builder(&proxy.url()).namespace(near.namespace());
    let (sender, connected) = oneshot::channel();
    let (end, is_over) = mpsc::channel::<()>();
    let owner = thread::spawn(move || {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let connect = async {
            let client = builder.connect().await.unwrap();
            client.submit(Double { number: 0 }.call()).await.unwrap();
            drop(sender.send(client));
        };
        runtime.block_on(connect);
        is_over.recv().unwrap();
        runtime.shutdown_background();
    });
    let client = connected.await.unwrap();
    proxy.black_hole(Way::Down);
    let submit = tokio::spawn(async move { client.submit(Double { number: 1 }.call()).await });
    let count = async || near.client.inspector().counts("default").await.unwrap().ready;
    eventually("the task is stored", SOON, async || count().await == 2).await;
    end.send(()).unwrap();
    let problem = submit.await.unwrap().unwrap_err();
    assert!(problem.is_unknown_outcome(), "{problem}");
    let stored = near.client.inspector().get(&problem.task_ids()[0]).await.unwrap();
    assert!(stored.is_some(), "the error names the task");
    owner.join().unwrap();
}
