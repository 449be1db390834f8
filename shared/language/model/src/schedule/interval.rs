//! ISO 8601 intervals, repeating or not (docs/language.md#decision-42).

use super::zone::{LocalError, Zone, ZoneError};
use crate::time::{DurationError, IsoDuration, Timestamp};

/// An interval, as `R/<start>/<duration>`, `R/<duration>/<end>`, `R/<duration>`, or one of these
/// and `<start>/<end>` without `R/`. `R5/` says how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interval {
    /// Written with an `R`.
    pub repeats: bool,
    /// How often, if it is given.
    pub count: Option<u32>,
    bounds: Bounds,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Bounds {
    StartEnd(Timestamp, Timestamp),
    From(Timestamp, IsoDuration),
    Until(IsoDuration, Timestamp),
    /// From the deployment on.
    Length(IsoDuration),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IntervalError {
    #[error("the duration '{0}': {1}")]
    Duration(String, DurationError),
    #[error(transparent)]
    Local(LocalError),
    #[error(transparent)]
    Zone(#[from] ZoneError),
    #[error("'{0}' is not a valid repetition: write R, or R and a number above zero")]
    Repetition(String),
    #[error("it needs one or two parts after the R/, such as R/PT2H")]
    Parts,
    #[error("it must have a duration, and a repeating one cannot be a start with an end")]
    NoDuration,
    #[error("it cannot have two durations")]
    TwoDurations,
    #[error("its duration is zero")]
    Zero,
    #[error("it ends before it begins")]
    Backwards,
}

impl Interval {
    /// Local times are in the zone of that name.
    pub fn parse(text: &str, zone: &str) -> Result<Interval, IntervalError> {
        Interval::in_zone(text, &Zone::parse(zone)?)
    }

    pub fn in_zone(text: &str, zone: &Zone) -> Result<Interval, IntervalError> {
        let mut parts: Vec<&str> = text.split('/').collect();
        let (mut repeats, mut count) = (false, None);
        if let Some(number) = parts.first().and_then(|first| first.strip_prefix('R')) {
            let wrong = || IntervalError::Repetition(parts[0].chars().take(60).collect());
            repeats = true;
            if !number.is_empty() {
                if !number.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(wrong());
                }
                count = Some(number.parse().ok().filter(|n| *n > 0).ok_or_else(wrong)?);
            }
            parts.remove(0);
        }
        let instant = |text: &str| zone.instant(text).map_err(IntervalError::Local);
        let duration = |text: &str| match IsoDuration::parse(text) {
            Ok(duration) if duration.is_zero() => Err(IntervalError::Zero),
            Ok(duration) => Ok(duration),
            Err(error) => Err(IntervalError::Duration(
                text.chars().take(60).collect(),
                error,
            )),
        };
        let is_duration = |text: &str| text.starts_with(['P', '-']);
        let bounds = match parts[..] {
            [length] if is_duration(length) => Bounds::Length(duration(length)?),
            [date] => {
                instant(date)?;
                return Err(IntervalError::NoDuration);
            }
            [first, second] => match (is_duration(first), is_duration(second)) {
                (true, true) => return Err(IntervalError::TwoDurations),
                (true, false) => Bounds::Until(duration(first)?, instant(second)?),
                (false, true) => Bounds::From(instant(first)?, duration(second)?),
                (false, false) => {
                    let (start, end) = (instant(first)?, instant(second)?);
                    if repeats {
                        return Err(IntervalError::NoDuration);
                    }
                    if end <= start {
                        return Err(IntervalError::Backwards);
                    }
                    Bounds::StartEnd(start, end)
                }
            },
            _ => return Err(IntervalError::Parts),
        };
        Ok(Interval {
            repeats,
            count,
            bounds,
        })
    }

    /// The first beginning of an interval after `after`, with or without `R/`. One that is a
    /// duration alone begins at `deployed_at`; a `<start>/<end>` has one beginning only.
    pub fn next_after(&self, after: Timestamp, deployed_at: Timestamp) -> Option<Timestamp> {
        match self.bounds {
            Bounds::StartEnd(start, _) => (start > after).then_some(start),
            Bounds::From(start, each) => self.forward(start, each, after),
            Bounds::Length(each) => self.forward(deployed_at, each, after),
            Bounds::Until(each, end) => self.backward(end, each, after),
        }
    }

    /// A duration alone: its first beginning is the deployment.
    pub fn begins_at_deployment(&self) -> bool {
        matches!(self.bounds, Bounds::Length(_))
    }

    fn count_max(&self) -> i64 {
        self.count.map_or(i64::MAX, i64::from)
    }

    /// The least k with start + k durations after `after`. Each time is counted from the start,
    /// so that a month after 31 January doesn't make all later ones the 29th.
    fn forward(&self, start: Timestamp, each: IsoDuration, after: Timestamp) -> Option<Timestamp> {
        let is_after = |k: i64| each.shift(start, k).is_none_or(|begin| begin > after);
        let k = least(is_after)?;
        if k >= self.count_max() {
            return None;
        }
        each.shift(start, k)
    }

    /// The greatest k with end - k durations after `after`; the end itself isn't a beginning.
    fn backward(&self, end: Timestamp, each: IsoDuration, after: Timestamp) -> Option<Timestamp> {
        let is_not_after = |k: i64| each.shift(end, -k).is_none_or(|begin| begin <= after);
        let k = (least(is_not_after)? - 1).min(self.count_max());
        if k < 1 {
            return None;
        }
        each.shift(end, -k)
    }

    /// Whether `at` lies in the interval, its end excluded; of a repeating one, in any repetition.
    pub fn contains(&self, at: Timestamp, deployed_at: Timestamp) -> bool {
        let last = |start: Timestamp, each: IsoDuration| match (self.repeats, self.count) {
            (false, _) => Some(each.add_to(start)),
            (true, None) => None,
            (true, Some(count)) => each.shift(start, i64::from(count)),
        };
        let (start, end) = match self.bounds {
            Bounds::StartEnd(start, end) => (Some(start), Some(end)),
            Bounds::From(start, each) => (Some(start), last(start, each)),
            Bounds::Length(each) => (Some(deployed_at), last(deployed_at, each)),
            // This long from the deployment, or until the end, whichever comes first (docs/language.md#decision-100).
            Bounds::Until(each, end) if !self.repeats => {
                (Some(deployed_at), Some(each.add_to(deployed_at).min(end)))
            }
            Bounds::Until(each, end) => {
                let times = self.count.map(i64::from);
                (times.and_then(|times| each.shift(end, -times)), Some(end))
            }
        };
        start.is_none_or(|start| start <= at) && end.is_none_or(|end| at < end)
    }
}

/// The least k >= 0 for which `test` holds; `test` must stay true once it is.
fn least(test: impl Fn(i64) -> bool) -> Option<i64> {
    if test(0) {
        return Some(0);
    }
    let mut high = 1i64;
    while !test(high) {
        high = high.checked_mul(2)?;
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if test(middle) {
            high = middle
        } else {
            low = middle
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn times(text: &str, zone: &str, after: &str, count: usize) -> String {
        let interval = match Interval::parse(text, zone) {
            Ok(interval) => interval,
            Err(error) => return error.to_string(),
        };
        let deployed = at("2024-01-01T00:00:00Z");
        let mut now = at(after);
        let mut found = Vec::new();
        while found.len() < count {
            let Some(next) = interval.next_after(now, deployed) else {
                found.push("end".to_owned());
                break;
            };
            assert!(next > now);
            found.push(next.to_string());
            now = next;
        }
        found.join(" ")
    }

    #[test]
    fn beginnings() {
        for (text, zone, after, expected) in [
            (
                "R/PT2H",
                "UTC",
                "2023-12-31T23:59:59Z",
                "2024-01-01T00:00:00Z 2024-01-01T02:00:00Z",
            ),
            (
                "PT2H",
                "UTC",
                "2024-01-01T00:00:00Z",
                "2024-01-01T02:00:00Z 2024-01-01T04:00:00Z",
            ),
            (
                "R/2024-03-20T13:00:00Z/PT2H",
                "UTC",
                "2024-03-01T00:00:00Z",
                "2024-03-20T13:00:00Z 2024-03-20T15:00:00Z",
            ),
            (
                "R/2020-03-20T13:00:00Z/PT2H",
                "UTC",
                "2024-03-01T00:00:00Z",
                "2024-03-01T01:00:00Z 2024-03-01T03:00:00Z",
            ),
            (
                "R/2024-01-31T00:00:00Z/P1M",
                "UTC",
                "2024-01-31T00:00:00Z",
                "2024-02-29T00:00:00Z 2024-03-31T00:00:00Z",
            ),
            (
                "R/PT2H/2024-05-11T15:30:00Z",
                "UTC",
                "2024-05-11T11:00:00Z",
                "2024-05-11T11:30:00Z 2024-05-11T13:30:00Z",
            ),
            (
                "R/PT2H/2024-05-11T15:30:00Z",
                "UTC",
                "2024-05-11T12:00:00Z",
                "2024-05-11T13:30:00Z end",
            ),
            (
                "R/PT2H/2024-05-11T15:30:00Z",
                "UTC",
                "2024-05-11T13:30:00Z",
                "end",
            ),
            (
                "R/P1M/2024-05-31T00:00:00Z",
                "UTC",
                "2024-02-29T00:00:00Z",
                "2024-03-31T00:00:00Z 2024-04-30T00:00:00Z",
            ),
            (
                "R2/2024-01-01T00:00:00Z/PT1H",
                "UTC",
                "2023-01-01T00:00:00Z",
                "2024-01-01T00:00:00Z 2024-01-01T01:00:00Z",
            ),
            (
                "R1/2024-01-01T00:00:00Z/PT1H",
                "UTC",
                "2023-01-01T00:00:00Z",
                "2024-01-01T00:00:00Z end",
            ),
            (
                "R1/PT1H/2024-01-01T00:00:00Z",
                "UTC",
                "2023-01-01T00:00:00Z",
                "2023-12-31T23:00:00Z end",
            ),
            (
                "2024-03-01T00:00:00Z/2024-04-01T00:00:00Z",
                "UTC",
                "2024-01-01T00:00:00Z",
                "2024-03-01T00:00:00Z end",
            ),
            (
                "R/2024-03-01T09:00:00/P1D",
                "Europe/Berlin",
                "2024-01-01T00:00:00Z",
                "2024-03-01T08:00:00Z 2024-03-02T08:00:00Z",
            ),
            (
                "R/2024-01-01T00:00:00Z/PT0.001S",
                "UTC",
                "2024-01-01T00:00:00Z",
                "2024-01-01T00:00:00.001Z 2024-01-01T00:00:00.002Z",
            ),
            (
                "R/9999-12-01T00:00:00Z/P1Y",
                "UTC",
                "9999-12-02T00:00:00Z",
                "end",
            ),
        ] {
            assert_eq!(
                times(text, zone, after, 2),
                expected,
                "{text} after {after}"
            );
        }
    }

    #[test]
    fn bad_intervals() {
        for (text, part) in [
            ("", "is not an ISO 8601 date"),
            ("R/", "is not an ISO 8601 date"),
            ("R", "one or two parts"),
            ("R/PT0S", "its duration is zero"),
            ("R0/PT1S", "'R0' is not a valid repetition"),
            ("R-1/PT1S", "'R-1' is not a valid repetition"),
            ("Rx/PT1S", "'Rx' is not a valid repetition"),
            ("R/PT1S/PT2S", "two durations"),
            (
                "R/2024-01-01T00:00:00Z/2024-01-02T00:00:00Z",
                "must have a duration",
            ),
            ("R/2024-01-01T00:00:00Z", "must have a duration"),
            (
                "2024-01-02T00:00:00Z/2024-01-01T00:00:00Z",
                "ends before it begins",
            ),
            ("R/2024-01-01T00:00:00Z/PT1H/PT1H", "one or two parts"),
            ("R/2024-01-01T00:00:00Z/P1X", "the duration 'P1X'"),
            ("R/noon/PT1H", "'noon' is not an ISO 8601 date"),
        ] {
            let error = times(text, "UTC", "2024-01-01T00:00:00Z", 1);
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn windows() {
        let deployed = at("2024-01-01T00:00:00Z");
        for (text, inside, instant) in [
            (
                "2024-02-01T00:00:00Z/2024-03-01T00:00:00Z",
                true,
                "2024-02-01T00:00:00Z",
            ),
            (
                "2024-02-01T00:00:00Z/2024-03-01T00:00:00Z",
                false,
                "2024-03-01T00:00:00Z",
            ),
            ("2024-02-01T00:00:00Z/P1M", true, "2024-02-29T23:59:59Z"),
            ("2024-02-01T00:00:00Z/P1M", false, "2024-03-01T00:00:00Z"),
            ("P1M/2024-03-01T00:00:00Z", true, "2024-01-01T00:00:00Z"),
            ("P1M/2024-03-01T00:00:00Z", true, "2024-01-31T23:59:59Z"),
            ("P1M/2024-03-01T00:00:00Z", false, "2024-02-01T00:00:00Z"),
            ("P1M/2024-01-15T00:00:00Z", true, "2024-01-14T23:59:59Z"),
            ("P1M/2024-01-15T00:00:00Z", false, "2024-01-15T00:00:00Z"),
            ("R2/P1M/2024-03-01T00:00:00Z", true, "2024-01-01T00:00:00Z"),
            ("R2/P1M/2024-03-01T00:00:00Z", false, "2023-12-31T23:59:59Z"),
            ("PT1H", true, "2024-01-01T00:59:59Z"),
            ("PT1H", false, "2024-01-01T01:00:00Z"),
            ("R2/PT1H", true, "2024-01-01T01:59:59Z"),
            ("R/PT1H", true, "2030-01-01T00:00:00Z"),
        ] {
            let window = Interval::parse(text, "UTC").unwrap();
            assert_eq!(
                window.contains(at(instant), deployed),
                inside,
                "{text} {instant}"
            );
        }
    }
}
