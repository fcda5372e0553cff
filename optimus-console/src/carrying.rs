//! Carries operations on in this process: [`Carrying`]. If the process ends, a worker or another
//! console goes on.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use optimus_core::{Client, OperationError, OperationState, broker::Broker};
use tokio::{
    runtime::Handle,
    time::{Instant, sleep, timeout_at},
};

use crate::shared::{App, Shared};

/// How often those who watch hear of an operation that is under way.
const TOLD_EVERY: Duration = Duration::from_secs(1);
/// How long this process carries an operation on that can't go on, before it leaves it to others.
const CARRIES_WITHIN: Duration = Duration::from_secs(24 * 3_600);
/// The waits before it tries again after an error: the first one, and the longest.
const AGAIN: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];
/// How often, and how long, a console that has started looks for what others have left: the lease
/// of a console that has ended lasts 10 s.
const LOOK_EVERY: Duration = Duration::from_secs(5);
const LOOKS: u32 = 12;

/// The operations that this process carries on.
#[derive(Debug, Default)]
pub(crate) struct Carrying(Mutex<HashSet<String>>);

impl Carrying {
    fn ids(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Carries an operation on until it needs nobody, and tells those who watch how far it is.
pub(crate) fn carry(app: &App, id: String) {
    if !app.carrying.ids().insert(id.clone()) {
        return;
    }
    let app = app.clone();
    tokio::spawn(async move {
        let carrying = carry_within(&app.client, &id);
        tokio::pin!(carrying);
        let rests = loop {
            tokio::select! {
                biased;
                rests = &mut carrying => break rests,
                () = sleep(TOLD_EVERY) => {
                    app.sampling.refresh_operations(&app.client).await;
                }
            }
        };
        app.carrying.ids().remove(&id);
        app.sampling.refresh_operations(&app.client).await;
        // Somebody may have confirmed it when this process still seemed to carry it on.
        if rests && is_under_way(&app.client, &id).await {
            carry(&app, id.clone());
        }
    });
}

async fn is_under_way(client: &Client, id: &str) -> bool {
    let found = client.operations().get(id).await.ok().flatten();
    found.is_some_and(|operation| operation.state == OperationState::Running)
}

/// Carries an operation on. An error of Redis does not end it: whatever is stored stays right.
/// Returns whether it needs nobody.
async fn carry_within(client: &Client, id: &str) -> bool {
    let (operations, until) = (client.operations(), Instant::now() + CARRIES_WITHIN);
    let [first, longest] = AGAIN;
    let mut wait = first;
    loop {
        let begun = Instant::now();
        match timeout_at(until, operations.carry(id)).await {
            Ok(Err(OperationError::Store(problem))) if !problem.is_invalid() => {}
            ended => {
                return matches!(ended, Ok(Ok(found)) if found.state != OperationState::Running);
            }
        }
        if begun.elapsed() > longest {
            wait = first;
        }
        sleep(wait).await;
        wait = (wait * 2).min(longest);
    }
}

/// Carries on what nobody carries on, because a console or a program has ended.
pub(crate) async fn carry_left(app: &App) {
    let broker = app.client.broker();
    // If Redis can't be read now, the next look finds it.
    if let Ok(Some(id)) = broker.operation_left(&Broker::operations_slot()).await {
        carry(app, id);
    }
}

/// Looks for what others have left, from the start of the console on.
pub(crate) fn begin(app: &App) {
    let Ok(runtime) = Handle::try_current() else { return };
    let app: Weak<Shared> = Arc::downgrade(app);
    runtime.spawn(async move {
        for _ in 0..LOOKS {
            let Some(shared) = app.upgrade() else { return };
            carry_left(&shared).await;
            drop(shared);
            sleep(LOOK_EVERY).await;
        }
    });
}
