//! "Did you mean …?"

/// The least number of letters of a beginning that stands for a whole word.
const BEGINNING_MIN: usize = 3;

/// Returns the candidate that `word` probably means: it is similar, or begins with this word.
pub(crate) fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let near = |candidate: &&str| distance(word, candidate) <= candidate.len().div_ceil(3).min(3);
    let similar = candidates.iter().copied().filter(near);
    let begins = |candidate: &&str| word.len() >= BEGINNING_MIN && candidate.starts_with(word);
    similar
        .min_by_key(|candidate| distance(word, candidate))
        .or_else(|| candidates.iter().copied().find(begins))
}

/// Returns the number of letters to insert, delete or replace between two words.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

/// `a`, `b` and `c`, each in backticks.
pub(crate) fn list(words: impl IntoIterator<Item = impl std::fmt::Display>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, first)) => format!("{} and {last}", first.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_its_word_and_a_different_word_finds_none() {
        let words = ["queue", "timeout", "max_retry", "biz_id"];
        assert_eq!(nearest("queu", &words), Some("queue"));
        assert_eq!(nearest("time_out", &words), Some("timeout"));
        assert_eq!(nearest("max_retries", &words), Some("max_retry"));
        assert_eq!(nearest("time", &words), Some("timeout"));
        assert_eq!(nearest("colour", &words), None);
        assert_eq!(nearest("", &words), None);
    }

    #[test]
    fn lists_read_as_prose() {
        assert_eq!(list(["a"]), "`a`");
        assert_eq!(list(["a", "b", "c"]), "`a`, `b` and `c`");
    }
}
