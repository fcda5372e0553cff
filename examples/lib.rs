//! The examples are in this folder. Each one is a separate program.

/// The tests compile each Rust block in these pages, and run it unless it is marked `no_run`.
macro_rules! pages {
    ($($name:ident: $path:literal,)*) => {
        $(
            #[cfg(doctest)]
            #[doc = include_str!($path)]
            struct $name;
        )*
    };
}

pages! {
    Readme: "../README.md",
    Tasks: "../docs/TASKS.md",
    Production: "../docs/PRODUCTION.md",
    GettingStarted: "../docs/guides/getting-started.md",
    Testing: "../docs/guides/testing.md",
    Deploying: "../docs/guides/deploying.md",
    Operating: "../docs/guides/operating.md",
    Statistics: "../docs/guides/statistics.md",
    Metrics: "../docs/guides/metrics.md",
    Tracing: "../docs/guides/tracing.md",
    Console: "../docs/guides/console.md",
    Idempotence: "../docs/guides/idempotence.md",
    Lanes: "../docs/guides/lanes.md",
    Dependencies: "../docs/guides/dependencies.md",
    Flows: "../docs/guides/flows.md",
    Limits: "../docs/guides/limits.md",
    Gather: "../docs/guides/gather.md",
    Schedules: "../docs/guides/schedules.md",
    Shards: "../docs/guides/shards.md",
    Sources: "../docs/guides/sources.md",
    Dispenser: "../docs/guides/dispenser.md",
    Transactions: "../docs/guides/transactions.md",
    FromSidekiq: "../docs/guides/from-sidekiq.md",
    FromCelery: "../docs/guides/from-celery.md",
    FromBullmq: "../docs/guides/from-bullmq.md",
}
