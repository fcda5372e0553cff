//! Prints flows and groups for debugging. It reads no member of a group: their iterator is code of
//! the program, and is read once, while the group is submitted.

use std::fmt;

use crate::{
    flow::{Flow, Stage},
    group_calls::{Group, GroupCalls},
};

impl<Out, In> fmt::Debug for Flow<'_, Out, In> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Flow ")?;
        f.debug_list().entries(&self.stages).finish()
    }
}

impl<T, In> fmt::Debug for Group<'_, T, In> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.calls.fmt(f)
    }
}

/// Prints the name of the task, or what is set on the group.
impl fmt::Debug for Stage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task(task) => match task.name() {
                Ok(name) => f.write_str(name),
                Err(problem) => write!(f, "{problem}"),
            },
            Self::Group(calls) => calls.fmt(f),
        }
    }
}

impl fmt::Debug for GroupCalls<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, on_failure, members_policy, .. } = self;
        let mut shown = f.debug_struct("Group");
        if let Some(id) = id {
            shown.field("id", &format_args!("{id}"));
        }
        if let Some(policy) = on_failure {
            shown.field("on_member_failure", policy);
        }
        if let Some(policy) = members_policy {
            shown.field("on_prerequisite_failure", policy);
        }
        shown.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use crate::{
        BoxError, Context, group,
        id::{QueueName, TaskId},
        task::Task,
    };

    #[derive(Serialize, Deserialize)]
    struct Step {}

    impl Task for Step {
        const NAME: &'static str = "step";
        type Output = ();
        async fn run(self, _: Context) -> Result<(), BoxError> {
            Ok(())
        }
    }

    #[test]
    fn a_flow_prints_its_steps_and_reads_no_member() {
        let id = TaskId::new(QueueName::new("q").unwrap());
        let members = std::iter::from_fn(|| -> Option<crate::Call<Step>> { panic!("a member") });
        let members = group(members).id(id.clone());
        assert_eq!(format!("{members:?}"), format!("Group {{ id: {id}, .. }}"));
        let flow = Step {}.call().then(Step {}.call()).then(members);
        assert_eq!(format!("{flow:?}"), format!("Flow [step, step, Group {{ id: {id}, .. }}]"));
    }
}
