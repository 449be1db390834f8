//! How many instances have begun and ended lately. A store counts that while it writes, in a bounded number of spans, so
//! that nobody has to look at the instances, which may have been removed.

use serde::{Deserialize, Serialize};
use swirl_model::instance::Status;
use swirl_model::time::Timestamp;

/// The events of a span of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    pub started: u64,
    pub completed: u64,
    /// How often an instance stopped with an error. One that is tried again may do so several times.
    pub faulted: u64,
    pub cancelled: u64,
    pub terminated: u64,
    /// Of the completed instances, the time from start to end: the sum and the longest.
    pub millis: u64,
    pub longest: u64,
}

/// The lengths of spans that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Span {
    Minute,
    /// Of an hour.
    Quarter,
}

/// The last spans, oldest first. The last one is not over yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trend {
    pub hour: Vec<(Timestamp, Tally)>,
    pub day: Vec<(Timestamp, Tally)>,
}

impl Tally {
    pub fn start(&mut self) {
        self.started += 1;
    }

    /// Counts an end. `millis`: the time since the start.
    pub fn end(&mut self, status: Status, millis: i64) {
        match status {
            Status::Running => {}
            Status::Completed => {
                let millis = u64::try_from(millis).unwrap_or(0);
                self.completed += 1;
                self.millis = self.millis.saturating_add(millis);
                self.longest = self.longest.max(millis);
            }
            Status::Faulted => self.faulted += 1,
            Status::Cancelled => self.cancelled += 1,
            Status::Terminated => self.terminated += 1,
        }
    }

    pub fn add(&mut self, other: &Tally) {
        self.started += other.started;
        self.completed += other.completed;
        self.faulted += other.faulted;
        self.cancelled += other.cancelled;
        self.terminated += other.terminated;
        self.millis = self.millis.saturating_add(other.millis);
        self.longest = self.longest.max(other.longest);
    }
}

impl Span {
    pub const ALL: [Span; 2] = [Span::Minute, Span::Quarter];

    pub const fn millis(self) -> i64 {
        match self {
            Span::Minute => 60_000,
            Span::Quarter => 900_000,
        }
    }

    /// How many of the last spans a trend has: an hour, or a day.
    pub const fn shown(self) -> i64 {
        match self {
            Span::Minute => 60,
            Span::Quarter => 96,
        }
    }

    /// How many places a store has for spans. A span takes the place of an older one.
    pub const fn places(self) -> i64 {
        match self {
            Span::Minute => 64,
            Span::Quarter => 100,
        }
    }

    /// The number of the span that an instant is in.
    pub const fn number(self, at: Timestamp) -> i64 {
        at.0.div_euclid(self.millis())
    }

    /// The place of a span.
    pub const fn place(self, number: i64) -> i64 {
        number.rem_euclid(self.places())
    }
}

impl Trend {
    /// The trend until now, from counts by span and number, in any order. A number may occur several times.
    pub fn of(now: Timestamp, counts: &[(Span, i64, Tally)]) -> Trend {
        let series = |span: Span| {
            let here = span.number(now);
            // By the clock of a store, the next span may have begun.
            let of_span = counts.iter().filter(|(found, ..)| *found == span);
            let last = match of_span.clone().any(|(_, number, _)| *number == here + 1) {
                true => here + 1,
                false => here,
            };
            let first = last + 1 - span.shown();
            let begins = |number: i64| Timestamp(number * span.millis());
            let mut series: Vec<_> = (first..=last)
                .map(|number| (begins(number), Tally::default()))
                .collect();
            for (_, number, tally) in of_span {
                let place = usize::try_from(number - first).ok();
                if let Some((_, found)) = place.and_then(|place| series.get_mut(place)) {
                    found.add(tally);
                }
            }
            series
        };
        Trend {
            hour: series(Span::Minute),
            day: series(Span::Quarter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_700_000_000_000);

    fn started(count: u64) -> Tally {
        Tally {
            started: count,
            ..Tally::default()
        }
    }

    #[test]
    fn a_trend_ends_now_and_has_gaps_as_zeros() {
        let minute = Span::Minute.number(NOW);
        let quarter = Span::Quarter.number(NOW);
        let trend = Trend::of(
            NOW,
            &[
                (Span::Minute, minute, started(1)),
                (Span::Minute, minute - 59, started(2)),
                // Two shards count the same minute.
                (Span::Minute, minute, started(4)),
                // Too old, but no other span has taken its place.
                (Span::Minute, minute - 60, started(8)),
                (Span::Quarter, quarter - 95, started(16)),
                (Span::Quarter, quarter + 5, started(32)),
            ],
        );
        assert_eq!((trend.hour.len(), trend.day.len()), (60, 96));
        let numbers =
            |series: &[(Timestamp, Tally)]| series.iter().map(|(_, t)| t.started).sum::<u64>();
        assert_eq!((numbers(&trend.hour), numbers(&trend.day)), (7, 16));
        assert_eq!(trend.hour[59].1.started, 5);
        assert_eq!(trend.hour[0].1.started, 2);
        assert_eq!(trend.day[0].1.started, 16);
        let (last, _) = trend.hour[59];
        assert!(last <= NOW && NOW.0 - last.0 < 60_000);
        let mut steps = trend.day.windows(2).map(|two| two[1].0.0 - two[0].0.0);
        assert!(steps.all(|step| step == 900_000));
    }

    #[test]
    fn the_clock_of_a_store_may_be_ahead() {
        let minute = Span::Minute.number(NOW);
        let trend = Trend::of(NOW, &[(Span::Minute, minute + 1, started(1))]);
        assert_eq!(
            trend.hour[59],
            (Timestamp((minute + 1) * 60_000), started(1))
        );
    }

    #[test]
    fn only_completed_instances_have_a_duration() {
        let mut tally = Tally::default();
        tally.start();
        tally.end(Status::Completed, 40);
        tally.end(Status::Completed, 60);
        // The clock was set back.
        tally.end(Status::Completed, -5);
        tally.end(Status::Faulted, 1_000);
        tally.end(Status::Cancelled, 1_000);
        tally.end(Status::Terminated, 1_000);
        let expected = Tally {
            started: 1,
            completed: 3,
            faulted: 1,
            cancelled: 1,
            terminated: 1,
            millis: 100,
            longest: 60,
        };
        assert_eq!(tally, expected);
    }
}
