//! The arguments of a step, one of which is the result of another task: [`Part`].

use std::{any::type_name, fmt};

use serde::Serialize;

use crate::{Error, arguments, key_template::KeyTexts, parameter::Parameter, task::Task};

/// How the names of the types begin that `#[task]` makes; the name of the function follows.
pub(crate) const TASK_TYPE_PREFIX: &str = "__OptimusTask_";

/// All arguments but one, which is the result of another task.
#[derive(Clone)]
pub(crate) struct Part {
    /// The JSON object of the arguments up to the value of the one that is missing.
    json: Result<Vec<u8>, String>,
    /// The names of the arguments, in their order; `_` for the one that is missing.
    names: Vec<&'static str>,
    /// The name of the one that is missing.
    missing: &'static str,
    /// What the given ones mean for the options that are made of them.
    texts: KeyTexts,
}

impl Part {
    /// No argument is given yet.
    pub(crate) fn none_given() -> Self {
        let (names, texts) = (Vec::new(), KeyTexts::default());
        Self { json: Ok(b"{".to_vec()), names, missing: "", texts }
    }

    /// Arguments of which no step can be made.
    pub(crate) fn refused(problem: String) -> Self {
        Self { json: Err(problem), ..Self::none_given() }
    }

    /// Adds an argument that is given.
    pub(crate) fn give<T, const N: usize>(&mut self, value: &T::Type)
    where
        T: Parameter<N>,
        T::Type: Serialize,
    {
        let name = <T as Parameter<N>>::NAME;
        self.put_name(name);
        self.names.push(name);
        T::fill(value, &mut self.texts);
        match (&mut self.json, arguments::encode(value)) {
            (Ok(json), Ok(value)) => json.extend(value),
            (json, Err(problem)) => *json = Err(format!("the argument {name}: {problem}")),
            (Err(_), Ok(_)) => {}
        }
    }

    /// Ends where the result of another task is the argument `N`.
    pub(crate) fn take<T: Parameter<N>, const N: usize>(mut self) -> Self {
        self.missing = <T as Parameter<N>>::NAME;
        self.put_name(self.missing);
        self.names.insert(N.min(self.names.len()), "_");
        self
    }

    fn put_name(&mut self, name: &str) {
        if let Ok(json) = &mut self.json {
            if json.len() > 1 {
                json.push(b',');
            }
            json.extend(serde_json::to_vec(name).expect("a text is JSON"));
            json.push(b':');
        }
    }

    /// Returns the JSON object up to the value of the argument that is missing.
    pub(crate) fn json(&self) -> Result<Vec<u8>, String> {
        self.json.clone()
    }

    /// Fills an option that the definition of `T` makes of the arguments; `None` if there is none.
    pub(crate) fn fill<T: Task>(&self, option: &str) -> Result<Option<String>, Error> {
        let mut templates = T::TEMPLATES.iter();
        let Some(template) = templates.find(|template| template.option == option) else {
            return Ok(None);
        };
        if let Some(filled) = self.texts.fill(template) {
            return Ok(Some(filled));
        }
        let Self { missing, names, .. } = self;
        Err(Error::invalid(format!(
            "task {:?}: its {option} is made of its argument {missing}, which is the result of \
             another task and not known yet; set .{option}(…) on the step, as in \
             step!({}({}).{option}(…))",
            T::NAME,
            function_of::<T>(),
            names.join(", "),
        )))
    }
}

/// Prints what is given, and `_` for the result of the other task.
impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.json {
            Ok(json) => write!(f, "{}_}}", String::from_utf8_lossy(json)),
            Err(problem) => f.write_str(problem),
        }
    }
}

/// The name of the function of a task; the name of the task if `#[task]` has not made it.
fn function_of<T: Task>() -> &'static str {
    type_name::<T>().rsplit_once(TASK_TYPE_PREFIX).map_or(T::NAME, |(_, name)| name)
}
