//! A time zone of schedules: [`TimeZone`].

use std::fmt;

/// A zone of the IANA database, or UTC. Without the feature `timezones`, only UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeZone {
    Utc,
    #[cfg(feature = "timezones")]
    Named(chrono_tz::Tz),
}

impl TimeZone {
    /// Reads a name, such as `Asia/Shanghai`.
    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        if name == "UTC" {
            return Ok(Self::Utc);
        }
        Self::named(name)
    }

    #[cfg(feature = "timezones")]
    fn named(name: &str) -> Result<Self, String> {
        let zone = name.parse().map(Self::Named);
        zone.map_err(|_| {
            format!(
                "there is no time zone {name:?}; use a name of the IANA database, as in \
                 \"Asia/Shanghai\", or \"UTC\""
            )
        })
    }

    #[cfg(not(feature = "timezones"))]
    fn named(name: &str) -> Result<Self, String> {
        Err(format!(
            "the time zone {name:?} needs the feature `timezones` of optimus; enable it, or use \
             \"UTC\""
        ))
    }

    /// Returns how many seconds local time is ahead of UTC at this instant, in seconds since the
    /// Unix epoch.
    #[cfg(feature = "timezones")]
    pub(crate) fn offset_secs(self, utc_secs: i64) -> i64 {
        use chrono::{DateTime, Offset, TimeZone as _};
        let Self::Named(zone) = self else { return 0 };
        let instant = DateTime::from_timestamp(utc_secs, 0).unwrap_or_default();
        zone.offset_from_utc_datetime(&instant.naive_utc()).fix().local_minus_utc().into()
    }

    /// Returns 0, the offset of UTC.
    #[cfg(not(feature = "timezones"))]
    pub(crate) fn offset_secs(self, _: i64) -> i64 {
        let Self::Utc = self;
        0
    }
}

impl fmt::Display for TimeZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Utc => f.write_str("UTC"),
            #[cfg(feature = "timezones")]
            Self::Named(zone) => f.write_str(zone.name()),
        }
    }
}
