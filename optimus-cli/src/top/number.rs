//! Numbers in few columns.

use crate::output::text;

/// Returns a number in at most seven columns: `1,204`, `12,345k`.
pub(super) fn short(number: u64) -> String {
    const UNITS: [&str; 4] = ["", "k", "M", "G"];
    let (mut number, mut unit) = (number, 0);
    while number >= 100_000 && unit + 1 < UNITS.len() {
        (number, unit) = (number / 1_000, unit + 1);
    }
    format!("{}{}", text::number(number), UNITS[unit])
}

/// Returns how many in a second: `0.4`, `12,345`.
pub(super) fn rate(rate: f64) -> String {
    if rate < 0.05 {
        return "0".to_owned();
    }
    if rate < 9.95 {
        return format!("{rate:.1}");
    }
    #[expect(clippy::cast_possible_truncation, reason = "a cast to an integer saturates")]
    #[expect(clippy::cast_sign_loss, reason = "it is above 0")]
    short(rate.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_however_large_they_are() {
        let numbers = [0, 1_204, 99_999, 100_000, 2_310_442, 123_456_789, 5_000_000_000].map(short);
        assert_eq!(numbers, ["0", "1,204", "99,999", "100k", "2,310k", "123M", "5,000M"]);
        let rates = [0.0, 0.04, 0.4, 9.94, 12.0, 123_456.7].map(rate);
        assert_eq!(rates, ["0", "0", "0.4", "9.9", "12", "123k"]);
    }
}
