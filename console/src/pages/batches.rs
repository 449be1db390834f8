//! Batches: the instances that one would act on, its progress, and the outcome for each instance.

use askama::Template;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use serde::Deserialize;
use swirl_api::actions::Json;
use swirl_api::batches::{
    BatchId, BatchOrder, BatchResult, CREATE, Created, GET, GetQuery, LIST, Operation, Outcome,
    PAUSE, RESULTS, RESUME, ResultsQuery, STOP,
};
use swirl_api::changes::Change;
use swirl_api::{Instant, PageQuery};
use swirl_presentation::timeline::told;
use url::form_urlencoded::Serializer;

use super::Done;
use super::instance::parsed;
use super::instances::quoted;
use crate::answer::{Answer, Failure, go_to, page};
use crate::asking::segment;
use crate::shell::Shell;
use crate::visitor::{Form, Visitor, draw};
use crate::words::{Pill, batch_status, pill_of, short};

/// How many results are on a page.
const PAGE: u32 = 100;

#[derive(Template)]
#[template(path = "batches.html")]
struct Index {
    shell: Shell,
    rows: Vec<Batch>,
    next: String,
}

#[derive(Template)]
#[template(path = "batch.html")]
struct Page {
    shell: Shell,
    batch: Batch,
    /// The instances by what has become of them, if any were acted on.
    now: Vec<(&'static str, u64)>,
    /// Some are still at work.
    pending: u32,
    /// All were counted.
    now_complete: bool,
    outcome: String,
    rows: Vec<Row>,
    next: String,
}

#[derive(Template)]
#[template(path = "batch_trial.html")]
struct Trial {
    shell: Shell,
    asked: Asked,
    deed: &'static str,
    matched: u32,
    fit: u32,
    /// Those that were not checked, and why others don't fit another version.
    unchecked: u32,
    misfits: Vec<Misfit>,
    sample: Vec<Sample>,
    /// A form that is sent twice creates one batch.
    key: String,
}

struct Batch {
    found: swirl_api::batches::Batch,
    deed: &'static str,
    option: String,
    pill: Pill,
}

struct Row {
    short: String,
    path: String,
    id: String,
    outcome: Outcome,
    /// None: the instance is gone.
    pill: Option<Pill>,
    reason: String,
}

struct Sample {
    id: String,
    short: String,
    path: String,
    workflow: String,
    version: String,
    pill: Pill,
    started: Instant,
    error: String,
    /// What would change in its data.
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
    operation: String,
    query: String,
    result: String,
    state: String,
    patch: String,
    version: String,
    reason: String,
    rate: String,
}

/// The word for what a batch does.
fn deed(operation: &Operation) -> &'static str {
    match operation {
        Operation::Cancel => "Cancel",
        Operation::Retry => "Try again",
        Operation::Skip => "Skip the step that failed",
        Operation::Rerun => "Go back to a state",
        Operation::Suspend => "Suspend",
        Operation::Resume => "Resume",
        Operation::Migrate => "Move to another version",
        Operation::Remove => "Remove",
        Operation::Other(_) => "?",
    }
}

fn batch(found: swirl_api::batches::Batch) -> Batch {
    let mut option = match (&found.result, &found.state, &found.version) {
        (Some(Json(result)), _, _) => format!("with the result {result}"),
        (None, Some(state), _) => format!("“{state}”"),
        (None, None, Some(version)) => version.clone(),
        (None, None, None) => String::new(),
    };
    if let Some(patch) = &found.patch {
        option = format!("{option} with {patch}");
    }
    Batch {
        deed: deed(&found.operation),
        option,
        pill: batch_status(&found),
        found,
    }
}

#[derive(Deserialize, Default)]
pub struct Listed {
    after: Option<String>,
}

pub async fn index(visitor: Visitor, Query(asked): Query<Listed>) -> Answer {
    let shell = Shell::new(&visitor, "batches", "Batches").await?;
    let query = PageQuery {
        after: asked.after,
        limit: Some(PAGE),
    };
    let found = visitor.asking.ask(LIST.ask().query(query)).await?;
    let next = found.next.map(|next| {
        let mut query = Serializer::new(String::new());
        format!(
            "/console/batches?{}",
            query.append_pair("after", &next).finish()
        )
    });
    page(&Index {
        shell: shell.with_news(),
        rows: found.batches.into_iter().map(batch).collect(),
        next: next.unwrap_or_default(),
    })
}

#[derive(Deserialize, Default)]
pub struct Look {
    #[serde(default)]
    outcome: String,
    #[serde(default)]
    after: String,
}

pub async fn show(
    visitor: Visitor,
    Path(id): Path<String>,
    Query(look): Query<Look>,
    Query(done): Query<Done>,
) -> Answer {
    let shell = Shell::new(&visitor, "batches", "Batch").await?;
    let asking = &visitor.asking;
    let at = BatchId { id };
    let mut found = asking.ask(GET.at(&at)).await?;
    // This reads each of its instances, which is too much for a page that reloads itself every few seconds.
    if found.ended_at.is_some() {
        let query = GetQuery { afterwards: true };
        found = asking.ask(GET.at(&at).query(query)).await?;
    }
    let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let query = ResultsQuery {
        outcome: given(&look.outcome).as_deref().map(Outcome::from),
        after: given(&look.after),
        limit: Some(PAGE),
    };
    let results = asking.ask(RESULTS.at(&at).query(query)).await?;
    let next = results.next.map(|next| {
        let mut query = Serializer::new(String::new());
        query.append_pair("outcome", &look.outcome);
        query.append_pair("after", &next);
        format!("/console/batches/{}?{}", segment(&at.id), query.finish())
    });
    let afterwards = found.afterwards.clone().unwrap_or_default();
    let shell = shell.with_done(done.done.as_deref());
    let is_moving = found.ended_at.is_none() || afterwards.pending > 0;
    page(&Page {
        shell: match look.after.is_empty() && is_moving {
            true => shell.with_news(),
            false => shell,
        },
        pending: afterwards.pending,
        now: afterwards.in_each_state("removed"),
        now_complete: afterwards.complete,
        batch: batch(found),
        outcome: look.outcome,
        rows: results.results.into_iter().map(row).collect(),
        next: next.unwrap_or_default(),
    })
}

fn row(row: BatchResult) -> Row {
    let detail = row.detail.unwrap_or_default();
    Row {
        short: short(&row.instance),
        path: segment(&row.instance),
        id: row.instance,
        outcome: row.outcome,
        pill: row.status.map(|status| pill_of(&status, false, false)),
        reason: match row.code {
            None => detail,
            Some(code) => format!("{detail} ({code})"),
        },
    }
}

/// A dry run first; its page has the button that creates the batch.
pub async fn create(visitor: Visitor, form: Form) -> Answer {
    let field = |name: &str| form.get(name).trim().to_owned();
    let asked = Asked {
        operation: field("operation"),
        query: match form.given("ticked") {
            Some(_) => ticked(&form.all("instance"))?,
            None => field("query"),
        },
        result: field("result"),
        state: field("state"),
        patch: field("patch"),
        version: field("version"),
        reason: field("reason"),
        rate: field("rate"),
    };
    let creates = form.get("do") == "create";
    let order = asked.order(!creates)?;
    let mut call = CREATE.ask().body(&order);
    if let Some(key) = form.given("key") {
        call = call.key(key);
    }
    let trial = match visitor.asking.ask(call).await? {
        Created::Trial(trial) => trial,
        Created::Batch(batch) => {
            let id = segment(&batch.id);
            return go_to(&format!("/console/batches/{id}?done=batch"));
        }
    };
    page(&Trial {
        shell: Shell::new(&visitor, "batches", "Act on all that match").await?,
        deed: deed(&order.operation),
        asked,
        matched: trial.matched,
        fit: trial.fit,
        unchecked: trial.matched.saturating_sub(trial.checked),
        misfits: trial.misfits.into_iter().map(misfit).collect(),
        sample: trial.sample.into_iter().map(sample).collect(),
        key: draw()?,
    })
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
    fn order(&self, dry_run: bool) -> Result<BatchOrder, Failure> {
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let operation = Operation::from(self.operation.as_str());
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
        short: short(&row.id),
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

pub async fn act(
    visitor: Visitor,
    Path((id, action)): Path<(String, String)>,
    form: Form,
) -> Answer {
    let route = match action.as_str() {
        "pause" => &PAUSE,
        "resume" => &RESUME,
        "stop" => &STOP,
        _ => return Err(Failure::not_found("unknown action")),
    };
    let at = BatchId { id };
    let call = route.at(&at).query(form.reason_query());
    visitor.asking.ask(call).await?;
    let id = segment(&at.id);
    go_to(&format!("/console/batches/{id}?done=batch-{action}"))
}
