//! The situations in which tests call each script, and its text.

use std::{collections::BTreeSet, fs, path::PathBuf};

/// Returns the text of a script. The test reads it when it runs, so that another text needs no
/// build.
pub(crate) fn text_of(script: &str) -> String {
    let path = folder().join(script).with_extension("lua");
    fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

/// Returns the names of all scripts that there are.
pub(crate) fn all_names() -> BTreeSet<String> {
    let files = fs::read_dir(folder()).expect("the folder of the scripts");
    let paths = files.map(|file| file.expect("a readable folder").path());
    let scripts = paths.filter(|path| path.extension().is_some_and(|it| it == "lua"));
    scripts.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect()
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../lua")
}

/// Each script with the situations in which tests call it.
pub(crate) const SITUATIONS: &[(&str, &[&str])] = &[
    (
        "submit",
        &[
            "a plain task",
            "every option",
            "limited, with every option",
            "prerequisites",
            "flow",
            "gathered",
        ],
    ),
    (
        "claim",
        &[
            "one",
            "all",
            "limited one",
            "limited all",
            "resized all",
            "gathered one",
            "gathered all",
        ],
    ),
    ("collect", &["gathered, all", "gathered, one", "gathered, none"]),
    (
        "complete",
        &[
            "all that it holds",
            "members",
            "the last members",
            "limited, all that it holds",
            "resized, all",
            "kept, all",
            "hands on, all",
        ],
    ),
    (
        "fail",
        &[
            "retry",
            "dead",
            "cancelled",
            "lost",
            "limited, retry",
            "limited, shut",
            "resized, retry",
            "gathered, retry",
            "kept, dead",
        ],
    ),
    (
        "release",
        &["head", "snooze", "misfit", "limited, head", "limited, snooze", "gathered, head"],
    ),
    ("register", &["a new worker", "a new worker after an outage", "a known worker"]),
    ("renew", &["in time", "after an outage", "an idle worker"]),
    ("reap", &["a lapsed worker", "after an outage", "kept, a lapsed worker"]),
    ("leave", &["an idle worker", "a busy worker"]),
    (
        "cancel",
        &[
            "ready",
            "ranked",
            "delayed",
            "retry",
            "working",
            "a success",
            "offered",
            "waits",
            "needs held",
            "needs there",
            "limited waits",
            "gathered waits",
            "gathered alone",
            "gathered offered",
            "ranked lane, offered",
            "in a batch",
        ],
    ),
    (
        "requeue",
        &[
            "dead",
            "cancelled",
            "a live task",
            "a success",
            "lane dead",
            "unmet",
            "unmet there",
            "gathered no more",
            "in a batch",
        ],
    ),
    ("run_now", &["delayed", "retry", "ready", "working", "dead", "a success", "in a batch"]),
    (
        "delete",
        &[
            "ready",
            "ranked",
            "delayed",
            "retry",
            "dead",
            "cancelled",
            "large",
            "working",
            "a success",
            "offered",
            "waits",
            "blocks",
            "needs held",
            "needs there",
            "unmet",
            "limited waits",
            "gathered waits",
            "gathered offered",
            "ranked lane, offered",
            "in a batch",
        ],
    ),
    (
        "enroll",
        &["a new group", "an empty group", "known members", "the last members", "an ended group"],
    ),
    ("disband", &["a group", "an ended group"]),
    ("pause", &["on", "off", "limited on", "limited off"]),
    ("limit", &["limited set", "limited unset", "the first"]),
    ("resize", &["wider", "narrower", "resized, unset"]),
    ("acquire", &["limited, granted", "limited, refused", "the first"]),
    ("repay", &["limited, back", "limited, renewed"]),
    ("interrupt", &["an idle worker"]),
    ("purge", &["by cap", "by bytes", "by age", "old groups", "kept, by age"]),
    ("retire", &["a used queue"]),
    ("await", &["a live task", "a success", "a read"]),
    (
        "list",
        &[
            "ready",
            "blocked",
            "delayed",
            "retry",
            "working",
            "dead",
            "cancelled",
            "success",
            "limited blocked",
            "gathered blocked",
        ],
    ),
    ("inspect", &["a live task", "a success", "limited waits"]),
    ("count", &["a queue"]),
    ("tally", &["the same minute", "another minute", "a repeat"]),
    ("stats", &["minutes", "hours", "days"]),
    ("fingerprints", &["a queue"]),
    ("retain", &["kept, set", "kept, declared", "kept, no more", "kept, removed"]),
    ("history", &["kept, successes", "kept, deaths"]),
    ("annotate", &["more lines", "a repeat"]),
    ("attend", &["a new process", "a known process", "it leaves"]),
    ("wish", &["a known process"]),
    ("operation_add", &["a new operation", "one too many"]),
    ("operation_carry", &["it is taken", "it is renewed", "it is counted"]),
    ("operation_decide", &["confirm", "it is cancelled"]),
    ("operation_adopt", &["another carrier"]),
    ("audit", &["an act", "years later"]),
    (
        "hold",
        &[
            "roster, a new member",
            "roster, a known member",
            "roster, a member that leaves",
            "roster, shows nothing",
            "roster, an outage",
        ],
    ),
    ("yield", &["roster, one", "roster, leaves"]),
    ("recount", &["roster, wider", "roster, again"]),
    ("suspend", &["roster, one", "roster, all", "roster, resume"]),
    ("checkpoint", &["roster, first", "roster, known", "roster, the last"]),
    ("demote", &["roster, failed", "roster, succeeded"]),
    ("survey", &["roster, told", "roster, slow"]),
    ("rescan", &["roster, slow"]),
    ("apply", &["ends here", "questions and answers", "members", "results"]),
    ("relay", &["some", "all"]),
    ("reask", &["all", "of an operation"]),
    ("schedule", &["scheduled new", "scheduled change", "scheduled of code"]),
    (
        "reschedule",
        &[
            "scheduled pause",
            "scheduled resume",
            "scheduled remove",
            "scheduled code",
            "scheduled move",
            "scheduled take",
            "scheduled settle",
        ],
    ),
    ("agenda", &["scheduled agenda"]),
    (
        "tick",
        &[
            "scheduled submit",
            "scheduled every option",
            "scheduled of code",
            "scheduled overlap",
            "scheduled missed",
            "scheduled now",
        ],
    ),
    ("dispenser_add", &["dispensed, new", "dispensed, known", "dispensed, named"]),
    (
        "dispenser_assign",
        &["dispensed, more", "dispensed, fewer", "dispensed, none", "dispensed, named"],
    ),
    ("dispenser_check", &["dispensed, ann", "dispensed, late"]),
    ("dispenser_done", &["dispensed, all", "dispensed, lost", "dispensed, named"]),
    ("dispenser_return", &["dispensed, all", "dispensed, named"]),
    ("dispenser_rebuild", &["dispensed, begin", "dispensed, page", "dispensed, end"]),
    (
        "dispenser_peek",
        &["dispensed, counts", "dispensed, open", "dispensed, assigned", "dispensed, assignees"],
    ),
];
