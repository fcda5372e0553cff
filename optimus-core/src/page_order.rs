//! Finds a page of a source whose rows are not in the order of their keys: [`disorder`].

use std::collections::HashSet;

/// The longest part of a key in a message.
const SHOWN_CHARS: usize = 60;

/// Returns what is wrong with the order of these keys, which are JSON; `after` is the key after
/// which the page begins.
///
/// Whole numbers have one order, so each must be at least the one before it. The order of other
/// keys is that of the database, such as the collation of a text, so only a key that comes back
/// after another one is wrong in any case. The same key twice in a row misses nothing, as in a
/// join.
pub(crate) fn disorder<'a>(
    keys: impl Iterator<Item = &'a str>,
    after: Option<&'a str>,
) -> Option<String> {
    let (mut before, mut seen) = (after, HashSet::new());
    seen.extend(after);
    for key in keys.filter(|key| !key.is_empty()) {
        let Some(last) = before.replace(key) else {
            seen.insert(key);
            continue;
        };
        let comes_back = !seen.insert(key) && key != last;
        let is_below = number(key).zip(number(last)).is_some_and(|(key, last)| key < last);
        if comes_back || is_below {
            return Some(format!("the key {} comes after {}", short(key), short(last)));
        }
    }
    None
}

fn number(key: &str) -> Option<i128> {
    key.parse().ok()
}

fn short(key: &str) -> String {
    let shown: String = key.chars().take(SHOWN_CHARS).collect();
    if shown.len() < key.len() { format!("{shown}…") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(keys: &[&str], after: Option<&str>) -> Option<String> {
        disorder(keys.iter().copied(), after)
    }

    #[test]
    fn numbers_have_an_order() {
        assert_eq!(of(&["1", "2", "2", "30"], Some("1")), None);
        assert_eq!(of(&["-3", "", "2", "18446744073709551615"], None), None);
        assert_eq!(of(&["3", "1", "2"], None).unwrap(), "the key 1 comes after 3");
        assert_eq!(of(&["8", "9"], Some("10")).unwrap(), "the key 8 comes after 10");
    }

    #[test]
    fn the_order_of_other_keys_is_unknown_but_no_key_comes_back() {
        assert_eq!(of(&[r#""b""#, r#""a""#, r#""a""#, r#""C""#], Some("7")), None);
        assert_eq!(of(&["[2,1]", "[1,2]"], None), None);
        let back = of(&[r#""a""#, r#""b""#, r#""a""#], None);
        assert_eq!(back.unwrap(), r#"the key "a" comes after "b""#);
        assert!(of(&[r#""b""#, r#""a""#], Some(r#""a""#)).is_some());
        let long = "x".repeat(100);
        assert!(of(&["a", &long, "a"], None).unwrap().len() < 100);
    }
}
