//! A layer for tenancy. Each task has a tenant, and a task that a handler submits has the tenant of
//! the handler's task.

use optimus::{BoxError, Client, Context, DataKey, Done, Layer, Next, Submission, Worker};

#[derive(Clone)]
struct Tenant(String);

struct Tenancy;

impl Layer for Tenancy {
    async fn submit(&self, call: &mut Submission) -> Result<(), BoxError> {
        if let Some(Tenant(tenant)) = Context::current().and_then(|ctx| ctx.data()) {
            call.set_header("tenant", tenant);
        }
        call.header("tenant").map(drop).ok_or_else(|| "the task has no tenant".into())
    }

    async fn run(&self, ctx: &Context, next: Next<'_>) -> Result<Done, BoxError> {
        let tenant = ctx.header("tenant").ok_or("the task has no tenant")?;
        ctx.insert(Tenant(tenant.to_owned()));
        next.run().await
    }

    fn provides(&self) -> Vec<DataKey> {
        vec![DataKey::of::<Tenant>()]
    }
}

#[optimus::task]
async fn bill(order: u64) -> optimus::Result<String> {
    mail(order).perform_async().await?.result().await
}

#[optimus::task]
async fn mail(order: u64, #[data] tenant: Tenant) -> optimus::Result<String> {
    Ok(format!("the bill of order {order} is sent from {}", tenant.0))
}

#[tokio::main]
async fn main() -> optimus::Result<()> {
    let client = Client::builder("memory://tenancy").layer(Tenancy).connect().await?;
    println!("{:?}", client.submit(bill(7)).await);
    let task = client.submit(bill(8).header("tenant", "acme")).await?;

    let worker = Worker::builder("memory://tenancy").layer(Tenancy).quiet().build()?;
    println!("{}", worker.run_until(task.result()).await??);
    Ok(())
}
