//! Options that contradict each other, the arguments or the server are refused, and the error names
//! them.

use std::time::{Duration, SystemTime};

use crate::common::Double;
use optimus_core::{Backoff, BoxError, Call, Client, Context, Due, Error, Task, TaskOptions};
use optimus_testkit::RedisServer;
use optimus_worker::Worker;
use serde::{Deserialize, Serialize};

const SECOND: Duration = Duration::from_secs(1);

idle_task!(Expiring, "expiring", TaskOptions::new().expires_in(SECOND));
idle_task!(Resultless, "resultless", TaskOptions::new().result_ttl(Duration::ZERO));
idle_task!(OwnFormula, "own_formula", TaskOptions::new().backoff(Backoff::Custom(|_, _| SECOND)));

#[derive(Serialize, Deserialize)]
struct Measured {
    value: f64,
}

impl Task for Measured {
    const NAME: &'static str = "measured";
    type Output = ();

    async fn run(self, _: Context) -> Result<(), BoxError> {
        Ok(())
    }
}

fn double() -> Call<Double> {
    Double { number: 21 }.call()
}

async fn start_error(url: &str) -> Error {
    let worker = Worker::builder(url).quiet().only_named_tasks().task_type::<Double>();
    worker.build().unwrap().run_until(std::future::pending::<()>()).await.unwrap_err()
}

#[test]
fn options_that_contradict_each_other_are_refused_at_submit() {
    let minute = SECOND * 60;
    let soon = (SystemTime::now() + 2 * minute).into();
    let far = (SystemTime::now() + 1_801 * 24 * 60 * minute).into();
    let own = |_: u32, _: &(dyn std::error::Error + 'static)| SECOND;
    let calls = [
        ("shorter delay", double().expires_in(minute).due(Due::In(minute)).erase()),
        ("shorter delay", double().expires_in(minute).due(Due::At(soon)).erase()),
        ("below 1,800 days", double().due(Due::At(far)).erase()),
        ("shorter delay", Expiring {}.call().due(Due::In(minute)).erase()),
        ("biz id", double().biz_window(minute).erase()),
        ("backoff function", double().backoff(Backoff::Custom(own)).erase()),
        ("result_ttl", Resultless {}.call().result_ttl(minute).erase()),
        ("NaN", Measured { value: f64::NAN }.call().erase()),
    ];
    for (said, call) in calls {
        let problem = call.expect_err(said);
        assert!(problem.is_invalid() && problem.to_string().contains(said), "{problem}");
    }
    let fixed = Backoff::Fixed { wait: SECOND, jitter: 0.0 };
    let same = OwnFormula::options().backoff_formula();
    let sound = [
        double().expires_in(minute).due(Due::In(minute / 2)).erase(),
        double().biz_window(minute).biz_id("b").erase(),
        double().result_ttl(Duration::ZERO).erase(),
        OwnFormula {}.call().backoff(same).erase(),
        OwnFormula {}.call().backoff(fixed).erase(),
    ];
    assert!(sound.iter().all(Result::is_ok));
}

#[tokio::test]
async fn a_database_that_the_server_does_not_have_is_refused_by_client_and_worker() {
    let server = RedisServer::builder().tcp().start();
    let url = format!("{}/99", server.url().trim_end_matches('/'));
    let by_client = Client::connect(&url).await.err().unwrap();
    let by_worker = start_error(&url).await;
    for problem in [by_client, by_worker] {
        assert!(problem.is_invalid() && problem.to_string().contains("databases"), "{problem}");
    }
}
