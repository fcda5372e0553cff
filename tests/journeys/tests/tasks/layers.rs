//! Layers around submits and attempts: their order, the data that they read and change, and the
//! calls that they refuse.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::common::{Bench, Double};
use optimus_core::{
    BoxError, Cancel, Client, Context, Data, DataKey, Done, Due, End, Fatal, Layer, Next, Outcome,
    QueueName, Reason, Snooze, Submission, Task, TaskHandle, TaskState, Utc,
};
use optimus_testkit::eventually;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

const SOON: Duration = Duration::from_secs(20);

/// The calls of layers, in order.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn add(&self, note: impl Into<String>) {
        self.0.lock().unwrap().push(note.into());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Records each of its calls.
struct Noting {
    name: &'static str,
    notes: Notes,
}

impl Layer for Noting {
    async fn submit(&self, call: &mut Submission) -> Result<(), BoxError> {
        let passed = call.header("passed").unwrap_or_default().to_owned();
        call.set_header("passed", passed + self.name);
        self.notes.add(format!("{} submits {}", self.name, call.task()));
        Ok(())
    }

    async fn run(&self, ctx: &Context, next: Next<'_>) -> Result<Done, BoxError> {
        self.notes.add(format!("{} begins {}", self.name, ctx.attempt()));
        let done = next.run().await;
        let how = if done.is_ok() { "done" } else { "failed" };
        self.notes.add(format!("{} {how}", self.name));
        done
    }

    async fn ended(&self, ctx: &Context, end: &End) {
        let outcome = match &end.outcome {
            Outcome::Success => "success",
            _ => "else",
        };
        self.notes.add(format!("{} receives the end of {}: {outcome}", self.name, ctx.task()));
    }
}

/// A task that returns a header, and records its run if there are notes.
#[derive(Serialize, Deserialize)]
struct Work {}

impl Task for Work {
    const NAME: &'static str = "work";
    type Output = String;

    async fn run(self, ctx: Context) -> Result<String, BoxError> {
        if let Some(notes) = ctx.data::<Notes>() {
            notes.add("handler");
        }
        Ok(ctx.header("passed").unwrap_or("nothing").to_owned())
    }
}

async fn layered(bench: &Bench, notes: &Notes, names: &[&'static str]) -> Client {
    let layer = |name| Noting { name, notes: notes.clone() };
    let mut builder = bench.client_builder();
    for name in names {
        builder = builder.layer(layer(name));
    }
    builder.connect().await.unwrap()
}

/// Passes calls with a tenant, and gives the tenant to the handler.
struct Tenancy;

#[derive(Debug, thiserror::Error, PartialEq)]
#[error("no tenant")]
struct NoTenant;

#[derive(Debug, Clone, PartialEq)]
struct Tenant(String);

tokio::task_local! {
    static TENANT: String;
}

impl Layer for Tenancy {
    async fn submit(&self, call: &mut Submission) -> Result<(), BoxError> {
        if let Some(ctx) = Context::current()
            && let Some(tenant) = ctx.header("tenant")
        {
            call.set_header("tenant", tenant);
        }
        call.header("tenant").map(drop).ok_or_else(|| NoTenant.into())
    }

    async fn run(&self, ctx: &Context, next: Next<'_>) -> Result<Done, BoxError> {
        let tenant = ctx.header("tenant").ok_or_else(|| Fatal::new(NoTenant))?;
        ctx.insert(Tenant(tenant.to_owned()));
        TENANT.scope(tenant.to_owned(), next.run()).await
    }

    fn provides(&self) -> Vec<DataKey> {
        vec![DataKey::of::<Tenant>()]
    }
}

/// A task that submits another task of its kind. It returns its own tenant and the tenants of these
/// tasks.
#[derive(Serialize, Deserialize)]
struct Whose {
    left: u32,
    blocks: bool,
}

impl Task for Whose {
    const NAME: &'static str = "whose";
    type Output = Vec<String>;

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Tenant>()]
    }

    async fn run(self, ctx: Context) -> Result<Vec<String>, BoxError> {
        let Tenant(tenant) = ctx.data().ok_or("a layer inserted the value")?;
        let mut all = vec![tenant.clone()];
        let Some(left) = self.left.checked_sub(1) else { return Ok(all) };
        let call = Self { left, ..self }.call();
        let next: TaskHandle<Vec<String>> = if self.blocks {
            ctx.run_blocking(move || {
                assert!(TENANT.try_with(|_| ()).is_err(), "a task-local belongs to one task");
                let whose: Tenant = Context::current().unwrap().data().unwrap();
                assert_eq!(whose.0, tenant);
                Handle::current().block_on(call.perform_async())
            })
            .await?
        } else {
            assert_eq!(TENANT.with(String::clone), tenant);
            ctx.client()?.submit_all([call]).await?.remove(0)
        };
        all.extend(next.result_within(SOON).await?);
        Ok(all)
    }
}

/// A task that submits `Work` through the client of its data, and returns its result.
#[derive(Serialize, Deserialize)]
struct Forwards {}

impl Task for Forwards {
    const NAME: &'static str = "forwards";
    type Output = String;

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Client>()]
    }

    async fn run(self, ctx: Context) -> Result<String, BoxError> {
        let client: Client = ctx.data().unwrap();
        let mut handles = client.submit_all([Work {}.call()]).await?;
        handles.push(client.scope(Work {}.call().perform_async()).await?);
        let [many, one] = [handles.remove(0), handles.remove(0)];
        assert_eq!(many.result_within(SOON).await?, one.result_within(SOON).await?);
        Ok(one.result_within(SOON).await?)
    }
}

/// A layer that adds its name to the header, as `Noting` does.
struct Marking(&'static str);

impl Layer for Marking {
    async fn submit(&self, call: &mut Submission) -> Result<(), BoxError> {
        let passed = call.header("passed").unwrap_or_default().to_owned();
        call.set_header("passed", passed + self.0);
        Ok(())
    }
}

/// A layer that returns an error and does not call the handler.
struct Answers(fn() -> BoxError);

impl Layer for Answers {
    async fn run(&self, ctx: &Context, next: Next<'_>) -> Result<Done, BoxError> {
        if ctx.attempt() == 1 && ctx.header("passes").is_none() {
            return Err(self.0());
        }
        next.run().await
    }
}

on_both! {
    async fn the_layer_that_was_added_first_is_the_outermost(bench: Bench) {
        let notes = Notes::default();
        let client = layered(&bench, &notes, &["a", "b"]).await;
        let layer = |name| Noting { name, notes: notes.clone() };
        let builder = bench.worker().task_type::<Work>().data(notes.clone());
        let worker = bench.start(builder.layer(layer("c")).layer(Arc::new(layer("d"))));
        let handle = client.submit(Work {}.call()).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), "ab");
        worker.stop().await;
        assert_eq!(
            notes.all(),
            [
                "a submits work",
                "b submits work",
                "c begins 1",
                "d begins 1",
                "handler",
                "d done",
                "c done",
                "c receives the end of work: success",
                "d receives the end of work: success",
            ]
        );
    }

    async fn every_verb_of_a_client_passes_its_layers(bench: Bench) {
        let client = layered(&bench, &Notes::default(), &["a"]).await;
        let worker = bench.start(bench.worker().task_type::<Work>());
        let call = || Work {}.call();
        let later = Due::In(Duration::from_millis(20));
        let mut handles = client.submit_all([call(), call()]).await.unwrap();
        handles.push(client.submit(call().due(later)).await.unwrap());
        handles.push(client.submit(call().due(Due::At(Utc::now()))).await.unwrap());
        for handle in handles {
            assert_eq!(handle.result_within(SOON).await.unwrap(), "a");
        }
        let erased = client.submit(call().erase().unwrap()).await.unwrap();
        assert_eq!(erased.result_within(SOON).await.unwrap(), "a");
        let plain = bench.client.submit(call()).await.unwrap();
        assert_eq!(plain.result_within(SOON).await.unwrap(), "nothing");
        worker.stop().await;
    }

    async fn a_layer_refuses_a_submit_with_an_error_of_its_own(bench: Bench) {
        let client = bench.client_builder().layer(Tenancy).connect().await.unwrap();
        let problem = client.submit(Work {}.call()).await.unwrap_err();
        assert!(problem.is_refused() && problem.to_string().contains("no tenant"), "{problem}");
        assert_eq!(problem.refusal().unwrap().downcast_ref(), Some(&NoTenant));
        let calls = ["", "acme", ""].map(|tenant| match tenant {
            "" => Work {}.call(),
            tenant => Work {}.call().header("tenant", tenant),
        });
        let problem = client.submit_all(calls).await.unwrap_err();
        let answers: Vec<bool> = problem.answers.iter().map(Result::is_ok).collect();
        assert_eq!(answers, [false, true, false]);
        assert!(problem.first.is_refused());
        let queue = QueueName::new("default").unwrap();
        assert_eq!(client.inspector().counts(&queue).await.unwrap().ready, 1);
    }

    async fn headers_that_a_layer_sets_are_checked_as_those_of_the_call(bench: Bench) {
        struct Large;
        impl Layer for Large {
            async fn submit(&self, call: &mut Submission) -> Result<(), BoxError> {
                call.set_header("large", "x".repeat(5_000));
                Ok(())
            }
        }
        let client = bench.client_builder().layer(Large).connect().await.unwrap();
        let problem = client.submit(Work {}.call()).await.unwrap_err();
        assert!(problem.is_invalid() && problem.to_string().contains("5005 bytes"), "{problem}");
    }

    async fn a_handler_has_the_values_of_its_layers_and_what_it_submits_passes_them(bench: Bench) {
        let worker = bench.start(bench.worker().task_type::<Whose>().layer(Tenancy));
        for blocks in [false, true] {
            let call = Whose { left: 2, blocks }.call().header("tenant", "acme");
            let handle = bench.client.submit(call).await.unwrap();
            assert_eq!(handle.result_within(SOON).await.unwrap(), ["acme"; 3]);
        }
        let call = Whose { left: 0, blocks: false }.call();
        let handle = bench.client.submit(call).await.unwrap();
        crate::common::died_of(&handle, Reason::Failed).await;
        worker.stop().await;
    }

    async fn what_a_handler_submits_through_its_own_client_passes_the_layers_of_both(bench: Bench) {
        let notes = Notes::default();
        let clients = [layered(&bench, &notes, &[]).await, layered(&bench, &notes, &["c"]).await];
        // Both have layers of the type `Noting`, and only the worker has `Marking`.
        for (client, expected) in clients.into_iter().zip(["wm", "mc"]) {
            let builder = bench.worker().task_type::<Forwards>().task_type::<Work>().data(client);
            let noting = Noting { name: "w", notes: notes.clone() };
            let worker = bench.start(builder.layer(noting).layer(Marking("m")));
            let handle = bench.client.submit(Forwards {}.call()).await.unwrap();
            assert_eq!(handle.result_within(SOON).await.unwrap(), expected);
            worker.stop().await;
        }
    }

    async fn an_error_of_a_layer_has_the_same_effect_as_one_of_the_handler(bench: Bench) {
        let answers: [(fn() -> BoxError, TaskState); 4] = [
            (|| "refused".into(), TaskState::Retry),
            (|| Fatal::new("never").into(), TaskState::Dead),
            (|| Cancel.into(), TaskState::Cancelled),
            (|| Snooze::new(SOON).into(), TaskState::Delayed),
        ];
        for (answer, expected) in answers {
            let builder = bench.worker().task_type::<Double>().layer(Answers(answer));
            let worker = bench.start(builder);
            let handle = bench.client.submit(Double { number: 1 }.call()).await.unwrap();
            let state = async || handle.status().await.unwrap();
            eventually("the task has this outcome", SOON, async || state().await == expected).await;
            let passes = Double { number: 2 }.call().header("passes", "");
            let passes = bench.client.submit(passes).await.unwrap();
            assert_eq!(passes.result_within(SOON).await.unwrap(), 4);
            worker.stop().await;
        }
    }
}

#[tokio::test]
async fn a_worker_starts_without_the_data_that_a_layer_provides() {
    let builder = || optimus_worker::Worker::builder("memory://x").task_type::<Whose>();
    let problem = builder().build().expect_err("no layer provides the data").to_string();
    assert!(problem.contains("Tenant"), "{problem}");
    assert!(builder().layer(Tenancy).build().is_ok());
}

#[tokio::test]
async fn a_task_that_runs_inline_is_the_current_one_and_passes_no_layer() {
    assert!(Context::current().is_none());
    let call = Whose { left: 0, blocks: false }.call();
    let data = Data::new().with(Tenant("inline".to_owned()));
    assert_eq!(call.perform_inline_with(data).await.unwrap(), ["inline"]);
}

/// A layer that submits a separate task for each call.
struct Audit(Arc<Mutex<Option<Client>>>);

impl Layer for Audit {
    async fn submit(&self, call: &mut Submission) -> Result<(), BoxError> {
        let client = self.0.lock().unwrap().clone().unwrap();
        if call.header("once").is_none() || call.task() != Work::NAME {
            client.submit(Work {}.call().header("once", "")).await?;
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_layer_may_submit_as_long_as_it_lets_pass_what_it_submits() {
    let bench = Bench::on_memory().await;
    let slot = Arc::new(Mutex::new(None));
    let client = bench.client_builder().layer(Audit(slot.clone())).connect().await.unwrap();
    *slot.lock().unwrap() = Some(client.clone());
    client.submit(Work {}.call()).await.unwrap();
    let queue = QueueName::new("default").unwrap();
    assert_eq!(client.inspector().counts(&queue).await.unwrap().ready, 2);

    let endless = bench.client_builder().layer(Endless(slot.clone())).connect().await.unwrap();
    *slot.lock().unwrap() = Some(endless.clone());
    let problem = endless.submit(Work {}.call()).await.unwrap_err();
    assert!(
        problem.is_refused() && problem.to_string().contains("let it return early"),
        "{problem}"
    );
    slot.lock().unwrap().take();
}

/// A layer that submits another task in each submit, without end.
struct Endless(Arc<Mutex<Option<Client>>>);

impl Layer for Endless {
    async fn submit(&self, _: &mut Submission) -> Result<(), BoxError> {
        let client = self.0.lock().unwrap().clone().unwrap();
        client.submit(Work {}.call()).await?;
        Ok(())
    }
}
