//! What must hold whatever bytes come, one decoder a file: [`PROPERTIES`].
//!
//! Each property is a function of bytes that panics where it does not hold. `tests/short.rs` tries
//! each on its seeds and on some thousands of mutations of them; `libfuzzer/` on as many as one
//! likes, under coverage, with the same functions:
//!
//! ```sh
//! mkdir -p tests/fuzz/libfuzzer/corpus/record
//! cargo +nightly fuzz run --fuzz-dir tests/fuzz/libfuzzer record \
//!     tests/fuzz/libfuzzer/corpus/record tests/fuzz/seeds/record -- -max_total_time=60
//! ```

mod draw;
mod duration;
mod glob;
mod id;
mod json;
mod queues;
mod record;
mod reply;
mod url;
mod wait;

/// Something that holds for all bytes.
pub struct Property {
    /// That of its target and of its folder of seeds.
    pub name: &'static str,
    /// Panics where it does not hold.
    pub check: fn(&[u8]),
}

/// All of them.
pub const PROPERTIES: [Property; 10] = [
    Property { name: "duration", check: duration::check },
    Property { name: "glob", check: glob::check },
    Property { name: "id", check: id::check },
    Property { name: "json", check: json::check },
    Property { name: "queues", check: queues::check },
    Property { name: "record", check: record::check },
    Property { name: "reply", check: reply::check },
    Property { name: "submission", check: record::check_submission },
    Property { name: "url", check: url::check },
    Property { name: "wait", check: wait::check },
];

/// Checks the property of that name.
///
/// # Panics
/// Where it does not hold, and for a name that none has.
pub fn check(name: &str, data: &[u8]) {
    let property = PROPERTIES.iter().find(|property| property.name == name);
    (property.expect("a property of that name").check)(data);
}
