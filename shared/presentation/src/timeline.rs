//! An instance's history as people read it. Made from JSON, so that entries which a newer server
//! knows are shown too.

use serde_json::{Value, json};
use swirl_model::event::HistoryEntry;
use swirl_model::time::Timestamp;

/// An entry in the form of the API: as it is stored, with instants as people read them.
pub fn entry(entry: &HistoryEntry) -> Value {
    let mut value = serde_json::to_value(entry).unwrap_or_default();
    value["at"] = json!(format!("{:.3}", entry.at));
    if let Some(due) = value.pointer_mut("/timer/due")
        && let Some(ms) = due.as_i64()
    {
        *due = json!(format!("{:.3}", Timestamp(ms)));
    }
    value
}

/// The kind of a line, for colouring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Good,
    Bad,
    Plain,
    /// A detail.
    Dim,
}

/// One entry.
pub struct Line {
    pub tone: Tone,
    pub text: String,
    scope: String,
}

impl Line {
    /// The scope, unless it is the root.
    pub fn place(&self) -> String {
        match self.scope.as_str() {
            "r" | "" => String::new(),
            scope => format!("[{scope}] "),
        }
    }
}

/// Writes entries as they come: one line each, with the time since the first.
#[derive(Debug, Default)]
pub struct Timeline {
    pub colour: bool,
    /// With the recorded arguments, results and events.
    pub data: bool,
    begun: Option<i64>,
}

impl Timeline {
    /// `colour`: with the escape sequences of terminals. `data`: with the recorded data.
    pub fn new(colour: bool, data: bool) -> Timeline {
        Timeline {
            colour,
            data,
            begun: None,
        }
    }

    /// The next entries, in the form of the API. An odd entry is shown as far as it can be.
    pub fn lines(&mut self, entries: &[Value]) -> String {
        let mut text = String::new();
        for entry in entries {
            let at = entry["at"].as_str().unwrap_or_default();
            let at = Timestamp::parse(at).map_or(0, |at| at.0);
            let begun = *self.begun.get_or_insert(at);
            let line = describe(entry);
            let seconds = (at - begun) as f64 / 1000.0;
            let (on, off) = match (self.colour, line.tone) {
                (false, _) | (true, Tone::Plain) => ("", ""),
                (true, Tone::Good) => ("\x1b[32m", "\x1b[0m"),
                (true, Tone::Bad) => ("\x1b[31m", "\x1b[0m"),
                (true, Tone::Dim) => ("\x1b[2m", "\x1b[0m"),
            };
            let place = line.place();
            text.push_str(&format!(
                "{seconds:>10.3}s  {on}{place}{}{off}\n",
                line.text
            ));
            if self.data {
                let recorded = entry["data"].as_object().into_iter().flatten();
                for (name, value) in recorded {
                    let value = shown(&Value::String(value.to_string()));
                    text.push_str(&format!("{:>13}{name}: {value}\n", ""));
                }
            }
        }
        text
    }
}

/// One entry of the history, in the form of the API.
pub fn describe(entry: &Value) -> Line {
    let word = |name: &str| shown(&entry[name]);
    let attempt = match entry["attempt"].as_u64() {
        Some(attempt) if attempt > 1 => format!(", attempt {attempt}"),
        _ => String::new(),
    };
    let (tone, text) = match entry["event"].as_str().unwrap_or_default() {
        "instance_started" => (Tone::Plain, "started".to_owned()),
        "state_entered" => {
            let why = match entry["purpose"].as_str() {
                Some("Compensation") => ", to compensate",
                Some("RunBefore") => ", because time is up",
                _ => "",
            };
            (Tone::Plain, format!("state {}{why}", word("name")))
        }
        "state_left" if entry["failed"] == true => {
            (Tone::Dim, format!("left {} by an error", word("name")))
        }
        "state_left" => (Tone::Dim, format!("left {}", word("name"))),
        "action_started" => (Tone::Dim, format!("  action {}{attempt}", word("action"))),
        "action_completed" => (
            Tone::Dim,
            format!("  action {} completed{attempt}", word("action")),
        ),
        "action_failed" => {
            let again = entry["retry_ms"].as_u64();
            let again = again.map(|ms| format!("; again in {:.1} s", ms as f64 / 1000.0));
            let error = error(&entry["error"]);
            let again = again.unwrap_or_default();
            let action = word("action");
            (
                Tone::Bad,
                format!("  action {action} failed{attempt}: {error}{again}"),
            )
        }
        "action_skipped" => (Tone::Plain, format!("  action {} skipped", word("action"))),
        "event_consumed" => (
            Tone::Plain,
            format!(
                "  event {} came ({} {})",
                word("name"),
                word("source"),
                word("id")
            ),
        ),
        "event_produced" => (
            Tone::Plain,
            format!("  event {} produced ({})", word("name"), word("id")),
        ),
        "forked" => (Tone::Plain, format!("  {} branches", word("branches"))),
        "joined" => (Tone::Dim, "  branches joined".to_owned()),
        "timed_out" => (
            Tone::Plain,
            format!("  timer {} passed", shown(&entry["timer"]["kind"])),
        ),
        "error_handled" => (
            Tone::Plain,
            format!("  handled: {}", error(&entry["error"])),
        ),
        "validation_failed" => (
            Tone::Bad,
            format!("  {} fails its schema: {}", word("of"), word("message")),
        ),
        "attribute_left_out" => (
            Tone::Bad,
            format!("  not found by @{}: {}", word("attribute"), word("message")),
        ),
        "compensating" => {
            let states = entry["states"].as_array().cloned().unwrap_or_default();
            let names: Vec<String> = states.iter().map(shown).collect();
            (Tone::Plain, format!("  compensating {}", names.join(", ")))
        }
        "compensated" => (Tone::Plain, "  compensated".to_owned()),
        "branch_failed" => (Tone::Bad, format!("  failed: {}", error(&entry["error"]))),
        "retried" => (Tone::Plain, "continued by an operator".to_owned()),
        "call_repeated" => (
            Tone::Plain,
            format!(
                "  call of {} made again: the attempt before recorded no answer",
                word("function")
            ),
        ),
        "operated" => (Tone::Plain, operated(entry)),
        "given_up" => (
            Tone::Bad,
            format!("suspended, because it cannot be driven: {}", word("reason")),
        ),
        "idle" => (Tone::Plain, "kept active".to_owned()),
        "ended" if entry["status"] == "completed" => (Tone::Good, "completed".to_owned()),
        "ended" => {
            let error = match &entry["error"] {
                Value::Null => String::new(),
                found => format!(": {}", error(found)),
            };
            (Tone::Bad, format!("{}{error}", word("status")))
        }
        other => (Tone::Dim, other.to_owned()),
    };
    Line {
        tone,
        text,
        scope: word("scope"),
    }
}

/// An operator's action.
fn operated(entry: &Value) -> String {
    let word = |name: &str| shown(&entry[name]);
    let mut text = format!("operator: {}", word("action"));
    let result = entry["data"].get("result");
    let result = result.map(|result| Value::String(result.to_string()));
    for (before, value) in [
        (" to state ", word("state")),
        (
            " with the result ",
            result.as_ref().map(shown).unwrap_or_default(),
        ),
        (", by ", word("by")),
        (", because: ", word("reason")),
    ] {
        if !value.is_empty() {
            text.push_str(&format!("{before}{value}"));
        }
    }
    text
}

/// A value in a line: control characters could move the cursor of a terminal.
pub fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// An error of the API: its name, its code if that says more, and its message.
pub fn error(error: &Value) -> String {
    let code = shown(&error["code"]);
    let name = shown(&error["name"]);
    let code = match code.is_empty() || code == name {
        true => String::new(),
        false => format!(" ({code})"),
    };
    format!("{name}{code}: {}", shown(&error["message"]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use swirl_model::event::Event;
    use swirl_model::ids::ScopeId;
    use swirl_model::scope::{Timer, TimerKind};

    #[test]
    fn instants_are_written_out() {
        let timer = Timer {
            seq: 1,
            kind: TimerKind::Sleep,
            due: Timestamp(1000),
        };
        let value = entry(&HistoryEntry {
            data: None,
            at: Timestamp(2000),
            scope: ScopeId::root(),
            event: Event::TimedOut { timer },
        });
        assert_eq!(value["at"], "1970-01-01T00:00:02.000Z");
        assert_eq!(value["timer"]["due"], "1970-01-01T00:00:01.000Z");
        assert_eq!(value["event"], "timed_out");
    }

    #[test]
    fn a_timeline() {
        let entries = [
            json!({"at": "2024-01-31T09:00:00Z", "scope": "r", "event": "instance_started"}),
            json!({"at": "2024-01-31T09:00:00.5Z", "scope": "r.3.1", "event": "action_failed", "action": "pay", "attempt": 2,
                "error": {"name": "FunctionError", "code": "503", "message": "busy\u{1b}[2J"}, "retry_ms": 1500}),
            json!({"at": "2024-01-31T09:00:59Z", "scope": "r", "event": "validation_failed", "of": "output", "message": "1 is not a string"}),
            json!({"at": "2024-01-31T09:00:59Z", "scope": "r", "event": "attribute_left_out", "attribute": "total",
                "message": "its value is of type string, and not a number"}),
            json!({"at": "2024-01-31T09:01:00Z", "scope": "r", "event": "ended", "status": "completed"}),
            json!({"at": "2024-01-31T09:01:00Z", "scope": "r", "event": "teleported"}),
            json!({"at": "2024-01-31T09:01:00Z", "scope": "r", "event": "operated", "action": "skip", "by": "ada",
                "reason": "paid by phone", "data": {"result": {"paid": true}}}),
            json!({"at": "2024-01-31T09:01:00Z", "scope": "r", "event": "call_repeated", "function": "pay", "call": 3}),
        ];
        let timeline = |colour| Timeline::new(colour, true).lines(&entries);
        insta::assert_snapshot!(timeline(false), @r#"
             0.000s  started
             0.500s  [r.3.1]   action pay failed, attempt 2: FunctionError (503): busy [2J; again in 1.5 s
            59.000s    output fails its schema: 1 is not a string
            59.000s    not found by @total: its value is of type string, and not a number
            60.000s  completed
            60.000s  teleported
            60.000s  operator: skip with the result {"paid":true}, by ada, because: paid by phone
                     result: {"paid":true}
            60.000s    call of pay made again: the attempt before recorded no answer
        "#);
        assert!(timeline(true).contains("\x1b[32mcompleted\x1b[0m"));
    }
}
