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
    /// Returns the commands that the script may run if it changes something; none if it only reads:
    /// nothing is half done then.
    pub(super) fn changing_commands(&'static self) -> impl Iterator<Item = &'static str> {
        let source = Some(self.source()).filter(|source| source.contains("-- Writes."));
        let calls = source.into_iter().flat_map(|source| source.split("call('").skip(1));
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
