//! What failures with the same cause have in common: [`Fingerprint`].

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::{
    fingerprint_words::{HOLE, is_word, push_word},
    id::InvalidName,
    state::Reason,
};

/// What failures with the same cause have in common: the name of the task, the reason, and the
/// first line of the message, in which numbers with their units, ids and quoted parts do not count.
/// So "connect to smtp-17: timed out" and "connect to smtp-4: timed out" of one task have the same
/// fingerprint. Of the place of a panic the file counts, and not the line, which changes with each
/// edit above it.
///
/// Its text has 11 characters of `-0-9A-Z_a-z`. The same failure has the same fingerprint on every
/// machine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(u64);

/// The digits of stored ids.
const ALPHABET: &[u8; 64] = b"-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";

const TEXT_BYTES: usize = 11;

/// How many characters of a message count.
const CHARS_MAX: usize = 200;

impl Fingerprint {
    /// Returns the fingerprint of a failure of a task. Only the first line of the message counts.
    pub fn of(task: &str, reason: Reason, message: &str) -> Self {
        let outline = Self::outline(message);
        let mut hash = Fnv::default();
        for part in [task, reason.as_str(), &outline] {
            hash.add(part.as_bytes());
            hash.add(&[0]);
        }
        Self(hash.mixed())
    }

    /// Returns the first line of a message as it counts: with `#` instead of numbers, ids and
    /// quoted parts, up to 200 characters.
    pub fn outline(message: &str) -> String {
        let line: Vec<char> =
            message.lines().next().unwrap_or("").chars().take(CHARS_MAX).collect();
        let mut outline = String::with_capacity(line.len());
        let mut at = 0;
        while at < line.len() {
            let begin = line[at];
            if let Some(end) = quoted_until(&line, at) {
                outline.extend([begin, HOLE, line[end]]);
                at = end + 1;
            } else if is_word(begin) {
                at += push_word(&mut outline, &line, at);
            } else {
                outline.push(begin);
                at += 1;
            }
        }
        outline
    }
}

/// Returns where the quoted part ends that begins at this character. An apostrophe inside a word
/// begins none.
fn quoted_until(line: &[char], at: usize) -> Option<usize> {
    let end = match line[at] {
        '\'' if at > 0 && line[at - 1].is_alphanumeric() => return None,
        quote @ ('"' | '`' | '\'') => quote,
        '“' => '”',
        '«' => '»',
        _ => return None,
    };
    line[at + 1..].iter().position(|c| *c == end).map(|offset| at + 1 + offset)
}

/// The hash FNV-1a, which is the same on every machine.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Lets each bit of the input change each bit of the result.
    fn mixed(self) -> u64 {
        let mut bits = self.0;
        for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
            bits = (bits ^ bits >> 33).wrapping_mul(factor);
        }
        bits ^ bits >> 33
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digit = |place: usize| {
            let value = u128::from(self.0) >> (6 * (TEXT_BYTES - 1 - place)) & 63;
            char::from(ALPHABET[usize::try_from(value).unwrap_or(0)])
        };
        let text: String = (0..TEXT_BYTES).map(digit).collect();
        f.pad(&text)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Fingerprint {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let invalid = || InvalidName::NotAFingerprint(text.to_owned());
        if text.len() != TEXT_BYTES {
            return Err(invalid());
        }
        let mut bits = 0_u128;
        for byte in text.bytes() {
            let digit = ALPHABET.iter().position(|known| *known == byte).ok_or_else(invalid)?;
            bits = bits << 6 | digit as u128;
        }
        u64::try_from(bits).map(Self).map_err(|_| invalid())
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_ids_and_quoted_parts_do_not_count() {
        let same = [
            ("connect to smtp-17: timed out", "connect to smtp-#: timed out"),
            ("user 4711 of 10.0.0.1:8080", "user # of #.#.#.#:#"),
            (r#"no column "a.b" in 'c d'"#, r##"no column "#" in '#'"##),
            ("can't find 'x', don't retry", "can't find '#', don't retry"),
            ("task 0198c2f1-5d0a-7a31-8f00-6c1d2e3f4a5b ended", "task # ended"),
            ("blob deadbeef00 and face", "blob # and face"),
            ("id 0O-Jx9wAbCdEfGhIjKlMnO gone", "id # gone"),
            ("still running after 5.001s", "still running after #"),
            ("still running after 5s", "still running after #"),
            ("still running after 999.9ms, 3.5 of 4 KiB", "still running after #, # of # KiB"),
            ("release 1.2.3 of v1.5 at 5.x: 8kb, 3d4", "release #.#.# of v#.# at #.x: #, #d#"),
            ("worker media-4711-0ad3e1f2 is away", "worker media-# is away"),
            ("worker bad-node-1-17-0ad3e1f2 is away", "worker bad-node-# is away"),
            ("task_0198c2f1-5d0a-7a31-8f00-6c1d2e3f4a5b-dead", "task_#-dead"),
            ("shard-17-2026 of x9-face", "shard-#-# of x#-face"),
            ("first line\nsecond 5", "first line"),
            ("“a” and «b»: 5 µs", "“#” and «#»: # µs"),
            ("an open \"quote 7", "an open \"quote #"),
            ("at src/jobs2/mail.rs:12:5: no row 7", "at src/jobs#/mail.rs:#:#: no row #"),
            ("", ""),
        ];
        for (message, outline) in same {
            assert_eq!(Fingerprint::outline(message), outline);
        }
        let of = |message| Fingerprint::of("send", Reason::Failed, message);
        assert_eq!(of("smtp-1 is away"), of("smtp-22 is away\n  caused by: x"));
        assert_ne!(of("smtp-1 is away"), of("smtp-1 is back"));
        assert_ne!(of("a"), Fingerprint::of("send", Reason::Panicked, "a"));
        assert_ne!(of("a"), Fingerprint::of("sen", Reason::Failed, "a"));
        assert_eq!(Fingerprint::outline(&"x1".repeat(5_000)).len(), CHARS_MAX);
    }

    #[test]
    fn a_fingerprint_is_the_same_on_every_machine_and_reads_its_own_text() {
        let known = Fingerprint::of("send", Reason::Failed, "connect to smtp-17: timed out");
        assert_eq!(known.to_string(), "8TQEcGfdFLm");
        assert_eq!(known.to_string().parse(), Ok(known));
        for bits in [0, 1, u64::MAX, 1 << 63] {
            assert_eq!(Fingerprint(bits).to_string().parse(), Ok(Fingerprint(bits)));
        }
        for strange in ["", "short", "0123456789é", "zzzzzzzzzzz", "0123456789 "] {
            assert!(strange.parse::<Fingerprint>().is_err(), "{strange}");
        }
    }
}
