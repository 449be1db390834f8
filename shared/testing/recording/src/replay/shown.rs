//! Formats a replay, as text and as JSON.

use serde_json::{Value, json};
use swirl_presentation::timeline::{describe, shown};
use swirl_scenario::report::details;

use super::{Departure, Line, Replayed};

impl Replayed {
    /// The text: a line with the verdict, followed by the first difference.
    pub fn text(&self) -> String {
        let Replayed {
            instance,
            definition,
            lines,
            ..
        } = self;
        let mut text = match self.is_same() {
            true => {
                format!("same: {instance} of {definition} takes the same path ({lines} lines)\n")
            }
            false => format!("different: {instance} of {definition} takes a different path\n"),
        };
        if let Some(first) = &self.first {
            text.push_str(&first.text());
        }
        if let Some(shifted) = &self.shifted {
            text.push_str("  the same lines come at other times, the first of them here:\n");
            text.push_str(&shifted.text());
        }
        for line in details(&self.result).lines() {
            text.push_str(&format!("  {line}\n"));
        }
        for (function, arguments) in &self.unanswered {
            let arguments = shown(&Value::String(arguments.to_string()));
            text.push_str(&format!(
                "  calls: no answer is recorded for {function} {arguments}; the replay stops there\n"
            ));
        }
        text
    }

    /// The JSON.
    pub fn json(&self) -> Value {
        let result = self
            .result
            .iter()
            .map(|one| json!({"what": one.what, "message": one.message, "details": one.details}));
        let unanswered = self
            .unanswered
            .iter()
            .map(|(function, arguments)| json!({"function": function, "arguments": arguments}));
        json!({
            "same": self.is_same(),
            "instance": self.instance,
            "workflow": &*self.definition.workflow,
            "version": &*self.definition.version,
            "lines": self.lines,
            "first": self.first.as_ref().map(Departure::json),
            "result": result.collect::<Vec<_>>(),
            "unanswered": unanswered.collect::<Vec<_>>(),
            "shifted": self.shifted.as_ref().map(Departure::json),
            "notes": self.notes,
        })
    }
}

impl Departure {
    /// The location, some lines before it, and the line in both runs.
    fn text(&self) -> String {
        let mut place = Vec::new();
        if !self.is_first {
            place.push(format!("in '{}', which it started", self.workflow));
        }
        if let Some(state) = &self.state {
            let word = if self.is_of_tasks { "task" } else { "state" };
            place.push(match &self.place {
                Some((file, line)) => format!("in {word} '{state}' ({file}:{line})"),
                None => format!("in {word} '{state}'"),
            });
        }
        let mut text = match place.is_empty() {
            true => String::new(),
            false => format!("  {}:\n", place.join(", ")),
        };
        for line in &self.before {
            text.push_str(&format!("             {}\n", line.text()));
        }
        let shown_line = |line: &Option<Line>| match line {
            Some(line) => line.text(),
            None => format!("{:>10}   nothing more", "-"),
        };
        text.push_str(&format!("    expected {}\n", shown_line(&self.expected)));
        text.push_str(&format!("    got      {}\n", shown_line(&self.actual)));
        let is_new = |line: &&String| !self.is_in_line(line);
        for line in self.details.iter().filter(is_new) {
            text.push_str(&format!("             {}\n", shown(&json!(line))));
        }
        text
    }

    /// Whether the texts of the two lines show it already.
    fn is_in_line(&self, detail: &str) -> bool {
        let texts = [&self.expected, &self.actual].map(|line| line.as_ref().map(Line::text));
        texts[0] != texts[1] && !detail.starts_with("/data")
    }

    fn json(&self) -> Value {
        let line =
            |line: &Line| json!({"seconds": line.at_ms as f64 / 1000.0, "entry": line.entry});
        json!({
            "workflow": self.workflow,
            "scope": self.scope,
            "state": self.state,
            "file": self.place.as_ref().map(|(file, _)| file),
            "line": self.place.as_ref().map(|(_, line)| line),
            "before": self.before.iter().map(line).collect::<Vec<_>>(),
            "expected": self.expected.as_ref().map(line),
            "actual": self.actual.as_ref().map(line),
            "details": self.details,
        })
    }
}

impl Line {
    /// The line as in a timeline.
    fn text(&self) -> String {
        let line = describe(&self.entry);
        let seconds = self.at_ms as f64 / 1000.0;
        format!("{seconds:>10.3}s  {}{}", line.place(), line.text)
    }
}
