//! How the parts of a script become its text: [`script_text!`].
//!
//! A build contains all scripts. `cargo xtask mutants` builds with `--cfg scripts_from_files`: then
//! a program reads a script when it first needs it, so a bug that is planted there needs no build.

/// The text of a script.
#[cfg(not(scripts_from_files))]
pub(super) type Text = &'static str;
#[cfg(scripts_from_files)]
pub(super) type Text = std::sync::LazyLock<&'static str>;

pub(super) fn whole(text: &'static Text) -> &'static str {
    text
}

/// The text of one file of `lua/`.
#[cfg(not(scripts_from_files))]
macro_rules! lua {
    ($($name:literal),*) => { include_str!(concat!("../../lua/", $($name,)* ".lua")) };
}
#[cfg(scripts_from_files)]
macro_rules! lua {
    ($($name:literal),*) => { &*super::script_text::read(concat!($($name,)* ".lua")) };
}

/// The text of a script, of its parts.
#[cfg(not(scripts_from_files))]
macro_rules! script_text {
    ($($part:tt)*) => { concat!($($part)*) };
}
#[cfg(scripts_from_files)]
macro_rules! script_text {
    ($($part:tt)*) => { LazyLock::new(|| [$($part)*].concat().leak()) };
}

#[cfg(scripts_from_files)]
pub(super) fn read(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("lua").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

pub(super) use {lua, script_text};
