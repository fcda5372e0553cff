//! Commands that a message advises, as they can be pasted into a shell: [`advice`].

use std::borrow::Cow;

use optimus_core::{Explanation, Obstacle, Prerequisite, Reason, TaskId, TaskState};

/// Returns a command in backticks: `verb` with its options, and then names. A name may begin with
/// `-`, or have blanks and quotes.
pub(crate) fn advice<T: ToString>(verb: &str, names: impl IntoIterator<Item = T>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| name.to_string()).collect();
    let mut words = vec![Cow::from("optimus"), Cow::from(verb)];
    if names.iter().any(|name| name.starts_with('-')) {
        words.push("--".into());
    }
    words.extend(names.iter().map(|name| quoted(name)));
    format!("`{}`", words.join(" "))
}

/// Says how what must succeed runs again.
pub(crate) fn retry(prerequisite: &Prerequisite) -> String {
    match prerequisite {
        Prerequisite::Task(id) => format!("{} runs it again", advice("task retry", [id])),
        Prerequisite::Key { task, biz_id, .. } => {
            let search = advice(&format!("search --task={}", quoted(task)), [biz_id]);
            format!("{search} has its id, and `optimus task retry` runs it again")
        }
    }
}

/// Returns what lets a task that was explained go on, one sentence for each task to requeue.
pub(crate) fn ways_on(id: &TaskId, found: &Explanation) -> Vec<String> {
    let has_ended = |state| matches!(state, TaskState::Dead | TaskState::Cancelled);
    let again = |id: &TaskId| format!("{} runs it again", advice("task retry", [id]));
    let mut ways = Vec::new();
    for obstacle in &found.obstacles {
        match obstacle {
            Obstacle::Ended { state: TaskState::Dead, error: Some(error), .. }
                if error.reason == Reason::Undecodable =>
            {
                ways.push(format!("{} prints what is stored", advice("task show", [id])));
            }
            Obstacle::Ended { state, error, is_final: false }
                if has_ended(*state)
                    && error.as_ref().is_none_or(|error| error.reason != Reason::Unmet) =>
            {
                ways.push(again(id));
            }
            Obstacle::Prerequisite(found) | Obstacle::Origin { prerequisite: found, .. }
                if has_ended(found.state) && found.group.is_none() =>
            {
                ways.push(retry(&found.prerequisite));
            }
            Obstacle::DeadHolder { holder } => ways.push(again(holder)),
            Obstacle::RequeueFirst => ways.push(format!("{}, too", again(id))),
            Obstacle::LostMember(lost) => ways.push(again(&lost.id)),
            _ => {}
        }
    }
    ways
}

/// Returns a name as a shell reads it.
pub(crate) fn quoted(name: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+,".contains(c);
    if !name.is_empty() && name.chars().all(is_plain) {
        return name.into();
    }
    format!("'{}'", name.replace('\'', r"'\''")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_of_a_shell_and_no_options() {
        assert_eq!(advice("queue resume", ["mail"]), "`optimus queue resume mail`");
        assert_eq!(advice("queue resume", ["-inf"]), "`optimus queue resume -- -inf`");
        let gate = advice("limit resume", ["mail", "lane:it's 5"]);
        assert_eq!(gate, r"`optimus limit resume mail 'lane:it'\''s 5'`");
        assert_eq!(advice("dead list", [""]), "`optimus dead list ''`");
    }
}
