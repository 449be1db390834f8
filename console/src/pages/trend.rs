//! How many instances began, ended and failed lately, as a row of small charts with the numbers as a table.

use swirl_api::Instant;
use swirl_api::overview::Interval;

use crate::timeline::took;

/// The size of a chart, in units of its drawing.
pub const WIDTH: usize = 240;
pub const HEIGHT: usize = 56;
/// A bar that stands for something can be seen.
const BAR_MIN: f64 = 2.0;
/// The part of an interval's width that is left free.
const GAP: f64 = 0.2;

/// What is charted, as the address of the page says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    Hour,
    Day,
}

pub struct Trend {
    pub is_day: bool,
    pub charts: Vec<Chart>,
    /// The instant at the left edge, relative to now.
    pub from: &'static str,
    /// Newest first.
    pub rows: Vec<Row>,
    /// Nothing began or ended.
    pub is_empty: bool,
}

pub struct Chart {
    pub name: &'static str,
    /// For the whole time.
    pub figure: String,
    /// What else there is to say about it.
    pub note: String,
    /// Says the same as the picture.
    pub label: String,
    pub bars: Vec<Bar>,
}

/// The rectangle of a part of an interval.
pub struct Bar {
    pub class: &'static str,
    pub x: String,
    pub y: String,
    pub width: String,
    pub height: String,
    pub title: String,
}

/// Several intervals together.
pub struct Row {
    pub from: Instant,
    pub started: u64,
    pub completed: u64,
    pub stopped: u64,
    pub failed: u64,
    pub average: String,
    pub longest: String,
}

/// One bar consists of these parts, from the bottom up: a class, and its value in each interval.
type Parts<'a> = [(&'static str, &'a dyn Fn(&Interval) -> u64)];

impl Of {
    pub fn read(word: Option<&str>) -> Of {
        match word {
            Some("day") => Of::Day,
            _ => Of::Hour,
        }
    }

    /// The length of an interval in words, and in minutes.
    fn interval(self) -> (&'static str, usize) {
        match self {
            Of::Hour => ("a minute", 1),
            Of::Day => ("15 minutes", 15),
        }
    }

    fn whole(self) -> &'static str {
        match self {
            Of::Hour => "the last hour",
            Of::Day => "the last 24 hours",
        }
    }

    /// How many intervals are a row of the table.
    fn in_row(self) -> usize {
        match self {
            Of::Hour => 5,
            Of::Day => 4,
        }
    }

    /// Where an interval is, counted from the last one.
    fn ago(self, back: usize) -> String {
        let minutes = back * self.interval().1;
        match (back, minutes / 60, minutes % 60) {
            (0, ..) => "now".to_owned(),
            (_, 0, minutes) => format!("{minutes} min ago"),
            (_, hours, 0) => format!("{hours} h ago"),
            (_, hours, minutes) => format!("{hours} h {minutes} min ago"),
        }
    }
}

impl Trend {
    pub fn of(of: Of, found: &swirl_api::overview::Trend) -> Trend {
        let all = match of {
            Of::Hour => &found.hour,
            Of::Day => &found.day,
        };
        let sum = total(all);
        let stopped = sum.cancelled + sum.terminated;
        let chart = |name, parts: &Parts<'_>, note| numbers(of, all, name, parts, note);
        let note = match stopped {
            0 => String::new(),
            stopped => format!("{stopped} of them cancelled or terminated"),
        };
        let charts = vec![
            chart("Started", &[("started", &|one| one.started)], String::new()),
            chart(
                "Ended",
                &[
                    ("completed", &|one| one.completed),
                    ("stopped", &|one| one.cancelled + one.terminated),
                ],
                note,
            ),
            chart("Failed", &[("failed", &|one| one.faulted)], String::new()),
            durations(of, all, &sum),
        ];
        Trend {
            is_day: of == Of::Day,
            charts,
            from: match of {
                Of::Hour => "1 h ago",
                Of::Day => "24 h ago",
            },
            rows: all.rchunks(of.in_row()).map(row).collect(),
            is_empty: sum.started + sum.completed + stopped + sum.faulted == 0,
        }
    }
}

/// A chart of numbers of instances.
fn numbers(of: Of, all: &[Interval], name: &'static str, parts: &Parts<'_>, note: String) -> Chart {
    let whole = |one: &Interval| parts.iter().map(|(_, value)| value(one)).sum::<u64>();
    let figure: u64 = all.iter().map(whole).sum();
    let most = all.iter().map(whole).max().unwrap_or(0);
    let most = format!("{most} in {} at most", of.interval().0);
    let (label, note) = match (figure, note.is_empty()) {
        (0, _) => (format!("{name} in {}: none", of.whole()), String::new()),
        (_, true) => (format!("{name} in {}: {figure}, {most}", of.whole()), most),
        (_, false) => {
            let note = format!("{note}; {most}");
            (format!("{name} in {}: {figure}, {note}", of.whole()), note)
        }
    };
    Chart {
        name,
        figure: figure.to_string(),
        note,
        label,
        bars: bars(of, all, parts, &|value| value.to_string()),
    }
}

/// The chart of the time that instances take.
fn durations(of: Of, all: &[Interval], sum: &Interval) -> Chart {
    let name = "Time to complete";
    let (figure, note) = match (sum.average_ms, sum.longest_ms) {
        (Some(average), Some(longest)) => (
            time(average),
            format!("on average; {} at most", time(longest)),
        ),
        _ => ("–".to_owned(), String::new()),
    };
    let label = match note.is_empty() {
        true => format!("{name} in {}: none completed", of.whole()),
        false => format!("{name} in {}: {figure} {note}", of.whole()),
    };
    let parts: &Parts<'_> = &[("took", &|one| one.average_ms.unwrap_or(0))];
    Chart {
        name,
        figure,
        note,
        label,
        bars: bars(of, all, parts, &time),
    }
}

fn bars(of: Of, all: &[Interval], parts: &Parts<'_>, shown: &dyn Fn(u64) -> String) -> Vec<Bar> {
    let whole = |one: &Interval| parts.iter().map(|(_, value)| value(one)).sum::<u64>();
    let highest = all.iter().map(whole).max().unwrap_or(0).max(1) as f64;
    let slot = WIDTH as f64 / all.len().max(1) as f64;
    let height = HEIGHT as f64;
    let mut bars = Vec::new();
    for (place, one) in all.iter().enumerate() {
        let mut top = height;
        let ago = of.ago(all.len() - 1 - place);
        for (class, value) in parts {
            let value = value(one);
            if value == 0 {
                continue;
            }
            let tall = (height * value as f64 / highest).max(BAR_MIN);
            top = (top - tall).max(0.0);
            bars.push(Bar {
                class,
                x: format!("{:.2}", place as f64 * slot),
                y: format!("{top:.1}"),
                width: format!("{:.2}", slot * (1.0 - GAP)),
                height: format!("{tall:.1}"),
                title: match parts.len() {
                    1 => format!("{ago}: {}", shown(value)),
                    _ => format!("{ago}: {} {class}", shown(value)),
                },
            });
        }
    }
    bars
}

/// Intervals together.
fn total(all: &[Interval]) -> Interval {
    let from = all.first().map(|one| one.from);
    let mut sum = Interval {
        from: from.unwrap_or(Instant(swirl_model::time::Timestamp(0))),
        started: 0,
        completed: 0,
        faulted: 0,
        cancelled: 0,
        terminated: 0,
        average_ms: None,
        longest_ms: None,
    };
    let mut millis: u64 = 0;
    for one in all {
        sum.started += one.started;
        sum.completed += one.completed;
        sum.faulted += one.faulted;
        sum.cancelled += one.cancelled;
        sum.terminated += one.terminated;
        sum.longest_ms = sum.longest_ms.max(one.longest_ms);
        millis = millis.saturating_add(one.average_ms.unwrap_or(0).saturating_mul(one.completed));
    }
    sum.average_ms = millis.checked_div(sum.completed);
    sum
}

fn row(all: &[Interval]) -> Row {
    let sum = total(all);
    Row {
        from: sum.from,
        started: sum.started,
        completed: sum.completed,
        stopped: sum.cancelled + sum.terminated,
        failed: sum.faulted,
        average: sum.average_ms.map(time).unwrap_or_default(),
        longest: sum.longest_ms.map(time).unwrap_or_default(),
    }
}

fn time(ms: u64) -> String {
    took(i64::try_from(ms).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use swirl_model::time::Timestamp;

    use super::*;

    fn interval(minute: i64) -> Interval {
        Interval {
            from: Instant(Timestamp(minute * 60_000)),
            ..total(&[])
        }
    }

    fn hour() -> swirl_api::overview::Trend {
        let mut hour: Vec<_> = (0..60).map(interval).collect();
        hour[59] = Interval {
            started: 10,
            completed: 3,
            faulted: 1,
            cancelled: 1,
            average_ms: Some(100),
            longest_ms: Some(250),
            ..hour[59].clone()
        };
        hour[0] = Interval {
            started: 1_000,
            completed: 1,
            average_ms: Some(500),
            longest_ms: Some(500),
            ..hour[0].clone()
        };
        swirl_api::overview::Trend {
            hour,
            day: Vec::new(),
        }
    }

    #[test]
    fn charts_say_in_words_what_they_show() {
        let trend = Trend::of(Of::Hour, &hour());
        let figures: Vec<_> = trend.charts.iter().map(|chart| &*chart.figure).collect();
        assert_eq!(figures, ["1010", "5", "1", "200 ms"]);
        assert_eq!(
            trend.charts[0].label,
            "Started in the last hour: 1010, 1000 in a minute at most"
        );
        assert_eq!(
            trend.charts[1].note,
            "1 of them cancelled or terminated; 4 in a minute at most"
        );
        assert_eq!(trend.charts[3].note, "on average; 500 ms at most");
        assert!(!trend.is_empty);
    }

    #[test]
    fn bars_stay_within_the_picture_and_can_be_seen() {
        let trend = Trend::of(Of::Hour, &hour());
        let started = &trend.charts[0].bars;
        assert_eq!(started.len(), 2);
        assert_eq!((&*started[0].y, &*started[0].height), ("0.0", "56.0"));
        assert_eq!(started[0].title, "59 min ago: 1000");
        assert_eq!(
            (&*started[1].height, &*started[1].title),
            ("2.0", "now: 10")
        );
        let ended: Vec<_> = trend.charts[1].bars.iter().map(|bar| &*bar.title).collect();
        assert_eq!(
            ended,
            [
                "59 min ago: 1 completed",
                "now: 3 completed",
                "now: 1 stopped"
            ]
        );
        for bar in trend.charts.iter().flat_map(|chart| &chart.bars) {
            let number = |text: &str| text.parse::<f64>().unwrap();
            assert!(number(&bar.y) >= 0.0 && number(&bar.y) + number(&bar.height) <= 56.1);
            assert!(number(&bar.x) + number(&bar.width) <= 240.0);
        }
    }

    #[test]
    fn the_table_has_all_that_the_charts_have() {
        let trend = Trend::of(Of::Hour, &hour());
        assert_eq!(trend.rows.len(), 12);
        let newest = &trend.rows[0];
        assert_eq!((newest.started, newest.stopped, newest.failed), (10, 1, 1));
        assert_eq!(newest.from.0, Timestamp(55 * 60_000));
        assert_eq!(trend.rows[11].average, "500 ms");
        assert_eq!(trend.rows[5].average, "");
    }

    #[test]
    fn nothing_is_said_about_nothing() {
        let trend = Trend::of(Of::Day, &hour());
        assert!(trend.is_empty && trend.charts.iter().all(|chart| chart.bars.is_empty()));
        assert_eq!(trend.charts[0].label, "Started in the last 24 hours: none");
        assert_eq!(Of::Day.ago(95), "23 h 45 min ago");
    }
}
