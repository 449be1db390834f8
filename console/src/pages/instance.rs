//! One instance: its current activity, its history, its data, and the actions on it.

use std::time::{SystemTime, UNIX_EPOCH};

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value};
use swirl_api::actions::{
    CANCEL, Json, MIGRATE, Move, RERUN, RESUME, RETRY, Rerun, Retry, SKIP, SUSPEND,
};
use swirl_api::changes::{COMPARE, CompareQuery};
use swirl_api::diagrams::{self, DrawQuery};
use swirl_api::history::{History, HistoryEntry, HistoryQuery};
use swirl_api::instance::{GET, GetQuery, HISTORY, InstanceId};
use swirl_api::{Instance, Instant, Status};
use swirl_model::Data;
use swirl_model::event::Event;
use swirl_model::time::Timestamp;
use swirl_presentation::timeline::{Told, Tone, describe, told};

use super::changes::{self, Comparison};
use crate::answer::{Answer, Failure, go_to, page};
use crate::asking::{Refusal, segment};
use crate::console::Console;
use crate::shell::Shell;
use crate::timeline::{timeline, took};
use crate::tree::tree;
use crate::visitor::{Form, Visitor};
use crate::words::{Awaited, Pill, awaited, doing, pill_of, timer};

/// How many lines of the history are on a page.
const LINES: usize = 100;
/// The largest data that a form offers to edit, in bytes.
const EDITED_BYTES_MAX: usize = 256 << 10;
/// The scope of the main flow.
const ROOT: &str = "r";
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
    scheduled: Option<Instant>,
    started: Instant,
    ended: Option<Instant>,
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
    instant: Instant,
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
    at: Instant,
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
    at: Instant,
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
    let at = look.at.map(|at| at as u64);
    let query = GetQuery { at, wait: None };
    let found = GET.at(&InstanceId { id }).query(query);
    let mut found = visitor.asking.ask(found).await?;
    let title = format!("{} – instance", found.workflow);
    let shell = Shell::new(&visitor, "instances", title).await?;
    let history = history(&visitor, &found.id, &look).await?;
    let id = InstanceId {
        id: found.id.clone(),
    };
    let drawn = diagrams::INSTANCE.at(&id).query(DrawQuery { at });
    let chart = visitor.asking.text(drawn).await;
    let compared = COMPARE.at(&id).query(CompareQuery { at });
    let compared = visitor.asking.ask(compared).await?;
    let has_failed = found.status == Status::Faulted;
    let has_ended = found.status != Status::Running;
    let (first, total) = (history.before as usize, history.total as usize);
    let shown = history.entries.len();
    let back = look.at.zip(found.entry.as_ref());
    let back = back.map(|(at, entry)| back_at(at, total, entry));
    let now = back.as_ref().map_or_else(now, |back| back.instant.0);
    let shell = match look.from.or(look.at) {
        None if !has_ended => shell.with_hints(&found.id),
        // An action that was accepted just now may not have been carried out yet.
        None if look.done.is_some() && has_failed => shell.with_news(),
        _ => shell,
    };
    let shell = shell.with_done(look.done.as_deref());
    let mut last = Told::default();
    page(&Page {
        may: May {
            cancel: !has_ended,
            suspend: !has_ended && !found.suspended,
            resume: !has_ended && found.suspended,
            go_on: has_failed,
            start_another: has_ended,
        },
        states: states(&history.entries),
        branched: match has_failed {
            true => branched(&found.scopes),
            false => String::new(),
        },
        editable: match has_failed {
            true => editable(&found.scopes).unwrap_or_default(),
            false => String::new(),
        },
        fault: found.error.as_ref().map(told).unwrap_or_default(),
        relatives: relatives(&found),
        chart: chart.map(|svg| bare(&svg)).unwrap_or_default(),
        bars: timeline(&history.entries, now, has_ended).unwrap_or_default(),
        data: data(&found),
        changes_note: changes::note(&compared),
        changes: changes::comparisons(compared.comparisons),
        lines: (first + 1..)
            .zip(&history.entries)
            .map(|(number, entry)| line(number, entry, &mut last))
            .collect(),
        earlier: (first > 0).then(|| first.saturating_sub(LINES)),
        later: (first + shown < look.at.unwrap_or(total)).then_some(first + shown),
        first: first + 1,
        total,
        took: lasted(&found, now),
        scheduled: found.scheduled_at,
        started: found.started_at,
        ended: found.ended_at,
        more_places: found.scopes.len().saturating_sub(PLACES_MAX),
        places: found.scopes.drain(..).take(PLACES_MAX).map(place).collect(),
        key: found
            .key
            .filter(|key| !key.starts_with("drawn-"))
            .unwrap_or_default(),
        definition_path: format!("{}/{}", segment(&found.workflow), segment(&found.version)),
        path: segment(&found.id),
        pill: pill_of(&found.status, found.suspended, false),
        id: found.id,
        workflow: found.workflow,
        version: found.version,
        shell,
        back,
    })
}

/// The part of the history that is shown.
async fn history(visitor: &Visitor, id: &str, look: &Look) -> Result<History, Refusal> {
    let lines = Some(LINES);
    let query = HistoryQuery {
        after: look.from.map(|from| from as u64),
        limit: lines.filter(|_| look.from.is_some()),
        last: lines.filter(|_| look.from.is_none()),
        to: look.at.map(|at| at as u64),
    };
    let call = HISTORY.at(&InstanceId { id: id.to_owned() });
    visitor.asking.ask(call.query(query)).await
}

fn back_at(at: usize, total: usize, entry: &HistoryEntry) -> Back {
    Back {
        at,
        instant: entry.at,
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

fn lasted(found: &Instance, now: Timestamp) -> String {
    let until = found.ended_at.map_or(now, |Instant(at)| at);
    took(until.0.saturating_sub(found.started_at.0.0).max(0))
}

fn place(place: swirl_api::instance::Place) -> Place {
    Place {
        sentence: doing(&place),
        scope: branch(&place),
        error: place.error.as_ref().map(told).unwrap_or_default(),
        awaited: place.waits_for.into_iter().map(awaited).collect(),
        timers: place
            .timers
            .into_iter()
            .map(|one| Timer {
                at: one.due,
                told: timer(&one.kind),
            })
            .collect(),
    }
}

/// The name of a branch, or its id if it has none; empty for the main flow.
fn branch(place: &swirl_api::instance::Place) -> String {
    match (&place.name, place.scope.as_str()) {
        (Some(name), _) => name.clone(),
        (None, ROOT) => String::new(),
        (None, scope) => scope.to_owned(),
    }
}

fn relatives(found: &Instance) -> Vec<Relative> {
    let all = [
        ("Called by", &found.parent),
        ("Continues", &found.continued_from),
    ];
    let all = all.into_iter().filter_map(|(what, id)| {
        let id = id.clone()?;
        Some(Relative {
            what,
            path: segment(&id),
            id,
        })
    });
    all.collect()
}

fn data(found: &Instance) -> Vec<Tree> {
    let mut all = Vec::new();
    let mut add = |title: String, value: &Value, open: bool| {
        all.push(Tree {
            title,
            html: tree(value),
            open,
        });
    };
    let recorded = found.entry.as_ref().and_then(|entry| entry.data.clone());
    if let Some(recorded) = recorded {
        add("Recorded in this line".to_owned(), &recorded.into(), true);
    }
    if let Some(output) = &found.output {
        add("Output".to_owned(), output, true);
    }
    for place in found.scopes.iter().take(PLACES_MAX) {
        let title = match branch(place).as_str() {
            "" => "State data".to_owned(),
            branch => format!("State data of {branch}"),
        };
        if let Some(data) = &place.data {
            add(title, data, found.scopes.len() == 1);
        }
    }
    let open = found.output.is_none() && found.scopes.is_empty();
    add("Input".to_owned(), &found.input, open);
    if !found.attributes.is_empty() {
        let attributes = found.attributes.clone().into();
        add("Search attributes".to_owned(), &attributes, false);
    }
    let correlation = found.correlation.iter().flatten();
    let correlation: Map<String, Value> = correlation
        .map(|(name, value)| (name.clone(), value.as_str().into()))
        .collect();
    if !correlation.is_empty() {
        add("Correlation".to_owned(), &correlation.into(), false);
    }
    all
}

fn line(number: usize, entry: &HistoryEntry, last: &mut Told) -> Line {
    let described = last.describe(entry);
    Line {
        number,
        at: entry.at,
        tone: match described.tone {
            Tone::Good => "good",
            Tone::Bad => "bad",
            Tone::Plain => "",
            Tone::Dim => "dim",
        },
        place: described.place(),
        text: described.text.trim_start().to_owned(),
        data: match &entry.data {
            None => String::new(),
            Some(data) => tree(&data.clone().into()),
        },
    }
}

/// The data of the main flow as text.
fn editable(places: &[swirl_api::instance::Place]) -> Option<String> {
    let text = format!("{:#}", root(places)?.data.as_ref()?);
    (text.len() <= EDITED_BYTES_MAX).then_some(text)
}

fn root(places: &[swirl_api::instance::Place]) -> Option<&swirl_api::instance::Place> {
    places.iter().find(|place| place.scope == ROOT)
}

/// The state of the main flow, if it waited for branches.
fn branched(places: &[swirl_api::instance::Place]) -> String {
    let root = root(places).filter(|root| root.branches.is_some());
    root.and_then(|root| root.state.clone()).unwrap_or_default()
}

/// The names of states that the main path has been in, to which it can be sent back.
fn states(history: &[HistoryEntry]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for entry in history.iter().filter(|entry| entry.scope == ROOT) {
        if let Some(Event::StateEntered { name, .. }) = entry.event.event()
            && !names.iter().any(|known| **known == **name)
        {
            names.push(name.to_string());
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
    let instance = InstanceId { id };
    let reason = form.reason_query();
    let (asking, at) = (&visitor.asking, segment(&instance.id));
    let mut word = action.as_str();
    let simple = match word {
        "cancel" => Some(&CANCEL),
        "suspend" => Some(&SUSPEND),
        "resume" => Some(&RESUME),
        _ => None,
    };
    match word {
        _ if let Some(route) = simple => {
            asking.ask(route.at(&instance).query(reason)).await?;
        }
        "migrate" => {
            let body = Move {
                version: form.get("version").trim().to_owned(),
                dry_run: false,
            };
            let call = MIGRATE.at(&instance).body(&body);
            asking.ask(call.query(reason)).await?;
        }
        "skip" => {
            let result = Json(parsed("result", form.given("result").unwrap_or("null"))?);
            let call = SKIP.at(&instance).body(&result);
            asking.ask(call.query(reason)).await?;
        }
        "retry" | "rerun" | "edit" => {
            let with = match word {
                "edit" => edited(&visitor, &instance, &form).await?,
                _ => Retry::default(),
            };
            let state = match word {
                "retry" => None,
                "rerun" => Some(form.get("state")),
                _ => form.given("state"),
            };
            word = if state.is_some() { "rerun" } else { "retry" };
            match state {
                None => {
                    let call = RETRY.at(&instance).body(&Some(with));
                    asking.ask(call.query(reason)).await?;
                }
                Some(state) => {
                    let body = Rerun::new(state.to_owned(), with);
                    let call = RERUN.at(&instance).body(&body);
                    asking.ask(call.query(reason)).await?;
                }
            }
        }
        _ => return Err(Failure::not_found("unknown action")),
    }
    go_to(&format!("/console/instances/{at}?done={word}"))
}

pub fn parsed(what: &str, text: &str) -> Result<Data, Failure> {
    Data::parse(text.as_bytes()).map_err(|error| {
        let detail = format!("the {what} is not valid JSON: {error}");
        Failure::new(StatusCode::BAD_REQUEST, detail)
    })
}

/// The body for an instance that continues with the changes made in the form. Unchanged data is left out: the instance
/// may have failed where no other data can be set.
async fn edited(visitor: &Visitor, instance: &InstanceId, form: &Form) -> Result<Retry, Failure> {
    let mut with = Retry {
        version: form.given("version").map(str::to_owned),
        ..Retry::default()
    };
    if let Some(data) = form.given("data") {
        let data = parsed("data", data)?;
        let found = visitor.asking.ask(GET.at(instance)).await?;
        let root = root(&found.scopes).and_then(|root| root.data.as_ref());
        with.data = Some(Json(data)).filter(|Json(data)| root != Some(&Value::from(data)));
    }
    Ok(with)
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
