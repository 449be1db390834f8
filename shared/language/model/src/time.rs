//! Instants and ISO 8601 durations.
//!
//! Both are plain numbers: the engine adds one to the other without a clock or a time zone.

use std::fmt;
use std::str::FromStr;

use jiff::{Span, tz::TimeZone};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// An instant: milliseconds since 1970-01-01T00:00:00Z. Serialized as that number.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Timestamp(pub i64);

/// A text that is not an RFC 3339 instant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not an RFC 3339 instant such as 2024-01-31T09:00:00Z")]
pub struct TimestampError(pub String);

impl Timestamp {
    /// The last instant that can be written, at the end of the year 9999.
    pub const MAX: Timestamp = Timestamp(253_402_207_200_000);

    /// Parses RFC 3339; an offset (`Z`, `+02:00`) is mandatory. Finer than a millisecond is cut.
    pub fn parse(text: &str) -> Result<Timestamp, TimestampError> {
        let parsed: Result<jiff::Timestamp, _> = text.parse();
        parsed
            .map(|at| Timestamp(at.as_millisecond()))
            .map_err(|_| TimestampError(text.chars().take(60).collect()))
    }

    /// This many milliseconds later, at most [`Timestamp::MAX`].
    pub fn plus_ms(self, ms: u64) -> Timestamp {
        let sum = self.0.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX));
        Timestamp(sum.min(Timestamp::MAX.0.max(self.0)))
    }

    pub(crate) fn to_jiff(self) -> Option<jiff::Timestamp> {
        jiff::Timestamp::from_millisecond(self.0).ok()
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Timestamp, TimestampError> {
        Timestamp::parse(text)
    }
}

/// RFC 3339 in UTC. An instant beyond its years is written as a number of milliseconds.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_jiff() {
            Some(at) => fmt::Display::fmt(&at, f),
            None => write!(f, "{} ms", self.0),
        }
    }
}

/// An ISO 8601 duration. Months (years are twelve of them) are calendar ones in UTC, all else has
/// a fixed length: a day is 24 hours (docs/language.md#decision-79). Serialized as its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct IsoDuration {
    pub months: u32,
    pub millis: u64,
}

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;
/// Ten thousand years: all that any addition could use.
const MONTHS_MAX: u128 = 120_000;

/// Why a text is not a valid duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    #[error("a duration begins with P, as in PT15M or P1D")]
    NoP,
    #[error("a duration cannot be negative")]
    Negative,
    #[error("a duration needs at least one part, as in PT15M")]
    Empty,
    #[error("a T must be followed by hours, minutes or seconds")]
    EmptyTime,
    #[error("the number {0} lacks its unit")]
    NoUnit(String),
    #[error("a number is missing before {0}")]
    NoNumber(char),
    #[error(
        "{0} is not a unit here; the units are Y M W D, and after T: H M S, each once, in order"
    )]
    Unit(char),
    #[error("only the last part may have a fraction")]
    FractionNotLast,
    #[error("a fraction of a month has no fixed length")]
    MonthFraction,
    #[error("the duration is longer than ten thousand years, or its fraction than nine digits")]
    TooLong,
}

impl IsoDuration {
    pub const ZERO: IsoDuration = IsoDuration {
        months: 0,
        millis: 0,
    };

    /// Ten thousand years, the longest duration that a definition may state.
    pub const MILLIS_MAX: u64 = 3_652_425 * DAY;

    pub const fn from_millis(millis: u64) -> IsoDuration {
        IsoDuration { months: 0, millis }
    }

    pub const fn from_secs(secs: u64) -> IsoDuration {
        IsoDuration::from_millis(secs.saturating_mul(SECOND))
    }

    /// Parses `P[nY][nM][nW][nD][T[nH][nM][nS]]`. The last part may have a fraction of up to nine
    /// digits after a point or comma; a fraction of a millisecond counts as a whole one, so that
    /// nothing is early.
    pub fn parse(text: &str) -> Result<IsoDuration, DurationError> {
        if text.starts_with('-') {
            return Err(DurationError::Negative);
        }
        let rest = text.strip_prefix('P').ok_or(DurationError::NoP)?;
        let mut parts = Parts::default();
        let mut units: &[(char, Unit)] = &DATE;
        let mut chars = rest.chars().peekable();
        let mut empty = true;
        while let Some(next) = chars.next() {
            match next {
                'T' if units
                    .first()
                    .is_none_or(|(_, unit)| *unit != Unit::Millis(HOUR))
                    && !parts.time =>
                {
                    units = &TIME;
                    parts.time = true;
                    empty = true;
                }
                '-' => return Err(DurationError::Negative),
                '0'..='9' => {
                    let mut number = String::from(next);
                    while let Some(digit) =
                        chars.next_if(|c| c.is_ascii_digit() || matches!(c, '.' | ','))
                    {
                        number.push(if digit == ',' { '.' } else { digit });
                    }
                    let Some(letter) = chars.next() else {
                        return Err(DurationError::NoUnit(number));
                    };
                    let at = units.iter().position(|(name, _)| *name == letter);
                    let at = at.ok_or(DurationError::Unit(letter))?;
                    parts.add(&number, units[at].1)?;
                    units = &units[at + 1..];
                    empty = false;
                }
                other if other.is_ascii_alphabetic() => return Err(DurationError::NoNumber(other)),
                other => return Err(DurationError::Unit(other)),
            }
        }
        match empty {
            true if parts.time => Err(DurationError::EmptyTime),
            true => Err(DurationError::Empty),
            false => parts.total(),
        }
    }

    pub fn is_zero(&self) -> bool {
        self.months == 0 && self.millis == 0
    }

    /// The instant that lies this much after `at`: first the months (clamped to the month's
    /// end), then the rest. At most [`Timestamp::MAX`].
    pub fn add_to(&self, at: Timestamp) -> Timestamp {
        self.shift(at, 1).unwrap_or(Timestamp::MAX)
    }

    /// Returns its length in milliseconds if it begins at `at`.
    pub fn millis_from(&self, at: Timestamp) -> u64 {
        match self.months {
            0 => self.millis,
            _ => self.add_to(at).0.abs_diff(at.0),
        }
    }

    /// `at` moved by `times` durations at once (back if negative); `None` beyond the calendar.
    /// Months are counted from `at` itself: four times a month after 31 January is 31 May.
    pub(crate) fn shift(&self, at: Timestamp, times: i64) -> Option<Timestamp> {
        let mut ms = at.0;
        if self.months != 0 {
            let months = i64::from(self.months).checked_mul(times)?;
            let span = Span::new().try_months(months).ok()?;
            let date = at
                .to_jiff()?
                .to_zoned(TimeZone::UTC)
                .datetime()
                .checked_add(span)
                .ok()?;
            ms = date
                .to_zoned(TimeZone::UTC)
                .ok()?
                .timestamp()
                .as_millisecond();
        }
        let millis = i64::try_from(self.millis).ok()?.checked_mul(times)?;
        let moved = Timestamp(ms.checked_add(millis)?);
        (moved <= Timestamp::MAX).then_some(moved)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Months(u64),
    Millis(u64),
}

const DATE: [(char, Unit); 4] = [
    ('Y', Unit::Months(12)),
    ('M', Unit::Months(1)),
    ('W', Unit::Millis(WEEK)),
    ('D', Unit::Millis(DAY)),
];
const TIME: [(char, Unit); 3] = [
    ('H', Unit::Millis(HOUR)),
    ('M', Unit::Millis(MINUTE)),
    ('S', Unit::Millis(SECOND)),
];

#[derive(Default)]
struct Parts {
    months: u128,
    millis: u128,
    time: bool,
    fraction: bool,
}

impl Parts {
    fn add(&mut self, number: &str, unit: Unit) -> Result<(), DurationError> {
        if self.fraction {
            return Err(DurationError::FractionNotLast);
        }
        let (whole, fraction) = match number.split_once('.') {
            Some((_, "")) => return Err(DurationError::NoNumber('.')),
            Some((_, fraction)) if fraction.contains('.') => return Err(DurationError::Unit('.')),
            Some((whole, fraction)) => (whole, fraction),
            None => (number, ""),
        };
        if fraction.len() > 9 {
            return Err(DurationError::TooLong);
        }
        self.fraction = number.contains('.');
        let whole: u64 = whole.parse().map_err(|_| DurationError::TooLong)?;
        let scale = 10u128.pow(fraction.len() as u32);
        let parts: u128 = if fraction.is_empty() {
            0
        } else {
            fraction.parse().unwrap_or(0)
        };
        match unit {
            Unit::Months(each) => {
                let part = u128::from(each) * parts;
                if !part.is_multiple_of(scale) {
                    return Err(DurationError::MonthFraction);
                }
                self.months += u128::from(whole) * u128::from(each) + part / scale;
            }
            Unit::Millis(each) => {
                let part = (u128::from(each) * parts).div_ceil(scale);
                self.millis += u128::from(whole) * u128::from(each) + part;
            }
        }
        Ok(())
    }

    fn total(&self) -> Result<IsoDuration, DurationError> {
        if self.months > MONTHS_MAX || self.millis > u128::from(IsoDuration::MILLIS_MAX) {
            return Err(DurationError::TooLong);
        }
        Ok(IsoDuration {
            months: self.months as u32,
            millis: self.millis as u64,
        })
    }
}

impl FromStr for IsoDuration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<IsoDuration, DurationError> {
        IsoDuration::parse(text)
    }
}

/// The canonical text: years, months, days, hours, minutes, seconds, none of them zero.
impl fmt::Display for IsoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("PT0S");
        }
        let part = |f: &mut fmt::Formatter<'_>, count: u64, unit: char| match count {
            0 => Ok(()),
            count => write!(f, "{count}{unit}"),
        };
        f.write_str("P")?;
        part(f, u64::from(self.months / 12), 'Y')?;
        part(f, u64::from(self.months % 12), 'M')?;
        part(f, self.millis / DAY, 'D')?;
        let rest = self.millis % DAY;
        if rest == 0 {
            return Ok(());
        }
        f.write_str("T")?;
        part(f, rest / HOUR, 'H')?;
        part(f, rest % HOUR / MINUTE, 'M')?;
        match (rest % MINUTE / SECOND, rest % SECOND) {
            (secs, 0) => part(f, secs, 'S'),
            (secs, ms) => write!(f, "{secs}.{}S", format!("{ms:03}").trim_end_matches('0')),
        }
    }
}

impl Serialize for IsoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for IsoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<IsoDuration, D::Error> {
        let text = String::deserialize(deserializer)?;
        IsoDuration::parse(&text).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn durations_in_canonical_text() {
        for (text, canonical) in [
            ("PT0S", "PT0S"),
            ("P0D", "PT0S"),
            ("PT15M", "PT15M"),
            ("PT90M", "PT1H30M"),
            ("PT0.5S", "PT0.5S"),
            ("PT0,25S", "PT0.25S"),
            ("PT0.0001S", "PT0.001S"),
            ("PT1.5H", "PT1H30M"),
            ("P1W", "P7D"),
            ("P1.5D", "P1DT12H"),
            ("P0.5Y", "P6M"),
            ("P1Y2M3W4DT5H6M7.125S", "P1Y2M25DT5H6M7.125S"),
            ("P14M", "P1Y2M"),
        ] {
            let duration = IsoDuration::parse(text).unwrap();
            assert_eq!(duration.to_string(), canonical, "{text}");
            assert_eq!(IsoDuration::parse(canonical).unwrap(), duration, "{text}");
            let json = serde_json::to_string(&duration).unwrap();
            assert_eq!(json, format!("\"{canonical}\""));
            assert_eq!(
                serde_json::from_str::<IsoDuration>(&json).unwrap(),
                duration
            );
        }
    }

    #[test]
    fn bad_durations() {
        use DurationError::*;
        for (text, error) in [
            ("", NoP),
            ("15M", NoP),
            ("P", Empty),
            ("PT", EmptyTime),
            ("P1DT", EmptyTime),
            ("-PT1S", Negative),
            ("P-1D", Negative),
            ("PT1S ", Unit(' ')),
            ("PT1", NoUnit("1".into())),
            ("PTS", NoNumber('S')),
            ("PT5s", Unit('s')),
            ("PT1S2M", Unit('M')),
            ("P1M1Y", Unit('Y')),
            ("P1H", Unit('H')),
            ("P1DT1D", Unit('D')),
            ("PT1HT1M", NoNumber('T')),
            ("PT1.5H3M", FractionNotLast),
            ("P0.5M", MonthFraction),
            ("PT1.S", NoNumber('.')),
            ("PT1.2.3S", Unit('.')),
            ("PT.5S", Unit('.')),
            ("P99999Y", TooLong),
            ("PT99999999999999999999S", TooLong),
            ("P1D\u{e9}", Unit('\u{e9}')),
        ] {
            assert_eq!(IsoDuration::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn months_are_calendar_ones() {
        for (from, duration, to) in [
            ("2024-01-31T10:00:00Z", "P1M", "2024-02-29T10:00:00Z"),
            ("2023-01-31T10:00:00Z", "P1M", "2023-02-28T10:00:00Z"),
            ("2024-02-29T00:00:00Z", "P1Y", "2025-02-28T00:00:00Z"),
            ("2024-01-31T23:00:00Z", "P1MT2H", "2024-03-01T01:00:00Z"),
            ("2024-03-10T00:00:00Z", "P1D", "2024-03-11T00:00:00Z"),
            ("9999-01-01T00:00:00Z", "P5Y", "9999-12-30T22:00:00Z"),
        ] {
            let sum = IsoDuration::parse(duration).unwrap().add_to(at(from));
            assert_eq!(sum.to_string(), to, "{from} {duration}");
        }
        let month = IsoDuration {
            months: 1,
            millis: 0,
        };
        assert_eq!(month.millis_from(at("2024-02-01T00:00:00Z")), 29 * DAY);
        let end = month.shift(at("2024-01-31T00:00:00Z"), 4).unwrap();
        assert_eq!(end, at("2024-05-31T00:00:00Z"));
    }

    #[test]
    fn instants() {
        assert_eq!(at("1970-01-01T01:00:00+01:00"), Timestamp(0));
        assert_eq!(Timestamp(1500).to_string(), "1970-01-01T00:00:01.5Z");
        assert_eq!(serde_json::to_string(&Timestamp(7)).unwrap(), "7");
        assert!(Timestamp::parse("2024-01-01T00:00:00").is_err());
        assert!(Timestamp::parse("noon").is_err());
        assert_eq!(jiff::Timestamp::MAX.as_second() * 1000, Timestamp::MAX.0);
        assert_eq!(Timestamp(i64::MAX).to_string(), format!("{} ms", i64::MAX));
        assert_eq!(Timestamp::MAX.plus_ms(u64::MAX), Timestamp::MAX);
    }
}
