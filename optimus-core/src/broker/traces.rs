//! Words of a submit for the parts of flows that may have run before: [`trace_words`].

use crate::{
    id::TaskId,
    submission::{Submission, Trace},
};

/// Whose trace a word looks for.
#[derive(PartialEq, Eq)]
enum Of<'a> {
    Step,
    Member { born: u64, group: &'a TaskId, first: u32 },
}

/// Returns the words that `lua/include/submit_again.lua` reads: for each run of steps
/// `=<first>:<last>`, and for each run of members with positions one after the other
/// `=<first>:<last>;<position in the group>;<when it was made>;<queue>;<group>`. The queue is empty
/// if it is that of the tasks.
pub(super) fn trace_words(tasks: &[Submission]) -> Vec<String> {
    let mut runs: Vec<(usize, usize, Of<'_>)> = Vec::new();
    for (position, task) in (1..).zip(tasks) {
        let Some(trace) = task.trace else { continue };
        match runs.last_mut() {
            Some((first, last, of))
                if *last + 1 == position && continues(of, position - *first, task, trace) =>
            {
                *last = position;
            }
            _ => runs.extend(of_task(task, trace).map(|of| (position, position, of))),
        }
    }
    let word = |(first, last, of): (usize, usize, Of<'_>)| match of {
        Of::Step => format!("={first}:{last}"),
        Of::Member { born, group, first: index } => {
            let is_here = tasks.iter().any(|task| task.id.queue() == group.queue());
            let home = if is_here { "" } else { group.queue().as_str() };
            format!("={first}:{last};{index};{born};{home};{}", group.stored())
        }
    };
    runs.into_iter().map(word).collect()
}

fn of_task(task: &Submission, trace: Trace) -> Option<Of<'_>> {
    Some(match (trace, &task.member) {
        (Trace::Outcome, _) => Of::Step,
        (Trace::Member { born }, Some(member)) => {
            Of::Member { born, group: &member.group, first: member.index }
        }
        (Trace::Member { .. }, None) => return None,
    })
}

/// Returns whether a task is the next of a run that has this many tasks.
fn continues(of: &Of<'_>, count: usize, task: &Submission, trace: Trace) -> bool {
    let next = of_task(task, trace);
    match (of, next) {
        (Of::Step, Some(Of::Step)) => true,
        (
            Of::Member { born, group, first },
            Some(Of::Member { born: next_born, group: next_group, first: index }),
        ) => {
            *born == next_born && *group == next_group && *first as usize + count == index as usize
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::{
        BoxError, after::PrerequisiteFailure::Wait, call_submit::Submit as _, context::Context,
        group::Member, id::QueueName, task::Task,
    };

    #[derive(Serialize, Deserialize)]
    struct Page {}

    impl Task for Page {
        const NAME: &'static str = "page";
        type Output = ();

        async fn run(self, _: Context) -> Result<(), BoxError> {
            Ok(())
        }
    }

    fn plain() -> Submission {
        Page {}.call().queue("here").into_submission().unwrap()
    }

    fn step() -> Submission {
        plain().again(Trace::Outcome)
    }

    fn member(group: &TaskId, index: u32) -> Submission {
        let member = Member { group: group.clone(), index, on_failure: Wait };
        plain().member_of(member).again(Trace::Member { born: 7 })
    }

    #[test]
    fn runs_of_steps_and_of_members_have_one_word_each() {
        let [here, there] =
            ["here", "there"].map(|queue| TaskId::new(QueueName::new(queue).unwrap()));
        let tasks = [
            plain(),
            step(),
            step(),
            member(&here, 4),
            member(&here, 5),
            member(&here, 7),
            member(&there, 8),
            plain(),
            step(),
        ];
        let (here, there) = (here.stored(), there.stored());
        let expected = [
            "=2:3".to_owned(),
            format!("=4:5;4;7;;{here}"),
            format!("=6:6;7;7;;{here}"),
            format!("=7:7;8;7;there;{there}"),
            "=9:9".to_owned(),
        ];
        assert_eq!(trace_words(&tasks), expected);
        assert!(trace_words(&[plain()]).is_empty());
    }
}
