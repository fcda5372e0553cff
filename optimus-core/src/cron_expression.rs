//! Cron expressions as people write them: `"0 9 * * 1-5"`, `"@hourly"`. [`CronExpression`].
//!
//! The macros read expressions with the same file, so what compiles is what a worker accepts.

/// A parsed expression: which seconds, minutes, hours, days, months and weekdays match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CronExpression {
    pub(crate) seconds: u64,
    pub(crate) minutes: u64,
    pub(crate) hours: u64,
    pub(crate) days: Days,
    pub(crate) months: u64,
    pub(crate) weekdays: Weekdays,
    /// Whether the second, minute or hour begins with `*`: the expression means an interval and no
    /// fixed time of the day. This matters when clocks change.
    pub(crate) is_interval: bool,
}

/// The days of a month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Days {
    set: u64,
    has_last: bool,
    is_any: bool,
}

/// The days of a week, from 0 for Sunday.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Weekdays {
    every: u64,
    /// The weekdays whose last one of the month matches.
    last: u64,
    /// For the first to the fifth of the month, the weekdays that match.
    nth: [u64; 5],
    is_any: bool,
}

/// A date, as far as expressions care.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Day {
    /// From 1.
    pub(crate) month: u32,
    /// From 1.
    pub(crate) number: u32,
    /// From 0 for Sunday.
    pub(crate) weekday: u32,
    pub(crate) days_in_month: u32,
}

/// One of the fields.
struct Field {
    name: &'static str,
    min: u32,
    max: u32,
    /// The names of its values, from `min` on.
    names: &'static [&'static str],
}

const SECOND: Field = Field { name: "second", min: 0, max: 59, names: &[] };
const MINUTE: Field = Field { name: "minute", min: 0, max: 59, names: &[] };
const HOUR: Field = Field { name: "hour", min: 0, max: 23, names: &[] };
const DAY: Field = Field { name: "day of the month", min: 1, max: 31, names: &[] };
const MONTH: Field = Field {
    name: "month",
    min: 1,
    max: 12,
    names: &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
};
/// Sunday is 0 and 7.
const WEEKDAY: Field = Field {
    name: "weekday",
    min: 0,
    max: 7,
    names: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
};

const NICKNAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// The most days that each month has.
const MONTH_DAYS: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

const EXAMPLES: &str = "as in \"0 9 * * 1-5\" (at 9:00 from Monday to Friday), \"*/15 * * * *\" or \
                        \"@hourly\"";

impl CronExpression {
    /// Reads an expression. The error states what is wrong, and shows examples.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        read(text).map_err(|problem| format!("{text:?} is not a cron expression: {problem}"))
    }

    /// Returns whether the expression matches at some time of the day.
    pub(crate) fn has_day(&self, day: Day) -> bool {
        if self.months & bit(day.month) == 0 {
            return false;
        }
        let (by_day, by_weekday) = (self.days.has(day), self.weekdays.has(day));
        // As in other crons: if both are restricted, one of them suffices.
        if self.days.is_any || self.weekdays.is_any {
            by_day && by_weekday
        } else {
            by_day || by_weekday
        }
    }
}

impl Days {
    fn has(self, day: Day) -> bool {
        self.set & bit(day.number) != 0 || self.has_last && day.number == day.days_in_month
    }
}

impl Weekdays {
    fn has(self, day: Day) -> bool {
        let (weekday, week) = (bit(day.weekday), (day.number - 1) / 7);
        let is_last = day.number + 7 > day.days_in_month;
        self.every & weekday != 0
            || is_last && self.last & weekday != 0
            || self.nth[week as usize] & weekday != 0
    }
}

fn read(text: &str) -> Result<CronExpression, String> {
    let trimmed = text.trim();
    if trimmed.starts_with('@') {
        let nickname = NICKNAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(trimmed));
        return match nickname {
            Some((_, meaning)) => read(meaning),
            None => Err(format!(
                "there is no {trimmed}; there are @hourly, @daily, @midnight, @weekly, @monthly, \
                 @yearly and @annually"
            )),
        };
    }
    let fields: Vec<&str> = trimmed.split_whitespace().collect();
    let (second, rest) = match *fields {
        [second, ref rest @ ..] if rest.len() == 5 => (second, rest),
        ref rest => ("0", rest),
    };
    let [minute, hour, day, month, weekday] = *rest else {
        return Err(format!(
            "it has {} fields; write five (minute, hour, day of the month, month, weekday), or six \
             with the second first, {EXAMPLES}",
            fields.len()
        ));
    };
    let expression = CronExpression {
        seconds: set_of(&SECOND, second)?,
        minutes: set_of(&MINUTE, minute)?,
        hours: set_of(&HOUR, hour)?,
        days: days_of(day)?,
        months: set_of(&MONTH, month)?,
        weekdays: weekdays_of(weekday)?,
        is_interval: [second, minute, hour].iter().any(|field| field.starts_with('*')),
    };
    has_a_date(&expression)
        .then_some(expression)
        .ok_or_else(|| format!("no year has such a date (day of the month {day} in month {month})"))
}

/// Returns whether any year has a date that matches.
fn has_a_date(expression: &CronExpression) -> bool {
    let Days { set, has_last, .. } = expression.days;
    let days_fit = |month: u32| {
        let days = MONTH_DAYS[month as usize - 1];
        has_last || (1..=days).any(|day| set & bit(day) != 0)
    };
    let mut months = (1..=12).filter(|month| expression.months & bit(*month) != 0);
    // With both restricted, a weekday suffices.
    (!expression.days.is_any && !expression.weekdays.is_any) || months.any(days_fit)
}

fn days_of(text: &str) -> Result<Days, String> {
    let mut days = Days { set: 0, has_last: false, is_any: is_any(text) };
    for item in text.split(',') {
        match item {
            "?" => days.set |= set_of(&DAY, "*")?,
            "L" | "l" => days.has_last = true,
            _ if item.ends_with(['W', 'w']) => {
                return Err(format!(
                    "{item:?}: the nearest weekday (W) does not exist here; name the days, or \
                     decide in the handler"
                ));
            }
            _ => days.set |= set_of(&DAY, item)?,
        }
    }
    Ok(days)
}

fn weekdays_of(text: &str) -> Result<Weekdays, String> {
    let mut weekdays = Weekdays { every: 0, last: 0, nth: [0; 5], is_any: is_any(text) };
    for item in text.split(',') {
        if let Some((weekday, nth)) = item.split_once('#') {
            let nth = nth.parse::<usize>().ok().filter(|nth| (1..=5).contains(nth));
            let nth = nth.ok_or_else(|| {
                format!("{item:?}: after `#` comes 1 to 5, as in \"MON#2\", the second Monday")
            })?;
            weekdays.nth[nth - 1] |= bit(value_of(&WEEKDAY, weekday)? % 7);
        } else if let Some(weekday) = item.strip_suffix(['L', 'l']).filter(|day| !day.is_empty()) {
            weekdays.last |= bit(value_of(&WEEKDAY, weekday)? % 7);
        } else {
            let item = if item == "?" { "*" } else { item };
            let set = set_of(&WEEKDAY, item)?;
            weekdays.every |= set & 0x7f | set >> 7;
        }
    }
    Ok(weekdays)
}

fn is_any(text: &str) -> bool {
    text.starts_with(['*', '?'])
}

/// Returns the set of a field: a list of values, ranges and steps.
fn set_of(field: &Field, text: &str) -> Result<u64, String> {
    let mut set = 0;
    for item in text.split(',') {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(step_of(field, item, step)?)),
            None => (item, None),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (field.min, field.max),
            Some((first, last)) => range_of(field, item, first, last)?,
            None => {
                let first = value_of(field, range)?;
                (first, if step.is_some() { field.max } else { first })
            }
        };
        // Sunday has two numbers, and `*/2` must not begin again with the second.
        let last = if field.max == WEEKDAY.max && range == "*" { last - 1 } else { last };
        for value in (first..=last).step_by(step.unwrap_or(1) as usize) {
            set |= bit(value);
        }
    }
    Ok(set)
}

fn range_of(field: &Field, item: &str, first: &str, last: &str) -> Result<(u32, u32), String> {
    let (from, to) = (value_of(field, first)?, value_of(field, last)?);
    // A week that ends with SUN ends with 7.
    let to = if field.max == WEEKDAY.max && to == 0 && from > 0 { WEEKDAY.max } else { to };
    if from > to {
        return Err(format!(
            "{item:?}: a range goes up; write two ranges, such as \"{first}-{}\" and \"{}-{last}\" \
             with a comma between them",
            field.max, field.min
        ));
    }
    Ok((from, to))
}

fn step_of(field: &Field, item: &str, step: &str) -> Result<u32, String> {
    let most = field.max - field.min;
    let known = number(step).filter(|step| (1..=most).contains(step));
    known.ok_or_else(|| {
        format!(
            "{item:?}: the step of the {} is a number from 1 to {most}, as in \"*/5\"",
            field.name
        )
    })
}

fn value_of(field: &Field, text: &str) -> Result<u32, String> {
    let place = field.names.iter().position(|name| name.eq_ignore_ascii_case(text));
    if let Some(place) = place.and_then(|at| u32::try_from(at).ok()) {
        return Ok(field.min + place);
    }
    let value = number(text).filter(|value| (field.min..=field.max).contains(value));
    value.ok_or_else(|| {
        let Field { name, min, max, names } = field;
        let names = match (names.first(), names.last()) {
            (Some(first), Some(last)) => format!(", or {first} to {last}"),
            _ => String::new(),
        };
        format!("{text:?} is not a valid {name}, which is a number from {min} to {max}{names}")
    })
}

fn number(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

fn bit(value: u32) -> u64 {
    1 << value
}
