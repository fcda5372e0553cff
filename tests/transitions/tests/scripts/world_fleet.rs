//! The processes of the world, and the calls that list them and ask something of them.

use optimus_core::{
    WorkerId,
    broker::{Attendance, BrokerError},
};

use crate::{
    acts::ms,
    bench::Bench,
    world::{NOW, World},
};

/// Lets a process attend, whose keys are in the slot of the queue.
pub(crate) async fn attend(
    bench: &Bench,
    at: u64,
    id: &WorkerId,
) -> Result<(u64, String), BrokerError> {
    let (description, doing) = (r#"{"host":"vm-7"}"#, r#"{"slots":4}"#);
    let attendance = Attendance { id, gone_after: ms(60_000), description, doing };
    bench.at(at).attend(&bench.queue, attendance).await
}

impl World {
    pub(crate) async fn attend_in(
        &self,
        bench: &Bench,
        script: &str,
        situation: &str,
    ) -> Result<(), BrokerError> {
        let newcomer = WorkerId::from_stored("newcomer");
        match (script, situation) {
            ("wish", _) => bench.at(NOW).wish(&bench.queue, &self.busy, "quiet").await,
            (_, "it leaves") => bench.at(NOW).leave_fleet(&bench.queue, &self.busy).await,
            (_, "a new process") => attend(bench, NOW, &newcomer).await.map(drop),
            _ => attend(bench, NOW, &self.busy).await.map(drop),
        }
    }
}
