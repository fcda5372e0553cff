//! A submitted group, as its submitter and its members use it: [`GroupHandle`].

use std::{
    fmt,
    marker::PhantomData,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::{
    Client,
    batch_digest::digest_of,
    stuck_member::StuckMembers,
    submit_flow::Store,
    submit_members::{Rules, queues_of},
};
use crate::{
    Error,
    after::PrerequisiteFailure,
    broker::Enroll,
    context::Context,
    group::GroupProgress,
    group_results::GroupResults,
    id::TaskId,
    parameter::NoInput,
    platform,
    state::TaskState,
    step::{Form, IntoFlow},
};

/// The first and the longest wait between two checks of a group. Between them, it is a twentieth
/// of the time that the caller has waited.
const LOOK_FIRST: Duration = Duration::from_millis(10);
const LOOK_MAX: Duration = Duration::from_secs(1);

/// How many members [`GroupHandle::add`] adds at a time.
const ADD_MAX: usize = 1000;

/// A submitted [group](fn@crate::group) whose members return `T`. Dropping it changes nothing.
pub struct GroupHandle<T> {
    client: Client,
    id: TaskId,
    /// What members that are added do to the group if they fail, if it is not what the others do.
    on_failure: Option<PrerequisiteFailure>,
    output: PhantomData<fn() -> T>,
}

impl<T> GroupHandle<T> {
    pub(super) fn new(client: Client, id: TaskId) -> Self {
        Self { client, id, on_failure: None, output: PhantomData }
    }

    /// Returns the group's id. With it, [`Client::group`] finds the group again, and
    /// [`Call::after`](crate::Call::after) lets a task wait for it.
    pub fn id(&self) -> &TaskId {
        &self.id
    }

    /// Returns how many members there are and how many have ended.
    ///
    /// # Errors
    /// [`Error::is_forgotten`] if the group does not exist or is no longer kept;
    /// [`Error::is_invalid`] if the id is that of a task; [`Error::is_unavailable`].
    pub async fn progress(&self) -> Result<GroupProgress, Error> {
        let progress = self.client.broker().group(&self.id).await?;
        match progress {
            Some(progress) => Ok(progress),
            None => Err(self.client.no_group(&self.id).await),
        }
    }

    /// Waits until all members have ended, through outages.
    ///
    /// # Errors
    /// [`Error::is_dead`] or [`Error::is_cancelled`] as soon as a member, or a step within one, has
    /// failed, unless the group [continues without it](crate::Group::on_member_failure). Once an
    /// operator has requeued the task, this can be called again. [`Error::is_forgotten`] if the
    /// group does not exist or is no longer kept.
    pub async fn ended(&self) -> Result<GroupProgress, Error> {
        let (begun, mut stuck) = (Instant::now(), StuckMembers::new());
        loop {
            match self.progress().await {
                Ok(progress) => match progress.ended {
                    Some(TaskState::Cancelled) => {
                        let by = self.client.cancelled_by(&self.id).await.unwrap_or_default();
                        return Err(Error::group_cancelled(self.id.clone(), by));
                    }
                    Some(_) => return Ok(progress),
                    None if progress.lost > 0 => {
                        if let Some(problem) = self.lost(&progress).await {
                            return Err(problem);
                        }
                    }
                    None => {
                        let looked = stuck.look(&self.client, &self.id, &progress).await;
                        if let Ok(Some(problem)) = looked {
                            return Err(problem);
                        }
                    }
                },
                Err(problem) if problem.is_unavailable() || problem.is_unknown_outcome() => {}
                Err(problem) => return Err(problem),
            }
            tokio::time::sleep((begun.elapsed() / 20).clamp(LOOK_FIRST, LOOK_MAX)).await;
        }
    }

    /// Returns the error of a member that has failed and for which the group waits; `None` if all
    /// of them were requeued.
    pub(super) async fn lost(&self, progress: &GroupProgress) -> Option<Error> {
        let lost = self.client.inspector().lost_member(&self.id, progress).await.ok()??;
        Some(Error::member_lost(lost))
    }

    /// Sets what members that this handle [adds](Self::add) do to the group if they end as Dead or
    /// Cancelled, as [`Group::on_member_failure`](crate::Group::on_member_failure) does. By default
    /// they do what the group was submitted with.
    #[must_use]
    pub fn on_member_failure(self, on_failure: PrerequisiteFailure) -> Self {
        Self { on_failure: Some(on_failure), ..self }
    }

    /// Cancels the group: its callback according to its policy, and all members that have not
    /// ended, with the steps and groups within them. Returns how many members are cancelled now, or
    /// were asked to stop.
    ///
    /// # Errors
    /// [`Error::is_forgotten`] if the group does not exist or is no longer kept;
    /// [`Error::is_invalid`] if the id is that of a task; [`Error::is_unavailable`] or
    /// [`Error::is_unknown_outcome`]: repeat the call.
    pub async fn cancel(&self) -> Result<u32, Error> {
        let disbanded = self.client.broker().disband(&self.id).await?;
        let Some((progress, posted)) = disbanded else {
            return Err(self.client.no_group(&self.id).await);
        };
        if posted {
            self.client.carry(self.id.queue()).await;
        }
        self.client.cancel_members(&self.id, &progress).await
    }

    /// Adds members to a group that has not ended. A handler of a member can add more members: the
    /// group does not end before that handler has. Returns the number of members that were added.
    ///
    /// Every attempt of a handler must add the same calls in the same order: what an earlier
    /// attempt has added is not added again, and another number or other tasks are refused. Calls
    /// that can't be stored are refused before any of their thousand is added. If a
    /// [`Layer`](crate::Layer) refuses a call after that, or Redis can't be reached outside of
    /// handlers, the group waits for members that were not added: cancel it.
    ///
    /// ```
    /// # use optimus_core::{BoxError, Call, Context, Error, Task, TaskId};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Crawl { page: String }
    /// # impl Task for Crawl {
    /// #     const NAME: &'static str = "crawl";
    /// #     type Output = u32;
    /// #     async fn run(self, _: Context) -> Result<u32, BoxError> { Ok(1) }
    /// # }
    /// # fn crawl(page: String, group: TaskId) -> Call<Crawl> { Crawl { page }.call() }
    /// # fn links_of(page: &str) -> Vec<String> { Vec::new() }
    /// // The body of `crawl(page: String, group: TaskId)`, a member of the group.
    /// async fn crawl_page(page: String, group: TaskId, ctx: Context) -> Result<u32, Error> {
    ///     let links = links_of(&page);
    ///     let calls = links.into_iter().map(|link| crawl(link, group.clone()));
    ///     ctx.client()?.group::<u32>(group.clone()).add(calls).await
    /// }
    /// # let _ = crawl_page;
    /// ```
    ///
    /// # Errors
    /// [`Error::is_wrong_state`] if the group has ended or was cancelled; members that were added
    /// meanwhile are cancelled with it, unless a member has [failed](Self::on_member_failure).
    /// [`Error::is_forgotten`] if nothing is known of it; [`Error::is_cycle`] if a call waits for
    /// the group, such as for its callback; the errors of [`Client::submit_flow`].
    pub async fn add<'a, C>(&self, calls: impl IntoIterator<Item = C>) -> Result<u32, Error>
    where
        C: IntoFlow<'a, Output = T, Input = NoInput>,
    {
        let inherited = self.progress().await?.on_member_failure;
        let on_failure = self.on_failure.unwrap_or(inherited);
        let rules = Rules {
            group: &self.id,
            former: None,
            form: Form::Same,
            policy: None,
            on_failure,
            keep: None,
        };
        let (mut calls, mut added) = (calls.into_iter(), 0);
        loop {
            // No closure lives during an await: with one, the future of an addition of flows could
            // not be sent to another thread.
            let some = calls.by_ref().take(ADD_MAX);
            let batch: Vec<_> = some.map(|call| call.into_flow().stages).collect();
            if batch.is_empty() {
                break;
            }
            let count = u32::try_from(batch.len()).expect("a small batch");
            let (queues, digest) = (queues_of(&batch), digest_of(&batch));
            let enroll = Enroll {
                operation: &next_operation(),
                count,
                seal: false,
                keep: None,
                queues: &queues,
                on_failure,
                digest: &digest,
                submit: "",
                is_later: true,
            };
            let mut store = Store::of(&self.client);
            store.later.add(&self.id);
            if !store.batch(batch, enroll, &rules).await? {
                // Earlier thousands are stored.
                let state = self.cancel_added().await?.unwrap_or(TaskState::Cancelled);
                return Err(Error::group_ended(self.id.clone(), state));
            }
            added += count;
        }
        self.cancel_added().await?;
        Ok(added)
    }

    /// Cancels what was added while the group was cancelled. Returns its state if it has ended.
    async fn cancel_added(&self) -> Result<Option<TaskState>, Error> {
        let progress = self.progress().await?;
        self.client.cancel_with(&self.id, &progress).await?;
        Ok(progress.ended)
    }
}

/// The number of times that an attempt has added members.
#[derive(Debug, Clone, Default)]
struct Additions(Arc<AtomicU32>);

/// Returns a name for an addition. In a handler it is the same in each attempt.
fn next_operation() -> String {
    let Some(ctx) = Context::current() else {
        return platform::new_uuid().simple().to_string();
    };
    let additions: Additions = ctx.data().unwrap_or_else(|| {
        let additions = Additions::default();
        ctx.insert(additions.clone());
        additions
    });
    let number = additions.0.fetch_add(1, Ordering::Relaxed);
    format!("{}/{number}", ctx.id())
}

impl<T: DeserializeOwned> GroupHandle<T> {
    /// Waits until all members have ended, and returns their results in the order of the calls.
    ///
    /// # Errors
    /// The errors of [`ended`](Self::ended) and of [`GroupResults::all`].
    pub async fn results(&self) -> Result<Vec<T>, Error> {
        self.ends().await?.all().await
    }

    /// Waits until all members have ended, and returns what reads their results page by page.
    ///
    /// # Errors
    /// The errors of [`ended`](Self::ended).
    pub async fn ends(&self) -> Result<GroupResults<T>, Error> {
        let GroupProgress { total, failed, cancelled, .. } = self.ended().await?;
        Ok(GroupResults::new(self.client.clone(), self.id.clone(), [total, failed, cancelled]))
    }

    /// Waits as [`ended`](Self::ended) and returns the result of a flow that ends with the group.
    pub(super) async fn handle_as<R: DeserializeOwned>(&self) -> Result<R, Error> {
        let results = self.ends().await?;
        let json = serde_json::to_value(&results);
        let read = json.and_then(|json| {
            let client = &self.client;
            client.enter(|| serde_json::from_value(json))
        });
        read.map_err(|problem| Error::wrong_result(self.id.clone(), problem))
    }
}

impl<T> Clone for GroupHandle<T> {
    fn clone(&self) -> Self {
        let on_failure = self.on_failure;
        Self { on_failure, ..Self::new(self.client.clone(), self.id.clone()) }
    }
}

impl<T> fmt::Debug for GroupHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupHandle({})", self.id)
    }
}
