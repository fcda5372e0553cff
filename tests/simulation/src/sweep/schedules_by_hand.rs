//! Schedules in a queue that no worker serves. The scene itself reads what is due and takes each
//! step: with every option of a call, too early, twice, and for instants that have no task.

use std::time::Duration;

use optimus_core::broker::{Broker, DueSchedule, Look, Step, StepKind};
use optimus_core::{
    Call, Error, Fire, Gate, Lane, Limit, Overlap, QueueName, Schedule, Submission, Submit, Task,
    TaskLimit,
};
use tokio::time::sleep;

use super::Actor;
use super::hand::APART;
use super::steps::ms;
use crate::sources::Ticked;

const LARGE: usize = 20 * 1024;
const SECOND: Duration = Duration::from_secs(1);
const SECOND_MS: u64 = 1_000;

/// A call in a wide lane, with a limit.
struct Rich(Call<Ticked>);

impl Submit for Rich {
    type Output = ();

    fn into_submission(self) -> Result<Submission, Error> {
        let width = std::num::NonZeroU16::new(3).expect("3 is not 0");
        let limit = Limit::new().max_working(1);
        let limit = TaskLimit { gate: Gate::Named("m".into()), limit };
        let submission = self.0.into_submission()?;
        Ok(submission.in_lane(Lane { width, ..Lane::new("wide") }).limited_by(vec![limit]))
    }
}

fn ticked() -> Call<Ticked> {
    Ticked::default().call().queue(APART)
}

pub(super) async fn schedules(actor: &Actor) {
    let (client, queue) = (&actor.user.client, QueueName::new(APART).expect("a name"));
    let schedules = client.schedules();
    let large = Ticked { lasts_ms: 0, padding: "x".repeat(LARGE) }.call().queue(APART);
    let rich = large.biz_id("b").biz_window(SECOND).priority(5).expires_in(Duration::from_secs(9));
    let every = |name: &str| Schedule::every(name, SECOND);
    drop(schedules.put(every("rich").jitter(ms(50)).call(Rich(rich))).await);
    let twin = Ticked::default().call().queue(APART).biz_id("b");
    drop(schedules.put(every("twin").overlap(Overlap::All).call(twin)).await);
    drop(schedules.put(every("plain").call(ticked())).await);
    // The release is later than none, so this one is of code.
    let code = every("code").release("1.0.0").call(ticked());
    if let Ok(code) = code.check() {
        drop(optimus_core::store_schedule(client.broker(), &code).await);
    }
    let names = ["code".to_owned(), "missing".to_owned()];
    for _ in 0..3 {
        sleep(SECOND).await;
        let look = Look { of_code: &names, ..Look::default() };
        let Ok(agenda) = client.broker().agenda(&queue, look).await else { continue };
        for due in &agenda.due {
            take_steps(client.broker(), &queue, due).await;
        }
    }
    drop(schedules.run_now("plain").await);
    drop(schedules.pause("code", "ann").await);
    for name in ["rich", "twin", "plain", "code"] {
        drop(schedules.remove(name).await);
    }
}

/// Takes the step that is due, again, and one that is too early. A schedule of code leaves its
/// instants out.
async fn take_steps(broker: &Broker, queue: &QueueName, due: &DueSchedule) {
    let kind = if due.name == "code" { StepKind::LeaveOut } else { StepKind::Submit };
    let step = |due_ms: u64| {
        let fire = Fire { nominal_ms: due_ms, missed: 0 };
        Step { due_ms, next_ms: Some(due_ms + SECOND_MS), fire, kind }
    };
    drop(broker.tick(queue, due, step(due.due_ms)).await);
    drop(broker.tick(queue, due, step(due.due_ms)).await);
    drop(broker.tick(queue, due, step(due.due_ms + SECOND_MS)).await);
}
