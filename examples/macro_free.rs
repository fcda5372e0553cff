//! A task without the macro: a type with its arguments as fields, and `impl Task` for it.

use optimus::{BoxError, Client, Context, Fatal, Task, TaskOptions, Worker};
use serde::{Deserialize, Serialize};

/// Finds the prime factors of a number.
#[derive(Serialize, Deserialize)]
struct Factor {
    number: u64,
}

impl Task for Factor {
    const NAME: &'static str = "factor";
    type Output = Vec<u64>;

    fn options() -> TaskOptions {
        TaskOptions::new().queue("math").max_retry(5)
    }

    fn biz_id(&self) -> Option<String> {
        Some(self.number.to_string())
    }

    async fn run(self, _: Context) -> Result<Vec<u64>, BoxError> {
        if self.number == 0 {
            return Err(Fatal::new("zero has no prime factors").into());
        }
        let (mut rest, mut divisor, mut factors) = (self.number, 2, Vec::new());
        while divisor * divisor <= rest {
            while rest.is_multiple_of(divisor) {
                factors.push(divisor);
                rest /= divisor;
            }
            divisor += 1;
        }
        if rest > 1 {
            factors.push(rest);
        }
        Ok(factors)
    }
}

async fn ask(client: &Client) -> optimus::Result<()> {
    let call = Factor { number: 5_040 }.call().priority(5);
    let handle = client.submit(call).await?;
    println!("5040 = {:?}", handle.result().await?);

    let hopeless = client.submit(Factor { number: 0 }.call()).await?;
    if let Err(problem) = hopeless.result().await {
        println!("{problem}");
    }
    Ok(())
}

#[tokio::main]
async fn main() -> optimus::Result<()> {
    let client = Client::connect("memory://macro_free").await?;
    // Only the macro registers tasks, so this worker must name its task.
    let worker = Worker::builder("memory://macro_free").task_type::<Factor>().quiet().build()?;
    worker.run_until(ask(&client)).await?
}
