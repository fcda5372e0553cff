//! A Lua script with its keys: [`Script`].

use std::{fmt, sync::LazyLock};

use super::script_text::{Text, whole};

/// A Lua script with its keys.
pub struct Script {
    /// The verb, which is the name of its file.
    pub name: &'static str,
    pub(super) source: Text,
    /// The names of KEYS in the order of the script's naming block. A key that ends in `:` is
    /// followed by an owner's id.
    pub keys: &'static [&'static str],
    /// The SHA-1 hash under which Redis knows the script.
    pub sha: LazyLock<String>,
}

impl Script {
    /// Returns whether the script writes, so that it may be stopped between two writes.
    pub(super) fn writes(&'static self) -> bool {
        self.source().contains("-- Writes.")
    }

    /// Returns the commands that a call of the script may run.
    pub(super) fn commands(&'static self) -> impl Iterator<Item = &'static str> {
        let calls = self.source().split("call('").skip(1);
        calls.filter_map(|call| call.split('\'').next()).chain(["EVAL", "EVALSHA"])
    }

    /// Returns the whole text: the includes, then the script.
    pub fn source(&'static self) -> &'static str {
        whole(&self.source)
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
