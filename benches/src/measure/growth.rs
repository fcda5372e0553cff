//! Measures the speed at larger sizes: longer ready lists, more delayed tasks, more workers, and
//! larger arguments.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::Measurement;
use super::one_drain::{Drain, Drained};
use crate::agent::protocol::{Kind, Load};
use crate::bench::{Bench, progress};
use crate::field::Field;
use crate::row::{Row, params};
use crate::submitter::Submitter;
use crate::workers::{Staff, Workers};

pub(super) const GROWTH: Measurement = Measurement {
    name: "growth",
    about: "drains with long ready lists, many delayed tasks, many workers, and large \
            arguments",
    run: growth,
};

const IN_FLIGHT: usize = 100;
const DRAINED: u64 = 20_000;
/// A due time that is later than the end of any run.
const HOUR_MS: u64 = 3_600_000;
/// The total size of the arguments of all tasks of a run.
const PAYLOAD_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// The sizes of a task's arguments, up to just below the limit of 1 MiB.
const PAYLOADS: [usize; 5] = [100, 1_024, 10 * 1_024, 100 * 1_024, 1_024 * 1_024];

/// The size of a Redis table, which is a power of two. A full table moves to one of twice the size.
const TABLE_FIELDS: u64 = 4_194_304;

fn growth(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for backlog in bench.scale.pick(&[1_000, 100_000, 1_000_000, 5_000_000][..], &[1_000, 10_000]) {
        rows.extend(beside(bench, "backlog", *backlog, Kind::Plain)?);
    }
    let delayed = bench.scale.tasks(1_000_000);
    rows.extend(beside(bench, "delayed", delayed, Kind::Delayed { ms: HOUR_MS })?);
    rows.push(due_at_once(bench)?);
    for workers in bench.scale.pick(&[1, 8, 64][..], &[4]) {
        let staff = Staff { processes: *workers, ..Staff::one(IN_FLIGHT) };
        rows.push(drain(
            bench,
            "workers",
            *workers,
            Drain::plain(bench.scale.tasks(100_000), staff),
        )?);
    }
    for payload in bench.scale.pick(&PAYLOADS[..], &[100, 100 * 1_024]) {
        let bytes_max = bench.scale.pick(PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MAX / 64);
        let tasks = bench.scale.tasks(DRAINED).min(bytes_max / *payload as u64);
        let drain_of = Drain::plain(tasks, Staff::one(IN_FLIGHT));
        rows.push(drain(bench, "payload", *payload, Drain { payload: *payload, ..drain_of })?);
    }
    Ok(rows)
}

fn drain(bench: &Bench, what: &'static str, value: usize, drain: Drain) -> anyhow::Result<Row> {
    let shown = params([(what, value.into()), ("tasks", drain.tasks.into())]);
    bench.repeat(GROWTH.name, shown, || drain.run(bench))
}

/// Drains the first tasks while this many others wait, either behind them in the ready list or for
/// their due time. If the table of all tasks is then half moved, a second row shows the drain after
/// the move.
fn beside(bench: &Bench, what: &'static str, others: u64, kind: Kind) -> anyhow::Result<Vec<Row>> {
    let redis = &bench.redis;
    let tasks = bench.scale.tasks(DRAINED);
    let mut shown = params([(what, others.into()), ("tasks", tasks.into())]);
    let moves = others > TABLE_FIELDS;
    if moves {
        shown.insert("table", "moving".into());
    }
    redis.probe().flush()?;
    let mut submitter = Submitter::start(redis)?;
    progress(GROWTH.name, &shown, "filling");
    let mut numbers = others;
    submitter.submit(redis, Load::bulk(others).kind(kind))?;
    let mut drain = |shown| {
        bench.repeat(GROWTH.name, shown, || {
            // A worker continues while it stops, so the tasks that it took in that time are added
            // again.
            let missing = others + tasks - redis.tasks_in(1)?;
            submitter.submit(redis, Load::bulk(missing).first(numbers))?;
            numbers += missing;
            let mut workers = Workers::prepare(redis, Staff::one(IN_FLIGHT), numbers)?;
            let drained = Drained::of(bench, &mut workers, tasks, others)?;
            workers.stop()?.ensure_exactly(others + tasks - redis.tasks_in(1)?)?;
            Ok(drained.sample())
        })
    };
    let mut rows = vec![drain(shown.clone())?];
    if moves {
        shown.insert("table", "moved".into());
        redis.finish_moving(others)?;
        rows.push(drain(shown)?);
    }
    Ok(rows)
}

/// Drains many tasks that are due within the same second.
fn due_at_once(bench: &Bench) -> anyhow::Result<Row> {
    let redis = &bench.redis;
    let tasks = bench.scale.tasks(100_000);
    let shown = params([("due_at_once", tasks.into()), ("tasks", tasks.into())]);
    bench.repeat(GROWTH.name, shown, || {
        redis.probe().flush()?;
        let mut submitter = Submitter::start(redis)?;
        let mut workers = Workers::prepare(redis, Staff::one(IN_FLIGHT), tasks)?;
        workers.start()?;
        let lead = Duration::from_secs(bench.scale.pick(4, 2));
        let (due, instant) = (SystemTime::now() + lead, Instant::now() + lead);
        let ms = u64::try_from(due.duration_since(UNIX_EPOCH)?.as_millis())?;
        submitter.submit(redis, Load::bulk(tasks).kind(Kind::DueAt { ms }))?;
        anyhow::ensure!(Instant::now() < instant, "filling took longer than {lead:?}");
        std::thread::sleep(instant.saturating_duration_since(Instant::now()));
        let before = redis.probe().counters()?;
        let (ended, _) = workers.finish(redis, 0)?;
        let spent = redis.probe().since(&before)?;
        workers.stop()?.ensure_exactly(tasks)?;
        let rate = tasks as f64 / (ended - instant).as_secs_f64();
        Ok(spent.sample(tasks as f64).with(Field::TasksPerS, rate))
    })
}
