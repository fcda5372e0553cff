//! Many mutants of Rust code in one build: [`Source`].
//!
//! Each function keeps its own body and gets the bodies of its mutants, and a variable of the
//! environment chooses one when the program runs (mutant schemata: Untch, Offutt and Harrold,
//! "Mutation Analysis Using Mutant Schemata", 1993).

/// The variable that names the mutant to run.
pub(crate) const PLANTED: &str = "PLANTED_BUG";

/// Returns what each crate with mutants gets. Its bodies ask it which of them runs.
pub(crate) fn asked_by_bodies() -> String {
    format!(
        "
pub(crate) fn is_planted(bug: &str) -> bool {{
    static PLANTED: std::sync::LazyLock<Option<String>> =
        std::sync::LazyLock::new(|| std::env::var({PLANTED:?}).ok());
    PLANTED.as_deref() == Some(bug)
}}
"
    )
}

/// A source file whose functions may have several bodies.
pub(crate) struct Source {
    /// The text before each body, and the text after the last one.
    outside: Vec<String>,
    bodies: Vec<Body>,
}

struct Body {
    own: String,
    /// The names of mutants, and the body that each of them has.
    of_mutants: Vec<(String, String)>,
}

impl Source {
    pub(crate) fn read(text: &str) -> Self {
        let (outside, bodies) = split(text);
        let body = |own| Body { own, of_mutants: Vec::new() };
        Self { outside, bodies: bodies.into_iter().map(body).collect() }
    }

    /// Adds the bodies of a mutant. Returns `false` if the mutant differs elsewhere, too.
    pub(crate) fn add(&mut self, mutant: &str, text: &str) -> bool {
        let (outside, bodies) = split(text);
        let only_in_bodies = outside == self.outside;
        if only_in_bodies {
            for (body, other) in self.bodies.iter_mut().zip(bodies) {
                if body.own != other {
                    body.of_mutants.push((mutant.to_owned(), other));
                }
            }
        }
        only_in_bodies
    }

    /// Returns the text in which each function chooses its body.
    pub(crate) fn switched(&self) -> String {
        let mut text = String::new();
        for (nth, outside) in self.outside.iter().enumerate() {
            text.push_str(outside);
            let Some(body) = self.bodies.get(nth) else { break };
            if body.of_mutants.is_empty() {
                text.push_str(&body.own);
                continue;
            }
            text.push_str("{ ");
            for (mutant, other) in &body.of_mutants {
                text.extend(["if crate::is_planted(\"", mutant, "\") ", other, " else "]);
            }
            text.extend([&body.own, " }"]);
        }
        text
    }
}

/// Splits a formatted file into the bodies of its functions and the text around them. A function
/// inside a function belongs to its body. Rust must know the body of some functions: those are no
/// bodies here.
fn split(text: &str) -> (Vec<String>, Vec<String>) {
    let (mut outside, mut bodies) = (vec![String::new()], Vec::new());
    let mut lines = text.split_inclusive('\n');
    while let Some(line) = lines.next() {
        let indent = &line[..line.len() - line.trim_start().len()];
        let text = outside.last_mut().expect("one text, and one more for each body");
        text.push_str(line);
        if !begins_function(line) {
            continue;
        }
        let mut header = line.to_owned();
        while !header.trim_end().ends_with(['{', '}', ';']) {
            let Some(line) = lines.next() else { break };
            header.push_str(line);
            text.push_str(line);
        }
        if !header.trim_end().ends_with('{') || is_read_by_rust(&header) {
            continue;
        }
        text.truncate(text.trim_end().len() - 1);
        let end = format!("{indent}}}");
        let mut body = "{\n".to_owned();
        for line in lines.by_ref() {
            body.push_str(line);
            if line.trim_end() == end {
                break;
            }
        }
        bodies.push(body);
        outside.push(String::new());
    }
    (outside, bodies)
}

fn begins_function(line: &str) -> bool {
    let mut words = line.trim_start().split(' ').skip_while(|word| {
        word.starts_with("pub") || matches!(*word, "in" | "async" | "const" | "super)" | "crate)")
    });
    words.next() == Some("fn")
}

/// Returns whether Rust reads the body of a function: for a constant, or for a type without a
/// name, which two bodies can't share.
fn is_read_by_rust(header: &str) -> bool {
    let returns = header.rsplit_once("->").map_or("", |(_, returns)| returns);
    header.contains("const fn ") || returns.contains("impl ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
use a;

impl B {
    pub(crate) async fn c(
        &self,
    ) -> u8
    where
        B: Sized,
    {
        fn inner() {
        }
        1
    }
}

fn d() {
    e();
}

const fn f() -> u8 {
    2
}

fn g() -> impl Fn() {
    || ()
}
";

    #[test]
    fn a_source_without_a_mutant_stays_as_it_is() {
        assert_eq!(Source::read(FILE).switched(), FILE);
    }

    #[test]
    fn each_function_chooses_the_body_of_the_planted_bug() {
        let mut source = Source::read(FILE);
        assert!(source.add("two", &FILE.replace("        1\n", "        2\n")));
        assert!(source.add("three", &FILE.replace("        1\n", "        3\n")));
        let switched = source.switched();
        let body = |n| format!("{{\n        fn inner() {{\n        }}\n        {n}\n    }}\n");
        let wanted = [
            "{ if crate::is_planted(\"two\") ",
            &body(2),
            " else if crate::is_planted(\"three\") ",
            &body(3),
            " else ",
            &body(1),
            " }",
        ];
        assert!(switched.contains(&wanted.concat()), "{switched}");
        assert!(switched.contains("fn d() {\n    e();\n}\n"), "{switched}");
    }

    #[test]
    fn a_mutant_that_differs_outside_of_bodies_is_not_added() {
        for (from, to) in [("use a;", "use b;"), ("    2\n", "    3\n"), ("|| ()", "|| drop(())")] {
            assert!(!Source::read(FILE).add("wrong", &FILE.replace(from, to)), "{from}");
        }
    }
}
