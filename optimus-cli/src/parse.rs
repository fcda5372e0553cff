//! Values of the command line that clap does not know: times, sizes, headers.

use std::time::Duration;

use chrono::{DateTime, Utc};

/// Reads a time such as `90s`, `15m`, `2h`, `7d`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let problem = || format!("{text:?} is not a time; write 90s, 15m, 2h or 7d");
    let at = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(problem)?;
    let (number, unit) = text.split_at(at);
    let number: u64 = number.parse().map_err(|_| problem())?;
    let ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(problem()),
    };
    number.checked_mul(ms).map(Duration::from_millis).ok_or_else(problem)
}

/// Reads an instant such as `2026-10-03T09:00:00Z`.
pub(crate) fn instant(text: &str) -> Result<DateTime<Utc>, String> {
    text.parse().map_err(|_| {
        format!(
            "{text:?} is not an instant; write 2026-10-03T09:00:00Z, or 2026-10-03T11:00:00+02:00; \
             `--in 5m` is a time from now"
        )
    })
}

/// Reads how many to list.
pub(crate) fn limit(text: &str) -> Result<usize, String> {
    let limit = text.parse().ok().filter(|limit| *limit > 0);
    limit.ok_or_else(|| format!("{text:?} is not a number above 0; ask for 1 or more"))
}

/// Reads a size such as `64MB`, `64MiB`, `1GB`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let problem = || format!("{text:?} is not a size; write 64MB, 64MiB or 1GB");
    let at = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(problem)?;
    let (number, unit) = text.split_at(at);
    let number: u64 = number.parse().map_err(|_| problem())?;
    let bytes = match unit.trim().to_ascii_lowercase().as_str() {
        "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        _ => return Err(problem()),
    };
    number.checked_mul(bytes).ok_or_else(problem)
}

/// Reads a header such as `tenant=acme`, or its name alone.
pub(crate) fn header(text: &str) -> Result<(String, Option<String>), String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    if name.is_empty() {
        return Err(format!("{text:?} names no header; write tenant=acme, or tenant"));
    }
    Ok((name.to_owned(), value))
}

/// Reads a header with its value, such as `tenant=acme`.
pub(crate) fn whole_header(text: &str) -> Result<(String, String), String> {
    match header(text)? {
        (name, Some(value)) => Ok((name, value)),
        (name, None) => Err(format!("header {name:?} has no value; write {name}=VALUE")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_read_and_others_are_refused_with_examples() {
        assert_eq!(duration("90s").unwrap(), Duration::from_secs(90));
        assert_eq!(duration("7d").unwrap(), Duration::from_secs(604_800));
        for wrong in ["", "s", "5", "5 s", "5y", "99999999999999999999d", "-5s"] {
            assert!(duration(wrong).unwrap_err().contains("15m"), "{wrong}");
        }
        assert_eq!((size("64MB"), size("5 kb")), (Ok(64_000_000), Ok(5_000)));
        for wrong in ["", "64", "MB", "5XB", "-5MB", "99999999999GB"] {
            assert!(size(wrong).unwrap_err().contains("64MB"), "{wrong}");
        }
        assert_eq!(instant("2026-10-03T11:00:00+02:00"), instant("2026-10-03T09:00:00Z"));
        for wrong in ["", "yesterday", "2026-10-03", "5m"] {
            assert!(instant(wrong).unwrap_err().contains("09:00:00Z"), "{wrong}");
        }
    }

    #[test]
    fn a_header_has_a_name_and_possibly_a_value() {
        let read = |text| header(text).unwrap();
        assert_eq!(read("tenant"), ("tenant".into(), None));
        assert_eq!(read("tenant="), ("tenant".into(), Some(String::new())));
        assert_eq!(read("q=a=b"), ("q".into(), Some("a=b".into())));
        assert!(header("=acme").unwrap_err().contains("tenant=acme"));
        assert_eq!(whole_header("q=a=b"), Ok(("q".into(), "a=b".into())));
        assert!(whole_header("tenant").unwrap_err().contains("tenant=VALUE"));
    }
}
