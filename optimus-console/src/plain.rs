//! What is wrong with a query or a body, in plain words: [`plain`].

/// Returns an error of serde in plain words. `what` is the thing that was read, and `part` what its
/// parts are called.
pub(crate) fn plain(what: &str, part: &str, problem: &str) -> String {
    let problem = problem.strip_prefix("Failed to deserialize query string: ").unwrap_or(problem);
    if let Some((name, known)) = named(problem, "unknown field `") {
        let known = match &known[..] {
            [] => "it takes none".to_owned(),
            known => format!("there are: {}", known.join(", ")),
        };
        return format!("{what} has an unknown {part} {name:?}; {known}");
    }
    if let Some((value, known)) = named(problem, "unknown variant `") {
        let of = problem.split_once(": unknown variant").map(|(of, _)| of);
        let wrong = of.map_or_else(
            || format!("{what} has an unknown value {value:?}"),
            |of| format!("{of} can't be {value:?}"),
        );
        return format!("{wrong}; use one of: {}", known.join(", "));
    }
    match named(problem, "missing field `") {
        Some((name, _)) => format!("{what} needs the {part} {name:?}"),
        None => format!("{what}: {problem}"),
    }
}

/// Returns the name that comes after these words, and the names after it.
fn named<'a>(problem: &'a str, words: &str) -> Option<(&'a str, Vec<&'a str>)> {
    let (name, rest) = problem.split_once(words)?.1.split_once('`')?;
    Some((name, rest.split('`').skip(1).step_by(2).collect()))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Sort {
        Name,
        Age,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its errors are of use")]
    struct Order {
        sort: Sort,
        limit: Option<u32>,
    }

    fn of(body: &str) -> String {
        let problem = serde_json::from_str::<Order>(body).unwrap_err().to_string();
        plain("the body", "field", &problem)
    }

    #[test]
    fn an_error_says_what_is_wrong_and_what_there_is() {
        let unknown = of(r#"{ "srt": "age" }"#);
        assert_eq!(unknown, "the body has an unknown field \"srt\"; there are: sort, limit");
        assert_eq!(of("{}"), "the body needs the field \"sort\"");
        assert_eq!(
            of(r#"{ "sort": "x" }"#),
            "the body has an unknown value \"x\"; use one of: name, age"
        );
        assert!(of(r#"{ "sort": "age", "limit": "x" }"#).starts_with("the body: invalid type"));
        let query = "Failed to deserialize query string: srt: unknown field `srt`, there are no \
                     fields";
        let expected = "the query has an unknown parameter \"srt\"; it takes none";
        assert_eq!(plain("the query", "parameter", query), expected);
        let query = "Failed to deserialize query string: sort: unknown variant `x`, expected `a` \
                     or `b`";
        let expected = "sort can't be \"x\"; use one of: a, b";
        assert_eq!(plain("the query", "parameter", query), expected);
    }
}
