//! The time of an instance in each state, as bars. Idle time is compressed, so that a night of waiting leaves
//! room for the second in which everything happened.

use std::collections::BTreeMap;

use swirl_api::Instant;
use swirl_api::history::HistoryEntry;
use swirl_model::event::Event;
use swirl_model::instance::EndStatus;
use swirl_model::time::Timestamp;

use crate::tree::escape;

/// How many bars are drawn: the last ones.
const BARS_MAX: usize = 40;
const WIDTH: f64 = 540.0;
const NAME: f64 = 150.0;
const ROW: f64 = 26.0;
const NAME_CHARS: usize = 20;

#[derive(Debug, PartialEq)]
struct Bar {
    name: String,
    from: i64,
    /// None if it is still in the state.
    to: Option<i64>,
    failed: bool,
}

/// An image; none if the history has no states.
pub fn timeline(history: &[HistoryEntry], now: Timestamp, ended: bool) -> Option<String> {
    let bars = bars(history);
    let bars = &bars[bars.len().saturating_sub(BARS_MAX)..];
    if bars.is_empty() {
        return None;
    }
    let last = bars
        .iter()
        .flat_map(|bar| [Some(bar.from), bar.to])
        .flatten()
        .max();
    // The bar of a state that still runs ends now.
    let end = if ended { last? } else { now.0.max(last?) };
    let mut instants: Vec<i64> = bars
        .iter()
        .flat_map(|bar| [bar.from, bar.to.unwrap_or(end)])
        .collect();
    instants.sort_unstable();
    instants.dedup();
    // On a logarithmic scale: a thousand times longer is only some times wider.
    let mut places = BTreeMap::from([(instants[0], 0.0)]);
    let mut at = 0.0;
    for pair in instants.windows(2) {
        let ms = (pair[1] - pair[0]) as f64;
        at += 1.0 + (1.0 + ms).ln();
        places.insert(pair[1], at);
    }
    let scale = (WIDTH - NAME - 90.0) / at.max(1.0);
    let height = ROW * bars.len() as f64 + 8.0;
    let mut svg = format!(
        "<svg class=\"timeline\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"The time that the instance spent in each state\">"
    );
    for (row, bar) in bars.iter().enumerate() {
        let to = bar.to.unwrap_or(end);
        let (x1, x2) = (places[&bar.from] * scale, places[&to] * scale);
        let y = 4.0 + row as f64 * ROW;
        let (class, sign) = match (bar.failed, bar.to) {
            (true, _) => ("failed", " ✕"),
            (false, None) if !ended => ("here", " …"),
            _ => ("past", ""),
        };
        let name = short(&bar.name);
        let (width, text_y) = ((x2 - x1).max(3.0), y + 15.0);
        svg.push_str(&format!(
            "<text class=\"name\" x=\"0\" y=\"{text_y:.1}\">{}<title>{}</title></text>\
             <rect class=\"{class}\" x=\"{:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"18\" rx=\"4\"/>\
             <text class=\"took\" x=\"{:.1}\" y=\"{text_y:.1}\">{}{sign}</text>",
            escape(&name),
            escape(&bar.name),
            NAME + x1,
            NAME + x1 + width + 6.0,
            took(to - bar.from),
        ));
    }
    svg.push_str("</svg>");
    Some(svg)
}

/// As much of a name as there is room for.
fn short(name: &str) -> String {
    match name.char_indices().nth(NAME_CHARS) {
        None => name.to_owned(),
        Some(_) => name.chars().take(NAME_CHARS - 1).chain(['…']).collect(),
    }
}

fn bars(history: &[HistoryEntry]) -> Vec<Bar> {
    let mut bars: Vec<Bar> = Vec::new();
    // The bar of a scope that is still open.
    let mut open: BTreeMap<&str, usize> = BTreeMap::new();
    let bar = |name: &str, at: Timestamp| Bar {
        name: name.to_owned(),
        from: at.0,
        to: None,
        failed: false,
    };
    for entry in history {
        let (Instant(at), scope) = (entry.at, entry.scope.as_str());
        match entry.event.event() {
            Some(Event::StateEntered { name, .. }) => {
                open.insert(scope, bars.len());
                bars.push(bar(name, at));
            }
            Some(Event::StateLeft { failed, .. }) => {
                if let Some(bar) = open.remove(scope) {
                    bars[bar].to = Some(at.0);
                    bars[bar].failed = *failed;
                }
            }
            Some(Event::Ended { status, .. }) => {
                for bar in std::mem::take(&mut open).into_values() {
                    bars[bar].to = Some(at.0);
                    bars[bar].failed = *status == EndStatus::Faulted;
                }
            }
            // The entry with which it entered the state isn't among these.
            Some(
                Event::ActionStarted {
                    in_state: Some(state),
                    ..
                }
                | Event::Forked {
                    in_state: Some(state),
                    ..
                },
            ) if scope == "r" && !open.contains_key(scope) => {
                open.insert(scope, bars.len());
                bars.push(bar(state, at));
            }
            _ => {}
        }
    }
    bars
}

/// A duration as text for people.
pub fn took(ms: i64) -> String {
    let seconds = ms as f64 / 1000.0;
    match ms {
        ..=999 => format!("{ms} ms"),
        1_000..=59_999 => format!("{seconds:.1} s"),
        60_000..=3_599_999 => format!("{} min {} s", ms / 60_000, ms / 1000 % 60),
        3_600_000..=86_399_999 => format!("{} h {} min", ms / 3_600_000, ms / 60_000 % 60),
        _ => format!("{} d {} h", ms / 86_400_000, ms / 3_600_000 % 24),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn entries(all: Value) -> Vec<HistoryEntry> {
        serde_json::from_value(all).unwrap()
    }

    fn entered(at: &str, name: &str) -> Value {
        json!({"at": format!("2026-01-01T{at}Z"), "scope": "r", "event": "state_entered", "state": 0, "name": name,
            "purpose": "Main"})
    }

    fn left(at: &str, name: &str) -> Value {
        json!({"at": format!("2026-01-01T{at}Z"), "scope": "r", "event": "state_left", "state": 0, "name": name,
            "failed": false})
    }

    #[test]
    fn bars_of_states() {
        let history = entries(json!([
            entered("00:00:00", "<A>"),
            left("00:00:00.5", "<A>"),
            entered("00:00:00.5", "B"),
        ]));
        let now = Timestamp::parse("2026-01-01T08:00:00Z").unwrap();
        let svg = timeline(&history, now, false).unwrap();
        assert!(svg.contains("&lt;A&gt;") && svg.contains("500 ms"), "{svg}");
        assert_eq!(short("Twenty characters it"), "Twenty characters it");
        assert_eq!(short("Twenty-one characters"), "Twenty-one characte…");
        assert!(
            svg.contains("class=\"here\"") && svg.contains("7 h 59 min …"),
            "{svg}"
        );
        let cut = entries(json!([
            json!({"at": "2026-01-01T00:00:00Z", "scope": "r", "event": "forked", "fork": 1, "branches": 2, "in_state": "Both"}),
            json!({"at": "2026-01-01T00:00:01Z", "scope": "r.1.0", "event": "action_started", "action": "a", "attempt": 1, "call": 1, "in_state": "Both"}),
            left("00:00:02", "Both"),
        ]));
        let svg = timeline(&cut, now, true).unwrap();
        assert_eq!(svg.matches("<rect").count(), 1, "{svg}");
        assert!(svg.contains("Both") && svg.contains("2.0 s"), "{svg}");
        assert_eq!(timeline(&entries(json!([])), now, true), None);
        let failed = entries(json!([
            entered("00:00:00", "A"),
            json!({"at": "2026-01-01T00:00:01Z", "scope": "r", "event": "ended", "status": "faulted"}),
        ]));
        assert!(timeline(&failed, now, true).unwrap().contains("1.0 s ✕"));
    }

    #[test]
    fn times() {
        for (ms, told) in [
            (7, "7 ms"),
            (1_500, "1.5 s"),
            (61_000, "1 min 1 s"),
            (3_700_000, "1 h 1 min"),
            (90_000_000, "1 d 1 h"),
        ] {
            assert_eq!(took(ms), told);
        }
    }
}
