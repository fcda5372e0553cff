//! The table of Lua scripts: their texts, hashes and keys.

use std::sync::LazyLock;

pub use super::script::Script;
use super::script_text::{lua, script_text};

/// Includes after `seldom` are inside one function of that name, which returns the functions that
/// it names. A usual call does not create these functions. `laned` is such a function for calls
/// with lanes, `gated` and `permitted` for calls with limits, `waiting` for calls with tasks that
/// wait for others, `leading` for calls in queues with tasks that run together. Includes after
/// `within` are inside another such function: `limited`, which a claim needs if tasks wait for
/// limits, `gathered`, if tasks run together, and `walking`, if tasks may wait for themselves. All
/// that is inside braces is inside the function `rare`. So a usual call does not create these
/// functions either.
macro_rules! scripts {
    ($(
        $id:ident = $name:literal: [$($include:literal),* $(,)?]
            $({ [$($shared:literal),* $(,)?]
                $($part:ident [$($seldom:literal),* $(,)?]
                    $(within $nested:ident [$($inner:literal),* $(,)?] -> $inner_given:literal)*
                    -> $part_given:literal)*
            } -> $rare_given:literal)?
            $($group:ident [$($rare:literal),* $(,)?] -> $given:literal)*
            [$($key:literal),* $(,)?];
    )*) => {
        $(
            #[doc = concat!("`lua/", $name, ".lua`.")]
            pub static $id: Script = Script {
                name: $name,
                source: script_text!(
                    $(lua!("include/", $include),)*
                    $(
                        "local function rare()\n",
                        $(lua!("include/", $shared),)*
                        $(
                            "local function ", stringify!($part), "()\n",
                            $(lua!("include/", $seldom),)*
                            $(
                                "local function ", stringify!($nested), "()\n",
                                $(lua!("include/", $inner),)*
                                "return ", $inner_given, "\nend\n",
                            )*
                            "return ", $part_given, "\nend\n",
                        )*
                        "return ", $rare_given, "\nend\n",
                    )?
                    $(
                        "local function ", stringify!($group), "()\n",
                        $(lua!("include/", $rare),)*
                        "return ", $given, "\nend\n",
                    )*
                    lua!($name),
                ),
                keys: &[$($key),*],
                sha: LazyLock::new(|| redis::Script::new($id.source()).get_hash().to_owned()),
            };
        )*

        /// Every script.
        #[cfg(any(test, feature = "simulation"))]
        pub static ALL: &[&Script] = &[$(&$id),*];
    };
}

scripts! {
    SUBMIT = "submit": []
    { ["clock", "wakeup", "ready_append"]
        seldom [
            "script_version", "clock_stamp", "ready", "biz", "due_next", "key_as_table",
            "submit_options", "ledger_lost",
        ]
            within gathered ["gather", "gather_join", "gather_submit"]
                -> "join_submitted, write_submitted"
            within again ["group_ran", "submit_again"] -> "leave_out_ended"
            -> "add_ready, read_options, lost_with, gathered, again"
        laned ["script_version", "lane_join", "lane_submit"] -> "join_lanes, write_lanes"
        gated ["script_version", "limited", "gate_join"] -> "join_gates, write_gate_joins"
        waiting [
            "script_version", "key_as_table", "end_mark", "after", "after_post", "group",
            "after_resolve", "after_wait", "after_options",
        ]
            within walking ["task_header", "after_ref", "after_cycle"] -> "cycle_of"
            -> "read_prerequisites, wait_for_prerequisites, write_waits, walking"
    } -> "now_ms, whole, append, seldom, laned, gated, waiting"
    [
        "tasks", "ready", "wake", "ledger:", "priority", "priorities", "delayed", "blobs",
        "ledgers", "meta",
    ];
    CLAIM = "claim": ["script_version", "clock", "worker_last_claim"]
    { ["clock", "wakeup", "ready_entry", "ready_plain", "claim_grants"]
        seldom [
            "script_version", "ready_append", "clock_stamp", "task_born", "ready", "due",
            "ready_skips", "ready_merge", "task_header", "lane_header", "lane_join", "lane_due",
            "ready_mixed", "claim_repeated",
        ]
            within limited [
                "key_as_table", "end_mark", "gate_class", "gate", "gate_wait", "ready_limited",
            ]
                -> "limited_ids"
            within gathered [
                "key_as_table", "gather", "gather_again", "gather_join", "gather_due",
            ]
                -> "gathered_of"
            -> "mixed_ids, repeated_claim, limited, gathered"
        gated ["key_as_table", "end_mark", "task_header", "gate_class", "gate", "gate_pass"]
            -> "passing"
    } -> "seldom, gated, plain_ids, with_records, granted, wake_worker"
    [
        "meta", "tasks", "ready", "priority", "workers", "working:", "wake", "tries",
    ];
    COLLECT = "collect": [
        "clock", "task_header", "wakeup", "due_next", "gather", "claim_grants",
    ] ["meta", "tasks", "working:", "tries"];
    COMPLETE = "complete": []
    { ["clock", "report"]
        permitted ["wakeup", "due_next", "permit"] -> "permits_of, give_back"
        laned ["wakeup", "ready_append", "clock_stamp", "ready", "lane", "lane_complete"]
            -> "read_left, write_left"
        counting ["key_as_table", "group", "group_ran", "group_complete"]
            -> "read_members, count_members, write_members"
        waiting [
            "task_header", "wakeup", "ready_append", "clock_stamp", "ready", "due_next",
            "key_as_table", "after", "after_post", "after_input", "after_free", "group",
            "success_refs", "after_success",
        ]
            -> "flow_of_success, write_success, outcomes_of"
        looking ["success_refs", "complete_look"] -> "look_at"
        seldom [
            "key_of", "task_bytes", "biz_key", "biz_end", "waiters", "task_ended",
            "report_extras", "wakeup", "due_next", "permit", "report_out", "complete_ends",
        ]
            within keeping ["history", "history_cut"] -> "history_of_cut, write_history"
            -> "ends_of, write_success_ends, read_extras, keeping"
    } -> "now_ms, whole, still_held, column, permitted, laned, counting, waiting, looking, seldom"
    [
        "tasks", "working:", "success", "waiters", "tries", "errors", "blobs", "priorities",
    ];
    FAIL = "fail": [
        "script_version", "clock", "report", "report_out", "key_of", "task_header", "wakeup",
        "due_next", "key_as_table", "task_bytes", "biz_key", "biz_end", "task_tries", "waiters",
        "task_ended", "lane_flags", "gate_class", "limited", "gate_shut", "permit",
    ]
    laned ["ready_append", "clock_stamp", "ready", "lane_header", "lane", "lane_report"]
        -> "moves_of, lane_report, pass_permits, write_moves"
    waiting ["after", "after_post", "after_ref", "after_end"] -> "flow_of_ends"
    leading ["gather", "gather_drop", "gather_led"] -> "leaders_of, leave_gathers"
    dying ["history", "history_death"] -> "deaths_of"
    refunding ["gate", "gate_refund"] -> "refunds_of, write_refunds"
    losing ["worker_last_claim", "worker_held"] -> "is_alone, dies_of_loss"
    [
        "meta", "tasks", "working:", "retry", "dead", "cancelled", "tries", "errors", "cancel",
        "waiters", "wake",
    ];
    RELEASE = "release": [
        "script_version", "clock", "report", "report_out", "key_of", "task_header", "wakeup",
        "due_next", "key_as_table", "ready_append", "clock_stamp", "task_born", "ready",
        "ready_again", "task_bytes", "biz_key", "biz_end", "task_tries", "waiters", "task_ended",
        "lane_flags", "permit",
    ]
    laned ["lane_header", "lane", "lane_report"]
        -> "moves_of, lane_report, pass_permits, write_moves"
    waiting ["after", "after_post", "after_ref", "after_end"] -> "flow_of_ends"
    leading ["gather", "gather_again", "gather_drop", "gather_led"]
        -> "gathers_again, leaders_of, leave_gathers"
    refunding ["gate_class", "gate", "gate_refund"] -> "refunds_of, write_refunds"
    [
        "meta", "tasks", "working:", "ready", "priority", "priorities", "delayed", "cancelled",
        "tries", "cancel", "waiters", "wake",
    ];
    REGISTER = "register": ["clock", "key_of", "worker_lease"]
    setting_back ["wakeup", "due_next", "clock_back"] -> "moved_back"
    ["meta", "workers", "worker:"];
    RENEW = "renew": [
        "clock", "key_of", "wakeup", "worker_lease", "worker_last_claim", "worker_held",
    ]
    setting_back ["due_next", "clock_back"] -> "moved_back"
    [
        "meta", "workers", "working:", "cancel", "ready", "priority", "wake",
    ];
    REAP = "reap": [
        "script_version", "clock", "key_of", "task_header", "wakeup", "ready_append", "clock_stamp",
        "task_born", "ready", "ready_again", "key_as_table", "task_bytes", "biz_key", "biz_end",
        "task_tries", "waiters", "task_ended", "worker_lease", "worker_last_claim", "worker_held",
        "due_timer", "lane_header", "lane", "lane_report", "after", "after_post", "after_ref",
        "after_end", "due_next", "permit", "gather", "gather_again", "gather_drop",
    ]
    setting_back ["clock_back"] -> "moved_back"
    dying ["history", "history_death"] -> "deaths_of"
    [
        "meta", "tasks", "workers", "ready", "priority", "priorities", "dead", "cancelled",
        "tries", "errors", "cancel", "waiters", "wake",
    ];
    LEAVE = "leave": ["worker_last_claim", "worker_held", "wakeup", "due_timer"] [
        "workers", "worker:", "working:", "meta", "wake",
    ];
    CANCEL = "cancel": [
        "script_version", "clock", "key_of", "task_header", "wakeup", "ready_append", "clock_stamp",
        "ready", "lane_header", "lane", "lane_drop", "end_mark", "gate_class", "due_next",
        "gate_drop", "key_as_table", "after", "after_post", "after_ref", "after_end", "gather",
        "gather_drop", "task_bytes", "biz_key", "biz_end", "waiters", "task_ended", "lane_find",
        "gate_find", "task_find", "task_standings", "worker_holders", "report_out", "outbox_left",
        "last_line", "operation_batch", "due_again",
    ] [
        "meta", "tasks", "priority", "delayed", "retry", "dead", "cancelled", "workers", "cancel",
        "success", "waiters", "skips", "tries", "operated:",
    ];
    REQUEUE = "requeue": [
        "script_version", "clock", "key_of", "task_header", "wakeup", "ready_append", "clock_stamp",
        "ready", "lane_header", "lane_join", "biz", "biz_key", "task_tries", "task_bytes",
        "task_uncount", "gather", "lane_find", "gate_class", "gate_find", "task_find",
        "key_as_table", "due_next", "end_mark", "after", "after_post", "after_ref", "after_end",
        "after_cycle", "group", "after_resolve", "after_wait", "after_again", "report_out",
        "outbox_left", "last_line", "operation_batch", "due_again",
    ] [
        "meta", "tasks", "ready", "priority", "priorities", "delayed", "retry", "dead",
        "cancelled", "workers", "success", "tries", "cancel", "wake", "skips",
        "requeued:", "operated:",
    ];
    RUN_NOW = "run_now": [
        "script_version", "clock", "key_of", "task_header", "wakeup", "due_next", "gather",
        "lane_find", "gate_class", "gate_find", "task_find", "task_standings", "worker_holders",
        "last_line", "operation_batch",
    ] [
        "meta", "tasks", "delayed", "retry", "dead", "cancelled", "workers", "success", "wake",
        "operated:",
    ];
    APPLY = "apply": [
        "script_version", "clock", "key_of", "task_header", "wakeup", "ready_append", "clock_stamp",
        "ready", "due_next", "key_as_table", "end_mark", "after", "after_post", "after_input",
        "after_free", "after_ref", "after_end", "group", "after_resolve", "after_wait",
        "task_bytes", "biz_key", "biz_end", "task_tries", "waiters", "task_ended", "after_answer",
        "group_effect",
    ] [
        "meta", "applied", "tasks", "cancelled", "cancel", "waiters",
    ];
    RELAY = "relay": ["clock"] ["outboxes", "applied", "outbox:"];
    REASK = "reask": [
        "script_version", "clock", "key_of", "task_header", "wakeup", "ready_append", "clock_stamp",
        "task_born", "ready", "due_next", "key_as_table", "after", "after_post", "after_input",
        "after_free", "after_ref", "after_end", "group", "after_resolve", "task_bytes", "biz_key",
        "biz_end", "task_tries", "waiters", "task_ended", "after_answer",
    ]
    dying ["history", "history_death"] -> "deaths_of"
    [
        "meta", "asks", "giveups", "tasks", "dead", "cancel", "waiters",
    ];
    ENROLL = "enroll": [
        "script_version", "clock", "key_as_table", "after", "after_post", "group", "outbox_left",
    ] ["meta", "groups", "group:"];
    DISBAND = "disband": [
        "script_version", "clock", "key_as_table", "after", "after_post", "group", "outbox_left",
    ] ["meta", "groups", "group:"];
    PAUSE = "pause": ["script_version", "clock", "wakeup", "due_next", "limited", "gate_open"] [
        "meta", "tasks", "wake", "shut", "paused",
    ];
    LIMIT = "limit": ["script_version", "clock", "wakeup", "due_next", "limited", "gate_open"] [
        "meta", "limits",
    ];
    RESIZE = "resize": [
        "script_version", "clock", "task_header", "wakeup", "ready_append", "clock_stamp", "ready",
        "lane_header", "lane",
    ] ["meta", "widths"];
    ACQUIRE = "acquire": [
        "script_version", "clock", "wakeup", "due_next", "task_header", "key_as_table", "end_mark",
        "gate_class", "gate", "limited", "gate_open",
    ] ["meta", "loans"];
    REPAY = "repay": [
        "script_version", "clock", "wakeup", "due_next", "key_of", "limited", "gate_open",
    ] [
        "meta", "loans",
    ];
    INTERRUPT = "interrupt": [] ["interrupt:"];
    DELETE = "delete": [
        "script_version", "clock", "key_of", "task_header", "wakeup", "ready_append", "clock_stamp",
        "ready", "lane_header", "lane", "lane_drop", "gate_class", "due_next", "gate_drop",
        "key_as_table", "after", "after_post", "after_ref", "after_end", "gather", "gather_drop",
        "task_bytes", "task_uncount", "biz_key", "biz_end", "task_drop", "waiters", "lane_find",
        "gate_find", "task_find", "task_standings", "worker_holders", "report_out", "outbox_left",
        "task_log", "last_line", "operation_batch",
    ] [
        "meta", "tasks", "priority", "delayed", "retry", "dead", "cancelled", "workers", "success",
        "waiters", "skips", "tries", "errors", "blobs", "priorities", "deleted", "logs", "logged",
        "operated:",
    ];
    PURGE = "purge": [
        "script_version", "clock", "key_of", "task_header", "wakeup", "ready_append", "clock_stamp",
        "task_born", "ready", "lane_header", "lane", "lane_drop", "gate_class", "due_next",
        "gate_drop", "key_as_table", "after", "after_post", "after_ref", "after_end", "gather",
        "gather_drop", "task_bytes", "task_uncount", "biz_key", "biz_end", "task_drop", "group",
        "group_member", "history", "task_log",
    ] [
        "meta", "tasks", "dead", "cancelled", "tries", "errors", "blobs", "priorities", "ledgers",
        "workers", "deleted", "groups", "logs", "logged",
    ];
    RETIRE = "retire": ["script_version", "clock"] [
        "meta", "tasks", "ready", "priority", "priorities", "delayed", "retry", "dead",
        "cancelled", "success", "tries", "errors", "skips", "cancel", "waiters", "blobs",
        "ledgers", "workers", "wake", "deleted", "lanes", "unmet", "unmet_ended", "ties",
        "outboxes", "applied", "asks", "giveups", "limits", "paused", "shut", "spent", "loans",
        "groups", "widths", "asked", "gathers", "schedules", "code_schedules", "tally", "minutes",
        "hours", "days", "logs", "logged",
    ];
    AWAIT = "await": [
        "key_of", "task_born", "task_header", "gather", "lane_find", "gate_class", "gate_find",
        "task_find",
        "ledger_stored",
    ] [
        "meta", "tasks", "dead", "cancelled", "success", "waiters", "ledger:", "delayed", "retry",
        "workers",
    ];
    LIST = "list": [
        "clock", "key_of", "ready_entry", "worker_last_claim", "task_header", "gather", "lane_find",
        "gate_class", "gate_find", "task_find", "last_line",
    ] [
        "meta", "tasks", "ready", "priority", "delayed", "retry", "dead", "cancelled", "workers",
        "success", "tries", "errors", "skips",
    ];
    INSPECT = "inspect": [
        "key_of", "task_header", "gather", "lane_find", "gate_class", "gate_find", "task_find",
    ] [
        "meta", "tasks", "delayed", "retry", "dead", "cancelled", "workers", "success", "blobs",
        "tries", "errors", "logs", "cancel",
    ];
    SCHEDULE = "schedule": ["clock", "schedule_wakeup"] [
        "meta", "schedules", "code_schedules", "schedule:",
    ];
    RESCHEDULE = "reschedule": ["clock", "schedule_wakeup"] [
        "meta", "schedules", "code_schedules", "schedule:", "ticks:",
    ];
    AGENDA = "agenda": ["clock"] ["meta", "schedules", "code_schedules"];
    TICK = "tick": [
        "script_version", "clock", "clock_stamp", "wakeup", "due_next", "key_as_table", "biz",
        "limited",
    ] [
        "meta", "tasks", "delayed", "schedule:", "ticks:", "schedules", "code_schedules",
    ];
    COUNT = "count": ["key_of"] [
        "meta", "ready", "priority", "delayed", "retry", "dead", "cancelled", "success", "workers",
        "unmet",
    ];
    TALLY = "tally": ["clock", "tally_row"] ["worker:", "tally", "minutes", "hours", "days"];
    STATS = "stats": ["clock"] ["tally", "minutes", "hours", "days"];
    FINGERPRINTS = "fingerprints": ["last_line"] ["dead", "errors"];
    RETAIN = "retain": ["clock"] ["meta", "histories", "history_bytes"];
    HISTORY = "history": ["clock"] ["history_bytes", "success"];
    ANNOTATE = "annotate": ["clock", "task_log"] ["logs", "logged"];
    ATTEND = "attend": ["clock"] ["fleet", "process:"];
    WISH = "wish": [] ["process:", "wake:"];
    OPERATION_ADD = "operation_add": ["clock"] ["operations", "carried", "operation:"];
    OPERATION_CARRY = "operation_carry": ["clock"] ["carried", "operation:", "counted:"];
    OPERATION_DECIDE = "operation_decide": ["clock"] ["carried", "operation:", "counted:"];
    OPERATION_ADOPT = "operation_adopt": [] ["operated:"];
    AUDIT = "audit": [] ["audit"];
    HOLD = "hold": ["clock", "key_of", "worker_lease", "roster", "roster_share"] [
        "meta", "workers", "joined", "posts", "suspended", "generations", "fences", "worker:",
    ];
    YIELD = "yield": ["clock"] ["workers", "joined", "posts", "worker:"];
    RECOUNT = "recount": ["clock", "roster"] ["meta", "suspended", "generations", "positions"];
    SUSPEND = "suspend": ["clock"] ["meta", "suspended"];
    CHECKPOINT = "checkpoint": [] ["posts", "positions", "generations"];
    DEMOTE = "demote": ["clock"] ["posts", "failures", "aside"];
    SURVEY = "survey": ["clock"] ["meta", "control", "scans"];
    RESCAN = "rescan": ["clock"] ["meta", "control"];
    DISPENSER_ADD = "dispenser_add": [
        "clock", "key_of", "key_as_table", "dispenser_keys", "dispenser_answer",
        "dispenser_add",
    ] ["dispenser", "pool", "holders"];
    DISPENSER_ASSIGN = "dispenser_assign": [
        "clock", "key_of", "key_as_table", "dispenser_keys", "dispenser_answer",
        "dispenser_back", "dispenser_clock", "dispenser_held", "dispenser_pick",
    ] ["dispenser", "pool", "holders", "assignees", "bucket:", "deadlines", "returned"];
    DISPENSER_CHECK = "dispenser_check": [
        "clock", "key_of", "key_as_table", "dispenser_keys", "dispenser_back", "dispenser_clock",
        "dispenser_held",
    ] ["dispenser", "pool", "holders", "assignees", "bucket:", "deadlines", "returned"];
    DISPENSER_DONE = "dispenser_done": [
        "clock", "key_of", "key_as_table", "dispenser_keys", "dispenser_span", "dispenser_answer",
        "dispenser_back", "dispenser_clock", "dispenser_place",
    ] ["dispenser", "pool", "holders", "assignees", "bucket:", "deadlines", "returned"];
    DISPENSER_RETURN = "dispenser_return": [
        "clock", "key_of", "key_as_table", "dispenser_keys", "dispenser_answer",
        "dispenser_back", "dispenser_clock", "dispenser_place",
    ] ["dispenser", "pool", "holders", "assignees", "bucket:", "deadlines", "returned"];
    DISPENSER_REBUILD = "dispenser_rebuild": [
        "clock", "key_of", "key_as_table", "dispenser_keys", "dispenser_answer",
        "dispenser_add", "dispenser_unlisted",
    ] ["dispenser", "pool", "holders", "returned"];
    DISPENSER_PEEK = "dispenser_peek": [
        "clock", "key_of", "key_as_table", "dispenser_keys", "dispenser_add", "dispenser_back",
        "dispenser_clock", "dispenser_rows",
    ] ["dispenser", "pool", "holders", "assignees", "deadlines", "returned"];
}

#[cfg(test)]
#[path = "scripts_tests.rs"]
mod tests;
