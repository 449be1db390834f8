//! Time zones, and local times in them. The database is the bundled one, so that every machine
//! computes the same times.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};

use crate::time::Timestamp;

/// A time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(TimeZone);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no time zone '{0}'")]
pub struct ZoneError(pub String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocalError {
    #[error("'{0}' is not an ISO 8601 date and time such as 2024-01-31T09:00:00Z")]
    Text(String),
    #[error(transparent)]
    Zone(#[from] ZoneError),
}

impl Zone {
    pub fn utc() -> Zone {
        Zone(TimeZone::UTC)
    }

    /// A name of the IANA database (case doesn't matter), `UTC`, `Z`, or an offset such as `+02:00`.
    pub fn parse(name: &str) -> Result<Zone, ZoneError> {
        if name == "Z" {
            return Ok(Zone::utc());
        }
        if name.starts_with(['+', '-']) {
            // An offset is read as part of an instant: jiff has no parser for it alone.
            let parsed: Option<jiff::Timestamp> = format!("2000-01-01T00:00:00{name}").parse().ok();
            let seconds = parsed.map(|at| 946_684_800 - at.as_second());
            let offset = seconds
                .and_then(|seconds| i32::try_from(seconds).ok())
                .and_then(|seconds| jiff::tz::Offset::from_seconds(seconds).ok());
            return offset
                .map(|offset| Zone(TimeZone::fixed(offset)))
                .ok_or_else(|| unknown(name));
        }
        TimeZoneDatabase::bundled()
            .get(name)
            .map(Zone)
            .map_err(|_| unknown(name))
    }

    /// An ISO 8601 date and time; without an offset it is local, a date alone is its midnight.
    pub fn instant(&self, text: &str) -> Result<Timestamp, LocalError> {
        let wrong = || LocalError::Text(text.chars().take(60).collect());
        if let Ok(at) = text.parse::<jiff::Timestamp>() {
            return Ok(Timestamp(at.as_millisecond()));
        }
        // A text with an offset that isn't an instant must not be read as local time.
        let time = text
            .split_once(['T', 't', ' '])
            .map_or("", |(_, time)| time);
        if time.contains(['Z', 'z', '+', '-', '[']) {
            return Err(wrong());
        }
        let local: DateTime = text.parse().map_err(|_| wrong())?;
        self.resolve(local).ok_or_else(wrong)
    }

    /// The local time at an instant.
    pub(crate) fn local(&self, at: Timestamp) -> Option<DateTime> {
        Some(self.0.to_datetime(at.to_jiff()?))
    }

    /// The instant within a day of `at` at which the clocks are put back, and by how much: from then on, local times
    /// come for the second time.
    pub(crate) fn repeated(&self, at: Timestamp) -> Option<(Timestamp, jiff::SignedDuration)> {
        let day = jiff::SignedDuration::from_hours(24);
        let at = at.to_jiff()?;
        let (from, to) = (at.checked_sub(day).ok()?, at.checked_add(day).ok()?);
        let mut offset = self.0.to_offset(from);
        for change in self.0.following(from) {
            if change.timestamp() > to {
                return None;
            }
            let back = offset.seconds() - change.offset().seconds();
            offset = change.offset();
            if back > 0 {
                let begin = Timestamp(change.timestamp().as_millisecond());
                return Some((begin, jiff::SignedDuration::from_secs(back.into())));
            }
        }
        None
    }

    /// The instant of a local time. Of a doubled one the first; a skipped one is the moment at
    /// which the clocks are put forward. `None` beyond the calendar.
    pub(crate) fn resolve(&self, local: DateTime) -> Option<Timestamp> {
        let offset = match self.0.to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset,
            AmbiguousOffset::Fold { before, .. } => before,
            AmbiguousOffset::Gap { before, .. } => {
                let beyond = before.to_timestamp(local).ok()?;
                let after = beyond
                    .checked_add(jiff::SignedDuration::from_secs(1))
                    .ok()?;
                let change = self.0.preceding(after).next()?;
                return Some(Timestamp(change.timestamp().as_millisecond()));
            }
        };
        Some(Timestamp(offset.to_timestamp(local).ok()?.as_millisecond()))
    }
}

fn unknown(name: &str) -> ZoneError {
    ZoneError(name.chars().take(60).collect())
}

/// [`Zone::instant`] in the zone of that name.
pub fn parse_instant(text: &str, zone: &str) -> Result<Timestamp, LocalError> {
    Zone::parse(zone)?.instant(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(text: &str, zone: &str) -> String {
        parse_instant(text, zone).map_or_else(|error| error.to_string(), |at| at.to_string())
    }

    #[test]
    fn local_times() {
        for (text, zone, instant) in [
            ("2024-01-31T09:00:00", "UTC", "2024-01-31T09:00:00Z"),
            ("2024-01-31T09:00", "Europe/Berlin", "2024-01-31T08:00:00Z"),
            (
                "2024-07-31T09:00:00",
                "europe/berlin",
                "2024-07-31T07:00:00Z",
            ),
            ("2024-01-31", "America/New_York", "2024-01-31T05:00:00Z"),
            (
                "2024-01-31T09:00:00+02:00",
                "America/New_York",
                "2024-01-31T07:00:00Z",
            ),
            ("2024-01-31T09:00:00Z", "Asia/Tokyo", "2024-01-31T09:00:00Z"),
            ("2024-01-31T09:00:00", "+05:30", "2024-01-31T03:30:00Z"),
            ("2024-01-31T09:00:00", "-03:00", "2024-01-31T12:00:00Z"),
            // Skipped: the clocks go from 02:00 to 03:00. Doubled: the first time.
            (
                "2024-03-10T02:30:00",
                "America/New_York",
                "2024-03-10T07:00:00Z",
            ),
            (
                "2024-03-10T02:00:00",
                "America/New_York",
                "2024-03-10T07:00:00Z",
            ),
            (
                "2024-11-03T01:30:00",
                "America/New_York",
                "2024-11-03T05:30:00Z",
            ),
            // A whole day was skipped.
            (
                "2011-12-30T12:00:00",
                "Pacific/Apia",
                "2011-12-30T10:00:00Z",
            ),
        ] {
            assert_eq!(show(text, zone), instant, "{text} {zone}");
        }
        for text in [
            "",
            "soon",
            "2024-13-01",
            "2024-01-31T25:00:00",
            "2024-01-31T09:00:00+99:00",
        ] {
            assert!(
                show(text, "UTC").contains("is not an ISO 8601 date"),
                "{text}"
            );
        }
        assert_eq!(
            show("2024-01-31", "Mars/Base"),
            "there is no time zone 'Mars/Base'"
        );
        assert!(Zone::parse("+banana").is_err() && Zone::parse("").is_err());
    }
}
