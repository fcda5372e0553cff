//! The text format of Prometheus, version 0.0.4: [`Exposition`].

use std::{fmt::Write as _, time::Duration};

use crate::names::{BUCKET_ENDS_US, Kind, Metric};

/// A text that grows, one family after the other.
#[derive(Debug, Clone, Default)]
pub struct Exposition(String);

/// A metric with its samples. A family without samples leaves no trace in the text.
#[derive(Debug)]
pub struct Family<'a> {
    text: &'a mut String,
    metric: &'static Metric,
    has_begun: bool,
}

impl Exposition {
    /// The content type of the text.
    pub const CONTENT_TYPE: &'static str = "text/plain; version=0.0.4; charset=utf-8";

    /// Begins a family. Each metric has one.
    pub fn family(&mut self, metric: &'static Metric) -> Family<'_> {
        Family { text: &mut self.0, metric, has_begun: false }
    }

    /// Returns the text.
    pub fn into_text(self) -> String {
        self.0
    }
}

impl Family<'_> {
    /// Adds a whole number. `labels` are the values of the metric's labels, in their order.
    pub fn count(&mut self, labels: &[&str], count: u64) -> &mut Self {
        self.sample("", labels, None, &count.to_string());
        self
    }

    /// Adds a number.
    pub fn value(&mut self, labels: &[&str], value: f64) -> &mut Self {
        self.sample("", labels, None, &number(value));
        self
    }

    /// Adds the durations of `buckets`: the longest duration that may be in each, and its count.
    /// `sum` is the sum of all.
    pub fn histogram(
        &mut self,
        labels: &[&str],
        buckets: impl IntoIterator<Item = (Duration, u64)>,
        sum: Duration,
    ) -> &mut Self {
        let mut counts = [0_u64; BUCKET_ENDS_US.len()];
        let mut all = 0;
        for (end, count) in buckets {
            all += count;
            let first = BUCKET_ENDS_US.iter().position(|us| end <= Duration::from_micros(*us));
            if let Some(first) = first {
                counts[first..].iter_mut().for_each(|below| *below += count);
            }
        }
        for (us, below) in BUCKET_ENDS_US.iter().zip(counts) {
            let end = number(Duration::from_micros(*us).as_secs_f64());
            self.sample("_bucket", labels, Some(&end), &below.to_string());
        }
        self.sample("_bucket", labels, Some("+Inf"), &all.to_string());
        self.sample("_sum", labels, None, &number(sum.as_secs_f64()));
        self.sample("_count", labels, None, &all.to_string());
        self
    }

    fn sample(&mut self, suffix: &str, values: &[&str], end: Option<&str>, value: &str) {
        let Metric { name, labels, .. } = self.metric;
        debug_assert_eq!(labels.len(), values.len(), "{name}");
        self.begin();
        let mut pairs: Vec<String> = Vec::with_capacity(labels.len() + 1);
        for (label, value) in labels.iter().zip(values) {
            pairs.push(format!("{label}=\"{}\"", escaped(value)));
        }
        pairs.extend(end.map(|end| format!("le=\"{end}\"")));
        let pairs =
            if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) };
        writeln!(self.text, "{name}{suffix}{pairs} {value}").expect("a text takes any text");
    }

    fn begin(&mut self) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        let Metric { name, kind, help, .. } = self.metric;
        let (help, kind) = (help.replace('\\', "\\\\").replace('\n', "\\n"), Kind::as_str(*kind));
        writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}")
            .expect("a text takes any text");
    }
}

/// Escapes the value of a label.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn number(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() }
    } else {
        value.to_string()
    }
}

#[cfg(test)]
mod tests {
    use optimus_testkit::exposition::read;

    use super::*;
    use crate::names;

    #[test]
    fn texts_with_quotes_backslashes_and_line_ends_are_read_as_they_were_written() {
        let strange = ["a\"b", "a\\b", "a\nb", "a\\nb\\", "{x=\"y\"} 1", "é #", ""];
        let mut text = Exposition::default();
        let mut family = text.family(&names::ATTEMPTS);
        for (at, task) in (0..).zip(strange) {
            family.count(&["mail", task, "success"], at);
        }
        let seen = read(&text.into_text());
        for (at, task) in (0_u32..).zip(strange) {
            let labels = [("queue", "mail"), ("task", task), ("outcome", "success")];
            assert_eq!(
                seen.value("optimus_attempts_total", &labels),
                Some(f64::from(at)),
                "{task}"
            );
        }
    }

    #[test]
    fn durations_are_counted_in_each_bucket_that_does_not_end_before_them() {
        let mut text = Exposition::default();
        let ms = Duration::from_millis;
        let buckets = [(Duration::from_micros(1 << 10), 2), (ms(1_500), 3), (ms(1 << 30), 1)];
        text.family(&names::RUN).histogram(&["q", "t"], buckets, ms(9_000));
        let seen = read(&text.into_text());
        let below = |end: &str| {
            let labels = [("queue", "q"), ("task", "t"), ("le", end)];
            seen.value("optimus_run_seconds_bucket", &labels)
        };
        assert_eq!(below("0.001024"), Some(2.0));
        assert_eq!((below("1.048576"), below("2.097152")), (Some(2.0), Some(5.0)));
        assert_eq!((below("8589.934592"), below("+Inf")), (Some(5.0), Some(6.0)));
        let of = [("queue", "q"), ("task", "t")];
        assert_eq!(seen.value("optimus_run_seconds_sum", &of), Some(9.0));
        assert_eq!(seen.value("optimus_run_seconds_count", &of), Some(6.0));
    }

    #[test]
    fn a_family_without_samples_has_no_text_and_any_number_can_be_written() {
        let mut text = Exposition::default();
        text.family(&names::SLOTS);
        assert_eq!(text.clone().into_text(), "");
        let mut family = text.family(&names::LEASE_LEFT);
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.5, 1e-30, 1e300] {
            family.value(&[&number.to_string()], number);
        }
        assert_eq!(read(&text.into_text()).len(), 6);
    }
}
