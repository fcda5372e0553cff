//! A checked call with encoded arguments, which a client sends: [`Submission`].

use std::{
    borrow::Cow,
    collections::BTreeMap,
    ops::{Deref, DerefMut},
};

use crate::{
    Error,
    after::{After, biz_id_problem},
    broker::SizeLimit,
    gather::Gather,
    group::Member,
    headers::{self, Headers},
    id::{TaskId, validate_name},
    lane::Lane,
    limit::TaskLimit,
    options::{Due, TaskOptions},
    plain_header::write_header,
};

/// Payloads above this size are stored apart from the record, so that claims do not pass them
/// through Lua. A plain read fetches them.
pub const BLOB_BYTES_MIN: usize = 16 * 1024;

/// The maximum length of a biz id. The limit exists because the biz id is part of a key.
pub(crate) const BIZ_ID_BYTES_MAX: usize = 512;

/// How far the time of a given id may differ from the client's clock and still count as the time of
/// submit.
const MADE_NOW_MS: u64 = 1_000;

/// How far ahead of the client's clock the time of a given id may be.
const AHEAD_MAX_MS: u64 = 24 * 60 * 60 * 1000;

/// A checked call with encoded arguments, as a client sends it. The fields are in a box, because a
/// submission is moved a dozen times between the call and the request.
#[derive(Debug, Clone)]
pub struct Submission(Box<Fields>);

/// The fields of a [`Submission`].
#[derive(Debug, Clone)]
pub struct Fields {
    pub(crate) id: TaskId,
    /// Whether the id was given. A task with this id may be stored already; then nothing is added.
    pub(crate) may_exist: bool,
    pub(crate) task: Cow<'static, str>,
    /// The handler returns `()`, so no result of it is ever stored.
    pub(crate) returns_nothing: bool,
    pub(crate) options: TaskOptions,
    pub(crate) biz_id: Option<String>,
    pub(crate) lane: Option<Lane>,
    /// With which tasks it runs together.
    pub(crate) gather: Option<Gather>,
    pub(crate) after: Option<After>,
    /// Its first prerequisite is the step before it, which the submit of the flow stores later.
    pub(crate) follows_step: bool,
    /// The group that counts it, if it is a member of one.
    pub(crate) member: Option<Member>,
    /// What shows that it has run before, if it is a part of a flow that may be submitted again.
    pub(crate) trace: Option<Trace>,
    /// The limits that it passes, the innermost first.
    pub(crate) limits: Vec<TaskLimit>,
    pub(crate) due: Due,
    pub(crate) headers: Headers,
    pub(crate) payload: Vec<u8>,
}

/// What shows that a task has run before it is submitted again, although it has no record any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trace {
    /// Its outcome.
    Outcome,
    /// Its group, or what its queue knows of the group.
    Member {
        /// When the group was made, in ms. Another group may have had this id before.
        born: u64,
    },
}

/// Every move copies the whole value, so this is only a pointer.
const _: () = assert!(size_of::<Submission>() == size_of::<usize>());

impl Deref for Submission {
    type Target = Fields;

    fn deref(&self) -> &Fields {
        &self.0
    }
}

impl DerefMut for Submission {
    fn deref_mut(&mut self) -> &mut Fields {
        &mut self.0
    }
}

impl Submission {
    pub(crate) fn of(fields: Fields) -> Self {
        Self(Box::new(fields))
    }

    /// Returns the fields, each of which can then be moved.
    pub(crate) fn into_fields(self) -> Fields {
        *self.0
    }

    /// Returns the id of the task, unless its biz id is taken.
    pub fn id(&self) -> &TaskId {
        &self.id
    }

    /// Returns the task's name.
    pub fn task(&self) -> &str {
        &self.task
    }

    /// Returns the value of the header with that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Returns all headers, by name.
    pub fn headers(&self) -> &BTreeMap<String, String> {
        &self.headers
    }

    /// Adds a header, and replaces an earlier one of the same name, as
    /// [`Call::header`](crate::Call::header) does.
    pub fn set_header(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.headers.insert(name.into(), value.into());
    }

    /// Returns whether the call can be sent with this header in addition: with a valid name, and
    /// within the limits of [`Call::header`](crate::Call::header). A layer whose header is not
    /// needed can leave it out then.
    pub fn can_set_header(&self, name: &str, value: &str) -> bool {
        headers::can_add(&self.headers, name, value)
    }

    /// Returns the number of bytes that this submission adds to a request.
    pub(crate) fn bytes(&self) -> usize {
        self.payload.len() + headers::bytes(&self.headers)
    }

    /// Replaces the id by another id of the same queue; for tests.
    #[doc(hidden)]
    pub fn with_id(mut self, id: TaskId) -> Self {
        debug_assert_eq!(self.id.queue(), id.queue(), "the id is of the same queue");
        self.id = id;
        self
    }

    /// Puts it into a lane; for tests.
    #[doc(hidden)]
    pub fn in_lane(mut self, lane: Lane) -> Self {
        self.lane = Some(lane);
        self
    }

    /// Lets it run together with others; for tests.
    #[doc(hidden)]
    pub fn gathered(mut self, gather: Gather) -> Self {
        self.gather = Some(gather);
        self
    }

    /// Lets it wait for other tasks; for tests.
    #[doc(hidden)]
    pub fn waiting_for(mut self, after: After) -> Self {
        self.after = Some(after);
        self
    }

    /// Makes it a step that is stored before the one that it follows; for tests.
    #[doc(hidden)]
    pub fn following_step(mut self) -> Self {
        self.follows_step = true;
        self
    }

    /// Replaces its arguments; for tests.
    #[doc(hidden)]
    pub fn with_payload(mut self, payload: Vec<u8>) -> Self {
        self.payload = payload;
        self
    }

    /// Makes it a member of a group, with the id that a member has there; for tests.
    #[doc(hidden)]
    pub fn enlisted(mut self, member: Member) -> Self {
        let id = Member::id(&member.group, self.id.queue(), member.index);
        self.id = id;
        self.may_exist = true;
        self.member = Some(member);
        self
    }

    /// Makes it a member of a group; for tests.
    #[doc(hidden)]
    pub fn member_of(mut self, member: Member) -> Self {
        self.member = Some(member);
        self
    }

    /// Submits it as a part of a flow that may have been submitted before; for tests.
    #[doc(hidden)]
    pub fn again(mut self, trace: Trace) -> Self {
        self.may_exist = true;
        self.trace = Some(trace);
        self
    }

    /// Puts it behind these limits, the innermost first; for tests.
    #[doc(hidden)]
    pub fn limited_by(mut self, limits: Vec<TaskLimit>) -> Self {
        self.limits = limits;
        self
    }

    /// Returns whether the time in the id is the time of the submit; `here_ms` is the client's
    /// clock. An id that Optimus made has this time; a given id may have another time, or none.
    pub(crate) fn id_has_submit_time(&self, here_ms: u64) -> bool {
        !self.may_exist || self.id.made_ms().abs_diff(here_ms) <= MADE_NOW_MS
    }

    /// Returns whether the record must state when Redis accepted the task: an expiry counts from
    /// then, and a given id may have no time.
    pub(crate) fn is_stamped(&self) -> bool {
        self.options.expires_in.is_some() || self.id.made_ms() == 0
    }

    /// Refuses a submission that can't be stored, according to this clock of the client.
    pub(crate) fn check(&self, payload_limit: SizeLimit, here_ms: u64) -> Result<(), Error> {
        // After a purge of this task, a later success of the queue could not be distinguished from
        // it.
        if self.may_exist && self.id.made_ms() > here_ms.saturating_add(AHEAD_MAX_MS) {
            return Err(Error::invalid(format!(
                "task {:?}: the id {} is a version 7 uuid with a time more than a day ahead of \
                 this machine's clock; make it with TaskId::new, or take a uuid of version 4 or 5",
                self.task, self.id
            )));
        }
        if let Err(problem) = validate_name(&self.task) {
            return Err(Error::invalid(format!("the task's name: {problem}")));
        }
        if self.payload.len() > payload_limit.bytes() {
            return Err(Error::too_large(&self.task, self.payload.len(), payload_limit));
        }
        headers::check(&self.headers, &self.task)?;
        self.lane.as_ref().map_or(Ok(()), |lane| lane.check(&self.task))?;
        let biz_id = self.biz_id.as_deref();
        self.after.as_ref().map_or(Ok(()), |after| after.check(&self.id, &self.task, biz_id))?;
        if let (Some(_), Some(id)) = (self.options.after.outcome_ttl, biz_id)
            && let Some(problem) = biz_id_problem(id)
        {
            return Err(Error::invalid(format!("task {:?}: {problem}", self.task)));
        }
        for TaskLimit { gate, limit } in &self.limits {
            if let Some(problem) = gate.problem().or_else(|| limit.problem()) {
                return Err(Error::invalid(format!("task {:?}: {problem}", self.task)));
            }
        }
        match &self.biz_id {
            Some(id) if id.is_empty() || id.len() > BIZ_ID_BYTES_MAX => Err(Error::invalid(
                format!("task {:?}: a biz id takes 1 to {BIZ_ID_BYTES_MAX} bytes", self.task),
            )),
            _ => Ok(()),
        }
    }

    /// Returns the record as it is stored, for tests.
    #[doc(hidden)]
    pub fn stored(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        bytes
    }

    /// Writes the header, its newline, and the payload unless that goes to `blobs`.
    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        write_header(self, bytes);
        bytes.push(b'\n');
        if self.blob().is_none() {
            bytes.extend_from_slice(&self.payload);
        }
    }

    /// Returns the payload, if it is stored apart from the record.
    pub(crate) fn blob(&self) -> Option<&[u8]> {
        (self.payload.len() > BLOB_BYTES_MIN).then_some(&self.payload)
    }
}
