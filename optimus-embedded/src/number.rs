//! Numbers as Redis reads and writes them.

use crate::error::CommandError;

/// Reads an integer in the only form that Redis accepts: without a plus, a leading zero or a space.
pub(crate) fn integer(bytes: &[u8]) -> Result<i64, CommandError> {
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let canonical = match digits {
        b"0" => digits.len() == bytes.len(),
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !canonical {
        return Err(CommandError::NotAnInteger);
    }
    std::str::from_utf8(bytes)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or(CommandError::NotAnInteger)
}

/// Reads a count, which can't be negative.
pub(crate) fn count(bytes: &[u8]) -> Result<usize, CommandError> {
    integer(bytes)
        .ok()
        .and_then(|count| usize::try_from(count).ok())
        .ok_or(CommandError::NotPositive)
}

/// Reads a float, including `inf`. Returns `None` for any other text, including `nan`.
pub(crate) fn float(bytes: &[u8]) -> Option<f64> {
    let value: f64 = std::str::from_utf8(bytes).ok()?.parse().ok()?;
    (!value.is_nan()).then_some(value)
}

/// Writes a score as `%.17g`, which prints whole numbers without decimals.
pub(crate) fn score(value: f64) -> Vec<u8> {
    general(value, 17).into_bytes()
}

/// Writes a float as C's `%.<precision>g` does.
pub(crate) fn general(value: f64, precision: usize) -> String {
    if !value.is_finite() {
        return value.to_string().to_ascii_lowercase();
    }
    // Rust rounds as C does, and the exponent in its text determines the form.
    let scientific = format!("{value:.*e}", precision - 1);
    let (digits, exponent) = scientific.split_once('e').expect("{:e} writes an exponent");
    let exponent: i32 = exponent.parse().expect("{:e} writes a whole exponent");
    let decimals = i32::try_from(precision).expect("a precision fits an i32") - 1 - exponent;
    match usize::try_from(decimals) {
        Ok(decimals) if exponent >= -4 => {
            without_trailing_zeros(&format!("{value:.decimals$}")).to_owned()
        }
        _ => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", without_trailing_zeros(digits), exponent.abs())
        }
    }
}

fn without_trailing_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::{float, general, integer};

    #[test]
    fn floats_are_written_as_c_writes_them() {
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (3.0, "3"),
            (-0.5, "-0.5"),
            (0.1, "0.10000000000000001"),
            (1e-4, "0.0001"),
            (1e-5, "1.0000000000000001e-05"),
            (12_345_678_901_234_568.0, "12345678901234568"),
            (1e17, "1e+17"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (value, text) in cases {
            assert_eq!(general(value, 17), text);
        }
        assert_eq!(general(123_456_789_012_345_678.0, 14), "1.2345678901235e+17");
        assert_eq!(general(1e100, 14), "1e+100");
    }

    #[test]
    fn an_integer_has_one_form() {
        for (text, value) in [("0", 0), ("-1", -1), ("10", 10), ("-9223372036854775808", i64::MIN)]
        {
            assert_eq!(integer(text.as_bytes()), Ok(value));
        }
        for text in ["", "-", "-0", "+1", "01", " 1", "1 ", "1.0", "9223372036854775808"] {
            assert!(integer(text.as_bytes()).is_err(), "{text:?} was read as an integer");
        }
    }

    #[test]
    fn a_score_may_be_infinite_but_is_always_a_number() {
        assert_eq!(float(b"+inf"), Some(f64::INFINITY));
        assert_eq!(float(b"1e3"), Some(1000.0));
        assert_eq!(float(b"nan"), None);
        assert_eq!(float(b"x"), None);
    }
}
