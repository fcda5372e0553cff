//! Which queues somebody sees: [`Patterns`].

/// Names of queues, in which `*` stands for any text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Patterns(Vec<String>);

impl Patterns {
    pub(crate) fn all() -> Self {
        Self(vec!["*".to_owned()])
    }

    pub(crate) fn of(patterns: impl Iterator<Item = String>) -> Self {
        Self(patterns.collect())
    }

    pub(crate) fn texts(&self) -> &[String] {
        &self.0
    }

    /// Returns whether these are all queues, and so all that belongs to no queue.
    pub(crate) fn is_all(&self) -> bool {
        self.0.iter().any(|pattern| pattern == "*")
    }

    pub(crate) fn take(&self, queue: &str) -> bool {
        self.0.iter().any(|pattern| fits(pattern, queue))
    }

    /// Returns whether one of these queues is theirs. Who sees all queues also sees what serves
    /// none.
    pub(crate) fn take_one_of(&self, queues: &[String]) -> bool {
        self.is_all() || queues.iter().any(|queue| self.take(queue))
    }
}

/// Returns whether a name fits a pattern. The time grows with the length of both alone.
fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text_and_nothing_else_does() {
        for (pattern, name, is_taken) in [
            ("mail", "mail", true),
            ("mail", "mail2", false),
            ("mail", "email", false),
            ("tenant-*", "tenant-", true),
            ("tenant-*", "tenant-a", true),
            ("tenant-*", "tenan-a", false),
            ("*-eu", "mail-eu", true),
            ("*-eu", "mail-eu-2", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("*", "", true),
            ("", "mail", false),
            ("mai?", "mail", false),
        ] {
            assert_eq!(fits(pattern, name), is_taken, "{pattern} {name}");
        }
    }
}
