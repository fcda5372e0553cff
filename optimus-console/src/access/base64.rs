//! Reads the text of `Authorization: Basic`.

/// Decodes base64 with its padding; `None` for any other text.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.as_bytes();
    if text.is_empty() || !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
    if padding > 2 {
        return None;
    }
    let digits = &text[..text.len() - padding];
    let (mut bytes, mut held, mut bits) = (Vec::with_capacity(text.len() / 4 * 3), 0_u32, 0);
    for digit in digits {
        held = (held << 6 | u32::from(value(*digit)?)) & 0xff_ffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(held >> bits & 0xff).ok()?);
        }
    }
    Some(bytes)
}

fn value(digit: u8) -> Option<u8> {
    Some(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_every_length_is_decoded_and_other_text_is_refused() {
        for (text, bytes) in [
            ("YQ==", "a"),
            ("YWI=", "ab"),
            ("YWJj", "abc"),
            ("YW5uOnRoZSBzZWNyZXQ=", "ann:the secret"),
            ("w6k/Pj8=", "é?>?"),
        ] {
            assert_eq!(decode(text).unwrap(), bytes.as_bytes(), "{text}");
        }
        for text in ["", "a", "YQ", "YQ=", "Y===", "====", "YQ==YQ==", "Y Q=", "YQ\n=", "YéQ"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
