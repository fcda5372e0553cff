//! The definition of a task, written by `#[task]` or by hand.

use std::{future::Future, time::Duration};

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    call::Call, context::Context, control_words::BoxError, data::DataKey, each::Each,
    key_template::KeyTemplate, options::TaskOptions, prerequisite_key::Key, schedule::Schedule,
};

/// A task: its arguments (the type itself), its name, its options and its handler.
///
/// ```
/// # use optimus_core as optimus;
/// use optimus::{BoxError, Context, Task, TaskOptions};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Greet { name: String }
///
/// impl Task for Greet {
///     const NAME: &'static str = "greet";
///     type Output = String;
///
///     fn options() -> TaskOptions {
///         TaskOptions::new().queue("mail").max_retry(5)
///     }
///
///     async fn run(self, ctx: Context) -> Result<String, BoxError> {
///         Ok(format!("Hello {}, attempt {}", self.name, ctx.attempt()))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a task",
    note = "put `#[optimus::task]` on the function, or write `impl optimus::Task for {Self}`"
)]
pub trait Task: Serialize + DeserializeOwned + Send + 'static {
    /// The name under which the task is stored and found. After a rename, no worker runs the tasks
    /// that are stored under the old name.
    const NAME: &'static str;

    /// The value that a successful attempt returns. It is kept for `result_ttl` unless it is `()`.
    type Output: Serialize + DeserializeOwned + Send + 'static;

    /// The options that are made of the arguments, for a step that takes one from another task.
    #[doc(hidden)]
    const TEMPLATES: &'static [KeyTemplate] = &[];

    /// Returns the definition's options.
    fn options() -> TaskOptions {
        TaskOptions::new()
    }

    /// Returns the biz id of this call. Two calls with the same biz id are one task until that task
    /// has succeeded.
    fn biz_id(&self) -> Option<String> {
        None
    }

    /// Returns the key of the [lane](Call::lane) that the task is in. `None`: it is in no lane.
    fn lane(&self) -> Option<String> {
        None
    }

    /// Returns the key by which the call is gathered, if the definition
    /// [gathers](TaskOptions::gather) its calls: only calls of one key run together. `None`: all
    /// calls of the task may.
    fn by(&self) -> Option<String> {
        None
    }

    /// Returns the tasks that must succeed before a call with this biz id may start, in addition to
    /// those of [`Call::after`]. It is not called for a call without a biz id.
    fn after(&self, biz_id: &str) -> Vec<Key> {
        Self::after_biz_id(biz_id)
    }

    /// As [`after`](Self::after), for a step that takes an argument from another task.
    #[doc(hidden)]
    fn after_biz_id(_biz_id: &str) -> Vec<Key> {
        Vec::new()
    }

    /// Returns the `#[data]` that [`run`](Self::run) takes from its context; checked when a worker
    /// starts.
    fn required_data() -> Vec<DataKey> {
        Vec::new()
    }

    /// Returns the schedule by which workers that know the task submit it; `#[optimus::cron]`
    /// writes it. It needs a [release](Schedule::release). It is stored when a worker of the queue
    /// starts.
    fn schedule() -> Option<Schedule> {
        None
    }

    /// Runs one attempt.
    fn run(self, ctx: Context) -> impl Future<Output = Result<Self::Output, BoxError>> + Send;

    /// Runs one attempt at all calls of a run, if the definition [gathers](TaskOptions::gather) its
    /// calls. Each call ends with its result in [`Each`]; with an error, all calls fail. By default
    /// the calls run one after the other.
    ///
    /// [`Context::calls`] has their ids, in the same order. The rest of the context is that of the
    /// first call.
    fn run_all(
        calls: Vec<Self>,
        ctx: Context,
    ) -> impl Future<Output = Result<Each<Self::Output>, BoxError>> + Send {
        async move {
            let mut results = Vec::with_capacity(calls.len());
            for call in calls {
                results.push(call.run(ctx.clone()).await);
            }
            Ok(results.into_iter().collect())
        }
    }

    /// Makes a call, not yet submitted: set options on it, then use a verb.
    fn call(self) -> Call<Self> {
        Call::new(self)
    }
}

/// A type that a handler may return: a `Result` with any error, or `()`.
#[diagnostic::on_unimplemented(
    message = "a task can't return `{Self}`",
    note = "return `()`, or a `Result<T, E>` whose error converts into \
            `Box<dyn std::error::Error + Send + Sync>`"
)]
pub trait TaskResult {
    /// The value of a success.
    type Output;
    /// Converts the value to the form that the worker expects.
    ///
    /// # Errors
    /// The error of the handler.
    fn into_result(self) -> Result<Self::Output, BoxError>;
}

impl TaskResult for () {
    type Output = ();
    fn into_result(self) -> Result<(), BoxError> {
        Ok(())
    }
}

/// Only for tasks that gather their calls.
impl<T> TaskResult for Each<T> {
    type Output = Self;
    fn into_result(self) -> Result<Self, BoxError> {
        Ok(self)
    }
}

impl<T, E: Into<BoxError>> TaskResult for Result<T, E> {
    type Output = T;
    fn into_result(self) -> Result<T, BoxError> {
        self.map_err(Into::into)
    }
}

/// A function that makes calls. `#[task]` generates it with the handler's name. It has up to 16
/// arguments.
#[diagnostic::on_unimplemented(
    message = "this is not a task",
    label = "not a function with `#[optimus::task]`",
    note = "name the function without arguments, as in `.task(send)`",
    note = "put `#[optimus::task]` on the function; a type that implements `optimus::Task` is \
            added with `.task_type::<MyTask>()`, and so is a task of more than 16 arguments"
)]
pub trait TaskFn<Args> {
    /// The task that the function makes calls of.
    type Task: Task;
}

macro_rules! task_fn {
    ($($arg:ident)*) => {
        #[diagnostic::do_not_recommend]
        impl<F, T: Task, $($arg),*> TaskFn<($($arg,)*)> for F
        where
            F: Fn($($arg),*) -> Call<T>,
        {
            type Task = T;
        }
    };
}

task_fn!();
task_fn!(A);
task_fn!(A B);
task_fn!(A B C);
task_fn!(A B C D);
task_fn!(A B C D E);
task_fn!(A B C D E F1);
task_fn!(A B C D E F1 G);
task_fn!(A B C D E F1 G H);
task_fn!(A B C D E F1 G H I);
task_fn!(A B C D E F1 G H I J);
task_fn!(A B C D E F1 G H I J K);
task_fn!(A B C D E F1 G H I J K L);
task_fn!(A B C D E F1 G H I J K L M);
task_fn!(A B C D E F1 G H I J K L M N);
task_fn!(A B C D E F1 G H I J K L M N O);
task_fn!(A B C D E F1 G H I J K L M N O P);

/// How long after its timeout a handler that can't be dropped may take to notice it.
pub const TIMEOUT_GRACE: Duration = Duration::from_millis(250);
