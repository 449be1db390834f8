//! The columns of the list of instances: which are shown, the values of an instance in them, and how rows are sorted.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use swirl_api::Instant;
use swirl_api::instance::InstanceSummary;
use swirl_model::time::Timestamp;
use swirl_presentation::timeline::{shown, told};

use crate::asking::segment;
use crate::naming::{Kind, Name};
use crate::timeline::took;
use crate::words::{Pill, pill_of, short};

/// How many search attributes have a column unless somebody chooses.
const ATTRIBUTES: usize = 3;
/// How many columns can be chosen.
pub const COLUMNS_MAX: usize = 20;
/// How many awaited events are named.
const AWAITED: usize = 2;

/// Columns that every instance has: the word in addresses, the heading, and whether they are there by default.
const FIXED: [(&str, &str, bool); 9] = [
    ("workflow", "Workflow", true),
    ("status", "Status", true),
    ("state", "State", true),
    ("started", "Started", true),
    ("ended", "Ended", false),
    ("duration", "Duration", true),
    ("details", "Waiting for, or error", true),
    ("parent", "Part of", false),
    ("id", "Id", false),
];

/// A column of this list.
pub struct Column {
    pub heading: String,
    /// The address of the list sorted by it.
    pub sort: String,
    /// `ascending`, `descending`, or empty if the list isn't sorted by it.
    pub sorted: &'static str,
    pub is_number: bool,
}

/// A column that can be chosen.
pub struct Offered {
    pub word: String,
    pub heading: String,
    pub chosen: bool,
}

pub struct Row {
    pub id: String,
    pub path: String,
    pub name: Name,
    /// It is a sub-workflow of this instance; otherwise empty.
    pub parent: String,
    pub fields: Vec<Field>,
}

/// A row's value in a column.
pub struct Field {
    pub heading: String,
    pub is_number: bool,
    pub cell: Cell,
}

pub enum Cell {
    Text(String),
    /// Texts that are secondary.
    Dim(String),
    Workflow(String, String),
    Status(Pill),
    Bad(String),
    Instant(Instant),
    /// The address and the text of another instance.
    Instance(String, String),
}

/// The names of the search attributes of these instances.
pub fn attributes(rows: &[InstanceSummary]) -> BTreeSet<&str> {
    let all = rows.iter().flat_map(|row| row.attributes.keys());
    all.map(String::as_str).collect()
}

/// The heading of the first column: what the instances are called by.
pub fn heading(rows: &[Row]) -> String {
    let first = rows.first().map(|row| &row.name.kind);
    match first.filter(|kind| rows.iter().all(|row| row.name.kind == **kind)) {
        Some(Kind::Key) => "Key".to_owned(),
        Some(Kind::Attribute(name)) => name.clone(),
        _ => "Instance".to_owned(),
    }
}

/// The columns to show: the chosen ones, or those that these instances have something for.
pub fn words(chosen: &[String], rows: &[InstanceSummary]) -> Vec<String> {
    if !chosen.is_empty() {
        let known = chosen.iter().filter(|word| is_known(word));
        return known.take(COLUMNS_MAX).cloned().collect();
    }
    let named_by: BTreeSet<String> = rows
        .iter()
        .filter_map(|row| match name(row).kind {
            Kind::Attribute(name) => Some(name),
            _ => None,
        })
        .collect();
    let attributes = attributes(rows).into_iter();
    let attributes = attributes.filter(|name| !named_by.contains(*name) || named_by.len() > 1);
    let attributes = attributes.take(ATTRIBUTES).map(|name| format!("@{name}"));
    let fixed = FIXED.iter().filter(|(_, _, is_default)| *is_default);
    attributes
        .chain(fixed.map(|(word, ..)| (*word).to_owned()))
        .collect()
}

fn is_known(word: &str) -> bool {
    word.starts_with('@') || FIXED.iter().any(|(known, ..)| *known == word)
}

/// All columns that can be chosen, the attributes first.
pub fn offered(words: &[String], rows: &[InstanceSummary]) -> Vec<Offered> {
    let mut known: BTreeSet<&str> = attributes(rows);
    known.extend(words.iter().filter_map(|word| word.strip_prefix('@')));
    let attributes = known
        .into_iter()
        .map(|name| (format!("@{name}"), name.to_owned()));
    let fixed = FIXED.iter();
    let fixed = fixed.map(|(word, heading, _)| ((*word).to_owned(), (*heading).to_owned()));
    let all = attributes.chain(fixed).map(|(word, heading)| Offered {
        chosen: words.contains(&word),
        word,
        heading,
    });
    all.collect()
}

/// A column with its heading. `sort`: by what the list is sorted. `address`: of the list in another order.
pub fn column(word: &str, sort: &str, address: impl Fn(&str) -> String) -> Column {
    let (sorted, next) = turn(word, sort);
    Column {
        heading: heading_of(word),
        sort: address(&next),
        sorted,
        is_number: word == "duration",
    }
}

fn heading_of(word: &str) -> String {
    let fixed = FIXED.iter().find(|(known, ..)| *known == word);
    let heading = fixed.map(|(_, heading, _)| *heading);
    heading.unwrap_or(word.trim_start_matches('@')).to_owned()
}

/// Whether the list is sorted by a column, and how after a click on it: up, then down, then as the store has it.
pub fn turn(word: &str, sort: &str) -> (&'static str, String) {
    match sort.strip_prefix('-') {
        Some(by) if by == word => ("descending", String::new()),
        None if sort == word => ("ascending", format!("-{word}")),
        _ => ("", word.to_owned()),
    }
}

fn name(row: &InstanceSummary) -> Name {
    Name::of(
        &row.id,
        row.instance_key.as_deref(),
        row.key.as_deref(),
        &row.attributes,
    )
}

/// The rows with these columns. `now`: to which the durations of running instances last.
pub fn rows(all: Vec<InstanceSummary>, words: &[String], now: Timestamp) -> Vec<Row> {
    let all = all.into_iter().map(|row| Row {
        name: name(&row),
        path: segment(&row.id),
        parent: row.parent.clone().unwrap_or_default(),
        fields: words.iter().map(|word| field(&row, word, now)).collect(),
        id: row.id,
    });
    all.collect()
}

fn field(row: &InstanceSummary, word: &str, now: Timestamp) -> Field {
    Field {
        heading: heading_of(word),
        is_number: word == "duration",
        cell: cell(row, word, now),
    }
}

/// Sorts by a column, if there is one.
pub fn sort(rows: &mut [InstanceSummary], sort: &str, now: Timestamp) {
    let (word, is_down) = match sort.strip_prefix('-') {
        Some(word) => (word, true),
        None => (sort, false),
    };
    if word.is_empty() {
        return;
    }
    rows.sort_by(|a, b| {
        let order = compare(a, b, word, now);
        if is_down { order.reverse() } else { order }
    });
}

fn compare(a: &InstanceSummary, b: &InstanceSummary, word: &str, now: Timestamp) -> Ordering {
    match word {
        "started" => a.started_at.cmp(&b.started_at),
        "ended" => a.ended_at.cmp(&b.ended_at),
        "duration" => duration(a, now).cmp(&duration(b, now)),
        "name" => name(a).text.cmp(&name(b).text),
        "id" => a.id.cmp(&b.id),
        "parent" => a.parent.cmp(&b.parent),
        "workflow" => (&a.workflow, &a.version).cmp(&(&b.workflow, &b.version)),
        "status" => pill(a).word.cmp(pill(b).word),
        "state" => a.state.cmp(&b.state),
        "details" => details(a).cmp(&details(b)),
        other => {
            let of =
                |row: &InstanceSummary| row.attributes.get(other.trim_start_matches('@')).cloned();
            values(of(a).as_ref(), of(b).as_ref())
        }
    }
}

/// Numbers by their size, other values as texts; those that are missing come first.
fn values(a: Option<&Value>, b: Option<&Value>) -> Ordering {
    let number = |value: Option<&Value>| value.and_then(Value::as_f64);
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => a.map(shown).cmp(&b.map(shown)),
    }
}

/// The present, to which running instances last.
pub fn now() -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let ms = now.map_or(0, |now| now.as_millis());
    Timestamp(i64::try_from(ms).unwrap_or(i64::MAX))
}

/// How long an instance has run, in milliseconds.
pub fn duration(row: &InstanceSummary, now: Timestamp) -> i64 {
    let end = row.ended_at.map_or(now, |at| at.0);
    end.0.saturating_sub(row.started_at.0.0).max(0)
}

fn pill(row: &InstanceSummary) -> Pill {
    pill_of(&row.status, row.suspended, row.waiting.unwrap_or(false))
}

fn cell(row: &InstanceSummary, word: &str, now: Timestamp) -> Cell {
    let text = |text: &Option<String>| Cell::Text(text.clone().unwrap_or_default());
    match word {
        "workflow" => Cell::Workflow(row.workflow.clone(), row.version.clone()),
        "status" => Cell::Status(pill(row)),
        "state" => text(&row.state),
        "details" => match &row.error {
            Some(error) => Cell::Bad(told(error)),
            None => Cell::Dim(details(row)),
        },
        "started" => Cell::Instant(row.started_at),
        "ended" => row
            .ended_at
            .map_or(Cell::Text(String::new()), Cell::Instant),
        "duration" => Cell::Text(took(duration(row, now))),
        "parent" => match &row.parent {
            Some(parent) => Cell::Instance(segment(parent), short(parent)),
            None => Cell::Text(String::new()),
        },
        "id" => Cell::Dim(row.id.clone()),
        other => {
            let value = row.attributes.get(other.trim_start_matches('@'));
            Cell::Text(value.map(shown).unwrap_or_default())
        }
    }
}

/// The error of an instance, or what it waits for.
pub fn details(row: &InstanceSummary) -> String {
    if let Some(error) = &row.error {
        return told(error);
    }
    if row.suspended {
        return "somebody to resume it".to_owned();
    }
    let events = row.waits_for.iter().take(AWAITED).map(|event| {
        let by: Vec<String> = event
            .correlation
            .iter()
            .filter_map(|(name, value)| Some(format!("{name} {}", value.as_str()?)))
            .collect();
        let name = event.name.as_deref().or(event.kind.as_deref());
        let name = name.unwrap_or("any event");
        match by.is_empty() {
            true => name.to_owned(),
            false => format!("{name} ({})", by.join(", ")),
        }
    });
    let events: Vec<String> = events.collect();
    if !events.is_empty() {
        return match row.waits_for.len() > AWAITED {
            true => format!("{} or another event", events.join(" or ")),
            false => events.join(" or "),
        };
    }
    match row.doing.as_deref().unwrap_or_default() {
        "sleeping" => "a time".to_owned(),
        "waiting to retry" => "the next attempt".to_owned(),
        "waiting for branches" => "its branches".to_owned(),
        "waiting for a sub-workflow" => "a sub-workflow".to_owned(),
        "waiting for an answer" => "an answer".to_owned(),
        "calling a function" => "a service that it has called".to_owned(),
        "kept active" => "further events".to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn summary(more: Value) -> InstanceSummary {
        let mut row = json!({"id": "i", "workflow": "order", "version": "1", "status": "running", "suspended": false,
            "key": null, "instanceKey": null, "startedAt": "2024-01-31T09:00:00.000Z", "scheduledAt": null,
            "endedAt": null});
        row.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        serde_json::from_value(row).unwrap()
    }

    #[test]
    fn attributes_come_first_and_the_one_that_names_the_rows_only_once() {
        let rows = [
            summary(json!({"attributes": {"orderId": "A-1", "amount": 9}})),
            summary(json!({"attributes": {"orderId": "A-2"}})),
        ];
        let words = words(&[], &rows);
        assert_eq!(words[..2], ["@amount", "workflow"]);
        assert!(!words.contains(&"@orderId".to_owned()) && !words.contains(&"id".to_owned()));
        let chosen = ["id".to_owned(), "colour".to_owned(), "@orderId".to_owned()];
        assert_eq!(super::words(&chosen, &rows), ["id", "@orderId"]);
        let all = super::rows(rows.to_vec(), &words, Timestamp(0));
        assert_eq!(heading(&all), "orderId");
        assert_eq!(
            (all[0].name.text.as_str(), all[0].fields.len()),
            ("A-1", words.len())
        );
        let offered = offered(&chosen, &rows);
        assert_eq!(
            (offered[0].word.as_str(), offered[0].chosen),
            ("@amount", false)
        );
        assert_eq!(
            (offered[1].heading.as_str(), offered[1].chosen),
            ("orderId", true)
        );
    }

    #[test]
    fn rows_are_sorted_by_what_a_column_shows() {
        let of = |id: &str, amount: u32, start: &str, end: &str| {
            summary(
                json!({"id": id, "attributes": {"amount": amount}, "startedAt": start, "endedAt": end,
                "status": "completed"}),
            )
        };
        let start = "2024-01-31T09:00:00.000Z";
        let mut rows = [
            of("a", 10, start, "2024-01-31T09:00:05.000Z"),
            of("b", 9, start, "2024-01-31T09:00:01.000Z"),
            of(
                "c",
                100,
                "2024-01-31T08:00:00.000Z",
                "2024-01-31T09:00:00.000Z",
            ),
        ];
        let mut by = |word: &str| {
            sort(&mut rows, word, Timestamp(0));
            rows.iter().map(|row| row.id.clone()).collect::<String>()
        };
        assert_eq!(by("duration"), "bac");
        assert_eq!(by("-duration"), "cab");
        assert_eq!(by("@amount"), "bac");
        assert_eq!(by("started"), "cba");
        assert_eq!(by(""), "cba");
        assert_eq!(turn("id", ""), ("", "id".to_owned()));
        assert_eq!(turn("id", "id"), ("ascending", "-id".to_owned()));
        assert_eq!(turn("id", "-id"), ("descending", String::new()));
    }

    #[test]
    fn a_row_says_what_it_waits_for() {
        let event = |name: &str| json!({"name": name, "source": null, "type": "t", "correlation": {"order": "A-1"}});
        for (more, expected) in [
            (json!({"waitsFor": [event("paid")]}), "paid (order A-1)"),
            (
                json!({"waitsFor": [event("a"), event("b"), event("c")]}),
                "a (order A-1) or b (order A-1) or another event",
            ),
            (json!({"doing": "sleeping"}), "a time"),
            (json!({"doing": "beginning"}), ""),
            (json!({"suspended": true}), "somebody to resume it"),
            (
                json!({"status": "faulted", "error": {"name": "Timeout", "message": "too late"}}),
                "Timeout: too late",
            ),
        ] {
            assert_eq!(details(&summary(more)), expected);
        }
    }
}
