//! Short names for ids in the report of a failure: `t7` instead of 36 characters.

use optimus_core::TaskId;

/// The ids of the tasks, in the order of their submits.
pub(crate) struct Names(Vec<(String, String)>);

impl Names {
    pub(crate) fn of<'a>(tasks: impl Iterator<Item = &'a TaskId>) -> Self {
        let names = tasks.enumerate().flat_map(|(count, id)| {
            let name = format!("t{count}");
            [(id.to_string(), name.clone()), (id.stored(), name)]
        });
        Self(names.collect())
    }

    /// Returns the text with every id replaced by its name.
    pub(crate) fn put_into(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (id, name)| text.replace(id, name))
    }
}
