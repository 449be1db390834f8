//! The time of an instance in each state, as bars. Idle time is compressed, so that a night of waiting leaves
//! room for the second in which everything happened.

use std::collections::BTreeMap;

use serde_json::Value;
use swirl_model::time::Timestamp;

use crate::answer::{list, text};
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
pub fn timeline(history: &Value, now: Timestamp, ended: bool) -> Option<String> {
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

fn bars(history: &Value) -> Vec<Bar> {
    let mut bars: Vec<Bar> = Vec::new();
    // The bar of a scope that is still open.
    let mut open: BTreeMap<String, usize> = BTreeMap::new();
    for entry in list(history, "entries") {
        let at = Timestamp::parse(&text(entry, "at")).map_or(0, |at| at.0);
        let scope = text(entry, "scope");
        match entry["event"].as_str() {
            Some("state_entered") => {
                open.insert(scope, bars.len());
                bars.push(Bar {
                    name: text(entry, "name"),
                    from: at,
                    to: None,
                    failed: false,
                });
            }
            Some("state_left") => {
                if let Some(bar) = open.remove(&scope) {
                    bars[bar].to = Some(at);
                    bars[bar].failed = entry["failed"] == true;
                }
            }
            Some("ended") => {
                for bar in std::mem::take(&mut open).into_values() {
                    bars[bar].to = Some(at);
                    bars[bar].failed = entry["status"] == "faulted";
                }
            }
            // The entry with which it entered the state isn't among these.
            Some("action_started" | "forked")
                if scope == "r" && !open.contains_key(&scope) && entry["in_state"].is_string() =>
            {
                open.insert(scope, bars.len());
                bars.push(Bar {
                    name: text(entry, "in_state"),
                    from: at,
                    to: None,
                    failed: false,
                });
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
    use serde_json::json;

    use super::*;

    fn entry(at: &str, event: &str, name: &str) -> Value {
        json!({"at": format!("2026-01-01T{at}Z"), "scope": "r", "event": event, "name": name})
    }

    #[test]
    fn bars_of_states() {
        let history = json!({"entries": [
            entry("00:00:00", "state_entered", "<A>"),
            entry("00:00:00.5", "state_left", "<A>"),
            entry("00:00:00.5", "state_entered", "B"),
        ]});
        let now = Timestamp::parse("2026-01-01T08:00:00Z").unwrap();
        let svg = timeline(&history, now, false).unwrap();
        assert!(svg.contains("&lt;A&gt;") && svg.contains("500 ms"), "{svg}");
        assert_eq!(short("Twenty characters it"), "Twenty characters it");
        assert_eq!(short("Twenty-one characters"), "Twenty-one characte…");
        assert!(
            svg.contains("class=\"here\"") && svg.contains("7 h 59 min …"),
            "{svg}"
        );
        let cut = json!({"entries": [
            json!({"at": "2026-01-01T00:00:00Z", "scope": "r", "event": "forked", "in_state": "Both"}),
            json!({"at": "2026-01-01T00:00:01Z", "scope": "r.1.0", "event": "action_started", "in_state": "Both"}),
            entry("00:00:02", "state_left", "Both"),
        ]});
        let svg = timeline(&cut, now, true).unwrap();
        assert_eq!(svg.matches("<rect").count(), 1, "{svg}");
        assert!(svg.contains("Both") && svg.contains("2.0 s"), "{svg}");
        assert_eq!(timeline(&json!({"entries": []}), now, true), None);
        let failed = json!({"entries": [
            entry("00:00:00", "state_entered", "A"),
            json!({"at": "2026-01-01T00:00:01Z", "scope": "r", "event": "ended", "status": "faulted"}),
        ]});
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
