//! A layer for authentication: a handler acts as the user who submitted its task.

use optimus::{BoxError, Client, Context, Done, Layer, Next, Submission, Worker};

tokio::task_local! {
    /// The user who is signed in, as a web framework sets it for a request.
    static USER: String;
}

struct Auth;

impl Layer for Auth {
    async fn submit(&self, call: &mut Submission) -> Result<(), BoxError> {
        let user = USER.try_with(String::clone).map_err(|_| "no user is signed in")?;
        call.set_header("user", user);
        Ok(())
    }

    async fn run(&self, ctx: &Context, next: Next<'_>) -> Result<Done, BoxError> {
        let user = ctx.header("user").ok_or("the task has no submitter")?;
        USER.scope(user.to_owned(), next.run()).await
    }
}

#[optimus::task]
async fn rename(file: String) -> optimus::Result<String> {
    Ok(format!("{} renamed {file}", USER.with(String::clone)))
}

#[tokio::main]
async fn main() -> optimus::Result<()> {
    let client = Client::builder("memory://auth").layer(Auth).connect().await?;
    println!("{:?}", client.submit(rename("a.txt".to_owned())).await);
    let submit = client.submit(rename("b.txt".to_owned()));
    let task = USER.scope("ann".to_owned(), submit).await?;

    let worker = Worker::builder("memory://auth").layer(Auth).quiet().build()?;
    println!("{}", worker.run_until(task.result()).await??);
    Ok(())
}
