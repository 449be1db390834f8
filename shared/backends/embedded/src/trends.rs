//! Counts of the instances that have begun and ended lately ([`swirl_ports::trend`]).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use swirl_model::time::Timestamp;
use swirl_ports::trend::Span;
use swirl_ports::{Tally, Trend};

/// A span and its place.
pub(crate) type SpanKey = (Span, u64);

#[derive(Default)]
pub(crate) struct Trends {
    spans: BTreeMap<SpanKey, Counted>,
}

/// The counts of a span, as they are written to disk.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Counted {
    number: i64,
    #[serde(flatten)]
    tally: Tally,
}

impl Trends {
    pub fn get(&self, place: SpanKey) -> Option<&Counted> {
        self.spans.get(&place)
    }

    pub fn restore(&mut self, place: SpanKey, counted: Counted) {
        self.spans.insert(place, counted);
    }

    /// Counts something that happened at an instant. Returns the places that have changed.
    pub fn count(&mut self, at: Timestamp, change: impl Fn(&mut Tally)) -> [SpanKey; 2] {
        Span::ALL.map(|span| {
            let number = span.number(at);
            let place = (span, span.place(number) as u64);
            let empty = Counted {
                number,
                tally: Tally::default(),
            };
            let found = self.spans.entry(place).or_insert(empty);
            if found.number != number {
                *found = empty;
            }
            change(&mut found.tally);
            place
        })
    }

    pub fn until(&self, now: Timestamp) -> Trend {
        let counts = self.spans.iter();
        let counts = counts.map(|((span, _), counted)| (*span, counted.number, counted.tally));
        Trend::of(now, &counts.collect::<Vec<_>>())
    }
}

/// The letter of a span in keys.
pub(crate) fn letter(span: Span) -> &'static str {
    match span {
        Span::Minute => "m",
        Span::Quarter => "q",
    }
}

pub(crate) fn span_of(letter: &str) -> Option<Span> {
    Span::ALL
        .into_iter()
        .find(|span| self::letter(*span) == letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_bounded() {
        let mut trends = Trends::default();
        for minute in 0..3_000 {
            trends.count(Timestamp(minute * 60_000), Tally::start);
        }
        let places = Span::ALL.map(|span| span.places() as usize);
        assert_eq!(trends.spans.len(), places.iter().sum::<usize>());
        let trend = trends.until(Timestamp(2_999 * 60_000));
        assert!(trend.hour.iter().all(|(_, tally)| tally.started == 1));
        assert!(trend.day.iter().all(|(_, tally)| tally.started == 15));
    }
}
