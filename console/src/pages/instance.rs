//! One instance: what it does, its steps in time, its picture, its data, its history, and the actions on it.

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use serde_json::{Map, Value};
use swirl_api::changes::{COMPARE, CompareQuery};
use swirl_api::diagrams::{self, DrawQuery};
use swirl_api::history::HistoryEntry;
use swirl_api::instance::{GET, GetQuery, InstanceId};
use swirl_api::{Instance, Instant, Status};
use swirl_model::event::Event;
use swirl_model::scope::Purpose;
use swirl_model::time::Timestamp;
use swirl_presentation::steps::Steps;
use swirl_presentation::timeline::{describe, told};

mod deeds;
mod head;
mod look;
mod step;
mod story;

pub use deeds::{operate, parsed};
pub use story::{Line, line};

use super::changes::{self, Comparison};
use super::columns::now;
use crate::answer::{Answer, with_status};
use crate::asking::segment;
use crate::console::Console;
use crate::naming::says_something;
use crate::shell::Shell;
use crate::timeline::{Shown, timeline, took, with_key};
use crate::tree::tree;
use crate::visitor::Visitor;
use crate::words::{Pill, pill_of};
use deeds::Draft;
use head::{Attribute, Place, Relative};
use look::Look;
use step::{Chosen, Known, chosen};
use story::{Lines, Story};

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
    /// By what people know it; empty if that is unknown.
    business: String,
    key: String,
    attributes: Vec<Attribute>,
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
    timeline: Timeline,
    step: Option<Chosen>,
    data: Vec<Tree>,
    changes: Vec<Comparison>,
    changes_note: &'static str,
    lines: Lines,
    look: Look,
    first: usize,
    /// The address of the page with the line and the way of showing times that were chosen; further parameters may follow.
    kept: String,
    total: usize,
    /// It is shown as it was.
    back: Option<Back>,
    may: May,
    draft: Draft,
    /// Other versions of its definition, if they are known.
    versions: Option<Vec<String>>,
    states: Vec<String>,
    /// The state at which it failed, to be chosen first.
    failed_state: String,
    /// The state whose branch failed: other data has an effect only if it is run again. Empty if none did.
    branched: String,
    /// The data of the main flow, if it may be edited now and is small enough for a form; otherwise empty.
    editable: String,
}

/// The steps in time.
struct Timeline {
    rows: String,
    gaps: bool,
    by_clock: bool,
    /// The address with the other way of showing times.
    switch: String,
    /// The number of the first line that it considers, if there are earlier ones.
    from: Option<usize>,
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
    skip: bool,
    /// There may be another version.
    move_on: bool,
    start_another: bool,
}

pub struct Tree {
    title: String,
    html: String,
    open: bool,
}

pub async fn show(
    visitor: Visitor,
    Path(id): Path<String>,
    look: Query<Look>,
    State(console): State<Console>,
    headers: HeaderMap,
) -> Answer {
    let fresh = (Draft::default(), StatusCode::OK);
    render(visitor, id, look, console, headers, fresh).await
}

/// The page; with a form that was sent, and the status of the answer to it.
async fn render(
    mut visitor: Visitor,
    id: String,
    Query(look): Query<Look>,
    console: Console,
    headers: HeaderMap,
    (draft, status): (Draft, StatusCode),
) -> Answer {
    visitor.asking.follows = console.hints.followed(&id, &headers);
    let at = look.at.map(|at| at as u64);
    let query = GetQuery { at, wait: None };
    let found = GET.at(&InstanceId { id }).query(query);
    let found = visitor.asking.ask(found).await?;
    let business = head::business_name(&found);
    let title = format!("{} {business}", found.workflow);
    let shell = Shell::new(
        &visitor,
        "instances",
        format!("{} – instance", title.trim()),
    )
    .await?;
    let story = Story::read(&visitor, &found.id, at).await?;
    let open = found.scopes_left_out.is_none().then_some(&found.scopes[..]);
    let steps = Steps::new(&story.entries, open);
    let id = InstanceId {
        id: found.id.clone(),
    };
    let lines = story::lines((&visitor, &id.id), &story, &steps, &look, found.started_at).await?;
    let drawn = diagrams::INSTANCE.at(&id).query(DrawQuery { at });
    let chart = visitor.asking.text(drawn).await;
    let compared = COMPARE.at(&id).query(CompareQuery { at });
    let compared = visitor.asking.ask(compared).await?;
    let has_failed = found.status == Status::Faulted;
    let has_ended = found.status != Status::Running;
    let back = look.at.zip(found.entry.as_ref());
    let back = back.map(|(at, entry)| back_at(at, story.total, entry));
    let now = back.as_ref().map_or_else(now, |back| back.instant.0);
    let is_fresh = look.from.is_none() && look.at.is_none() && status == StatusCode::OK;
    let shell = match is_fresh && draft.preview.is_none() {
        true if !has_ended => shell.with_hints(&found.id),
        // An action that was accepted just now may not have been carried out yet.
        true if look.done.is_some() && has_failed => shell.with_news(),
        _ => shell,
    };
    let shell = shell.with_done(look.done.as_deref());
    let path = segment(&found.id);
    let wanted = look.step.as_deref();
    let asked = wanted.and_then(|wanted| with_key(&steps, story.before, wanted));
    let failed = steps.failed().filter(|_| has_failed);
    let number = asked.or(failed);
    let known = Known {
        found: &found,
        steps: &steps,
        story: &story,
        now,
    };
    let fault = found.error.as_ref().map(told).unwrap_or_default();
    let mut step = number.map(|number| chosen(&known, number));
    // The page begins with this error.
    if let Some(step) = step
        .as_mut()
        .filter(|step| asked.is_none() && step.error == fault)
    {
        step.error.clear();
    }
    let timeline = in_time(&look, &path, &story, &steps, (number, now));
    let (places, more_places) = head::places(&found, &story);
    let given_key = found.key.clone();
    let versions = match has_failed && shell.may_operate && back.is_none() {
        true => deeds::versions(&visitor, &found).await,
        false => None,
    };
    let page = Page {
        may: May {
            cancel: !has_ended,
            suspend: !has_ended && !found.suspended,
            resume: !has_ended && found.suspended,
            go_on: has_failed,
            skip: has_failed && may_skip(&found.scopes),
            move_on: match &versions {
                Some(versions) => !versions.is_empty(),
                None => has_failed || !has_ended,
            },
            start_another: has_ended,
        },
        draft,
        versions,
        states: states(&story.entries),
        failed_state: root(&found.scopes)
            .and_then(|root| root.state.clone())
            .unwrap_or_default(),
        branched: match has_failed {
            true => branched(&found.scopes),
            false => String::new(),
        },
        editable: match has_failed {
            true => editable(&found.scopes).unwrap_or_default(),
            false => String::new(),
        },
        business,
        attributes: head::attributes(&found),
        relatives: head::relatives(&found),
        chart: chart.map(|svg| bare(&svg)).unwrap_or_default(),
        timeline,
        step,
        data: data(&found),
        changes_note: changes::note(&compared),
        changes: changes::comparisons(compared.comparisons),
        first: lines.all.first().map_or(0, |line| line.number),
        kept: look.address(&path, &["at", "times", "step"]),
        lines,
        look,
        total: story.total,
        took: lasted(&found, now),
        scheduled: found.scheduled_at,
        started: found.started_at,
        ended: found.ended_at,
        more_places,
        places,
        fault,
        key: given_key
            .filter(|key| says_something(key))
            .unwrap_or_default(),
        definition_path: format!("{}/{}", segment(&found.workflow), segment(&found.version)),
        path,
        pill: pill_of(&found.status, found.suspended, head::is_waiting(&found)),
        id: found.id,
        workflow: found.workflow,
        version: found.version,
        shell,
        back,
    };
    with_status(status, &page)
}

fn in_time(
    look: &Look,
    path: &str,
    story: &Story,
    steps: &Steps,
    (chosen, now): (Option<usize>, Timestamp),
) -> Timeline {
    let choose = look.address(path, &["at", "times", "all"]);
    let unfold = look.address(path, &["at", "times", "step"]);
    let mut switch = look.address(path, &["at", "step", "all"]);
    if !look.by_clock() {
        switch.push_str("times=clock");
    }
    let rows = timeline(&Shown {
        steps,
        before: story.before,
        now: now.0,
        chosen,
        whole: look.all.as_deref(),
        choose: &choose,
        unfold: &unfold,
        by_clock: look.by_clock(),
    });
    Timeline {
        gaps: rows.contains("class=\"gap\""),
        rows,
        by_clock: look.by_clock(),
        switch,
        from: (story.before > 0).then_some(story.before + 1),
    }
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

fn lasted(found: &Instance, now: Timestamp) -> String {
    let until = found.ended_at.map_or(now, |Instant(at)| at);
    took(until.0.saturating_sub(found.started_at.0.0).max(0))
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
        let title = match (&place.name, place.scope.as_str()) {
            (Some(name), _) => format!("State data of {name}"),
            (None, ROOT) => "State data".to_owned(),
            (None, _) => "State data of a branch".to_owned(),
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

/// The data of the main flow as text.
fn editable(places: &[swirl_api::instance::ScopePosition]) -> Option<String> {
    let text = format!("{:#}", root(places)?.data.as_ref()?);
    (text.len() <= EDITED_BYTES_MAX).then_some(text)
}

fn root(
    places: &[swirl_api::instance::ScopePosition],
) -> Option<&swirl_api::instance::ScopePosition> {
    places.iter().find(|place| place.scope == ROOT)
}

/// Whether an action failed, or a branch in which one may have failed.
fn may_skip(places: &[swirl_api::instance::ScopePosition]) -> bool {
    let failed = places.iter().filter(|place| place.error.is_some());
    let mut skippable = failed.map(|place| place.action.is_some() || place.branches.is_some());
    skippable.any(|is_skippable| is_skippable)
}

/// The state of the main flow, if it waited for branches.
fn branched(places: &[swirl_api::instance::ScopePosition]) -> String {
    let root = root(places).filter(|root| root.branches.is_some());
    root.and_then(|root| root.state.clone()).unwrap_or_default()
}

/// The names of states that the main path has been in, to which it can be sent back.
fn states(history: &[HistoryEntry]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for entry in history.iter().filter(|entry| entry.scope == ROOT) {
        if let Some(Event::StateEntered {
            name,
            purpose: Purpose::Main,
            ..
        }) = entry.event.event()
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
