//! Words of a submit for the prerequisites of its tasks: [`prerequisite_words`].

use std::collections::HashMap;

use crate::{
    after::{After, Prerequisite},
    id::TaskId,
    record_json::millis,
    submission::Submission,
};

/// Returns the words that `lua/include/after_options.lua` reads.
pub(super) fn prerequisite_words(tasks: &[Submission]) -> Vec<String> {
    let (new, mut words) = (new_positions(tasks), Vec::new());
    for (position, task) in (1..).zip(tasks) {
        push_words(&mut words, position, task, &new);
    }
    words
}

/// Returns the positions, from 1, of the tasks of a call, if some wait for others and all are new.
/// Then Redis need not look whether a prerequisite among them has ended.
fn new_positions(tasks: &[Submission]) -> HashMap<&TaskId, usize> {
    let may_help = tasks.iter().any(|task| task.after.is_some());
    if !may_help || tasks.iter().any(|task| task.may_exist) {
        return HashMap::new();
    }
    tasks.iter().map(|task| &task.id).zip(1..).collect()
}

/// Pushes the words of the prerequisites of a task, if it has some. `new` has the positions of
/// tasks of this call that are new.
fn push_words(
    words: &mut Vec<String>,
    position: usize,
    task: &Submission,
    new: &HashMap<&TaskId, usize>,
) {
    let Some(after) = &task.after else { return };
    for (mark, prerequisite) in after.marked() {
        if let Prerequisite::Task(id) = prerequisite
            && let Some(nth) = new.get(id)
        {
            words.push(format!("&{position};{mark};={nth}"));
            continue;
        }
        let reference = prerequisite.reference();
        let (home, name) = reference.split_once('/').unwrap_or_default();
        let home = if home == task.id.queue().as_str() { "" } else { home };
        words.push(format!("&{position};{mark};{home};{name}"));
    }
    if task.lane.is_some() || task.gather.is_some() {
        words.push(format!("&{position};@;;"));
    }
    if let Some(wait) = after.give_up_after {
        words.push(format!("&{position};!;;{}", millis(wait)));
    }
    if task.follows_step && !task.may_exist && !has_former(after, new) {
        words.push(format!("&{position};~;;"));
    }
}

/// Returns whether the call also has the step before this one.
fn has_former(after: &After, new: &HashMap<&TaskId, usize>) -> bool {
    matches!(after.prerequisites.first(), Some(Prerequisite::Task(id)) if new.contains_key(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{call_submit::Submit as _, named_call::NamedCall};

    /// Makes a step that follows another one.
    fn step_after(former: &TaskId) -> Submission {
        let call = NamedCall::new("default", "job", "{}").unwrap();
        let task = call.into_submission().unwrap();
        task.waiting_for(After::new([Prerequisite::Task(former.clone())])).following_step()
    }

    #[test]
    fn only_a_step_that_is_stored_without_the_one_before_it_is_marked() {
        let first = TaskId::new("default".parse().unwrap());
        let second = step_after(&first);
        let third = step_after(second.id());
        let words = prerequisite_words(&[second, third]);
        let name = first.stored();
        assert_eq!(words, [format!("&1;0;;{name}"), "&1;~;;".to_owned(), "&2;0;=1".to_owned()]);
    }
}
