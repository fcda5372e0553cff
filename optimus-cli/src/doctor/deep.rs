//! Checks that the keys of queues are sound.

use optimus_core::{QueueName, TaskId};
use optimus_fsck::{Coverage, Examined, Violation, examine};

use super::Finding;
use crate::{failure::Failure, output::text, session::Session};

/// The name of the check, for programs.
const CHECK: &str = "deep";
/// The length of an id of a task in Redis.
const STORED_ID: usize = 22;
/// How many violations of a queue are printed.
const SHOWN_MAX: usize = 20;

/// Checks the keys of these queues, or of all.
pub(crate) async fn check(
    session: &Session<'_>,
    queues: &[QueueName],
) -> Result<Vec<Finding>, Failure> {
    let broker = session.client.broker();
    let examined = examine(broker, queues).await?;
    let mut findings: Vec<Finding> = examined.iter().filter_map(unchecked).collect();
    for seen in &examined {
        let key = |name: &str| broker.key_name(&seen.slot, name);
        let shown = seen.violations.iter().take(SHOWN_MAX);
        findings.extend(shown.map(|wrong| violation(seen, wrong, key(&wrong.key))));
        let more = seen.violations.len().saturating_sub(SHOWN_MAX);
        if more > 0 {
            let more = text::count(more as u64, "more violation");
            findings.push(Finding::warning(CHECK, format!("{}: {more}", name(seen))));
        }
    }
    let missing = unlisted(session, &examined).await?;
    if missing.is_empty() && examined.iter().all(|seen| seen.violations.is_empty()) {
        findings.push(sound(&examined));
    }
    findings.extend(missing);
    Ok(findings)
}

/// Finds queues with tasks that the list of queues does not have. A submit adds its queue to the
/// list, and this reads the list after the keys.
async fn unlisted(session: &Session<'_>, examined: &[Examined]) -> Result<Vec<Finding>, Failure> {
    let listed = session.inspector().queues().await?;
    let is_listed = |slot: &str| listed.iter().any(|queue| queue.as_str() == slot);
    let has_tasks = |seen: &&Examined| seen.tasks > 0 || seen.coverage == Coverage::Names;
    let missing = examined.iter().filter(|seen| !is_shared(seen) && !is_listed(&seen.slot));
    Ok(missing.filter(has_tasks).map(|seen| not_listed(session, seen)).collect())
}

fn not_listed(session: &Session<'_>, seen: &Examined) -> Finding {
    let (name, slot) = (name(seen), &seen.slot);
    let key = session.client.broker().queues_key();
    let text = format!(
        "{name} has keys and is not in the list of queues, key {key}\nLists, operations, metrics \
         and `doctor` leave it out until a task is submitted to it. Add it with SADD {key} {slot}."
    );
    Finding { queue: Some(slot.clone()), key: Some(key), ..Finding::warning(CHECK, text) }
}

fn sound(examined: &[Examined]) -> Finding {
    let sum = |of: fn(&Examined) -> u64| examined.iter().map(of).sum::<u64>();
    let queues = examined.iter().filter(|seen| !is_shared(seen)).count() as u64;
    let parts = [
        text::count(sum(|seen| seen.keys), "key"),
        text::count(queues, "queue"),
        text::count(sum(|seen| seen.tasks), "task"),
    ];
    let [keys, queues, tasks] = parts;
    Finding::ok(CHECK, format!("{keys} of {queues} are sound; {tasks} read"))
}

/// Says what was not checked of a queue.
fn unchecked(seen: &Examined) -> Option<Finding> {
    let (name, size) = (name(seen), text::size(seen.bytes));
    let keys = text::count(seen.keys, "key");
    let text = match seen.coverage {
        Coverage::Whole if seen.keys == 0 => format!("{name} has no keys: is the name right?"),
        // The violation says it.
        Coverage::Whole | Coverage::Types => return None,
        Coverage::Steps => {
            let tasks = text::count(seen.tasks, "task");
            format!(
                "{name} ({tasks}, {size}) was read in steps: each task was checked, but not \
                 whether counts and indexes agree, because they change between the steps"
            )
        }
        Coverage::Names => format!(
            "{name} ({size}) is too large to be read: only the names, types and expiries of \
             {keys} were checked, and no task"
        ),
    };
    Some(Finding { queue: Some(seen.slot.clone()), ..Finding::note(CHECK, text) })
}

fn violation(seen: &Examined, wrong: &Violation, key: String) -> Finding {
    let what = with_id(&seen.slot, &wrong.text);
    let text = format!("{}, key {key}: {what}\n{}", name(seen), wrong.remedy);
    Finding { queue: Some(seen.slot.clone()), key: Some(key), ..Finding::warning(CHECK, text) }
}

fn name(seen: &Examined) -> String {
    if is_shared(seen) { seen.slot.clone() } else { format!("queue {}", seen.slot) }
}

/// Returns whether the keys are of something else than a queue, such as the processes.
fn is_shared(seen: &Examined) -> bool {
    seen.slot.starts_with('@')
}

/// Adds the id as other commands take it behind the first id of a task, which is as Redis has it.
fn with_id(slot: &str, text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || ['-', '_'].contains(&c);
    let mut words = text.split(|c| !is_word(c));
    let stored = words.find(|word| word.len() == STORED_ID);
    let id = stored.and_then(|stored| {
        let queue = QueueName::new(slot).ok()?;
        Some((stored, TaskId::from_stored(queue, stored).ok()?))
    });
    match id {
        Some((stored, id)) => text.replacen(stored, &format!("{stored} ({id})"), 1),
        None => text.to_owned(),
    }
}
