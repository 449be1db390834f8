//! The page before a batch: which instances it would act on, what would happen to them, and what can still be chosen.

use std::collections::{BTreeMap, BTreeSet};

use askama::Template;
use axum::http::StatusCode;
use swirl_api::Instant;
use swirl_api::actions::Json;
use swirl_api::batches::{BatchOrder, BatchTrial, CREATE, Created, Operation};
use swirl_api::changes::Change;
use swirl_api::definitions::{self, Version};
use swirl_api::instance::{InstanceSummary, LIST, ListQuery, quoted};
use swirl_presentation::timeline::told;

use super::batches::deed;
use super::instance::parsed;
use crate::answer::{Answer, Failure, go_to, with_status};
use crate::asking::{Refusal, segment};
use crate::naming::Name;
use crate::shell::Shell;
use crate::visitor::{Form, Visitor, draw};
use crate::words::{Pill, pill_of};

/// How many of the instances are looked at for what can be chosen, and how many definitions are read for that.
const LOOKED: u32 = 100;
const DEFINITIONS: usize = 5;

/// The default for the number of instances per second.
const RATE: &str = "50";

/// An action that can be chosen.
pub struct Deed {
    pub word: String,
    pub name: &'static str,
}

impl Deed {
    pub fn of(operation: Operation) -> Deed {
        Deed {
            name: match operation {
                Operation::Retry => "Try again what failed",
                Operation::Remove => "Remove those that have ended",
                ref other => deed(other),
            },
            word: operation.to_string(),
        }
    }
}

#[derive(Template)]
#[template(path = "batch_trial.html")]
struct Page {
    shell: Shell,
    asked: Asked,
    deed: &'static str,
    /// The states to go back to, or the versions to move to.
    states: Vec<String>,
    versions: Vec<String>,
    /// The state data can be changed.
    may_patch: bool,
    /// Why there is no preview; empty if there is one.
    refused: String,
    /// Something was changed after the preview, so that there is another one now.
    is_again: bool,
    matched: u32,
    fit: u32,
    /// Those that were not checked, and why it isn't possible for others.
    unchecked: u32,
    misfits: Vec<Misfit>,
    sample: Vec<Sample>,
    /// The options that the preview shows.
    seen: String,
    /// A form that is sent twice creates one batch.
    key: String,
}

struct Sample {
    id: String,
    name: String,
    path: String,
    workflow: String,
    version: String,
    pill: Pill,
    started: Instant,
    error: String,
    /// The changes that the batch would make to its data.
    changes: Vec<String>,
}

struct Misfit {
    count: u32,
    reason: String,
    /// Of one of them.
    path: String,
}

/// The fields of a form. The page of the dry run repeats them.
struct Asked {
    operation: Operation,
    query: String,
    result: String,
    state: String,
    patch: String,
    version: String,
    reason: String,
    rate: String,
}

/// A dry run first; its page has the button that creates the batch.
pub async fn create(visitor: Visitor, form: Form) -> Answer {
    let mut asked = Asked::read(&form)?;
    let (states, versions) = choices(&visitor, &mut asked).await?;
    let seen = form.given("seen");
    let is_again = seen.is_some_and(|seen| seen != asked.options());
    let creates = form.get("do") == "create" && !is_again;
    let order = asked.order(!creates)?;
    let mut call = CREATE.ask().body(&order);
    if let Some(key) = form.given("key") {
        call = call.key(key);
    }
    let mut status = StatusCode::OK;
    let (trial, refused) = match visitor.asking.ask(call).await {
        Ok(Created::Batch(batch)) => {
            let id = segment(&batch.id);
            return go_to(&format!("/console/batches/{id}?done=batch"));
        }
        Ok(Created::Trial(trial)) => (Some(trial), String::new()),
        // The form keeps its text, so that it can be corrected.
        Err(refusal) if is_about_it(&refusal) => {
            status = refusal.status;
            (None, refusal.problem.detail)
        }
        Err(refusal) => return Err(refusal.into()),
    };
    let shell = Shell::new(&visitor, "batches", "Act on many instances").await?;
    let page = Page::new(shell, asked, trial)?;
    let page = Page {
        states,
        versions,
        refused,
        is_again: is_again && form.get("do") == "create",
        ..page
    };
    with_status(status, &page)
}

fn is_about_it(refusal: &Refusal) -> bool {
    matches!(
        refusal.status,
        StatusCode::BAD_REQUEST | StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY
    )
}

impl Page {
    fn new(shell: Shell, asked: Asked, trial: Option<BatchTrial>) -> Result<Page, Failure> {
        let mut page = Page {
            shell,
            deed: deed(&asked.operation),
            states: Vec::new(),
            versions: Vec::new(),
            may_patch: matches!(asked.operation, Operation::Retry | Operation::Rerun),
            refused: String::new(),
            is_again: false,
            matched: 0,
            fit: 0,
            unchecked: 0,
            misfits: Vec::new(),
            sample: Vec::new(),
            seen: asked.options(),
            key: draw()?,
            asked,
        };
        if let Some(trial) = trial {
            page.matched = trial.matched;
            page.fit = trial.fit;
            page.unchecked = trial.matched.saturating_sub(trial.checked);
            page.misfits = trial.misfits.into_iter().map(misfit).collect();
            page.sample = trial.sample.into_iter().map(sample).collect();
        }
        Ok(page)
    }
}

/// A query for the instances that were ticked in a list.
fn ticked(ids: &[&str]) -> Result<String, Failure> {
    if ids.is_empty() {
        let detail = "no instance is ticked: go back, and tick those that you want to act on";
        return Err(Failure::new(StatusCode::BAD_REQUEST, detail));
    }
    let ids: Vec<String> = ids.iter().map(|id| quoted(id)).collect();
    Ok(format!("id in ({})", ids.join(", ")))
}

impl Asked {
    fn read(form: &Form) -> Result<Asked, Failure> {
        let field = |name: &str| form.get(name).trim().to_owned();
        Ok(Asked {
            operation: Operation::from(form.get("operation").trim()),
            query: match form.given("ticked") {
                Some(_) => ticked(&form.all("instance"))?,
                None => field("query"),
            },
            result: field("result"),
            state: field("state"),
            patch: field("patch"),
            version: field("version"),
            reason: field("reason"),
            rate: match form.given("rate") {
                Some(rate) => rate.to_owned(),
                None => RATE.to_owned(),
            },
        })
    }

    /// The options that change what happens to an instance, as one text.
    fn options(&self) -> String {
        let options = [&self.result, &self.state, &self.patch, &self.version];
        serde_json::to_string(&options).unwrap_or_default()
    }

    fn order(&self, dry_run: bool) -> Result<BatchOrder, Failure> {
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let operation = self.operation.clone();
        let rate = given(&self.rate).map(|rate| rate.parse::<u32>());
        Ok(BatchOrder {
            query: self.query.clone(),
            result: match operation {
                Operation::Skip => {
                    let given = given(&self.result);
                    let result = parsed("result", given.as_deref().unwrap_or("null"))?;
                    Some(Json(result))
                }
                _ => None,
            },
            state: (operation == Operation::Rerun).then(|| self.state.clone()),
            version: (operation == Operation::Migrate).then(|| self.version.clone()),
            patch: given(&self.patch),
            reason: given(&self.reason),
            rate: rate
                .transpose()
                .map_err(|_| Failure::new(StatusCode::BAD_REQUEST, "the rate is not a number"))?,
            operation,
            dry_run,
        })
    }
}

/// The states to go back to and the versions to move to. If nothing is chosen, the likeliest one is: the state in which
/// most of them failed, or the current version.
async fn choices(
    visitor: &Visitor,
    asked: &mut Asked,
) -> Result<(Vec<String>, Vec<String>), Refusal> {
    let (mut states, mut versions) = (Vec::new(), Vec::new());
    match asked.operation {
        Operation::Rerun => {
            let rows = some(visitor, &asked.query).await?;
            states = states_of(visitor, &rows).await?;
            if asked.state.is_empty() {
                let failed = rows
                    .iter()
                    .filter_map(|row| row.error.as_ref()?.state.as_ref());
                asked.state = most_frequent(failed)
                    .filter(|state| states.contains(state))
                    .or_else(|| states.first().cloned())
                    .unwrap_or_default();
            }
        }
        Operation::Migrate => {
            let rows = some(visitor, &asked.query).await?;
            let workflows: BTreeSet<&str> = rows.iter().map(|row| row.workflow.as_str()).collect();
            let found = visitor.asking.ask_pages(definitions::LIST.ask()).await?;
            let mut current = None;
            for one in found.definitions.into_iter().rev() {
                if workflows.contains(one.head.id.as_str()) && !versions.contains(&one.head.version)
                {
                    if one.latest {
                        current.get_or_insert_with(|| one.head.version.clone());
                    }
                    versions.push(one.head.version);
                }
            }
            if asked.version.is_empty() {
                asked.version = current.unwrap_or_default();
            }
        }
        _ => {}
    }
    Ok((states, versions))
}

/// The newest instances that match. A query that cannot be carried out is refused later, with the reason.
async fn some(visitor: &Visitor, query: &str) -> Result<Vec<InstanceSummary>, Refusal> {
    let query = ListQuery {
        query: Some(query.to_owned()),
        limit: Some(LOOKED),
        ..ListQuery::default()
    };
    match visitor.asking.ask(LIST.ask().query(query)).await {
        Ok(found) => Ok(found.instances),
        Err(refusal) if is_about_it(&refusal) => Ok(Vec::new()),
        Err(refusal) => Err(refusal),
    }
}

async fn states_of(visitor: &Visitor, rows: &[InstanceSummary]) -> Result<Vec<String>, Refusal> {
    let definitions: BTreeSet<(&str, &str)> = rows
        .iter()
        .map(|row| (row.workflow.as_str(), row.version.as_str()))
        .collect();
    let mut states = Vec::new();
    for (id, version) in definitions.into_iter().take(DEFINITIONS) {
        let at = Version {
            id: id.to_owned(),
            version: version.to_owned(),
        };
        match visitor.asking.ask(definitions::GET.at(&at)).await {
            Ok(found) => {
                let new = found.states.into_iter();
                let new: Vec<String> = new.filter(|state| !states.contains(state)).collect();
                states.extend(new);
            }
            Err(refusal) if refusal.status == StatusCode::NOT_FOUND => {}
            Err(refusal) => return Err(refusal),
        }
    }
    Ok(states)
}

fn most_frequent<'a>(all: impl Iterator<Item = &'a String>) -> Option<String> {
    let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
    for one in all {
        *counts.entry(one).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.map(|(one, _)| one.clone())
}

fn misfit(one: swirl_api::batches::Misfit) -> Misfit {
    Misfit {
        count: one.count,
        reason: one.reason,
        path: segment(&one.instance.unwrap_or_default()),
    }
}

fn sample(row: swirl_api::batches::Sample) -> Sample {
    let changes = row.data.and_then(|data| data.changes);
    Sample {
        name: Name::of(&row.id, row.instance_key.as_deref(), None, &row.attributes).text,
        path: segment(&row.id),
        id: row.id,
        workflow: row.workflow,
        version: row.version,
        pill: pill_of(&row.status, row.suspended, false),
        started: row.started_at,
        error: row.error.as_ref().map(told).unwrap_or_default(),
        changes: changes.into_iter().flatten().map(change).collect(),
    }
}

fn change(change: Change) -> String {
    let path = change.path;
    match (change.before, change.after) {
        (Some(before), Some(after)) => format!("{path}: {before} → {after}"),
        (Some(before), None) => format!("{path}: {before} is removed"),
        (None, after) => format!("{path}: {} is added", after.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_were_changed_are_noticed() {
        let of = |fields: &[(&str, &str)]| Asked::read(&Form::of(fields)).unwrap();
        let first = of(&[("operation", "rerun"), ("query", "a"), ("state", "Pay")]);
        let same = of(&[("state", "Pay"), ("reason", "because"), ("rate", "1")]);
        assert_eq!(first.options(), same.options());
        assert_ne!(first.options(), of(&[("state", "Ship")]).options());
        assert_eq!(first.rate, RATE);
        let order = first.order(true).unwrap();
        assert_eq!((order.state.as_deref(), order.version), (Some("Pay"), None));
        let none = Asked::read(&Form::of(&[("ticked", "yes")]));
        assert_eq!(none.err().unwrap().status, StatusCode::BAD_REQUEST);
    }

    #[test]
    fn the_state_in_which_most_failed_is_chosen() {
        let all = ["Pay", "Ship", "Ship", "Pack"].map(str::to_owned);
        assert_eq!(most_frequent(all.iter()).as_deref(), Some("Ship"));
        assert_eq!(most_frequent([].iter()), None);
    }
}
