//! Properties that hold for all bytes, one decoder in each file: [`PROPERTIES`].
//!
//! Each property is a function of bytes that panics if the property does not hold. `tests/short.rs`
//! tries each property on its seeds and on some thousands of mutations of the seeds. `libfuzzer/`
//! runs the same functions with coverage for as long as needed:
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
#[path = "../../../optimus-worker/src/user_threads.rs"]
#[allow(dead_code, reason = "the settings of a worker name it, and no test here runs one")]
mod user_threads;
mod wait;

/// A property that holds for all bytes.
pub struct Property {
    /// The name of the target of this property, and of its folder of seeds.
    pub name: &'static str,
    /// The function that panics if the property does not hold.
    pub check: fn(&[u8]),
}

/// All properties.
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
///
/// If the property does not hold, or if no property has that name.
pub fn check(name: &str, data: &[u8]) {
    let property = PROPERTIES.iter().find(|property| property.name == name);
    (property.expect("a property with that name exists").check)(data);
}
