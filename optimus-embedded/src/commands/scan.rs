//! The cursor of SCAN, HSCAN and SSCAN.

use super::upper;
use crate::error::CommandError;
use crate::glob;
use crate::number;
use crate::reply::Reply;

/// The state of a scan.
#[derive(Clone, Copy)]
pub(super) struct Cursor(usize);

impl Cursor {
    pub(super) fn parse(argument: &[u8]) -> Result<Self, CommandError> {
        number::count(argument).map(Self).map_err(|_| CommandError::Cursor)
    }
}

/// Returns the reply of a scan of a key that does not exist. The options have no effect.
pub(super) fn nothing() -> Reply {
    Reply::Array(vec![Reply::bulk("0"), Reply::Array(Vec::new())])
}

/// A step of a scan.
///
/// A scan goes from the highest position down, and the cursor is the number of positions left. A
/// removal moves the last element into the gap, which is always a lower position. So a scan misses
/// no element that stays. As in Redis, it may return an element twice.
pub(super) struct Scan {
    cursor: usize,
    count: usize,
    pattern: Option<Vec<u8>>,
}

impl Scan {
    /// Reads the options that follow a cursor.
    pub(super) fn parse(cursor: Cursor, options: &[Vec<u8>]) -> Result<Self, CommandError> {
        let mut scan = Self { cursor: cursor.0, count: 10, pattern: None };
        for option in options.chunks(2) {
            match (upper(&option[0]).as_slice(), option.get(1)) {
                (b"COUNT", Some(count)) => {
                    let count = number::integer(count)?.max(0);
                    scan.count = usize::try_from(count).unwrap_or(usize::MAX);
                    if scan.count == 0 {
                        return Err(CommandError::Syntax);
                    }
                }
                (b"MATCH", Some(pattern)) => scan.pattern = Some(pattern.clone()),
                (b"TYPE", Some(_)) => return Err(CommandError::unimplemented(b"SCAN TYPE")),
                _ => return Err(CommandError::Syntax),
            }
        }
        Ok(scan)
    }

    /// Returns whether the pattern matches.
    pub(super) fn wants(&self, name: &[u8]) -> bool {
        self.pattern.as_ref().is_none_or(|pattern| glob::matches(pattern, name))
    }

    /// Returns the reply of one step over `len` positions. `visit` adds the elements that it finds.
    pub(super) fn over(&self, len: usize, mut visit: impl FnMut(usize, &mut Vec<Reply>)) -> Reply {
        let from = if self.cursor == 0 { len } else { self.cursor.min(len) };
        let to = from.saturating_sub(self.count);
        let mut found = Vec::new();
        for position in (to..from).rev() {
            visit(position, &mut found);
        }
        Reply::Array(vec![Reply::bulk(to.to_string()), Reply::Array(found)])
    }
}
