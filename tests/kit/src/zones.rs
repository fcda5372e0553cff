//! Time zones with all kinds of changes of their clocks.

/// Zones without changes, with changes by one hour and by half an hour, at midnight, in both
/// halves of the year, twice within weeks, and with offsets of parts of an hour.
pub const ZONES: [&str; 20] = [
    "UTC",
    "Asia/Shanghai",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Europe/Berlin",
    "Europe/London",
    "Europe/Dublin",
    "Africa/Casablanca",
    "Africa/Cairo",
    "Asia/Beirut",
    "America/New_York",
    "America/St_Johns",
    "America/Havana",
    "America/Santiago",
    "America/Asuncion",
    "America/Nuuk",
    "Australia/Lord_Howe",
    "Pacific/Auckland",
    "Pacific/Chatham",
    "Antarctica/Troll",
];
