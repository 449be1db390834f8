//! The chosen step of an instance: what went into it, what came out of it, and its lines of the history.

use serde_json::Value;
use swirl_api::history::HistoryEntry;
use swirl_api::{Instance, Instant, Status};
use swirl_model::event::Event;
use swirl_model::time::Timestamp;
use swirl_presentation::changes::changes;
use swirl_presentation::steps::{Kind, Outcome, Steps};
use swirl_presentation::timeline::{Told, told as error_text};

use super::Tree;
use super::story::{Line, Story, line};
use crate::pages::changes::{Row, row};
use crate::timeline::{kind_word, outcome_words, took};
use crate::tree::tree;

/// How many lines of the history are shown with a step.
const LINES_MAX: usize = 40;

pub struct Chosen {
    pub name: String,
    pub kind: &'static str,
    /// The steps around it, the outermost first.
    pub around: Vec<String>,
    pub class: &'static str,
    pub sign: &'static str,
    pub word: &'static str,
    pub from: Instant,
    pub to: Option<Instant>,
    pub took: String,
    pub error: String,
    pub data: Vec<Tree>,
    /// The changes of the state data, if it is known before and after.
    pub changes: Option<Vec<Row>>,
    pub is_cut: bool,
    /// Why there is no data; otherwise empty.
    pub missing: &'static str,
    pub lines: Vec<Line>,
    pub more_lines: usize,
    /// The line of the history with which it begins.
    pub first: usize,
}

/// Facts that the history doesn't have.
pub struct Known<'k> {
    pub found: &'k Instance,
    pub steps: &'k Steps,
    pub story: &'k Story,
    pub now: Timestamp,
}

pub fn chosen(known: &Known<'_>, number: usize) -> Chosen {
    let Known { steps, story, .. } = known;
    let step = &steps.all[number];
    let (class, sign, word) = outcome_words(step);
    let mut path = steps.path(number);
    path.pop();
    let to = step.to.map(|to| Instant(Timestamp(to)));
    let all = steps.lines_of(number);
    let mut last = Told::default();
    let lines = all.iter().take(LINES_MAX).map(|index| {
        let entry = &story.entries[*index];
        line(
            story.before + index + 1,
            entry,
            known.found.started_at,
            &mut last,
        )
    });
    let lines: Vec<Line> = lines.collect();
    let (data, changes) = data(known, number);
    let is_cut = changes.as_ref().is_some_and(|(_, is_cut)| *is_cut);
    Chosen {
        name: step.name.clone(),
        kind: kind_word(step.kind),
        around: path
            .iter()
            .map(|one| steps.all[*one].name.clone())
            .collect(),
        class,
        sign,
        word: match (word, step.outcome) {
            ("", Outcome::Done) => "done",
            (word, _) => word,
        },
        from: Instant(Timestamp(step.from)),
        to,
        took: took(step.to.unwrap_or(known.now.0).saturating_sub(step.from)),
        error: match step.outcome {
            Outcome::Failed | Outcome::Caught => error(story, &all),
            _ => String::new(),
        },
        missing: match (data.is_empty(), step.kind, step.outcome) {
            (_, _, Outcome::Open | Outcome::Stopped | Outcome::Skipped) => "",
            (true, Kind::State | Kind::Action | Kind::Attempt, _) => missing(story, &step.lines),
            _ => "",
        },
        data,
        is_cut,
        changes: changes.map(|(rows, _)| rows),
        more_lines: all.len() - lines.len(),
        lines,
        first: story.before + step.first + 1,
    }
}

/// The last error in these lines.
fn error(story: &Story, lines: &[usize]) -> String {
    let entries = lines.iter().rev().map(|index| &story.entries[*index]);
    let mut errors = entries.filter_map(|entry| match entry.event.event()? {
        Event::ActionFailed { error, .. }
        | Event::BranchFailed { error }
        | Event::ErrorHandled { error, .. }
        | Event::StartRefused { error, .. }
        | Event::Ended {
            error: Some(error), ..
        } => Some(error_text(&error.into())),
        _ => None,
    });
    errors.next().unwrap_or_default()
}

/// A short reason.
fn missing(story: &Story, lines: &[usize]) -> &'static str {
    let mut entries = lines.iter().map(|index| &story.entries[*index]);
    match entries.any(|entry| entry.data_until.is_some()) {
        true => "Its data is no longer kept.",
        false => "Its data was not recorded (history.data).",
    }
}

/// The data that is recorded under this name.
fn recorded<'s>(entry: &'s HistoryEntry, name: &str) -> Option<&'s Value> {
    entry.data.as_ref()?.get(name)
}

type Found = (Vec<Tree>, Option<(Vec<Row>, bool)>);

fn data(known: &Known<'_>, number: usize) -> Found {
    let Known { steps, story, .. } = known;
    let step = &steps.all[number];
    let mut all = Vec::new();
    let mut add = |title: &str, value: &Value, open: bool| {
        all.push(Tree {
            title: title.to_owned(),
            html: tree(value),
            open,
        });
    };
    if step.kind == Kind::State {
        let before = recorded(&story.entries[step.first], "state_data");
        let after = after(known, number);
        if let Some(before) = before {
            add("Data before", before, after.is_none());
        }
        if let Some(after) = after {
            add("Data after", after, before.is_none());
        }
        let both = before.zip(after);
        let found = both.map(|(before, after)| changes(before, after));
        let found = found.map(|found| (found.all.into_iter().map(row).collect(), found.is_cut));
        return (all, found);
    }
    for (name, title) in [
        ("arguments", "Arguments"),
        ("result", "Answer"),
        ("event", "Event"),
    ] {
        let entries = step.lines.iter().rev().map(|index| &story.entries[*index]);
        let mut found = entries.filter_map(|entry| recorded(entry, name));
        if let Some(value) = found.next() {
            add(title, value, true);
        }
    }
    (all, None)
}

/// The state data when the next state began, or as it is at the end or now.
fn after<'k>(known: &'k Known<'_>, number: usize) -> Option<&'k Value> {
    let Known {
        found,
        steps,
        story,
        ..
    } = known;
    if let Some(next) = steps.next_state(number) {
        return recorded(&story.entries[steps.all[next].first], "state_data");
    }
    let is_last = steps.roots.last() == Some(&number);
    if found.status == Status::Completed {
        return found.output.as_ref().filter(|_| is_last);
    }
    let scope = &story.entries[steps.all[number].first].scope;
    let mut places = found.scopes.iter();
    places.find(|place| place.scope == *scope)?.data.as_ref()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(number: usize) -> Chosen {
        let entries = json!([
            {"at": "2026-01-01T00:00:00Z", "scope": "r", "event": "state_entered", "state": 0, "name": "A", "purpose": "Main",
             "data": {"state_data": {"a": 1}}},
            {"at": "2026-01-01T00:00:01Z", "scope": "r", "event": "state_left", "state": 0, "name": "A", "failed": false},
            {"at": "2026-01-01T00:00:01Z", "scope": "r", "event": "state_entered", "state": 1, "name": "B", "purpose": "Main",
             "data": {"state_data": {"a": 2}}},
            {"at": "2026-01-01T00:00:01Z", "scope": "r", "event": "action_started", "action": "pay", "attempt": 1, "call": 1},
            {"at": "2026-01-01T00:00:03Z", "scope": "r", "event": "action_failed", "action": "pay", "attempt": 1,
             "error": {"name": "E", "message": "busy"}, "retry_ms": null, "data": {"arguments": {"sum": 7}}},
            {"at": "2026-01-01T00:00:03Z", "scope": "r", "event": "ended", "status": "faulted",
             "error": {"name": "E", "message": "busy"}},
        ]);
        let story = Story {
            entries: serde_json::from_value(entries).unwrap(),
            before: 0,
            total: 6,
        };
        let found = json!({"id": "i", "workflow": "w", "version": "1", "status": "faulted", "input": {},
            "startedAt": "2026-01-01T00:00:00Z", "scopes": [{"scope": "r", "doing": "failed", "data": {"a": 2, "b": 3}}]});
        let found: Instance = serde_json::from_value(found).unwrap();
        let steps = Steps::new(&story.entries, Some(&found.scopes));
        let known = Known {
            found: &found,
            steps: &steps,
            story: &story,
            now: Timestamp(0),
        };
        chosen(&known, number)
    }

    #[test]
    fn a_state_has_its_data_before_and_after() {
        let first = shown(0);
        assert_eq!(
            (first.word, first.took.as_str(), first.first),
            ("done", "1.0 s", 1)
        );
        let rows = first.changes.unwrap();
        assert_eq!((rows[0].path.as_str(), rows[0].after.as_str()), ("/a", "2"));
        let titles: Vec<&str> = first.data.iter().map(|one| one.title.as_str()).collect();
        assert_eq!(titles, ["Data before", "Data after"]);
        let last = shown(1);
        assert_eq!(last.changes.unwrap()[0].path, "/b", "what it is now");
        assert_eq!((last.word, last.error.as_str()), ("failed", "E: busy"));
        assert_eq!(last.lines.len(), 4);
    }

    #[test]
    fn an_action_has_its_arguments_and_its_error() {
        let action = shown(2);
        assert_eq!(
            (action.name.as_str(), action.around.join(" › ")),
            ("pay", "B".to_owned())
        );
        assert_eq!(
            (action.data[0].title.as_str(), action.data.len()),
            ("Arguments", 1)
        );
        assert!(action.data[0].html.contains("sum") && action.error == "E: busy");
        assert_eq!((action.missing, action.lines.len()), ("", 2));
    }
}
