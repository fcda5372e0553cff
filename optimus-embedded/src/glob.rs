//! The patterns of KEYS, MATCH and CONFIG GET.

/// Returns whether `text` matches `pattern`. A pattern may contain `*`, `?`, `[a-c]`, `[^a]`, and
/// `\` before a literal.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut pattern_at, mut text_at) = (0, 0);
    // The position at which the match continues if the pattern after the last star does not match.
    let mut last_star = None;
    loop {
        if pattern.get(pattern_at) == Some(&b'*') {
            pattern_at += 1;
            last_star = Some((pattern_at, text_at));
        } else if text_at < text.len()
            && let Some(width) = one(&pattern[pattern_at..], text[text_at])
        {
            pattern_at += width;
            text_at += 1;
        } else if pattern_at == pattern.len() && text_at == text.len() {
            return true;
        } else if let Some((star_at, tried_at)) = last_star
            && tried_at < text.len()
        {
            last_star = Some((star_at, tried_at + 1));
            (pattern_at, text_at) = (star_at, tried_at + 1);
        } else {
            return false;
        }
    }
}

/// Returns the length of the pattern's first element, if this element matches `byte`.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [b'?', ..] => Some(1),
        [b'\\', literal, ..] => (*literal == byte).then_some(2),
        [b'[', class @ ..] => {
            let (width, found) = in_class(class, byte);
            found.then_some(width + 1)
        }
        [literal, ..] => (*literal == byte).then_some(1),
        [] => None,
    }
}

/// Returns the length of the class with its closing bracket, and whether the class contains `byte`.
fn in_class(class: &[u8], byte: u8) -> (usize, bool) {
    let negated = class.first() == Some(&b'^');
    let mut at = usize::from(negated);
    let mut found = false;
    loop {
        match &class[at..] {
            // As in Redis, a class without a closing bracket extends to the end of the pattern.
            [] => return (at, found != negated),
            [b']', ..] => return (at + 1, found != negated),
            [b'\\', literal, ..] => {
                found |= *literal == byte;
                at += 2;
            }
            [from, b'-', to, ..] => {
                found |= (*from.min(to)..=*from.max(to)).contains(&byte);
                at += 3;
            }
            [literal, ..] => {
                found |= *literal == byte;
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, text) in [
            ("", ""),
            ("*", ""),
            ("a*c", "abbc"),
            ("a*b*c", "a-b-b-c"),
            ("h?llo", "hallo"),
            ("h[a-e]llo", "hbllo"),
            ("h[^a]llo", "hbllo"),
            (r"\*", "*"),
            ("{q:0}:*", "{q:0}:ready"),
        ] {
            assert!(matches(pattern.as_bytes(), text.as_bytes()), "{pattern} / {text}");
        }
        for (pattern, text) in
            [("", "a"), ("a", ""), ("?", ""), ("a*c", "abbcd"), ("h[^a]llo", "hallo"), (r"\*", "a")]
        {
            assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{pattern} / {text}");
        }
    }
}
