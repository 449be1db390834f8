//! Batches: the instances that one would act on, its progress, and the outcome for each instance.

use askama::Template;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use serde::Deserialize;
use swirl_api::PageQuery;
use swirl_api::actions::Json;
use swirl_api::batches::{
    BatchId, BatchResult, BatchStatus, GET, GetQuery, LIST, Operation, Outcome, PAUSE, RESULTS,
    RESUME, ResultsQuery, STOP,
};
use swirl_presentation::timeline::told;
use url::form_urlencoded::Serializer;

use super::Done;
use crate::answer::{Answer, Failure, go_to, page};
use crate::asking::segment;
use crate::naming::Name;
use crate::shell::Shell;
use crate::visitor::{Form, Visitor};
use crate::words::{Pill, batch_status, pill_of};

/// How many results are on a page.
const PAGE: u32 = 100;
/// The list of batches says of so many of the newest what became of their instances, if these are few.
const LOOKED_INTO: usize = 5;
const SMALL: u32 = 100;

const OUTCOMES: [&str; 4] = ["done", "refused", "failed", "waiting"];

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
    /// Some are still at work.
    pending: u32,
    /// All were counted.
    now_complete: bool,
    /// The outcomes that can be chosen, in words, and whether one is chosen.
    outcomes: [(&'static str, &'static str, bool); 4],
    rows: Vec<Row>,
    next: String,
}

struct Batch {
    found: swirl_api::batches::Batch,
    deed: &'static str,
    option: String,
    pill: Pill,
    /// The present statuses of the instances, if they are known.
    now: Vec<(&'static str, u64)>,
    /// It can be paused or continued.
    is_active: bool,
}

struct Row {
    name: String,
    path: String,
    id: String,
    outcome: &'static str,
    is_bad: bool,
    /// None: the instance is gone.
    pill: Option<Pill>,
    /// Why it was refused, or with which error it is faulted.
    reason: String,
}

/// The word for what a batch does.
pub fn deed(operation: &Operation) -> &'static str {
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
        now: found
            .afterwards
            .as_ref()
            .map(|now| now.in_each_state("removed"))
            .unwrap_or_default(),
        is_active: matches!(found.status, BatchStatus::Running | BatchStatus::Paused),
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
    let mut batches = found.batches;
    let is_moving = batches.iter().any(|batch| batch.ended_at.is_none());
    let small = batches.iter_mut();
    let small = small.filter(|batch| batch.ended_at.is_some() && batch.matched <= SMALL);
    for batch in small.take(LOOKED_INTO) {
        let at = BatchId {
            id: batch.id.clone(),
        };
        let query = GetQuery { afterwards: true };
        match visitor.asking.ask(GET.at(&at).query(query)).await {
            Ok(found) => *batch = found,
            // It was removed meanwhile, and stays in this list.
            Err(refusal) if refusal.status == StatusCode::NOT_FOUND => {}
            Err(refusal) => return Err(refusal.into()),
        }
    }
    page(&Index {
        // The statuses of the instances are read once, not every few seconds.
        shell: if is_moving { shell.with_news() } else { shell },
        rows: batches.into_iter().map(batch).collect(),
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
        outcomes: OUTCOMES.map(|word| (word, outcome(&Outcome::from(word)), word == look.outcome)),
        now_complete: afterwards.complete,
        batch: batch(found),
        rows: results.results.into_iter().map(row).collect(),
        next: next.unwrap_or_default(),
    })
}

fn row(row: BatchResult) -> Row {
    let reason = match (row.code, row.detail, row.error) {
        (Some(code), detail, _) => format!("{} ({code})", detail.unwrap_or_default()),
        (None, Some(detail), _) => detail,
        (None, None, error) => error.as_ref().map(told).unwrap_or_default(),
    };
    Row {
        name: Name::of(
            &row.instance,
            row.instance_key.as_deref(),
            None,
            &row.attributes,
        )
        .text,
        path: segment(&row.instance),
        id: row.instance,
        outcome: outcome(&row.outcome),
        is_bad: matches!(row.outcome, Outcome::Refused | Outcome::Failed),
        pill: row.status.map(|status| pill_of(&status, false, false)),
        reason,
    }
}

/// The outcome of a batch for an instance: whether it could be acted on.
fn outcome(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done => "acted on",
        Outcome::Refused => "refused",
        Outcome::Failed => "could not be acted on",
        Outcome::Waiting => "not processed yet",
        Outcome::Other(_) => "unknown",
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
