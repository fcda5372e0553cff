//! Where handlers panicked. The test sets panic hooks, so no other test may run in this process.

mod common;

use std::{
    panic::{self, resume_unwind},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use common::{Bench, died_of};
use optimus_core::{BoxError, Context, Fingerprint, Reason, Task};
use serde::{Deserialize, Serialize};

/// A way to panic.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Way {
    Async,
    Blocking,
    Unwraps,
    Resumes,
}

/// The line and the column of each panic.
const ASYNC: (u32, u32) = (line!() + 17, 27);
const BLOCKING: (u32, u32) = (line!() + 17, 58);
const UNWRAPS: (u32, u32) = (line!() + 17, 34);

#[derive(Serialize, Deserialize)]
struct Panics {
    way: Way,
}

impl Task for Panics {
    const NAME: &'static str = "panics";
    type Output = ();

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let none = ctx.data::<()>();
        tokio::task::yield_now().await;
        match self.way {
            Way::Async => panic!("the order {} is gone", 7),
            Way::Blocking => ctx.run_blocking(|| -> () { panic!("the disk is full") }).await,
            Way::Unwraps => none.unwrap(),
            Way::Resumes => resume_unwind(Box::new("from another thread")),
        }
        Ok(())
    }
}

/// Returns the error of a task that panics in this way.
async fn error(bench: &Bench, way: Way) -> String {
    let call = Panics { way }.call().max_retry(0);
    let handle = bench.client.submit(call).await.unwrap();
    died_of(&handle, Reason::Panicked).await;
    let task = bench.client.inspector().get(handle.id()).await.unwrap().unwrap();
    let error = task.errors.last().unwrap();
    let known = Fingerprint::of(Panics::NAME, Reason::Panicked, &error.message);
    assert_eq!(error.fingerprint, Some(known));
    error.message.clone()
}

#[tokio::test]
async fn an_error_names_the_place_of_the_panic_until_the_program_replaces_the_hook() {
    let panics = Arc::new(AtomicU32::new(0));
    let heard = panics.clone();
    panic::set_hook(Box::new(move |_| {
        heard.fetch_add(1, Ordering::Relaxed);
    }));
    let bench = Bench::on_memory().await;
    let worker = bench.start(bench.worker().concurrency(1).task_type::<Panics>());
    let none = "called `Option::unwrap()` on a `None` value";
    let ways = [
        (Way::Async, ASYNC, "the order 7 is gone"),
        (Way::Blocking, BLOCKING, "the disk is full"),
        (Way::Unwraps, UNWRAPS, none),
    ];
    for (way, (line, column), text) in ways {
        let expected = format!("at {}:{line}:{column}: {text}", file!());
        assert_eq!(error(&bench, way).await, expected);
    }
    assert_eq!(panics.load(Ordering::Relaxed), 3, "the earlier hook is called for each");
    assert_eq!(error(&bench, Way::Resumes).await, "from another thread");
    panic::set_hook(Box::new(|_| {}));
    for (way, _, text) in ways {
        assert_eq!(error(&bench, way).await, text);
    }
    worker.stop().await;
}
