//! One instance: its current activity, its history, its data, and the actions on it.

use std::time::{SystemTime, UNIX_EPOCH};

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use swirl_model::time::Timestamp;
use swirl_presentation::timeline::{Told, Tone, describe, error};

use super::changes::{self, Comparison};
use crate::answer::{Answer, Failure, go_to, list, page, text};
use crate::asking::{Refusal, segment};
use crate::console::Console;
use crate::shell::Shell;
use crate::timeline::{timeline, took};
use crate::tree::tree;
use crate::visitor::{Form, Visitor};
use crate::words::{Awaited, Pill, awaited, doing, status, timer};

/// How many lines of the history are on a page.
const LINES: usize = 100;
/// The largest data that a form offers to edit, in bytes.
const EDITED_BYTES_MAX: usize = 256 << 10;
/// How many places are shown in full.
const PLACES_MAX: usize = 20;

#[derive(Template)]
#[template(path = "instance.html")]
struct Page {
    shell: Shell,
    id: String,
    path: String,
    workflow: String,
    version: String,
    definition_path: String,
    key: String,
    pill: Pill,
    /// The instant for which a schedule started it.
    scheduled: String,
    started: String,
    ended: String,
    took: String,
    places: Vec<Place>,
    more_places: usize,
    fault: String,
    relatives: Vec<Relative>,
    chart: String,
    bars: String,
    data: Vec<Tree>,
    changes: Vec<Comparison>,
    changes_note: &'static str,
    lines: Vec<Line>,
    first: usize,
    total: usize,
    earlier: Option<usize>,
    later: Option<usize>,
    /// It is shown as it was.
    back: Option<Back>,
    may: May,
    states: Vec<String>,
    /// The state whose branch failed: other data has an effect only if it is run again. Empty if none did.
    branched: String,
    /// The data of the main flow, if it may be edited now and is small enough for a form; otherwise empty.
    editable: String,
}

/// The line of the history at which it is shown.
struct Back {
    at: usize,
    instant: String,
    text: String,
    previous: Option<usize>,
    next: Option<usize>,
}

/// The actions that are possible in its current status.
struct May {
    cancel: bool,
    suspend: bool,
    resume: bool,
    go_on: bool,
    start_another: bool,
}

struct Place {
    sentence: String,
    scope: String,
    awaited: Vec<Awaited>,
    timers: Vec<Timer>,
    error: String,
}

struct Timer {
    at: String,
    told: &'static str,
}

struct Relative {
    what: &'static str,
    id: String,
    path: String,
}

struct Tree {
    title: String,
    html: String,
    open: bool,
}

struct Line {
    number: usize,
    at: String,
    tone: &'static str,
    place: String,
    text: String,
    data: String,
}

#[derive(Deserialize, Default)]
pub struct Look {
    #[serde(default)]
    done: Option<String>,
    /// The first line of the history that is shown.
    #[serde(default)]
    from: Option<usize>,
    /// The line of the history at which the instance is shown.
    #[serde(default)]
    at: Option<usize>,
}

pub async fn show(
    mut visitor: Visitor,
    Path(id): Path<String>,
    Query(look): Query<Look>,
    State(console): State<Console>,
    headers: HeaderMap,
) -> Answer {
    visitor.asking.follows = console.hints.followed(&id, &headers);
    let at = look.at.map(|at| at.to_string());
    let then: Vec<(&str, &str)> = at.iter().map(|at| ("at", at.as_str())).collect();
    let found = visitor.asking.get(&["instances", &id], &then).await?;
    let id = text(&found, "id");
    let (workflow, version) = (text(&found, "workflow"), text(&found, "version"));
    let shell = Shell::new(&visitor, "instances", format!("{workflow} – instance")).await?;
    let history = history(&visitor, &id, &look).await?;
    let drawn = ["instances", id.as_str(), "diagram"];
    let chart = visitor.asking.text(&drawn, &then).await;
    let compared = ["instances", id.as_str(), "changes"];
    let compared = visitor.asking.get(&compared, &then).await?;
    let pill = status(&found);
    let has_ended = !matches!(pill.class, "running" | "waiting" | "suspended");
    let count = |name: &str| history[name].as_u64().unwrap_or_default() as usize;
    let (first, total) = (count("before"), count("total"));
    let shown = list(&history, "entries").len();
    let all_places = list(&found, "scopes");
    let back = look.at.map(|at| back(at, total, &found["entry"]));
    let runs = !has_ended;
    let now = match &back {
        None => now(),
        Some(back) => Timestamp::parse(&back.instant).unwrap_or_else(|_| now()),
    };
    let shell = match look.from.or(look.at) {
        None if !has_ended => shell.with_hints(&id),
        // An action that was accepted just now may not have been carried out yet.
        None if look.done.is_some() && pill.class == "faulted" => shell.with_news(),
        _ => shell,
    };
    let shell = shell.with_done(look.done.as_deref());
    let mut told = Told::default();
    page(&Page {
        may: May {
            cancel: runs,
            suspend: runs && found["suspended"] != true,
            resume: runs && found["suspended"] == true,
            go_on: pill.class == "faulted",
            start_another: has_ended,
        },
        states: states(&history),
        branched: match pill.class {
            "faulted" => branched(all_places),
            _ => String::new(),
        },
        editable: match pill.class {
            "faulted" => editable(all_places).unwrap_or_default(),
            _ => String::new(),
        },
        places: all_places.iter().take(PLACES_MAX).map(place).collect(),
        more_places: all_places.len().saturating_sub(PLACES_MAX),
        fault: match &found["error"] {
            Value::Null => String::new(),
            found => error(found),
        },
        relatives: relatives(&found),
        chart: chart.map(|svg| bare(&svg)).unwrap_or_default(),
        bars: timeline(&history, now, has_ended).unwrap_or_default(),
        data: data(&found, all_places),
        changes: changes::comparisons(&compared),
        changes_note: changes::note(&compared),
        lines: list(&history, "entries")
            .iter()
            .enumerate()
            .map(|(index, entry)| line(first + index + 1, entry, &mut told))
            .collect(),
        earlier: (first > 0).then(|| first.saturating_sub(LINES)),
        later: (first + shown < look.at.unwrap_or(total)).then_some(first + shown),
        first: first + 1,
        total,
        took: lasted(&found, now),
        scheduled: text(&found, "scheduledAt"),
        started: text(&found, "startedAt"),
        ended: text(&found, "endedAt"),
        key: match text(&found, "key") {
            key if key.starts_with("drawn-") => String::new(),
            key => key,
        },
        definition_path: format!("{}/{}", segment(&workflow), segment(&version)),
        path: segment(&id),
        id,
        workflow,
        version,
        shell,
        back,
        pill,
    })
}

/// The part of the history that is shown.
async fn history(visitor: &Visitor, id: &str, look: &Look) -> Result<Value, Refusal> {
    let lines = LINES.to_string();
    let [from, at] = [look.from, look.at].map(|number| number.map(|number| number.to_string()));
    let mut query = match &from {
        Some(from) => vec![("after", from.as_str()), ("limit", lines.as_str())],
        None => vec![("last", lines.as_str())],
    };
    query.extend(at.iter().map(|at| ("to", at.as_str())));
    visitor
        .asking
        .get(&["instances", id, "history"], &query)
        .await
}

fn back(at: usize, total: usize, entry: &Value) -> Back {
    Back {
        at,
        instant: text(entry, "at"),
        text: describe(entry).text.trim_start().to_owned(),
        previous: (at > 1).then(|| at - 1),
        next: (at < total).then(|| at + 1),
    }
}

fn now() -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let ms = now.map_or(0, |now| now.as_millis());
    Timestamp(i64::try_from(ms).unwrap_or(i64::MAX))
}

fn lasted(found: &Value, now: Timestamp) -> String {
    let at = |name: &str| Timestamp::parse(&text(found, name)).ok();
    let Some(began) = at("startedAt") else {
        return String::new();
    };
    let until = at("endedAt").unwrap_or(now);
    took(until.0.saturating_sub(began.0).max(0))
}

fn place(place: &Value) -> Place {
    let timers = list(place, "timers").iter().map(|one| Timer {
        at: text(one, "due"),
        told: timer(&text(one, "kind")),
    });
    Place {
        sentence: doing(place),
        scope: branch(place),
        awaited: awaited(place),
        timers: timers.collect(),
        error: match &place["error"] {
            Value::Null => String::new(),
            found => error(found),
        },
    }
}

/// The name of a branch, or its id if it has none; empty for the main flow.
fn branch(place: &Value) -> String {
    match (place["name"].as_str(), place["scope"].as_str()) {
        (Some(name), _) => name.to_owned(),
        (None, Some("r") | None) => String::new(),
        (None, Some(scope)) => scope.to_owned(),
    }
}

fn relatives(found: &Value) -> Vec<Relative> {
    let all = [("Called by", "parent"), ("Continues", "continuedFrom")];
    all.into_iter()
        .filter_map(|(what, name)| {
            let id = found[name].as_str()?;
            Some(Relative {
                what,
                path: segment(id),
                id: id.to_owned(),
            })
        })
        .collect()
}

fn data(found: &Value, places: &[Value]) -> Vec<Tree> {
    let mut all = Vec::new();
    let mut add = |title: String, value: &Value, open: bool| {
        all.push(Tree {
            title,
            html: tree(value),
            open,
        });
    };
    if let Some(recorded) = found["entry"].get("data") {
        add("Recorded in this line".to_owned(), recorded, true);
    }
    if let Some(output) = found.get("output") {
        add("Output".to_owned(), output, true);
    }
    for place in places.iter().take(PLACES_MAX) {
        let title = match branch(place).as_str() {
            "" => "State data".to_owned(),
            branch => format!("State data of {branch}"),
        };
        if let Some(data) = place.get("data") {
            add(title, data, all_open(places));
        }
    }
    let open = found.get("output").is_none() && places.is_empty();
    add("Input".to_owned(), &found["input"], open);
    let attributes = &found["attributes"];
    if attributes.is_object() {
        add("Search attributes".to_owned(), attributes, false);
    }
    let correlation = &found["correlation"];
    if correlation.as_object().is_some_and(|all| !all.is_empty()) {
        add("Correlation".to_owned(), correlation, false);
    }
    all
}

fn all_open(places: &[Value]) -> bool {
    places.len() == 1
}

fn line(number: usize, entry: &Value, told: &mut Told) -> Line {
    let described = told.describe(entry);
    Line {
        number,
        at: text(entry, "at"),
        tone: match described.tone {
            Tone::Good => "good",
            Tone::Bad => "bad",
            Tone::Plain => "",
            Tone::Dim => "dim",
        },
        place: described.place(),
        text: described.text.trim_start().to_owned(),
        data: match &entry["data"] {
            Value::Null => String::new(),
            data => tree(data),
        },
    }
}

/// The data of the main flow as text.
fn editable(places: &[Value]) -> Option<String> {
    let root = places.iter().find(|place| place["scope"] == "r")?;
    let text = format!("{:#}", root.get("data")?);
    (text.len() <= EDITED_BYTES_MAX).then_some(text)
}

/// The state of the main flow, if it waited for branches.
fn branched(places: &[Value]) -> String {
    let root = places.iter().find(|place| place["scope"] == "r");
    let root = root.filter(|root| root["branches"].is_number());
    root.map(|root| text(root, "state")).unwrap_or_default()
}

/// The names of states that the main path has been in, to which it can be sent back.
fn states(history: &Value) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for entry in list(history, "entries") {
        let name = text(entry, "name");
        let of_root = entry["event"] == "state_entered" && entry["scope"] == "r";
        if of_root && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// A picture without its own style sheet: pages have it once, in a file.
pub fn bare(svg: &str) -> String {
    let Some((before, rest)) = svg.split_once("<style>") else {
        return svg.to_owned();
    };
    let Some((_, after)) = rest.split_once("</style>") else {
        return svg.to_owned();
    };
    let before = before.replacen("<svg ", "<svg class=\"chart\" ", 1);
    format!("{before}{after}")
}

pub async fn operate(
    visitor: Visitor,
    Path((id, action)): Path<(String, String)>,
    form: Form,
) -> Answer {
    let query = form.reason();
    let json_type = [("content-type", "application/json")];
    let mut word = action.as_str();
    let body = match word {
        "cancel" | "suspend" | "resume" => String::new(),
        "retry" => "{}".to_owned(),
        "rerun" => json!({"state": form.get("state")}).to_string(),
        "migrate" => json!({"version": form.get("version").trim()}).to_string(),
        "skip" => {
            let result = form.given("result").unwrap_or("null");
            parsed("result", result)?.to_string()
        }
        "edit" => {
            word = match form.given("state") {
                None => "retry",
                Some(_) => "rerun",
            };
            edited(&visitor, &id, &form).await?
        }
        _ => return Err(Failure::not_found("unknown action")),
    };
    let path = ["instances", id.as_str(), word];
    visitor
        .asking
        .post(&path, &query, &json_type, &body)
        .await?;
    go_to(&format!("/console/instances/{}?done={word}", segment(&id)))
}

fn parsed(what: &str, text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| {
        let detail = format!("the {what} is not valid JSON: {error}");
        Failure::new(StatusCode::BAD_REQUEST, detail)
    })
}

/// The body for an instance that continues with the changes made in the form. Unchanged data is left out: the instance
/// may have failed where no other data can be set.
async fn edited(visitor: &Visitor, id: &str, form: &Form) -> Result<String, Failure> {
    let mut body = json!({});
    if let Some(data) = form.given("data") {
        let data = parsed("data", data)?;
        let found = visitor.asking.get(&["instances", id], &[]).await?;
        let mut places = list(&found, "scopes").iter();
        let root = places.find(|place| place["scope"] == "r");
        if root.and_then(|root| root.get("data")) != Some(&data) {
            body["data"] = data;
        }
    }
    for name in ["state", "version"] {
        if let Some(given) = form.given(name) {
            body[name] = json!(given);
        }
    }
    Ok(body.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_keeps_all_but_its_style() {
        let svg =
            "<svg xmlns=\"x\" width=\"1\">\n<title>T</title>\n<style>.a{}</style>\n<g/></svg>";
        let bare = bare(svg);
        assert!(bare.starts_with("<svg class=\"chart\" xmlns"), "{bare}");
        assert!(
            !bare.contains("style>") && bare.ends_with("<g/></svg>"),
            "{bare}"
        );
    }
}
