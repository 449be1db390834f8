//! What has changed in the state data of an instance, in its current state and in the one before.

use serde_json::Value;

use crate::answer::{list, text};

pub struct Comparison {
    pub title: String,
    /// Such as "1 added, 2 changed"; empty if the changes are not known.
    pub summary: String,
    /// Why the changes are not known; otherwise empty.
    pub missing: &'static str,
    /// Nothing is recorded: the page says how to change that.
    pub is_off: bool,
    pub rows: Vec<Row>,
    pub is_cut: bool,
}

pub struct Row {
    pub sign: &'static str,
    pub kind: String,
    pub path: String,
    pub before: String,
    pub after: String,
}

/// The comparisons of an answer of the API.
pub fn comparisons(found: &Value) -> Vec<Comparison> {
    let all = list(found, "comparisons").iter();
    let mut all: Vec<Comparison> = all.map(comparison).collect();
    // Once is enough.
    for later in all.iter_mut().skip(1) {
        later.is_off = false;
    }
    all
}

/// A sentence about a previous state that cannot be shown; empty if there is nothing to say.
pub fn note(found: &Value) -> &'static str {
    match (found["first"] == true, found["complete"] == false) {
        (true, _) => "This is the first state.",
        (_, true) => {
            "The previous state began too far back in the history for this page to look for it."
        }
        _ => "",
    }
}

fn comparison(one: &Value) -> Comparison {
    let (from, to) = (text(&one["from"], "state"), &one["to"]);
    let line = text(&one["from"], "line");
    let title = match (to["line"].as_u64(), to["ended"] == true) {
        (Some(end), _) => format!("In “{from}”, the previous state (lines {line} to {end})"),
        (None, true) => format!("In “{from}”, the last state (from line {line})"),
        (None, false) => format!("Since “{from}” began (line {line})"),
    };
    let rows: Vec<Row> = list(one, "changes").iter().map(row).collect();
    let missing = match one["missing"].as_str() {
        None => "",
        Some("no-longer-kept") => "The data of these states is no longer kept.",
        Some("too-long") => "The data is longer than the history keeps (history.data_bytes).",
        Some(_) => "The history has no data for these states, so the changes are unknown.",
    };
    let is_cut = one["complete"] == false;
    Comparison {
        title,
        summary: match missing.is_empty() {
            true => summary(&rows, is_cut),
            false => String::new(),
        },
        missing,
        is_off: one["missing"] == "not-recorded",
        is_cut,
        rows,
    }
}

fn summary(rows: &[Row], is_cut: bool) -> String {
    let count = |kind: &str| rows.iter().filter(|row| row.kind == kind).count();
    let kinds = ["added", "changed", "removed"].map(|kind| (count(kind), kind));
    let some = kinds.iter().filter(|(count, _)| *count > 0);
    let texts: Vec<String> = some
        .map(|(count, kind)| format!("{count} {kind}"))
        .collect();
    match (texts.is_empty(), is_cut) {
        (true, _) => "nothing".to_owned(),
        (false, true) => format!("{}, and more", texts.join(", ")),
        (false, false) => texts.join(", "),
    }
}

fn row(change: &Value) -> Row {
    let kind = text(change, "kind");
    Row {
        sign: match kind.as_str() {
            "added" => "+",
            "removed" => "−",
            _ => "~",
        },
        kind,
        path: match text(change, "path") {
            path if path.is_empty() => "the whole data".to_owned(),
            path => path,
        },
        before: text(change, "before"),
        after: text(change, "after"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changes_are_counted_in_words() {
        let found = json!({"comparisons": [
            {"from": {"line": 9, "state": "Ship"}, "to": {"line": null, "state": null, "ended": false}, "missing": null,
             "changes": [], "complete": true},
            {"from": {"line": 5, "state": "Charge"}, "to": {"line": 9, "state": "Ship", "ended": false}, "missing": null,
             "changes": [{"path": "/payment", "kind": "added", "after": "7"}, {"path": "", "kind": "changed",
                          "before": "1", "after": "2"}], "complete": false},
        ], "first": false, "complete": true});
        let all = comparisons(&found);
        let told: Vec<(&str, &str)> = all
            .iter()
            .map(|one| (one.title.as_str(), one.summary.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                ("Since “Ship” began (line 9)", "nothing"),
                (
                    "In “Charge”, the previous state (lines 5 to 9)",
                    "1 added, 1 changed, and more"
                ),
            ]
        );
        assert_eq!(
            (all[1].rows[0].sign, all[1].rows[1].path.as_str()),
            ("+", "the whole data")
        );
        assert_eq!(note(&found), "");
    }

    #[test]
    fn a_reason_is_given_for_what_is_missing() {
        let one = |missing: &str| {
            let to = json!({"line": null, "state": null, "ended": true});
            comparison(&json!({"from": {"line": 2, "state": "A"}, "to": to, "missing": missing}))
        };
        assert!(one("not-recorded").is_off);
        assert!(one("no-longer-kept").missing.contains("no longer kept"));
        assert!(!one("too-long").is_off && one("too-long").summary.is_empty());
        assert!(note(&json!({"first": true})).contains("the first state"));
        assert!(note(&json!({"first": false, "complete": false})).contains("too far back"));
    }
}
