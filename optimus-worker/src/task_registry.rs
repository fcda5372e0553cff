//! The tasks that a worker knows, by name: [`Registry`].

use std::collections::BTreeMap;

use optimus_core::{Backoff, CheckedSchedule, Data, DataKey, Error, QueueName, TaskDefinition};

use crate::{shard_registry::Shardeds, source_registry::SourceList};

/// The definitions by task name, and their own schedules.
#[derive(Debug)]
pub(crate) struct Registry {
    tasks: BTreeMap<&'static str, Known>,
    schedules: Vec<CheckedSchedule>,
}

#[derive(Debug)]
struct Known {
    definition: TaskDefinition,
    /// The back-off function of the task, if it has one. A function can't be stored, so a record
    /// only states that the task has one.
    formula: Backoff,
    /// Whether its calls are gathered.
    gathers: bool,
}

impl Registry {
    /// Adds a definition. Refuses two different tasks with one name. The same task may be added
    /// twice.
    pub(crate) fn new(tasks: impl IntoIterator<Item = TaskDefinition>) -> Result<Self, Error> {
        let mut known: BTreeMap<&'static str, Known> = BTreeMap::new();
        for task in tasks {
            if let Some(other) = known.get(task.name())
                && other.definition.type_name() != task.type_name()
            {
                return Err(Error::invalid(format!(
                    "two tasks are named {:?}: {} and {}; give one of them another name with \
                     #[task(name = \"…\")]",
                    task.name(),
                    other.definition.type_name(),
                    task.type_name()
                )));
            }
            // Called only here, because options are user code, and the claimer must not wait for
            // them.
            let options = task.options();
            let formula = match options.backoff_formula() {
                formula @ Backoff::Custom(_) => formula,
                _ => Backoff::default(),
            };
            let gathers = options.gathers();
            known.insert(task.name(), Known { definition: task, formula, gathers });
        }
        let schedules = schedules_of(known.values().map(|known| &known.definition))?;
        Ok(Self { tasks: known, schedules })
    }

    /// Refuses a worker that has nothing to do.
    pub(crate) fn check_served(
        &self,
        shardeds: &Shardeds,
        sources: &SourceList,
    ) -> Result<(), Error> {
        if self.tasks.is_empty() && shardeds.is_empty() && sources.is_empty() {
            return Err(Error::invalid(
                "this worker knows no task: a library of tasks that nothing refers to is not \
                 linked in; add `use my_tasks as _;` to the worker's main.rs, or name tasks with \
                 .task(my_task)",
            ));
        }
        Ok(())
    }

    /// Refuses invalid options and missing data, before the first task is claimed.
    pub(crate) fn check(&self, data: &Data, provided: &[DataKey]) -> Result<(), Error> {
        let is_given = |key: &DataKey| data.holds(*key) || provided.contains(key);
        for task in self.iter() {
            optimus_core::validate_name(task.name())
                .map_err(|problem| Error::invalid(format!("the task's name: {problem}")))?;
            task.options().validate(task.name())?;
            if let Some(missing) = task.required_data().into_iter().find(|key| !is_given(key)) {
                return Err(Error::invalid(format!(
                    "task {:?} needs data of type {}{}; add the data to the worker with .data(…), \
                     let a layer name it in Layer::provides, or serve only other tasks with \
                     .only_named_tasks() and .task(…)",
                    task.name(),
                    missing.name(),
                    data.similar(missing).map_or_else(String::new, |other| {
                        format!(", and the worker has only {other}, which is another type")
                    })
                )));
            }
        }
        Ok(())
    }

    /// Returns the task with that name, and its back-off for records without one.
    pub(crate) fn get(&self, name: &str) -> Option<(TaskDefinition, Backoff)> {
        self.tasks.get(name).map(|known| (known.definition, known.formula))
    }

    /// Returns whether the calls of the task with that name are gathered.
    pub(crate) fn gathers(&self, name: &str) -> bool {
        self.tasks.get(name).is_some_and(|known| known.gathers)
    }

    /// Returns all tasks, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &TaskDefinition> {
        self.tasks.values().map(|known| &known.definition)
    }

    /// Returns the schedules of the tasks.
    pub(crate) fn schedules(&self) -> &[CheckedSchedule] {
        &self.schedules
    }

    /// Returns the queues that the definitions name.
    pub(crate) fn queues(&self) -> Result<Vec<QueueName>, Error> {
        let mut queues = Vec::new();
        for task in self.iter() {
            queues.push(QueueName::new(task.options().queue_name())?);
        }
        queues.sort();
        queues.dedup();
        Ok(queues)
    }
}

/// Checks the schedules of these tasks. Two of one name would take each other's place.
fn schedules_of<'a>(
    tasks: impl Iterator<Item = &'a TaskDefinition>,
) -> Result<Vec<CheckedSchedule>, Error> {
    let mut schedules: Vec<CheckedSchedule> = Vec::new();
    for task in tasks {
        let Some(schedule) = task.schedule() else { continue };
        let schedule = schedule.check()?;
        let name = &schedule.name;
        if schedule.release.as_deref().is_none_or(str::is_empty) {
            return Err(Error::invalid(format!(
                "the schedule {name:?} of task {:?} has no release: add \
                 .release(env!(\"CARGO_PKG_VERSION\"))",
                task.name()
            )));
        }
        if schedules.iter().any(|other| other.name == *name) {
            return Err(Error::invalid(format!(
                "two tasks have a schedule {name:?}; give one of them another name"
            )));
        }
        schedules.push(schedule);
    }
    Ok(schedules)
}
