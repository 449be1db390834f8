//! The plans of cluster runs: generated cases, and a fixed set of hard ones.

use std::collections::BTreeSet;

use anyhow::Result;
use swirl_engine::Sizes;
use swirl_model::event::{Event, HistoryEntry};
use swirl_model::instance::InstanceState;
use swirl_model::{CloudEvent, Data};
use swirl_service::Action;

use crate::cluster::{Plan, Planned, Trace};
use crate::generate::{Case, generate};
use crate::more::OTHERS;
use crate::random::Random;
use crate::reference::World;
use crate::tasks::{self, CLUSTER_MARGIN_MS, MOMENT_MARGIN_MS};

/// The initial input of all cases.
pub fn input(seed: u64) -> Data {
    let mut input = Data::object();
    input.set("order", Data::string("42"));
    input.set("n", Data::int((seed % 9) as i64));
    input
}

pub fn event(kind: &str) -> CloudEvent {
    let mut data = Data::object();
    data.set("got", Data::string(kind));
    CloudEvent {
        specversion: "1.0".to_owned(),
        id: kind.to_owned(),
        source: "plan".to_owned(),
        kind: kind.to_owned(),
        attributes: [("orderid".to_owned(), Data::string("42"))].into(),
        data: Some(data),
    }
}

/// A generated case. Depending on the seed, it is suspended during the run or gets a new version.
pub fn plan_of(case: &Case) -> Plan {
    let mut random = Random::new(case.seed ^ 0x97a);
    let workflow = case.workflow();
    let mut acts = vec![(0, start(workflow, "1", case.seed))];
    acts.extend(
        case.events
            .iter()
            .map(|(at, kind)| (*at, Planned::Event(event(kind)))),
    );
    if random.percent(25) {
        let at = random.below(6_000) as i64;
        acts.push((at, operate(workflow, "1", Action::Suspend)));
        acts.push((at + 10_000, operate(workflow, "1", Action::Resume)));
    }
    if random.percent(25) {
        // The running instance keeps its version. The new version has only this output.
        let text = case.main.replacen("1.0.0", "2.0.0", 1);
        let text = text.replacen("specVersion:", "metadata: {new: yes}\nspecVersion:", 1);
        acts.push((10 + random.below(9_000) as i64, Planned::Deploy(text)));
    }
    Plan {
        documents: documents(case).collect(),
        acts,
    }
}

/// Large cases nest their data repeatedly, and the reference has no limit.
pub fn sizes() -> Sizes {
    Sizes {
        data_bytes: 64 << 20,
        ..Sizes::default()
    }
}

/// Documents that all cases may refer to.
pub fn others() -> impl Iterator<Item = String> {
    let all = OTHERS.iter().chain(crate::editions::OTHERS);
    all.map(|text| (*text).to_owned())
}

/// All documents of a case, referenced ones first.
pub fn documents(case: &Case) -> impl Iterator<Item = String> {
    let own = [case.sub.clone(), case.main.clone()];
    others().chain(case.older.clone()).chain(own)
}

pub fn generated(seed: u64, size: usize) -> Plan {
    plan_of(&generate(seed, size))
}

pub fn start(workflow: &str, key: &str, seed: u64) -> Planned {
    Planned::Start {
        workflow: workflow.to_owned(),
        key: key.to_owned(),
        input: input(seed),
    }
}

pub fn operate(workflow: &str, key: &str, action: Action) -> Planned {
    Planned::Operate {
        workflow: workflow.to_owned(),
        key: key.to_owned(),
        action,
    }
}

/// The outcome of a case according to the reference interpreter: one line for each instance, sorted.
pub fn expected(case: &Case) -> Result<Vec<String>> {
    let lines = outcomes(case, CLUSTER_MARGIN_MS)?
        .into_iter()
        .map(|(line, ..)| line);
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    Ok(lines)
}

/// The same with the time of each end and the number of warnings, for runs in which nothing takes longer than
/// necessary.
pub fn expected_in_time(case: &Case) -> Result<Vec<String>> {
    let lines = outcomes(case, MOMENT_MARGIN_MS)?
        .into_iter()
        .map(|(line, at, warned)| ended(&line, at, warned));
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    Ok(lines)
}

/// Why the outcome depends on the order of things that are closer to each other than `margin`, if it does.
pub fn undecided(case: &Case, margin: i64) -> Result<Option<String>> {
    match case.tasks {
        true => Ok(expected_of_tasks(case, margin)?.undecided),
        false => Ok(None),
    }
}

fn expected_of_tasks(case: &Case, margin: i64) -> Result<tasks::Expected> {
    let texts = case.older.iter().chain([&case.sub, &case.main]);
    let documents: Vec<serde_json::Value> = texts
        .map(|text| serde_json::from_str(text))
        .collect::<std::result::Result<_, _>>()?;
    let events = events(case);
    let input = input(case.seed);
    Ok(tasks::expected(
        &documents,
        case.workflow(),
        input,
        events,
        margin,
    ))
}

fn events(case: &Case) -> Vec<(i64, CloudEvent)> {
    let events = case.events.iter();
    events.map(|(at, kind)| (*at, event(kind))).collect()
}

fn outcomes(case: &Case, margin: i64) -> Result<Vec<(String, i64, usize)>> {
    let outcomes = match case.tasks {
        true => expected_of_tasks(case, margin)?.outcomes,
        false => {
            let workflows = documents(case).map(|text| workflow(&text));
            let workflows = workflows.collect::<Result<_>>()?;
            World::new(workflows, events(case)).run("main", input(case.seed))
        }
    };
    let lines = outcomes.iter().map(|outcome| {
        let error = outcome.error.as_deref();
        let text = line(&outcome.workflow, outcome.status, &outcome.output, error);
        (text, outcome.at, outcome.warned)
    });
    Ok(lines.collect())
}

fn workflow(text: &str) -> Result<swirl_model::workflow::Workflow> {
    let resources = swirl_spec::resource::MapResources::default();
    let options = swirl_spec::Options::default();
    let reading = swirl_spec::read(text.as_bytes(), &resources, &options);
    reading
        .workflow
        .ok_or_else(|| anyhow::anyhow!("{:?}", reading.diagnostics))
}

fn ended(line: &str, at: i64, warned: usize) -> String {
    match warned {
        0 => format!("{line} at {at}"),
        _ => format!("{line} at {at}, with {warned} warnings"),
    }
}

/// An instance in the form of [`expected_in_time`].
pub fn in_time(workflow: &str, state: &InstanceState, history: &[HistoryEntry]) -> String {
    let is_warning = |it: &&HistoryEntry| matches!(it.event, Event::ValidationFailed { .. });
    let warned = history.iter().filter(is_warning).count();
    let error = state.error.as_ref().map(tasks::shown);
    let output = state.output.clone().unwrap_or_default();
    let line = line(workflow, state.status.as_str(), &output, error.as_deref());
    let at = state.ended_at.map_or(0, |at| at.0 - crate::rig::START);
    ended(&line, at, warned)
}

fn line(workflow: &str, status: &str, output: &Data, error: Option<&str>) -> String {
    format!("{workflow} {status} {} {error:?}", in_order(output))
}

/// The members of objects in a fixed order, as text.
pub fn in_order(data: &Data) -> String {
    if let Some(items) = data.as_array() {
        let items = items.iter().map(|item| in_order(&Data(item.clone())));
        return format!("[{}]", items.collect::<Vec<_>>().join(","));
    }
    let Some(members) = data.as_object() else {
        return data.to_string();
    };
    let members = members.iter().map(|(name, value)| {
        let name = Data(name.clone()).to_string();
        format!("{name}:{}", in_order(&Data(value.clone())))
    });
    let mut members: Vec<String> = members.collect();
    members.sort();
    format!("{{{}}}", members.join(","))
}

/// The kinds of outcomes in a run.
pub fn kinds(trace: &Trace) -> BTreeSet<String> {
    let outputs = trace.outputs.values();
    outputs
        .map(|o| line(&o.workflow, o.status, &o.output, o.error.as_deref()))
        .collect()
}

/// The outcomes that only the run or only the reference has.
pub fn compare_with(expected: &[String], trace: &Trace) -> Vec<String> {
    let outputs = trace.outputs.values();
    let lines = outputs.map(|o| line(&o.workflow, o.status, &o.output, o.error.as_deref()));
    let lines: Vec<String> = lines.collect();
    differences(expected, lines)
}

pub fn differences(expected: &[String], mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    if lines == expected {
        return Vec::new();
    }
    let less: Vec<_> = expected
        .iter()
        .filter(|line| !lines.contains(line))
        .collect();
    let more: Vec<_> = lines
        .iter()
        .filter(|line| !expected.contains(line))
        .collect();
    let counts = (lines.len(), expected.len());
    vec![format!(
        "reference {counts:?}:\n  expected {less:#?}\n  there is {more:#?}"
    )]
}
