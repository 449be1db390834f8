//! Batches: the instances that one would act on, its progress, and the outcome for each instance.

use askama::Template;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use url::form_urlencoded::Serializer;

use super::Done;
use super::instances::quoted;
use crate::answer::{Answer, Failure, go_to, list, page, text};
use crate::asking::segment;
use crate::shell::Shell;
use crate::visitor::{Form, Visitor, draw};
use crate::words::{Pill, batch_status, short, status};

/// How many results are on a page.
const PAGE: &str = "100";

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
    pending: u64,
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
    matched: u64,
    fit: u64,
    /// Those that were not checked, and why others don't fit another version.
    unchecked: u64,
    misfits: Vec<Misfit>,
    sample: Vec<Sample>,
    /// A form that is sent twice creates one batch.
    key: String,
}

struct Batch {
    id: String,
    short: String,
    path: String,
    deed: &'static str,
    option: String,
    query: String,
    reason: String,
    by: String,
    rate: u64,
    pill: Pill,
    created: String,
    ended: String,
    matched: u64,
    done: u64,
    refused: u64,
    failed: u64,
    turns: u64,
    refusals: Vec<(String, u64)>,
    is_running: bool,
    is_paused: bool,
}

struct Row {
    short: String,
    path: String,
    id: String,
    outcome: String,
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
    started: String,
    error: String,
    /// What would change in its data.
    changes: Vec<String>,
}

struct Misfit {
    count: u64,
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
fn deed(operation: &str) -> &'static str {
    match operation {
        "cancel" => "Cancel",
        "retry" => "Try again",
        "skip" => "Skip the step that failed",
        "rerun" => "Go back to a state",
        "suspend" => "Suspend",
        "resume" => "Resume",
        "migrate" => "Move to another version",
        "remove" => "Remove",
        _ => "?",
    }
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_default()
}

fn batch(row: &Value) -> Batch {
    let id = text(row, "id");
    let (done, refused, failed) = (
        number(row, "done"),
        number(row, "refused"),
        number(row, "failed"),
    );
    let refusals = row["refusals"].as_object().into_iter().flatten();
    let refusals = refusals.map(|(code, count)| (code.clone(), count.as_u64().unwrap_or_default()));
    let mut option = match row.get("result") {
        Some(result) => format!("with the result {result}"),
        None if row["state"].is_string() => format!("“{}”", text(row, "state")),
        None if row["version"].is_string() => text(row, "version"),
        None => String::new(),
    };
    if row["patch"].is_string() {
        option = format!("{option} with {}", text(row, "patch"));
    }
    Batch {
        short: short(&id),
        path: segment(&id),
        id,
        deed: deed(&text(row, "operation")),
        option,
        query: text(row, "query"),
        reason: text(row, "reason"),
        by: text(row, "by"),
        rate: number(row, "rate"),
        pill: batch_status(row),
        created: text(row, "createdAt"),
        ended: text(row, "endedAt"),
        matched: number(row, "matched"),
        done,
        refused,
        failed,
        turns: done + refused + failed,
        refusals: refusals.collect(),
        is_running: row["status"] == "running",
        is_paused: row["status"] == "paused",
    }
}

#[derive(Deserialize, Default)]
pub struct Listed {
    #[serde(default)]
    after: String,
}

pub async fn index(visitor: Visitor, Query(asked): Query<Listed>) -> Answer {
    let shell = Shell::new(&visitor, "batches", "Batches").await?;
    let mut query = vec![("limit", PAGE)];
    if !asked.after.is_empty() {
        query.push(("after", &asked.after));
    }
    let found = visitor.asking.get(&["batches"], &query).await?;
    let next = found["next"].as_str().map(|next| {
        let mut query = Serializer::new(String::new());
        format!(
            "/console/batches?{}",
            query.append_pair("after", next).finish()
        )
    });
    page(&Index {
        shell: shell.with_news(),
        rows: list(&found, "batches").iter().map(batch).collect(),
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
    let mut found = asking.get(&["batches", &id], &[]).await?;
    // This reads each of its instances, which is too much for a page that reloads itself every few seconds.
    if found["endedAt"].is_string() {
        let query = [("afterwards", "true")];
        found = asking.get(&["batches", &id], &query).await?;
    }
    let mut query = vec![("limit", PAGE)];
    for (name, value) in [("outcome", &look.outcome), ("after", &look.after)] {
        if !value.is_empty() {
            query.push((name, value));
        }
    }
    let results = asking.get(&["batches", &id, "results"], &query).await?;
    let next = results["next"].as_str().map(|next| {
        let mut query = Serializer::new(String::new());
        query.append_pair("outcome", &look.outcome);
        query.append_pair("after", next);
        format!("/console/batches/{}?{}", segment(&id), query.finish())
    });
    let afterwards = &found["afterwards"];
    let pending = number(afterwards, "pending");
    let now = became(afterwards);
    let batch = batch(&found);
    let shell = shell.with_done(done.done.as_deref());
    page(&Page {
        shell: match look.after.is_empty() && (batch.ended.is_empty() || pending > 0) {
            true => shell.with_news(),
            false => shell,
        },
        batch,
        pending,
        now: now.into_iter().filter(|(_, count)| *count > 0).collect(),
        now_complete: afterwards["complete"] == true,
        outcome: look.outcome,
        rows: list(&results, "results").iter().map(row).collect(),
        next: next.unwrap_or_default(),
    })
}

/// What has become of the instances that were acted on.
fn became(afterwards: &Value) -> [(&'static str, u64); 8] {
    let count = |name: &str| number(afterwards, name);
    let (waiting, again) = (count("waiting"), count("failedAgain"));
    [
        ("completed", count("completed")),
        ("running", count("running").saturating_sub(waiting)),
        ("waiting", waiting),
        ("failed again", again),
        ("faulted", count("faulted").saturating_sub(again)),
        ("cancelled", count("cancelled")),
        ("terminated", count("terminated")),
        ("removed", count("gone")),
    ]
}

fn row(row: &Value) -> Row {
    let id = text(row, "instance");
    let (code, detail) = (text(row, "code"), text(row, "detail"));
    Row {
        short: short(&id),
        path: segment(&id),
        id,
        outcome: text(row, "outcome"),
        pill: row["status"].is_string().then(|| status(row)),
        reason: match code.is_empty() {
            true => detail,
            false => format!("{detail} ({code})"),
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
    let body = asked.body(!creates)?.to_string();
    let key = form.get("key").to_owned();
    let mut headers = vec![("content-type", "application/json")];
    if !key.is_empty() {
        headers.push(("idempotency-key", key.as_str()));
    }
    let found = visitor
        .asking
        .post(&["batches"], &[], &headers, &body)
        .await?;
    if creates {
        let id = segment(&text(&found, "id"));
        return go_to(&format!("/console/batches/{id}?done=batch"));
    }
    page(&Trial {
        shell: Shell::new(&visitor, "batches", "Act on all that match").await?,
        deed: deed(&asked.operation),
        asked,
        matched: number(&found, "matched"),
        fit: number(&found, "fit"),
        unchecked: match found["checked"].as_u64() {
            Some(checked) => number(&found, "matched").saturating_sub(checked),
            None => 0,
        },
        misfits: list(&found, "misfits").iter().map(misfit).collect(),
        sample: list(&found, "sample").iter().map(sample).collect(),
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
    fn body(&self, dry_run: bool) -> Result<Value, Failure> {
        let mut body = json!({"operation": self.operation, "query": self.query, "dryRun": dry_run});
        let bad = |what: String| Failure::new(StatusCode::BAD_REQUEST, what);
        if self.operation == "skip" {
            let given = if self.result.is_empty() {
                "null"
            } else {
                &self.result
            };
            let result: Value = serde_json::from_str(given)
                .map_err(|error| bad(format!("the result is not valid JSON: {error}")))?;
            body["result"] = result;
        }
        if self.operation == "rerun" {
            body["state"] = json!(self.state);
        }
        if !self.patch.is_empty() {
            body["patch"] = json!(self.patch);
        }
        if self.operation == "migrate" {
            body["version"] = json!(self.version);
        }
        if !self.reason.is_empty() {
            body["reason"] = json!(self.reason);
        }
        if !self.rate.is_empty() {
            let rate = self.rate.parse::<u32>();
            body["rate"] = json!(rate.map_err(|_| bad("the rate is not a number".to_owned()))?);
        }
        Ok(body)
    }
}

fn misfit(row: &Value) -> Misfit {
    Misfit {
        count: number(row, "count"),
        reason: text(row, "reason"),
        path: segment(&text(row, "instance")),
    }
}

fn sample(row: &Value) -> Sample {
    let id = text(row, "id");
    Sample {
        short: short(&id),
        path: segment(&id),
        id,
        workflow: text(row, "workflow"),
        version: text(row, "version"),
        pill: status(row),
        started: text(row, "startedAt"),
        error: match &row["error"] {
            Value::Null => String::new(),
            error => swirl_presentation::timeline::error(error),
        },
        changes: list(&row["data"], "changes").iter().map(change).collect(),
    }
}

fn change(row: &Value) -> String {
    let path = text(row, "path");
    match (row["before"].as_str(), row["after"].as_str()) {
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
    if !["pause", "resume", "stop"].contains(&action.as_str()) {
        return Err(Failure::not_found("unknown action"));
    }
    let path = ["batches", id.as_str(), action.as_str()];
    let query = form.reason();
    visitor.asking.post(&path, &query, &[], "").await?;
    let id = segment(&id);
    go_to(&format!("/console/batches/{id}?done=batch-{action}"))
}
