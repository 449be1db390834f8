use serde_json::{Value, json};
use swirl_api::history::HistoryEntry;
use swirl_api::instance::ScopePosition;
use swirl_model::time::Timestamp;

use super::*;

fn entry(ms: i64, scope: &str, mut members: Value) -> HistoryEntry {
    members["at"] = swirl_api::Instant(Timestamp(ms)).to_string().into();
    members["scope"] = scope.into();
    serde_json::from_value(members).unwrap()
}

fn entered(name: &str) -> Value {
    json!({"event": "state_entered", "state": 0, "name": name, "purpose": "Main"})
}

fn left(name: &str) -> Value {
    json!({"event": "state_left", "state": 0, "name": name, "failed": false})
}

fn shown(steps: &Steps) -> Shown<'_> {
    Shown {
        steps,
        before: 0,
        now: 10_000,
        chosen: None,
        whole: None,
        choose: "/i?",
        unfold: "/i?",
        by_clock: false,
    }
}

#[test]
fn a_label_is_not_repeated() {
    let history = [
        entry(0, "r", entered("A")),
        entry(0, "r", left("A")),
        entry(0, "r", json!({"event": "ended", "status": "completed"})),
    ];
    let steps = Steps::new(&history, None);
    let html = timeline(&shown(&steps));
    assert_eq!(html.matches("+0 ms").count(), 1, "{html}");
}

#[test]
fn rows_have_names_times_and_words() {
    let error = json!({"name": "E", "message": "m"});
    let history = [
        entry(0, "r", entered("<A>")),
        entry(500, "r", left("<A>")),
        entry(500, "r", entered("B")),
        entry(
            600,
            "r",
            json!({"event": "action_started", "action": "pay", "attempt": 1, "call": 1}),
        ),
        entry(
            900,
            "r",
            json!({"event": "action_failed", "action": "pay", "attempt": 1, "error": error, "retry_ms": null}),
        ),
        entry(900, "r", json!({"event": "ended", "status": "faulted"})),
    ];
    let steps = Steps::new(&history, None);
    let html = timeline(&Shown {
        chosen: steps.failed(),
        ..shown(&steps)
    });
    for words in [
        "&lt;A&gt;",
        "500 ms",
        "href=\"/i?step=s1#step\"",
        "class=\"step failed d1\" href=\"/i?step=a4#step\" aria-current=\"true\"",
        "<b>failed</b>",
        "+900 ms",
    ] {
        assert!(html.contains(words), "{words}: {html}");
    }
    assert!(!html.contains("<A>") && !html.contains("style="), "{html}");
    assert_eq!(with_key(&steps, 0, "a4"), steps.failed());
    assert_eq!(with_key(&steps, 0, "t4"), None, "joined with its action");
    assert_eq!(with_key(&steps, 100, "s101"), Some(0));
    let by_clock = Shown {
        by_clock: true,
        ..shown(&steps)
    };
    assert!(timeline(&by_clock).contains("datetime=\"1970-01-01T00:00:00.900Z\">00:00:00.900<"));
    assert_eq!(timeline(&shown(&Steps::default())), "");
}

#[test]
fn what_is_under_way_ends_now() {
    let history = [entry(0, "r", entered("Wait"))];
    let place = ScopePosition {
        scope: "r".to_owned(),
        doing: "waiting for events".to_owned(),
        ..ScopePosition::default()
    };
    let steps = Steps::new(&history, Some(&[place]));
    let html = timeline(&shown(&steps));
    assert!(html.contains("10.0 s <b>is here</b>"), "{html}");
    assert!(html.contains("10.0 s <b>waiting</b>"), "{html}");
}

/// Two hundred branches with ten attempts each; the last branch fails.
fn many() -> Vec<HistoryEntry> {
    let mut history = vec![
        entry(0, "r", entered("All")),
        entry(
            0,
            "r",
            json!({"event": "forked", "fork": 1, "branches": 200, "in_state": "All"}),
        ),
    ];
    let error = json!({"name": "E", "message": "m"});
    for branch in 0..200 {
        let scope = format!("r.1.{branch}");
        for attempt in 1..=10 {
            let at = branch * 100 + attempt * 10;
            let started = json!({"event": "action_started", "action": "pay", "attempt": attempt, "call": 1,
                "place": format!("All[{branch}]")});
            history.push(entry(at, &scope, started));
            let again = (attempt < 10).then_some(5);
            let failed = json!({"event": "action_failed", "action": "pay", "attempt": attempt, "error": error,
                "retry_ms": again});
            let completed =
                json!({"event": "action_completed", "action": "pay", "attempt": attempt});
            let is_done = attempt == 10 && branch < 199;
            history.push(entry(
                at + 4,
                &scope,
                if is_done { completed } else { failed },
            ));
        }
    }
    let failed = json!({"event": "branch_failed", "error": error});
    history.push(entry(30_000, "r.1.199", failed));
    history.push(entry(
        30_000,
        "r",
        json!({"event": "ended", "status": "faulted"}),
    ));
    history
}

#[test]
fn two_hundred_branches_are_bounded() {
    let history = many();
    assert!(history.len() > 4_000);
    let begun = std::time::Instant::now();
    let steps = Steps::new(&history, None);
    let chosen = steps.failed();
    let html = timeline(&Shown {
        chosen,
        ..shown(&steps)
    });
    let took = begun.elapsed();
    assert!(html.len() < 200_000, "{}", html.len());
    assert!(html.contains("Show all 200 (1 of these failed)"), "{html}");
    assert!(html.contains("title=\"retried 9×\""), "{html}");
    // The branch that failed is among the few that are shown.
    assert!(html.contains("All[199]") && html.contains("attempt 10"));
    assert!(!html.contains("All[150]"));
    assert!(took.as_secs() < 5, "{took:?}");
    let whole = Shown {
        whole: Some("s1"),
        chosen,
        ..shown(&steps)
    };
    let html = timeline(&whole);
    assert!(
        html.contains("All[150]") && html.len() < 600_000,
        "{}",
        html.len()
    );
}

#[test]
fn times() {
    for (ms, text) in [
        (7, "7 ms"),
        (1_500, "1.5 s"),
        (61_000, "1 min 1 s"),
        (3_700_000, "1 h 1 min"),
        (90_000_000, "1 d 1 h"),
    ] {
        assert_eq!(took(ms), text);
    }
    assert_eq!(offset(-5), "+0 ms");
}
