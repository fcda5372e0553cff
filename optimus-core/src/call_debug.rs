//! Prints a call for debugging: what it sets, and not what its definition says.

use std::fmt;

use crate::{
    after_options::CallAfter,
    call::Call,
    options::{CallOptions, Due},
    parameter::Arguments,
    task::Task,
};

/// Adds those of the named options that are set.
macro_rules! fields_set {
    ($shown:ident: $($option:ident)*) => {
        $(if let Some(value) = $option {
            $shown.field(stringify!($option), value);
        })*
    };
}

impl<T: Task + fmt::Debug, In> fmt::Debug for Call<T, In> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { arguments, headers, prerequisites, .. } = self;
        let mut shown = f.debug_struct("Call");
        shown.field("task", &T::NAME);
        match arguments {
            Arguments::All(task) => shown.field("arguments", task),
            Arguments::Part(part) => shown.field("arguments", part),
        };
        show_options(&mut shown, self.options());
        if !headers.is_empty() {
            shown.field("headers", headers);
        }
        if !prerequisites.is_empty() {
            let named = prerequisites.iter().map(|named| match named {
                Ok(prerequisite) => prerequisite.to_string(),
                Err(problem) => problem.to_string(),
            });
            shown.field("after", &named.collect::<Vec<_>>());
        }
        shown.finish()
    }
}

fn show_options(shown: &mut fmt::DebugStruct<'_, '_>, options: &CallOptions) {
    let CallOptions {
        id,
        queue,
        priority,
        timeout,
        max_retry,
        backoff,
        biz_id,
        biz_window,
        result_ttl,
        expires_in,
        on_lost,
        max_losses,
        lane,
        lane_width,
        on_lane_failure,
        after: CallAfter { on_failure, give_up_after, outcome_ttl },
        limit,
        lane_rate,
        cost,
        by,
        due,
    } = options;
    let on_prerequisite_failure = on_failure;
    fields_set! { shown:
        id queue priority timeout max_retry backoff biz_id biz_window result_ttl expires_in on_lost
        max_losses lane lane_width on_lane_failure on_prerequisite_failure give_up_after outcome_ttl
        limit lane_rate cost by
    }
    if *due != Due::Now {
        shown.field("due", due);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::{BoxError, Context, prerequisite_key::Key};

    #[derive(Debug, Serialize, Deserialize)]
    struct Ship {
        order: u32,
    }

    impl Task for Ship {
        const NAME: &'static str = "ship";
        type Output = ();
        async fn run(self, _: Context) -> Result<(), BoxError> {
            Ok(())
        }
    }

    #[test]
    fn a_call_prints_its_arguments_and_only_what_it_sets() {
        let call = Ship { order: 7 }.call();
        assert_eq!(format!("{call:?}"), r#"Call { task: "ship", arguments: Ship { order: 7 } }"#);
        let call = call.biz_id(7).timeout(Duration::from_secs(5)).after(Key::new("q", "pay", 7));
        let text = format!("{call:?}");
        let expected = r#"timeout: 5s, biz_id: "7", after: ["q/pay with biz id \"7\""] }"#;
        assert!(text.ends_with(expected), "{text}");
    }
}
