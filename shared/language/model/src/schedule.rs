//! Schedules: cron expressions, ISO 8601 intervals, time zones (docs/language.md#decision-41, #decision-42 and
//! #decision-43).
//!
//! Pure functions of instants: the owner of a clock asks for the next time after the last one. Cron is our own:
//! docs/language.md#decision-41 fixes how days are numbered by the number of fields, and how clock changes are treated,
//! more exactly than a crate's options do.

mod cron;
mod interval;
mod zone;

pub use cron::{Cron, CronError};
pub use interval::{Interval, IntervalError};
pub use zone::{LocalError, Zone, ZoneError, parse_instant};

use crate::time::{DurationError, IsoDuration, Timestamp};
use crate::workflow::{Schedule, When};

/// The reason why a schedule cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    #[error("cron expression '{0}': {1}")]
    Cron(String, CronError),
    #[error("interval '{0}': {1}")]
    Interval(String, IntervalError),
    #[error(transparent)]
    Zone(#[from] ZoneError),
    #[error("'validUntil': {0}")]
    ValidUntil(LocalError),
    #[error("'{0}': {1}")]
    After(String, DurationError),
}

/// A workflow's schedule, parsed.
#[derive(Debug, Clone)]
pub struct Calendar {
    rule: Rule,
    exclusive: bool,
}

#[derive(Debug, Clone)]
enum Rule {
    Cron {
        cron: Cron,
        zone: Zone,
        until: Option<Timestamp>,
    },
    Interval(Interval),
    After(IsoDuration),
    Window(Interval),
}

impl Calendar {
    pub fn new(schedule: &Schedule) -> Result<Calendar, ScheduleError> {
        let zone = match &schedule.timezone {
            Some(name) => Zone::parse(name)?,
            None => Zone::utc(),
        };
        let interval = |text: &String| {
            Interval::in_zone(text, &zone)
                .map_err(|error| ScheduleError::Interval(text.clone(), error))
        };
        let rule = match &schedule.when {
            When::Cron {
                expression,
                valid_until,
            } => Rule::Cron {
                cron: Cron::parse(expression)
                    .map_err(|error| ScheduleError::Cron(expression.clone(), error))?,
                until: match valid_until {
                    Some(text) => Some(zone.instant(text).map_err(ScheduleError::ValidUntil)?),
                    None => None,
                },
                zone,
            },
            When::Interval(text) => Rule::Interval(interval(text)?),
            When::After(text) => Rule::After(
                IsoDuration::parse(text)
                    .map_err(|error| ScheduleError::After(text.clone(), error))?,
            ),
            When::Window(text) => Rule::Window(interval(text)?),
        };
        Ok(Calendar {
            rule,
            exclusive: schedule.exclusive,
        })
    }

    /// The first time after `after` at which an instance is created. An interval that is a duration
    /// alone begins at the deployment: ask with an instant before it for the first time.
    pub fn next_after(&self, after: Timestamp, deployed_at: Timestamp) -> Option<Timestamp> {
        match &self.rule {
            // The instant of `validUntil` itself is excluded (docs/language.md#decision-41).
            Rule::Cron { cron, zone, until } => cron
                .next_after(after, zone)
                .filter(|next| until.is_none_or(|until| *next < until)),
            Rule::Interval(interval) => interval.next_after(after, deployed_at),
            // The others follow from ends of instances.
            Rule::After(_) => Some(deployed_at).filter(|at| *at > after),
            Rule::Window(_) => None,
        }
    }

    /// How long after the end of an instance the next one begins, if its end decides.
    pub fn after_end(&self) -> Option<IsoDuration> {
        match &self.rule {
            Rule::After(delay) => Some(*delay),
            Rule::Cron { .. } | Rule::Interval(_) | Rule::Window(_) => None,
        }
    }

    /// Whether the deployment itself is the first time (docs/language.md#decision-90).
    pub fn begins_at_deployment(&self) -> bool {
        match &self.rule {
            Rule::Interval(interval) => interval.begins_at_deployment(),
            Rule::After(_) => true,
            Rule::Cron { .. } | Rule::Window(_) => false,
        }
    }

    /// Whether an event may start an instance now: never outside of a window, in which alone the
    /// workflow waits for events (docs/language.md#decision-42).
    pub fn allows_events(&self, at: Timestamp, deployed_at: Timestamp) -> bool {
        match &self.rule {
            Rule::Window(window) => window.contains(at, deployed_at),
            _ => !self.exclusive,
        }
    }

    /// Whether an instance may be started by hand or as a sub-workflow now (docs/language.md#decision-42).
    pub fn allows(&self, at: Timestamp, deployed_at: Timestamp) -> bool {
        match &self.rule {
            Rule::Window(window) => !self.exclusive || window.contains(at, deployed_at),
            _ => !self.exclusive,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn schedule(when: When, timezone: Option<&str>, exclusive: bool) -> Schedule {
        Schedule {
            when,
            timezone: timezone.map(str::to_owned),
            exclusive,
        }
    }

    #[test]
    fn valid_until_is_excluded_and_in_the_zone() {
        let deployed = at("2024-01-01T00:00:00Z");
        for (until, zone, last) in [
            ("2024-01-02T12:00:00Z", None, "2024-01-01T12:00:00Z"),
            ("2024-01-02T12:00:01Z", None, "2024-01-02T12:00:00Z"),
            (
                "2024-01-02T12:00:00",
                Some("America/New_York"),
                "2024-01-01T17:00:00Z",
            ),
        ] {
            let when = When::Cron {
                expression: "0 12 * * *".to_owned(),
                valid_until: Some(until.to_owned()),
            };
            let calendar = Calendar::new(&schedule(when, zone, false)).unwrap();
            let (mut now, mut count) = (deployed, 0);
            while let Some(next) = calendar.next_after(now, deployed) {
                (now, count) = (next, count + 1);
                assert!(count < 5);
            }
            assert_eq!(now, at(last), "{until}");
        }
    }

    #[test]
    fn windows_say_when_starts_are_allowed() {
        let text = "2024-01-01T00:00:00Z/PT1H".to_owned();
        let now = at("2024-01-01T00:00:00Z");
        let closed = Calendar::new(&schedule(When::Window(text.clone()), None, true)).unwrap();
        assert!(closed.allows(at("2024-01-01T00:59:59Z"), now));
        assert!(!closed.allows(at("2024-01-01T01:00:00Z"), now));
        assert!(!closed.allows(at("2023-12-31T23:59:59Z"), now));
        assert_eq!(closed.next_after(Timestamp(0), now), None);
        let open = Calendar::new(&schedule(When::Window(text), None, false)).unwrap();
        assert!(open.allows(at("2030-01-01T00:00:00Z"), now));
        assert!(!open.allows_events(at("2030-01-01T00:00:00Z"), now));
    }

    #[test]
    fn errors_say_what() {
        let when = When::Interval("R/soon".to_owned());
        let error = Calendar::new(&schedule(when.clone(), None, false)).unwrap_err();
        assert!(
            error.to_string().starts_with("interval 'R/soon': "),
            "{error}"
        );
        let error = Calendar::new(&schedule(when, Some("Mars/Base"), false)).unwrap_err();
        assert_eq!(error.to_string(), "there is no time zone 'Mars/Base'");
    }
}
