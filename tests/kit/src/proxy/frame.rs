//! Finds commands and replies in a stream of Redis' protocol (RESP 2 and 3).

/// Returns the length of the first command or reply in `bytes`. Returns `None` while it is not
/// complete.
pub(super) fn frame_len(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut items) = (0, 1_usize);
    while items > 0 {
        let line = line_at(bytes, at)?;
        at += line.len() + 2;
        items -= 1;
        let count = number(line);
        match line.first() {
            Some(b'$' | b'!' | b'=') => at += count.map_or(0, |length| length + 2),
            Some(b'*' | b'~' | b'>') => items += count.unwrap_or(0),
            Some(b'%') => items += 2 * count.unwrap_or(0),
            // The reply follows its attributes.
            Some(b'|') => items += 2 * count.unwrap_or(0) + 1,
            _ => {}
        }
        if at > bytes.len() {
            return None;
        }
    }
    Some(at)
}

/// Returns the first `most` words of a command.
pub(super) fn first_words(command: &[u8], most: usize) -> Vec<String> {
    let (mut at, mut words) = (0, Vec::new());
    while let Some(line) = line_at(command, at)
        && words.len() < most
    {
        at += line.len() + 2;
        match (line.first(), number(line)) {
            (Some(b'*'), _) => {}
            (Some(b'$'), Some(length)) => {
                let word = command.get(at..at + length).unwrap_or_default();
                words.push(String::from_utf8_lossy(word).into_owned());
                at += length + 2;
            }
            // The inline form of a command is a line of words.
            _ => {
                let line = String::from_utf8_lossy(line);
                words.extend(line.split_whitespace().take(most).map(str::to_owned));
            }
        }
    }
    words
}

/// Returns the line that begins at `at`, without its end. Returns `None` while the end is missing.
fn line_at(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let rest = bytes.get(at..)?;
    let end = rest.windows(2).position(|two| two == b"\r\n")?;
    Some(&rest[..end])
}

/// Returns the number after a line's first byte. Returns `None` for -1, which means nil.
fn number(line: &[u8]) -> Option<usize> {
    std::str::from_utf8(line.get(1..)?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_found_only_when_it_is_complete() {
        let frames: [&[u8]; 8] = [
            b"+OK\r\n",
            b":12\r\n",
            b"$-1\r\n",
            b"$5\r\na\r\nbc\r\n",
            b"*2\r\n$1\r\na\r\n*1\r\n:1\r\n",
            b"*-1\r\n",
            b"%1\r\n+k\r\n$1\r\nv\r\n",
            b"|1\r\n+k\r\n+v\r\n:7\r\n",
        ];
        for frame in frames {
            let longer = [frame, b"+next\r\n"].concat();
            assert_eq!(frame_len(&longer), Some(frame.len()), "{}", frame.escape_ascii());
            for part in 0..frame.len() {
                assert_eq!(frame_len(&frame[..part]), None, "{}", frame.escape_ascii());
            }
        }
    }

    #[test]
    fn a_command_is_known_by_its_first_words() {
        let command = b"*3\r\n$7\r\nEVALSHA\r\n$3\r\nabc\r\n$1\r\n0\r\n";
        assert_eq!(first_words(command, 2), ["EVALSHA", "abc"]);
        assert_eq!(first_words(b"PING now\r\n", 1), ["PING"]);
    }
}
