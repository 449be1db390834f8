//! Cron expressions with 5, 6 or 7 fields (docs/language.md#decision-41).
//!
//! | fields | order | day of week |
//! | --- | --- | --- |
//! | 5 | minute, hour, day, month, day of week | 0-7, Sunday is 0 and 7 |
//! | 6 | second first | 1-7, Sunday is 1 |
//! | 7 | second first, year last | 1-7, Sunday is 1 |
//!
//! Each field is a list of values, ranges (which may wrap around), `*`, and steps of them. Days
//! also take `?` (as `*`), `L`, `L-3`, `LW`, `15W`; days of the week `5L` and `5#2`. If both day
//! fields are restricted, a day that fits either is taken; a field that begins with `*` or `?` is
//! not restricted, as in crontab(5).

mod field;
mod next;

use std::str::FromStr;

use field::Field;

/// A parsed cron expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    pub(super) seconds: u64,
    pub(super) minutes: u64,
    pub(super) hours: u64,
    pub(super) months: u64,
    pub(super) days: Days,
    pub(super) weekdays: Weekdays,
    /// Bit 0 is [`YEAR_MIN`]; empty for every year.
    pub(super) years: Vec<bool>,
}

pub(super) const YEAR_MIN: u32 = 1970;
const YEAR_MAX: u32 = 2299;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Days {
    pub restricted: bool,
    /// Bits 1 to 31.
    pub plain: u64,
    /// `L-n`: this many days before the last.
    pub before_last: Vec<u8>,
    /// `15W`: the working day next to the day, within the month.
    pub working: Vec<u8>,
    /// `LW`, `L-3W`: the working day next to the day that many days before the last.
    pub last_working: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Weekdays {
    pub restricted: bool,
    /// Bits 0 (Sunday) to 6.
    pub plain: u64,
    /// `5L`: the last one of the month.
    pub last: Vec<u8>,
    /// `5#2`: the weekday, and which one of the month (1 to 5).
    pub nth: Vec<(u8, u8)>,
}

/// Why a text is not a valid cron expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    #[error("it has {0} fields, and must have 5, 6 or 7")]
    Fields(usize),
    #[error("{field}: '{text}' is not understood")]
    Syntax { field: &'static str, text: String },
    #[error("{field}: {value} is not between {min} and {max}")]
    Range {
        field: &'static str,
        value: String,
        min: u32,
        max: u32,
    },
    #[error("{field}: a step of {step} is too large or zero")]
    Step { field: &'static str, step: String },
    #[error("{field}: '{what}' is allowed only for days")]
    NotHere { field: &'static str, what: char },
    #[error("{field}: the years {from}-{to} are in the wrong order")]
    Years {
        field: &'static str,
        from: u32,
        to: u32,
    },
}

impl Cron {
    pub fn parse(text: &str) -> Result<Cron, CronError> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let (second, rest, year) = match fields[..] {
            ref rest if rest.len() == 5 => (None, rest, None),
            [second, ref rest @ ..] if rest.len() == 5 => (Some(second), rest, None),
            [second, ref rest @ .., year] if rest.len() == 5 => (Some(second), rest, Some(year)),
            _ => return Err(CronError::Fields(fields.len())),
        };
        let weekday = if second.is_some() {
            &Field::WEEKDAY_FROM_1
        } else {
            &Field::WEEKDAY_FROM_0
        };
        Ok(Cron {
            seconds: match second {
                Some(text) => Field::SECOND.bits(text)?,
                None => 1,
            },
            minutes: Field::MINUTE.bits(rest[0])?,
            hours: Field::HOUR.bits(rest[1])?,
            days: field::days(rest[2])?,
            months: Field::MONTH.bits(rest[3])?,
            weekdays: field::weekdays(weekday, rest[4])?,
            years: match year {
                None | Some("*") => Vec::new(),
                Some(text) => field::years(text)?,
            },
        })
    }
}

impl FromStr for Cron {
    type Err = CronError;

    fn from_str(text: &str) -> Result<Cron, CronError> {
        Cron::parse(text)
    }
}
