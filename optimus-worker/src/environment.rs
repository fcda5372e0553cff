//! The environment variables that set up a worker, and those that have no effect: [`Environment`].

use optimus_core::{
    Error, QueueName,
    environment::{self, CONCURRENCY, LOG_EACH, METRICS, NAMESPACE, QUEUES, WORKER_NAME as NAME},
};

use crate::{builder::WorkerBuilder, config::parse_queues};

/// The variables that set an option of a worker, apart from its URL.
const OPTIONS: [&str; 6] = [NAMESPACE, NAME, QUEUES, CONCURRENCY, LOG_EACH, METRICS];

/// What the environment has set, and what of it has no effect. Empty for a worker that does not
/// read it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    /// The variables that have set an option.
    used: Vec<Variable>,
    /// Names like those of Optimus that it does not read.
    unknown: Vec<String>,
}

#[derive(Debug, Clone)]
struct Variable {
    name: &'static str,
    /// The text of each option before the program may have replaced it.
    option: String,
}

impl Environment {
    /// One sentence for each variable that has no effect on this worker.
    pub(crate) fn without_effect(&self, builder: &WorkerBuilder) -> Vec<String> {
        let replaced = self.used.iter().filter(|used| builder.option(used.name) != used.option);
        let replaced = replaced.map(|Variable { name, .. }| {
            format!("{name} has no effect: the program sets this option itself, after from_env")
        });
        let unknown = self.unknown.iter().map(|name| environment::without_effect(name));
        replaced.chain(unknown).collect()
    }

    /// One sentence for each queue that a variable has named and no task of the program uses.
    /// `served` are the queues of the worker, `used` those of its tasks.
    pub(crate) fn unused_queues(&self, served: &[QueueName], used: &[QueueName]) -> Vec<String> {
        let is_named = self.used.iter().any(|used| used.name == QUEUES);
        let unused = served.iter().filter(|queue| is_named && !used.contains(queue));
        let text = |queue: &QueueName| {
            let others = used.iter().filter(|used| !served.contains(used));
            let meant = environment::nearest_word(queue.as_str(), others.map(QueueName::as_str));
            let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
            format!(
                "{QUEUES}: no task of this program is defined in queue {queue}, so the worker runs \
                 only calls that name the queue{meant}"
            )
        };
        unused.map(text).collect()
    }
}

impl WorkerBuilder {
    /// `var` returns the value of a variable; `names` are the names of all.
    pub(crate) fn from_env(
        var: impl Fn(&str) -> Option<String>,
        names: impl IntoIterator<Item = String>,
    ) -> Result<Self, Error> {
        let set = |name: &str| var(name).filter(|value| !value.trim().is_empty());
        let unknown = environment::unknown(names);
        let url = environment::url(set, &unknown)?;
        let mut builder = Self::new(&url);
        if let Some(namespace) = set(NAMESPACE) {
            builder = builder.namespace(namespace.trim());
        }
        if let Some(name) = set(NAME) {
            builder = builder.name(name.trim());
        }
        if let Some(queues) = set(QUEUES) {
            (builder.config.order, builder.config.queues) = parse_queues(&queues)?;
        }
        if let Some(text) = set(CONCURRENCY) {
            builder.config.concurrency = text.trim().parse().map_err(|_| {
                Error::invalid(format!("{CONCURRENCY}: {text:?} is not a whole number"))
            })?;
        }
        if let Some(text) = set(LOG_EACH) {
            match text.trim() {
                "1" | "true" => builder = builder.log_each(),
                "0" | "false" => {}
                _ => {
                    let problem = format!("{LOG_EACH}: {text:?} is not 1, 0, true or false");
                    return Err(Error::invalid(problem));
                }
            }
        }
        if let Some(text) = set(METRICS) {
            builder = metrics(builder, &text)?;
        }
        let used = OPTIONS.iter().filter(|name| set(name).is_some());
        let used = used.map(|name| Variable { name, option: builder.option(name) }).collect();
        builder.environment = Environment { used, unknown };
        Ok(builder)
    }

    /// The option that this variable sets, as text.
    fn option(&self, variable: &str) -> String {
        let config = &self.config;
        match variable {
            NAMESPACE => config.namespace.clone(),
            NAME => config.name.clone().unwrap_or_default(),
            QUEUES => format!("{:?} {:?}", config.order, config.queues),
            CONCURRENCY => config.concurrency.to_string(),
            METRICS => format!("{:?}", config.metrics),
            _ => config.success_level.to_string(),
        }
    }
}

#[cfg(feature = "metrics")]
fn metrics(mut builder: WorkerBuilder, text: &str) -> Result<WorkerBuilder, Error> {
    let address = optimus_metrics::parse_address(text);
    let invalid = |problem| Error::invalid(format!("{METRICS}: {problem}"));
    builder.config.metrics = Some(address.map_err(invalid)?);
    Ok(builder)
}

/// Refuses the variable: who has set it relies on probes.
#[cfg(not(feature = "metrics"))]
fn metrics(_: WorkerBuilder, _: &str) -> Result<WorkerBuilder, Error> {
    Err(Error::invalid(format!(
        "{METRICS}: this program is built without metrics; turn on the feature `metrics` of \
         optimus-tasks, or remove the variable"
    )))
}

#[cfg(test)]
mod tests {
    use optimus_core::{NAMESPACE_DEFAULT, log::Level};

    use super::*;

    fn builder(vars: &[(&str, &str)]) -> Result<WorkerBuilder, Error> {
        let var = |name: &str| {
            vars.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
        };
        WorkerBuilder::from_env(var, vars.iter().map(|(name, _)| (*name).to_owned()))
    }

    #[test]
    fn without_a_url_in_the_environment_the_error_names_what_to_set() {
        let problem = builder(&[]).err().unwrap();
        assert!(problem.is_invalid() && problem.to_string().contains("OPTIMUS_URL"), "{problem}");
    }

    #[test]
    fn optimus_url_takes_precedence_over_redis_url() {
        let both = [("REDIS_URL", "redis://b"), ("OPTIMUS_URL", "redis://a")];
        assert_eq!(builder(&both).unwrap().config.url, "redis://a");
        assert_eq!(builder(&both[..1]).unwrap().config.url, "redis://b");
    }

    #[test]
    fn the_environment_names_the_worker_and_its_namespace() {
        let vars = [("OPTIMUS_URL", "redis://a"), (NAMESPACE, " shop "), (NAME, "mailer-1")];
        let config = builder(&vars).unwrap().config;
        assert_eq!((&*config.namespace, config.name.as_deref()), ("shop", Some("mailer-1")));
        let config = builder(&vars[..1]).unwrap().config;
        assert_eq!((&*config.namespace, config.name), (NAMESPACE_DEFAULT, None));
    }

    #[test]
    fn the_environment_sets_whether_each_success_is_logged_and_a_wrong_word_is_refused() {
        let level = |word| {
            let vars = [("OPTIMUS_URL", "redis://a"), (LOG_EACH, word)];
            builder(&vars).map(|builder| builder.config.success_level)
        };
        for (word, expected) in [("1", Level::INFO), (" true ", Level::INFO), ("0", Level::DEBUG)] {
            assert_eq!(level(word).unwrap(), expected, "{word}");
        }
        assert!(level("on").unwrap_err().to_string().contains("1, 0, true or false"));
    }

    #[test]
    fn the_environment_sets_the_port_of_metrics_or_the_program_has_none() {
        let vars = [("OPTIMUS_URL", "redis://a"), (METRICS, " 127.0.0.1:9000 ")];
        let made = builder(&vars);
        if cfg!(feature = "metrics") {
            assert_eq!(made.unwrap().config.metrics, Some(([127, 0, 0, 1], 9000).into()));
            let wrong = builder(&[vars[0], (METRICS, "9000")]).unwrap_err().to_string();
            assert!(wrong.contains("OPTIMUS_METRICS") && wrong.contains("127.0.0.1:9000"));
        } else {
            assert!(made.unwrap_err().to_string().contains("feature `metrics`"));
        }
    }

    #[test]
    fn a_variable_that_is_misspelt_or_replaced_by_the_program_is_reported_and_no_other() {
        let vars = [
            ("OPTIMUS_URL", "redis://a"),
            (CONCURRENCY, "8"),
            (QUEUES, "mail=3"),
            (NAMESPACE, "shop"),
            (LOG_EACH, "1"),
            ("OPTIMUS_CONCURENCY", "9"),
            ("PATH", "/bin"),
        ];
        let without = |builder: &WorkerBuilder| builder.environment.without_effect(builder);
        let unchanged = builder(&vars[..5]).unwrap().namespace("shop").log_each();
        assert_eq!(without(&unchanged), [""; 0]);
        let changed = builder(&vars).unwrap().concurrency(4).queues(["mail"]);
        let texts = without(&changed);
        let names: Vec<&str> = texts.iter().filter_map(|text| text.split(' ').next()).collect();
        assert_eq!(names, [QUEUES, CONCURRENCY, "OPTIMUS_CONCURENCY"]);
        assert!(texts[2].ends_with("did you mean OPTIMUS_CONCURRENCY?"), "{texts:?}");
        assert_eq!(without(&WorkerBuilder::new("redis://a").concurrency(4)), [""; 0]);
    }

    #[test]
    fn a_queue_of_the_environment_that_no_task_uses_is_reported_with_the_one_that_is_meant() {
        let queues = |names: &[&str]| -> Vec<QueueName> {
            names.iter().map(|name| QueueName::new(name).unwrap()).collect()
        };
        let used = queues(&["stock", "billing"]);
        let vars = [("OPTIMUS_URL", "redis://a"), (QUEUES, "stock,biling,x")];
        let named = builder(&vars).unwrap().environment;
        let texts = named.unused_queues(&queues(&["stock", "biling", "x"]), &used);
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(texts[0].ends_with("did you mean billing?"), "{texts:?}");
        assert!(texts[1].contains("queue x, so"), "{texts:?}");
        let by_the_program = builder(&vars[..1]).unwrap().environment;
        assert_eq!(by_the_program.unused_queues(&queues(&["x"]), &used), [""; 0]);
    }
}
