//! The group of the task that is running: [`Context::group`].

use crate::{
    Error, client::GroupHandle, context::Context, group::Member, id::TaskId, parameter::NoInput,
    step::IntoFlow,
};

/// The group of which the running task is a member; see [`Context::group`].
#[derive(Debug, Clone)]
pub struct CurrentGroup {
    ctx: Context,
    member: Member,
}

impl Context {
    /// Returns the [group](fn@crate::group) of which the task is a member. Of a member that is a
    /// chain, only the last step has it. `None` inside
    /// [`perform_inline`](crate::Call::perform_inline).
    ///
    /// ```
    /// # use optimus_core::{BoxError, Call, Context, Error, Task};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Crawl { page: String }
    /// # impl Task for Crawl {
    /// #     const NAME: &'static str = "crawl";
    /// #     type Output = u32;
    /// #     async fn run(self, _: Context) -> Result<u32, BoxError> { Ok(1) }
    /// # }
    /// # fn crawl(page: String) -> Call<Crawl> { Crawl { page }.call() }
    /// # fn links_of(page: &str) -> Vec<String> { Vec::new() }
    /// // The body of `crawl(page: String)`, a member of a group.
    /// async fn crawl_page(page: String, ctx: Context) -> Result<u32, Error> {
    ///     let links = links_of(&page);
    ///     match ctx.group() {
    ///         Some(group) => group.add(links.into_iter().map(crawl)).await,
    ///         None => Ok(0),
    ///     }
    /// }
    /// # let _ = crawl_page;
    /// ```
    pub fn group(&self) -> Option<CurrentGroup> {
        let member = self.member()?.clone();
        Some(CurrentGroup { ctx: self.clone(), member })
    }
}

impl CurrentGroup {
    /// Returns the id of the group.
    pub fn id(&self) -> &TaskId {
        &self.member.group
    }

    /// Returns the position of the task in the group, from 0: the number of its call.
    pub fn position(&self) -> u32 {
        self.member.index
    }

    /// Returns the handle of the group, whose members return `T`.
    ///
    /// # Errors
    /// The errors of [`Context::client`].
    pub fn handle<T>(&self) -> Result<GroupHandle<T>, Error> {
        let handle = self.ctx.client()?.group(self.member.group.clone());
        Ok(handle.on_member_failure(self.member.on_failure))
    }

    /// Adds members to the group, which does not end before this handler has; see
    /// [`GroupHandle::add`]. Their failure does to the group what that of this task does. Returns
    /// the number of members that were added.
    ///
    /// # Errors
    /// The errors of [`GroupHandle::add`].
    pub async fn add<'a, C>(&self, calls: impl IntoIterator<Item = C>) -> Result<u32, Error>
    where
        C: IntoFlow<'a, Input = NoInput>,
    {
        // A future that the handler has spawned is a part of the attempt, too.
        self.ctx.within(self.handle()?.add(calls)).await
    }
}
