//! Where a panic happened, for those who catch it: [`PanicPlace`]. This module is for the other
//! Optimus crates.
//!
//! The payload of a panic has no place; only the panic hook is told it. So a hook keeps the place
//! of the last panic of each thread, and passes the panic on to the hook that was there before. A
//! program that sets another hook later loses the places, and nothing else.

use std::{
    any::{Any, TypeId},
    cell::Cell,
    fmt,
    panic::{self, PanicHookInfo},
    sync::Once,
    thread,
};

use crate::guarded_drop::panic_text;

static HOOK: Once = Once::new();

thread_local! {
    /// The last panic of this thread that nobody has asked about.
    static LAST: Cell<Option<PanicPlace>> = const { Cell::new(None) };
}

/// The place of a panic that was caught.
#[derive(Debug)]
pub struct PanicPlace {
    text: Box<str>,
    of: Payload,
}

/// What a payload has in common with itself when it is caught. Code that resumes a panic calls no
/// hook, so the last place of the thread may be that of another panic.
#[derive(Debug, PartialEq, Eq)]
enum Payload {
    /// The address and the length of the text. They stay the same when the payload is moved.
    Text(usize, usize),
    Other(TypeId),
}

impl Payload {
    fn of(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&'static str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        match text {
            Some(text) => Self::Text(text.as_ptr().addr(), text.len()),
            None => Self::Other(payload.type_id()),
        }
    }
}

impl PanicPlace {
    /// Keeps the places of the panics of this process from now on.
    pub fn keep() {
        // The hook can't be replaced by a thread that panics, for example in a drop.
        if !thread::panicking() {
            HOOK.call_once(|| {
                let earlier = panic::take_hook();
                panic::set_hook(Box::new(move |info| {
                    note(info);
                    earlier(info);
                }));
            });
        }
    }

    /// Takes the place of a panic that this thread has just caught. `None` if it is not known.
    pub fn take(payload: &(dyn Any + Send)) -> Option<Self> {
        let last = LAST.try_with(Cell::take).ok().flatten();
        last.filter(|last| last.of == Payload::of(payload))
    }

    /// Passes the place to the code that catches the panic when this thread resumes it.
    pub(crate) fn pass(place: Option<Self>) {
        LAST.try_with(|last| last.set(place)).ok();
    }
}

/// Writes the place as the text of an error begins with it: `src/jobs.rs:12:5`.
impl fmt::Display for PanicPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns what is said of a panic that this thread has just caught: `panicked at
/// src/jobs.rs:12:5: text`, or `panicked: text` if the place is not known.
pub fn panic_sentence(payload: &(dyn Any + Send)) -> String {
    let place = PanicPlace::take(payload).map(|place| format!(" at {place}"));
    format!("panicked{}: {}", place.unwrap_or_default(), panic_text(payload))
}

/// Returns the text of a panic after its place, if that is known: `at src/jobs.rs:12:5: text`.
pub fn with_place(place: Option<&PanicPlace>, text: &str) -> String {
    place.map_or_else(|| text.to_owned(), |place| format!("at {place}: {text}"))
}

fn note(info: &PanicHookInfo<'_>) {
    let Some(place) = info.location() else { return };
    let (line, column) = (place.line(), place.column());
    let text = format!("{}:{line}:{column}", short(place.file())).into();
    PanicPlace::pass(Some(PanicPlace { text, of: Payload::of(info.payload()) }));
}

/// Returns the path of a source file, without what is above the folder of its package if it is
/// absolute. So the same panic has the same text on every machine, and names no home directory.
fn short(file: &str) -> &str {
    let is_separator = |c: char| matches!(c, '/' | '\\');
    let is_absolute = file.starts_with(is_separator) || file.get(1..2) == Some(":");
    let source = file.rfind("/src/").or_else(|| file.rfind(r"\src\"));
    let Some(source) = source.filter(|_| is_absolute) else { return file };
    let package = file[..source].rfind(is_separator).map_or(0, |before| before + 1);
    &file[package..]
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};

    use super::*;

    /// Returns what a thread finds out about its own panic.
    fn caught(code: impl FnOnce()) -> Option<String> {
        PanicPlace::keep();
        let payload = catch_unwind(AssertUnwindSafe(code)).unwrap_err();
        PanicPlace::take(&*payload).map(|place| place.to_string())
    }

    #[track_caller]
    fn panics_at_its_caller(number: u32) {
        if number == 0 {
            panic_any(number);
        }
        panic!("number {number}");
    }

    #[test]
    fn those_who_catch_a_panic_find_out_where_it_happened() {
        let line = line!() + 1;
        let found = caught(|| panic!("boom"));
        assert_eq!(found, Some(format!("{}:{line}:31", file!())));
        for number in [0, 1] {
            let line = line!() + 1;
            let found = caught(|| panics_at_its_caller(number));
            assert_eq!(found, Some(format!("{}:{line}:35", file!())));
        }
    }

    #[test]
    fn a_panic_is_not_said_to_be_at_the_place_of_another_one() {
        let found = caught(|| {
            let _caught = catch_unwind(|| panic!("the one that was caught")).unwrap_err();
            resume_unwind(Box::new("the one that was resumed"))
        });
        assert_eq!(found, None);
        assert_eq!(caught(|| resume_unwind(Box::new("no panic before"))), None);
    }

    #[test]
    fn a_panic_that_is_resumed_on_another_thread_takes_its_place_along() {
        PanicPlace::keep();
        let line = line!() + 1;
        let there = thread::spawn(|| catch_unwind(|| panic!("boom {}", 1)).map_err(placed));
        let (payload, place) = there.join().unwrap().unwrap_err();
        let found = caught(|| {
            PanicPlace::pass(place);
            resume_unwind(payload)
        });
        let place = format!("{}:{line}:", file!());
        assert!(found.as_ref().is_some_and(|found| found.starts_with(&place)), "{found:?}");
    }

    fn placed(payload: Box<dyn Any + Send>) -> (Box<dyn Any + Send>, Option<PanicPlace>) {
        let place = PanicPlace::take(&*payload);
        (payload, place)
    }

    #[test]
    fn a_path_is_that_within_the_workspace_or_from_the_folder_of_the_package_on() {
        for (file, expected) in [
            ("src/jobs.rs", "src/jobs.rs"),
            ("crates/jobs/src/deep/mail.rs", "crates/jobs/src/deep/mail.rs"),
            ("/build/registry/src/index/serde-1.0.2/src/de/of.rs", "serde-1.0.2/src/de/of.rs"),
            ("/rustc/0a1b2c/library/core/src/option.rs", "core/src/option.rs"),
            (r"C:\Users\ann\jobs\src\main.rs", r"jobs\src\main.rs"),
            ("/build/jobs.rs", "/build/jobs.rs"),
            ("/src/jobs.rs", "/src/jobs.rs"),
            ("/app/src/jobs.rs", "app/src/jobs.rs"),
            ("", ""),
            ("é:/src/é.rs", "é:/src/é.rs"),
        ] {
            assert_eq!(short(file), expected);
        }
    }
}
