//! What has changed in the state data of an instance, in its current state and in the one before.

use swirl_api::changes::{Change, ChangeKind, Compared, Missing};

pub struct Comparison {
    pub title: String,
    /// Such as "1 added, 2 changed"; empty if the changes are not known.
    pub summary: String,
    /// Why the changes are not known; otherwise empty.
    pub missing: &'static str,
    pub rows: Vec<Row>,
    pub is_cut: bool,
}

pub struct Row {
    pub sign: &'static str,
    pub kind: ChangeKind,
    pub path: String,
    pub before: String,
    pub after: String,
}

/// The comparisons of an answer of the API.
pub fn comparisons(found: Vec<swirl_api::changes::Comparison>) -> Vec<Comparison> {
    let mut all: Vec<Comparison> = found.into_iter().map(comparison).collect();
    // Once is enough.
    if let [first, others @ ..] = &all[..]
        && !first.missing.is_empty()
        && others.iter().all(|one| one.missing == first.missing)
    {
        all.truncate(1);
    }
    all
}

/// A sentence about a previous state that cannot be shown; empty if there is nothing to say.
pub fn note(found: &Compared) -> &'static str {
    match (found.first, found.complete) {
        (true, _) => "This is the first state.",
        (_, false) => {
            "The previous state began too far back in the history for this page to look for it."
        }
        _ => "",
    }
}

fn comparison(one: swirl_api::changes::Comparison) -> Comparison {
    let (from, line) = (one.from.state, one.from.line);
    let title = match (one.to.line, one.to.ended) {
        (Some(end), _) => format!("In “{from}”, the previous state (lines {line} to {end})"),
        (None, true) => format!("In “{from}”, the last state (from line {line})"),
        (None, false) => format!("Since “{from}” began (line {line})"),
    };
    let rows: Vec<Row> = one.changes.into_iter().flatten().map(row).collect();
    let missing = match one.missing {
        None => "",
        Some(Missing::NoLongerKept) => "The data of these states is no longer kept.",
        Some(Missing::TooLong) => "The data is longer than the history keeps (history.data_bytes).",
        Some(_) => "The data was not recorded (history.data).",
    };
    let is_cut = one.complete == Some(false);
    Comparison {
        title,
        summary: match missing.is_empty() {
            true => summary(&rows, is_cut),
            false => String::new(),
        },
        missing,
        is_cut,
        rows,
    }
}

fn summary(rows: &[Row], is_cut: bool) -> String {
    let count = |kind: &ChangeKind| rows.iter().filter(|row| row.kind == *kind).count();
    let kinds = [ChangeKind::Added, ChangeKind::Changed, ChangeKind::Removed];
    let kinds = kinds.map(|kind| (count(&kind), kind));
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

pub fn row(change: Change) -> Row {
    Row {
        sign: match change.kind {
            ChangeKind::Added => "+",
            ChangeKind::Removed => "−",
            _ => "~",
        },
        kind: change.kind,
        path: match change.path.is_empty() {
            true => "the whole data".to_owned(),
            false => change.path,
        },
        before: change.before.unwrap_or_default(),
        after: change.after.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changes_are_counted_in_words() {
        let found = json!({"id": "i", "at": null, "scope": "r", "comparisons": [
            {"from": {"line": 9, "state": "Ship"}, "to": {"line": null, "state": null, "ended": false}, "missing": null,
             "changes": [], "complete": true},
            {"from": {"line": 5, "state": "Charge"}, "to": {"line": 9, "state": "Ship", "ended": false}, "missing": null,
             "changes": [{"path": "/payment", "kind": "added", "after": "7"}, {"path": "", "kind": "changed",
                          "before": "1", "after": "2"}], "complete": false},
        ], "first": false, "complete": true});
        let found: Compared = serde_json::from_value(found).unwrap();
        assert_eq!(note(&found), "");
        let all = comparisons(found.comparisons);
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
    }

    #[test]
    fn a_reason_is_given_for_what_is_missing() {
        let one = |missing: &str| {
            let to = json!({"line": null, "state": null, "ended": true});
            let one = json!({"from": {"line": 2, "state": "A"}, "to": to, "missing": missing});
            comparison(serde_json::from_value(one).unwrap())
        };
        assert!(one("not-recorded").missing.contains("not recorded"));
        assert!(one("no-longer-kept").missing.contains("no longer kept"));
        assert!(one("too-long").summary.is_empty());
        let same = |missing: &str| {
            let to = json!({"line": null, "state": null, "ended": true});
            let one = json!({"from": {"line": 2, "state": "A"}, "to": to, "missing": missing});
            serde_json::from_value(one).unwrap()
        };
        let twice = comparisons(vec![same("not-recorded"), same("not-recorded")]);
        assert_eq!(twice.len(), 1, "one line is enough");
        assert_eq!(
            comparisons(vec![same("not-recorded"), same("too-long")]).len(),
            2
        );
        let mut found = Compared {
            id: "i".to_owned(),
            at: None,
            scope: "r".to_owned(),
            comparisons: Vec::new(),
            first: true,
            complete: false,
        };
        assert!(note(&found).contains("the first state"));
        found.first = false;
        assert!(note(&found).contains("too far back"));
    }
}
