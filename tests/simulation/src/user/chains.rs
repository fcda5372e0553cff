//! A user that submits chains of tasks.

use optimus_core::{Error, Flow, FlowHandle, IntoFlow as _, StepHandle};
use optimus_testkit::history::What;
use tokio::time::sleep;

use super::User;
use super::shaped::{GIVE_UP, until, work};
use crate::flow_tasks::Link;

impl User {
    /// Submits a chain in which some steps take the result of the one before.
    pub(super) async fn submit_chain(&mut self) {
        let count = self.random.usize(2..5);
        let numbers: Vec<u64> = (0..count).map(|_| self.number()).collect();
        let policy = self.policy();
        let kind = self.flow_kind();
        let queue = self.queues.pick(&mut self.random).clone();
        let mut flow: Flow<'static, u64> = work(numbers[0], kind, &queue).into_flow();
        self.invoke(numbers[0], None, 0);
        for pair in numbers.windows(2) {
            let (of, number) = (pair[0], pair[1]);
            self.invoke(number, None, 0);
            self.write(What::After { task: number, other: of, until: until(policy) });
            let queue = self.queues.pick(&mut self.random).clone();
            flow = if self.random.bool() {
                flow.then(Link::after(number, of).queue(&queue).give_up_after(GIVE_UP))
            } else {
                let kind = self.flow_kind();
                flow.then(work(number, kind, &queue).give_up_after(GIVE_UP))
            };
        }
        let flow = flow.on_prerequisite_failure(policy);
        let submitted = self.client.submit_flow(flow).await;
        self.flow_answered(&numbers, submitted.as_ref().map(FlowHandle::steps));
        let Ok(handle) = submitted else { return };
        if self.random.u8(..6) == 0 {
            self.write_cancels(&numbers);
            drop(handle.cancel().await);
        }
        if self.random.u8(..4) == 0 {
            self.await_flow(numbers[count - 1], handle);
        }
    }

    /// Records the outcome of the submit of a flow, whose steps are in the order of these numbers.
    pub(super) fn flow_answered(&self, numbers: &[u64], steps: Result<&[StepHandle], &Error>) {
        match steps {
            Ok(steps) => {
                for (task, step) in numbers.iter().zip(steps) {
                    if let StepHandle::Task(handle) = step {
                        self.write_acked(*task, handle.id());
                    }
                }
            }
            Err(_) => self.write_undone(numbers),
        }
    }

    pub(super) fn write_acked(&self, task: u64, id: &optimus_core::TaskId) {
        self.shared.known().push((task, id.clone()));
        self.write(What::Acked { task, id: id.to_string() });
    }

    /// Records that nobody knows which of these tasks are stored, and that the client tries to
    /// remove them.
    pub(super) fn write_undone(&self, numbers: &[u64]) {
        for task in numbers {
            self.write(What::Unknown { task: *task });
            self.write(What::Delete { task: *task });
        }
        self.write_cancels(numbers);
    }

    pub(super) fn write_cancels(&self, numbers: &[u64]) {
        for task in numbers {
            self.write(What::Cancel { task: *task });
        }
    }

    /// Waits for the result of the last task of a flow in the background.
    pub(super) fn await_flow(&self, last: u64, handle: FlowHandle<u64>) {
        let network = self.network.clone();
        let wait = tokio::spawn(async move {
            loop {
                match handle.result().await {
                    // The injected failure of a `redis.call` refused the check.
                    Err(problem) if problem.is_rejected() => {
                        sleep(std::time::Duration::from_millis(200)).await;
                    }
                    Ok(fence) if !network.journal.ended_well(last, fence) => {
                        network.complain(format!("flow of {last} has the result of no attempt"));
                        return;
                    }
                    _ => return,
                }
            }
        });
        self.keep_wait(last, wait);
    }
}
