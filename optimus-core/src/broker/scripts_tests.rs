//! The rules that hold for the text of every script.

use super::*;

/// `local a, b = KEYS[1], KEYS[2]` over one or more lines → a, b.
fn named_keys(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    let body = source.rsplit("-- KEYS ").next().unwrap_or_default();
    let statements = body.split("local ").filter(|s| s.contains("KEYS["));
    for statement in statements {
        let Some((left, right)) = statement.split_once('=') else { continue };
        let index = right.trim_start().strip_prefix("KEYS[");
        if index.is_some_and(|index| index.starts_with(|c: char| c.is_ascii_digit())) {
            names.extend(left.split(',').map(|name| name.trim().to_owned()));
        }
    }
    names
}

#[test]
fn a_call_passes_the_keys_that_its_script_names_in_that_order() {
    for script in ALL {
        let expected: Vec<String> = script
            .keys
            .iter()
            .map(|key| match *key {
                "worker:" => "worker_info".into(),
                "wake:" => "wakeup".into(),
                other => other.trim_end_matches(':').to_owned(),
            })
            .collect();
        assert_eq!(named_keys(script.source()), expected, "{}", script.name);
    }
}

#[test]
fn a_call_of_one_task_has_the_constants_of_the_functions_that_it_does_not_call() {
    for (script, copies) in [(&SUBMIT, 2), (&COMPLETE, 3)] {
        let same = script.source().matches("\nlocal SHORT, STEP = 16, 64\n").count();
        assert_eq!(same, copies, "{}", script.name);
    }
    let digits = "\nlocal DIGITS = '0123456789abcdefghijklmnopqrstuvwxyz'\n";
    assert_eq!(COMPLETE.source().matches(digits).count(), 3);
}

#[test]
fn every_script_has_a_block_of_checks_and_a_block_of_writes() {
    for script in ALL {
        let body = script.source().rsplit_once("-- Checks.").expect(script.name).1;
        assert!(
            ["agenda", "count", "fingerprints", "history", "inspect", "list", "stats"]
                .contains(&script.name)
                || body.contains("-- Writes."),
            "{} has no writes block",
            script.name
        );
    }
}
