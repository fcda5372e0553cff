//! One call of a script, ready to be sent: [`ScriptCall`].

use std::{fmt::Display, io::Write as _};

use redis::Cmd;

use super::{keys::Keys, scripts::Script};
use crate::{id::TaskId, lease::Token, platform};

/// One call of a script, ready to be sent, alone or with others in one write.
#[derive(Clone)]
pub struct ScriptCall {
    pub(super) script: &'static Script,
    keys: Words,
    args: Words,
}

/// Byte strings in one buffer. A call has thousands of them, and separate ones would each need an
/// allocation.
#[derive(Clone, Default)]
struct Words {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// Room for one key without its prefix, and for the arguments of a call of one task.
const KEY_BYTES: usize = 24;
const ARGS: usize = 8;
const ARGS_BYTES: usize = 128;

impl Words {
    fn with_capacity(words: usize, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(words) }
    }

    fn push(&mut self, word: &[u8]) {
        self.bytes.extend_from_slice(word);
        self.end();
    }

    fn push_text(&mut self, word: impl Display) {
        write!(self.bytes, "{word}").expect("a Vec grows");
        self.end();
    }

    /// Ends the word that was written into `bytes`.
    fn end(&mut self) {
        self.ends.push(self.bytes.len());
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }
}

impl ScriptCall {
    /// Makes a call whose owned keys (those that end in `:`) belong to `owner`.
    pub(super) fn new(script: &'static Script, keys: &Keys, owner: &str) -> Self {
        Self::short(script, script.keys.len(), keys, owner)
    }

    /// Makes a call with only the first `count` keys.
    pub(super) fn short(script: &'static Script, count: usize, keys: &Keys, owner: &str) -> Self {
        let base = keys.base();
        let mut words = Words::with_capacity(count, count * (base.len() + KEY_BYTES));
        for key in &script.keys[..count] {
            let owner = if key.ends_with(':') { owner } else { "" };
            for part in [base, key, owner] {
                words.bytes.extend_from_slice(part.as_bytes());
            }
            words.end();
        }
        Self { script, keys: words, args: Words::with_capacity(ARGS, ARGS_BYTES) }
    }

    /// Returns the common prefix of the call's keys.
    fn key_base(&self) -> String {
        let first = self.keys.iter().next().map(String::from_utf8_lossy).unwrap_or_default();
        first.split_inclusive("}:").next().unwrap_or_default().to_owned()
    }

    /// Returns a key of this call alone, for the probes of permissions.
    pub(super) fn probe_key(&self) -> String {
        format!("{}probe:{}", self.key_base(), platform::new_uuid().simple())
    }

    /// Reserves room for this many more arguments with this many bytes in total.
    pub(super) fn reserve(&mut self, args: usize, bytes: usize) {
        self.args.ends.reserve(args);
        self.args.bytes.reserve(bytes);
    }

    pub(super) fn arg(mut self, arg: impl Display) -> Self {
        self.push(arg);
        self
    }

    /// Adds a text as it is. This takes a tenth of what [`arg`](Self::arg) takes.
    pub(super) fn text(mut self, text: &str) -> Self {
        self.push_bytes(text.as_bytes());
        self
    }

    pub(super) fn number(mut self, number: impl itoa::Integer) -> Self {
        self.push_number(number);
        self
    }

    pub(super) fn push(&mut self, arg: impl Display) {
        self.args.push_text(arg);
    }

    pub(super) fn push_bytes(&mut self, arg: &[u8]) {
        self.args.push(arg);
    }

    pub(super) fn push_id(&mut self, id: &TaskId) {
        self.args.push(&id.stored_bytes());
    }

    pub(super) fn push_number(&mut self, number: impl itoa::Integer) {
        self.push_with(|bytes| write_number(bytes, number));
    }

    pub(super) fn push_token(&mut self, Token { seq, fence }: Token) {
        self.push_with(|bytes| {
            write_number(bytes, seq);
            bytes.push(b':');
            write_number(bytes, fence);
        });
    }

    /// Writes an argument in place.
    pub(super) fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.args.bytes);
        self.args.end();
    }

    /// Declares one more key; returns its index, from 1, as options and extras write it.
    pub(super) fn extra_key(&mut self, key: &str) -> usize {
        self.keys.push(key.as_bytes());
        self.keys.ends.len() - self.script.keys.len()
    }

    /// Returns the command for a server that knows the script.
    pub(super) fn by_hash(&self) -> Cmd {
        self.command("EVALSHA", &self.script.sha)
    }

    /// Returns the command for a server that does not know the script yet.
    pub(super) fn by_text(&self) -> Cmd {
        self.command("EVAL", self.script.source())
    }

    fn command(&self, verb: &str, script: &str) -> Cmd {
        let (keys, args) = (&self.keys, &self.args);
        let words = 3 + keys.ends.len() + args.ends.len();
        let bytes = 16 + script.len() + keys.bytes.len() + args.bytes.len();
        let mut command = Cmd::with_capacity(words, bytes);
        command.arg(verb).arg(script).arg(keys.ends.len());
        for word in keys.iter().chain(args.iter()) {
            command.arg(word);
        }
        command
    }
}

/// Writes a number. This takes a fifth of what `write!` takes.
pub(super) fn write_number(bytes: &mut Vec<u8>, number: impl itoa::Integer) {
    bytes.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}
