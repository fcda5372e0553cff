//! The tokens of JSON, with their names in the messages of `cjson`.

/// One token.
pub(super) enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    String(Vec<u8>),
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    /// An invalid token, with the reason.
    Invalid(&'static str),
}

impl Token {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::ObjectBegin => "T_OBJ_BEGIN",
            Self::ObjectEnd => "T_OBJ_END",
            Self::ArrayBegin => "T_ARR_BEGIN",
            Self::ArrayEnd => "T_ARR_END",
            Self::String(_) => "T_STRING",
            Self::Number(_) => "T_NUMBER",
            Self::Boolean(_) => "T_BOOLEAN",
            Self::Null => "T_NULL",
            Self::Colon => "T_COLON",
            Self::Comma => "T_COMMA",
            Self::End => "T_END",
            Self::Invalid(reason) => reason,
        }
    }
}

/// Reads the tokens of a text, one after the other.
pub(super) struct Tokens<'a> {
    text: &'a [u8],
    /// The start of the last token.
    start: usize,
    /// The position at which the next token is read.
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, start: 0, at: 0 }
    }

    /// Returns the position of the last token, counted from one.
    pub(super) fn character(&self) -> usize {
        self.start + 1
    }

    pub(super) fn next(&mut self) -> Token {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        self.start = self.at;
        let Some(&byte) = self.text.get(self.at) else { return Token::End };
        match byte {
            b'{' => self.word(1, Token::ObjectBegin),
            b'}' => self.word(1, Token::ObjectEnd),
            b'[' => self.word(1, Token::ArrayBegin),
            b']' => self.word(1, Token::ArrayEnd),
            b':' => self.word(1, Token::Colon),
            b',' => self.word(1, Token::Comma),
            b'"' => self.string(),
            b'-' | b'0'..=b'9' => self.number(),
            _ if self.rest().starts_with(b"null") => self.word(4, Token::Null),
            _ if self.rest().starts_with(b"true") => self.word(4, Token::Boolean(true)),
            _ if self.rest().starts_with(b"false") => self.word(5, Token::Boolean(false)),
            _ => Token::Invalid("invalid token"),
        }
    }

    fn rest(&self) -> &'a [u8] {
        &self.text[self.at..]
    }

    fn word(&mut self, len: usize, token: Token) -> Token {
        self.at += len;
        token
    }

    fn number(&mut self) -> Token {
        let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let rest = self.rest();
        let mut len = usize::from(rest[0] == b'-');
        len += digits(&rest[len..]);
        if rest.get(len) == Some(&b'.') {
            len += 1 + digits(&rest[len + 1..]);
        }
        if matches!(rest.get(len), Some(b'e' | b'E')) {
            let signed = usize::from(matches!(rest.get(len + 1), Some(b'+' | b'-')));
            let exponent = digits(&rest[len + 1 + signed..]);
            len += if exponent > 0 { 1 + signed + exponent } else { 0 };
        }
        let number = std::str::from_utf8(&rest[..len]).ok().and_then(|text| text.parse().ok());
        match number {
            Some(number) => self.word(len, Token::Number(number)),
            None => Token::Invalid("invalid number"),
        }
    }

    fn string(&mut self) -> Token {
        let mut string = Vec::new();
        self.at += 1;
        loop {
            let plain = self.rest().iter().take_while(|byte| !matches!(byte, b'"' | b'\\')).count();
            string.extend(&self.rest()[..plain]);
            self.at += plain;
            match self.rest() {
                [] => return self.invalid("unexpected end of string"),
                [b'"', ..] => return self.word(1, Token::String(string)),
                escape => match unescape(escape, &mut string) {
                    Ok(len) => self.at += len,
                    Err(reason) => return self.invalid(reason),
                },
            }
        }
    }

    /// Returns an error inside a string, with its position.
    fn invalid(&mut self, reason: &'static str) -> Token {
        self.start = self.at;
        Token::Invalid(reason)
    }
}

/// Appends the character of the escape at the start of `text`, and returns the length of the
/// escape.
fn unescape(text: &[u8], string: &mut Vec<u8>) -> Result<usize, &'static str> {
    let byte = match text.get(1) {
        Some(literal @ (b'"' | b'\\' | b'/')) => *literal,
        Some(b'b') => 0x08,
        Some(b'f') => 0x0c,
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(b't') => b'\t',
        Some(b'u') => {
            let (character, len) = unicode(text).ok_or("invalid unicode escape code")?;
            string.extend(character.encode_utf8(&mut [0; 4]).as_bytes());
            return Ok(len);
        }
        _ => return Err("invalid escape code"),
    };
    string.push(byte);
    Ok(2)
}

/// Returns the character of a `\u` escape with its four digits, or of two such escapes that are a
/// surrogate pair, and the total length.
fn unicode(text: &[u8]) -> Option<(char, usize)> {
    let unit = |text: &[u8]| {
        let digits = text.strip_prefix(b"\\u")?.get(..4)?;
        let digits = digits.iter().all(u8::is_ascii_hexdigit).then_some(digits)?;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let first = unit(text)?;
    if !(0xD800..0xDC00).contains(&first) {
        return Some((char::from_u32(first)?, 6));
    }
    let second = unit(&text[6..]).filter(|second| (0xDC00..0xE000).contains(second))?;
    let code = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
    Some((char::from_u32(code)?, 12))
}
