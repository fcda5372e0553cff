//! A task with its type erased, as workers store it by name.

use std::{
    any::TypeId,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    time::Duration,
};

use serde::de::Error;

use crate::{
    arguments,
    context::Context,
    control_words::BoxError,
    data::DataKey,
    guarded_drop::{discard, panic_text},
    options::TaskOptions,
    schedule::Schedule,
    task::Task,
};

/// How an attempt failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The stored arguments do not fit the task's parameters.
    #[error("the arguments don't fit the parameters of the task: {0}")]
    Undecodable(#[source] serde_json::Error),
    /// The handler's result can't be written as JSON.
    #[error("the result can't be encoded: {0}")]
    Unencodable(#[source] serde_json::Error),
    /// The error of the handler.
    #[error(transparent)]
    Failed(BoxError),
}

/// The encoded result; `None` for `()`.
pub type CallOutput = Result<Option<Vec<u8>>, RunError>;

/// What a handler has returned.
#[derive(Debug)]
pub enum Ran {
    /// The result, of all calls of a run.
    All(Option<Vec<u8>>),
    /// A result for each call of a run.
    Each(Vec<CallOutput>),
}

/// What a started attempt returns.
pub type RunOutput = Result<Ran, RunError>;

/// A started attempt.
pub type Running = Pin<Box<dyn Future<Output = RunOutput> + Send>>;

/// A task that a worker can run. `#[task]` registers it through `inventory`.
#[derive(Debug, Clone, Copy)]
pub struct TaskDefinition {
    name: &'static str,
    type_name: fn() -> &'static str,
    options: fn() -> TaskOptions,
    required_data: fn() -> Vec<DataKey>,
    schedule: fn() -> Option<Schedule>,
    run: fn(&[u8], Context, Duration) -> Result<Running, RunError>,
    check: fn(&[u8]) -> Result<(), RunError>,
    run_all: fn(&[Vec<u8>], Context, Duration) -> RunningCalls,
}

/// A started attempt at the calls of a run.
pub struct RunningCalls {
    /// The attempt at those whose arguments fit; `None` if there are none.
    pub running: Option<Running>,
    /// The others, by their position.
    pub undecodable: Vec<(usize, RunError)>,
}

inventory::collect!(TaskDefinition);

impl TaskDefinition {
    /// Returns the definition of `T`.
    pub const fn of<T: Task>() -> Self {
        Self {
            name: T::NAME,
            type_name: std::any::type_name::<T>,
            options: T::options,
            required_data: T::required_data,
            schedule: T::schedule,
            run: start::<T>,
            check: |payload| decode_call::<T>(payload).map(discard),
            run_all: start_all::<T>,
        }
    }

    /// Returns every task that `#[task]` registered in the crates linked into this program.
    pub fn registered() -> impl Iterator<Item = Self> {
        inventory::iter::<Self>.into_iter().copied()
    }

    /// Returns the task's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the task's Rust type, for messages.
    pub fn type_name(&self) -> &'static str {
        (self.type_name)()
    }

    /// Returns the task's options.
    pub fn options(&self) -> TaskOptions {
        (self.options)()
    }

    /// Returns the data that the task needs.
    pub fn required_data(&self) -> Vec<DataKey> {
        (self.required_data)()
    }

    /// Returns the task's own schedule.
    pub fn schedule(&self) -> Option<Schedule> {
        (self.schedule)()
    }

    /// Decodes the arguments and starts an attempt. Its result is encoded unless `result_ttl` is
    /// zero.
    ///
    /// # Errors
    /// [`RunError::Undecodable`]. Errors of the attempt itself are in its output.
    pub fn run(
        &self,
        payload: &[u8],
        ctx: Context,
        result_ttl: Duration,
    ) -> Result<Running, RunError> {
        (self.run)(payload, ctx, result_ttl)
    }

    /// Returns whether the arguments can be decoded. A panic of the user's code is an error.
    ///
    /// # Errors
    /// [`RunError::Undecodable`].
    pub fn check(&self, payload: &[u8]) -> Result<(), RunError> {
        (self.check)(payload)
    }

    /// Decodes the arguments of the calls of a run and starts an attempt at all of them, as
    /// [`run`](Self::run) does for one.
    pub fn run_all(
        &self,
        payloads: &[Vec<u8>],
        ctx: Context,
        result_ttl: Duration,
    ) -> RunningCalls {
        (self.run_all)(payloads, ctx, result_ttl)
    }
}

fn decode<T: Task>(payload: &[u8]) -> Result<T, RunError> {
    serde_json::from_slice(payload).map_err(RunError::Undecodable)
}

fn start<T: Task>(payload: &[u8], ctx: Context, result_ttl: Duration) -> Result<Running, RunError> {
    let task = decode::<T>(payload)?;
    Ok(Box::pin(async move {
        let output = task.run(ctx).await.map_err(RunError::Failed)?;
        encode::<T>(&output, result_ttl).map(Ran::All)
    }))
}

/// Decodes one call of a run. If the user's code panics, the other calls run nevertheless.
fn decode_call<T: Task>(payload: &[u8]) -> Result<T, RunError> {
    catch_unwind(AssertUnwindSafe(|| decode(payload))).unwrap_or_else(|panic| {
        let text = format!("their decoder panicked: {}", panic_text(&*panic));
        discard(panic);
        Err(RunError::Undecodable(serde_json::Error::custom(text)))
    })
}

fn start_all<T: Task>(payloads: &[Vec<u8>], ctx: Context, result_ttl: Duration) -> RunningCalls {
    let (mut calls, mut undecodable) = (Vec::with_capacity(payloads.len()), Vec::new());
    for (position, payload) in payloads.iter().enumerate() {
        match decode_call::<T>(payload) {
            Ok(call) => calls.push(call),
            Err(problem) => undecodable.push((position, problem)),
        }
    }
    let running = (!calls.is_empty()).then(|| -> Running {
        Box::pin(async move {
            let each = T::run_all(calls, ctx).await.map_err(RunError::Failed)?;
            match each.split() {
                Ok(output) => encode::<T>(&output, result_ttl).map(Ran::All),
                Err(results) => {
                    let encoded = |output| encode_own::<T>(output, result_ttl);
                    let of_call = |result: Result<_, _>| result.map_err(RunError::Failed);
                    let results =
                        results.into_iter().map(|result| of_call(result).and_then(encoded));
                    Ok(Ran::Each(results.collect()))
                }
            }
        })
    });
    RunningCalls { running, undecodable }
}

/// Encodes the result of one call of a run. If the user's code panics, only this call fails.
fn encode_own<T: Task>(output: T::Output, result_ttl: Duration) -> CallOutput {
    let encoded = catch_unwind(AssertUnwindSafe(|| encode::<T>(&output, result_ttl)));
    discard(output);
    encoded.unwrap_or_else(|panic| {
        let text = format!("the encoder of its result panicked: {}", panic_text(&*panic));
        discard(panic);
        Err(RunError::Failed(text.into()))
    })
}

fn encode<T: Task>(output: &T::Output, result_ttl: Duration) -> CallOutput {
    if TypeId::of::<T::Output>() == TypeId::of::<()>() || result_ttl.is_zero() {
        return Ok(None);
    }
    arguments::encode(output).map(Some).map_err(RunError::Unencodable)
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Instant};

    use futures_util::FutureExt;
    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::{
        attempt_facts::AttemptFacts,
        data::Data,
        id::{QueueName, TaskId},
    };

    macro_rules! task {
        ($task:ident, $output:ty, |$this:ident| $result:expr) => {
            #[derive(Serialize, Deserialize)]
            struct $task {
                number: u32,
            }

            impl Task for $task {
                const NAME: &'static str = stringify!($task);
                type Output = $output;

                fn options() -> TaskOptions {
                    TaskOptions::new().queue("mail")
                }

                fn required_data() -> Vec<DataKey> {
                    vec![DataKey::of::<u8>()]
                }

                async fn run(self, _: Context) -> Result<$output, BoxError> {
                    let $this = self;
                    $result
                }
            }
        };
    }

    const HOUR: Duration = Duration::from_secs(3600);

    task!(Double, u32, |this| Ok(this.number * 2));
    task!(Ratio, f64, |this| Ok(1.0 / f64::from(this.number)));
    task!(Nothing, (), |this| if this.number > 0 { Ok(()) } else { Err("zero".into()) });

    fn run(definition: TaskDefinition, payload: &str) -> CallOutput {
        run_keeping(definition, payload, HOUR)
    }

    fn run_keeping(definition: TaskDefinition, payload: &str, result_ttl: Duration) -> CallOutput {
        let id = TaskId::new(QueueName::new("q").unwrap());
        let ctx =
            Context::new(AttemptFacts::first(id, Instant::now() + HOUR), Arc::new(Data::new()));
        let running = definition.run(payload.as_bytes(), ctx, result_ttl)?;
        match running.now_or_never().expect("the handler awaits nothing")? {
            Ran::All(output) => Ok(output),
            Ran::Each(outputs) => panic!("it is not a run: {outputs:?}"),
        }
    }

    #[test]
    fn a_definition_has_the_name_options_and_data_of_its_type() {
        let definition = TaskDefinition::of::<Double>();
        assert_eq!(definition.name(), "Double");
        assert!(definition.type_name().ends_with("tests::Double"));
        assert_eq!(definition.options(), Double::options());
        assert_eq!(definition.required_data(), [DataKey::of::<u8>()]);
    }

    #[test]
    fn an_attempt_at_many_calls_leaves_out_those_whose_arguments_do_not_fit() {
        let id = TaskId::new(QueueName::new("q").unwrap());
        let ctx =
            Context::new(AttemptFacts::first(id, Instant::now() + HOUR), Arc::new(Data::new()));
        let double = TaskDefinition::of::<Double>();
        let payloads = [r#"{"number":1}"#, "[]", r#"{"number":3}"#].map(Vec::from);
        let RunningCalls { running, undecodable } = double.run_all(&payloads, ctx.clone(), HOUR);
        let output = running.unwrap().now_or_never().expect("the handler awaits nothing");
        let Ran::Each(outputs) = output.unwrap() else { panic!("each call has its own result") };
        let outputs: Vec<_> = outputs.into_iter().map(Result::unwrap).collect();
        assert_eq!(outputs, [Some(b"2".to_vec()), Some(b"6".to_vec())]);
        let [(1, problem)] = &undecodable[..] else { panic!("{undecodable:?}") };
        assert!(matches!(problem, RunError::Undecodable(_)));
        assert!(double.run_all(&payloads[1..2], ctx, HOUR).running.is_none());
        assert!(double.check(&payloads[0]).is_ok() && double.check(&payloads[1]).is_err());
    }

    #[test]
    fn an_attempt_decodes_its_arguments_and_encodes_a_result_that_is_kept() {
        let double = TaskDefinition::of::<Double>();
        assert_eq!(run(double, r#"{"number":21}"#).unwrap(), Some(b"42".to_vec()));
        assert_eq!(run_keeping(double, r#"{"number":21}"#, Duration::ZERO).unwrap(), None);
        let ratio = TaskDefinition::of::<Ratio>();
        assert_eq!(run(ratio, r#"{"number":2}"#).unwrap(), Some(b"0.5".to_vec()));
        let problem = run(ratio, r#"{"number":0}"#).expect_err("JSON has no infinity");
        assert!(matches!(problem, RunError::Unencodable(_)));
        let nothing = TaskDefinition::of::<Nothing>();
        assert_eq!(run(nothing, r#"{"number":1}"#).unwrap(), None);
        assert!(matches!(run(nothing, r#"{"number":0}"#), Err(RunError::Failed(_))));
        assert!(matches!(run(double, "[]"), Err(RunError::Undecodable(_))));
    }
    #[derive(Debug, Serialize)]
    struct Bomb(u8);

    impl<'de> Deserialize<'de> for Bomb {
        fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            match u8::deserialize(from)? {
                0 => panic!("a decoder panicked"),
                number => Ok(Self(number)),
            }
        }
    }

    #[derive(Serialize, Deserialize)]
    struct Bombs(Bomb);

    impl Task for Bombs {
        const NAME: &'static str = "bombs";
        type Output = u8;

        async fn run(self, _: Context) -> Result<u8, BoxError> {
            Ok(self.0.0)
        }
    }

    #[test]
    fn a_call_whose_decoder_panics_is_left_out_as_undecodable() {
        let id = TaskId::new(QueueName::new("q").unwrap());
        let ctx =
            Context::new(AttemptFacts::first(id, Instant::now() + HOUR), Arc::new(Data::new()));
        let bombs = TaskDefinition::of::<Bombs>();
        let RunningCalls { running, undecodable } =
            bombs.run_all(&[b"1".into(), b"0".into(), b"2".into()], ctx, HOUR);
        assert!(running.is_some());
        let [(1, problem)] = &undecodable[..] else { panic!("{undecodable:?}") };
        assert!(problem.to_string().contains("a decoder panicked"), "{problem}");
        assert!(matches!(bombs.check(b"0"), Err(RunError::Undecodable(_))));
    }
}
