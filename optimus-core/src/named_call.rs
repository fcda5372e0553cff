//! A call of a task that this program does not know: [`NamedCall`].

use std::time::Duration;

use serde::de::IgnoredAny;
use serde_json::Value;

use crate::{
    Error,
    call_submit::Submit,
    headers::Headers,
    id::{QueueName, TaskId},
    lane::Lane,
    options::{CallOptions, Due, TaskOptions},
    submission::{Fields, Submission},
};

/// A call by the name of its task, with arguments as JSON, for tools. It stores the same record as
/// a call of the function would, but the definition is not known here: each option that is not set
/// has its default, and the task has no limit, prerequisite or gathering. Its result is JSON.
///
/// ```
/// # use optimus_core as optimus;
/// use optimus::{Client, NamedCall};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::connect("memory://named-call").await?;
/// let call = NamedCall::new("mail", "welcome", r#"{"user":7}"#)?.header("tenant", "acme");
/// let handle = client.submit(call).await?;
/// # drop(handle);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a call does nothing until it is submitted"]
pub struct NamedCall {
    queue: QueueName,
    task: String,
    arguments: Vec<u8>,
    headers: Headers,
    options: CallOptions,
}

impl NamedCall {
    /// Makes a call. The arguments are stored as they are, byte for byte.
    ///
    /// # Errors
    /// [`Error::is_invalid`] for the name of a queue that can't be, and for arguments that are not
    /// one JSON object.
    pub fn new(
        queue: impl AsRef<str>,
        task: impl Into<String>,
        arguments: impl Into<Vec<u8>>,
    ) -> Result<Self, Error> {
        let (queue, task, arguments) = (QueueName::new(queue)?, task.into(), arguments.into());
        if let Some(problem) = no_object(&arguments) {
            return Err(Error::invalid(format!("the arguments of task {task:?}: {problem}")));
        }
        let (headers, options) = (Headers::new(), CallOptions::default());
        Ok(Self { queue, task, arguments, headers, options })
    }

    /// Adds a header, and replaces an earlier one of the same name.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Makes calls with this biz id one task.
    pub fn biz_id(mut self, biz_id: impl Into<String>) -> Self {
        self.options.biz_id = Some(biz_id.into());
        self
    }

    /// Puts the task into a lane of width 1.
    pub fn lane(mut self, key: impl Into<String>) -> Self {
        self.options.lane = Some(key.into());
        self
    }

    /// Sets how many attempts may follow the first failed one.
    pub fn max_retry(mut self, max_retry: u32) -> Self {
        self.options.max_retry = Some(max_retry);
        self
    }

    /// Sets how long one attempt may run.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// Sets when the task is ready.
    pub fn due(mut self, due: Due) -> Self {
        self.options.due = due;
        self
    }
}

// Messages about what is no call name the usual ways to make one.
#[diagnostic::do_not_recommend]
impl Submit for NamedCall {
    type Output = Value;

    fn into_submission(self) -> Result<Submission, Error> {
        let Self { queue, task, arguments, headers, options: set } = self;
        let definition = TaskOptions::DEFAULT;
        let options = set.over(definition);
        options.validate(&task)?;
        let (biz_id, lane) = (set.biz_id.as_deref(), set.lane.as_deref());
        set.check(&task, &definition, &options, biz_id, lane)?;
        Ok(Submission::of(Fields {
            id: TaskId::new(queue),
            may_exist: false,
            task: task.into(),
            returns_nothing: false,
            options,
            lane: set.lane.map(|key| Lane::of(key, &options)),
            biz_id: set.biz_id,
            gather: None,
            member: None,
            trace: None,
            after: None,
            follows_step: false,
            limits: Vec::new(),
            due: set.due,
            headers,
            payload: arguments,
        }))
    }
}

/// Returns why the text is not one JSON object.
fn no_object(arguments: &[u8]) -> Option<String> {
    if let Err(problem) = serde_json::from_slice::<IgnoredAny>(arguments) {
        return Some(format!("they are not JSON: {problem}"));
    }
    let is_object = arguments.trim_ascii_start().starts_with(b"{");
    let why = "they must be a JSON object with the names of the parameters, such as {\"user\":7}";
    (!is_object).then(|| why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::TaskRecord;

    #[test]
    fn the_arguments_are_stored_byte_for_byte() {
        for arguments in [
            "{}",
            " {\"user\": 12345678901234567890123, \"at\" :1.10}\n",
            "{\"a\":1,\"a\":2,\"text\":\"\\u0000 ü \u{202e}\"}",
        ] {
            let call = NamedCall::new("mail", "welcome", arguments).unwrap();
            let call = call.header("tenant", "acme").biz_id("7").lane("user-7").max_retry(9);
            let stored = call.into_submission().unwrap().stored();
            let record = TaskRecord::decode(stored).unwrap();
            assert_eq!(record.payload, arguments.as_bytes());
        }
    }

    #[test]
    fn what_is_not_one_object_or_has_wrong_options_is_refused_with_what_to_do() {
        for (arguments, why) in [
            ("", "not JSON"),
            ("{", "not JSON"),
            ("{}{}", "not JSON"),
            ("{'user':7}", "not JSON"),
            ("\u{feff}{}", "not JSON"),
            ("[7]", "must be a JSON object"),
            ("\"{}\"", "must be a JSON object"),
            ("null", "must be a JSON object"),
        ] {
            let problem = NamedCall::new("mail", "welcome", arguments).unwrap_err();
            assert!(problem.is_invalid() && problem.to_string().contains(why), "{problem}");
        }
        assert!(NamedCall::new("a b", "welcome", "{}").unwrap_err().is_invalid());
        let call = NamedCall::new("mail", "welcome", "{}").unwrap().timeout(Duration::ZERO);
        assert!(call.into_submission().unwrap_err().to_string().contains("timeout"));
    }
}
