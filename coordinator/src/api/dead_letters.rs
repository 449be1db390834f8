//! `/dead-letters`: lists, shows, resends and drops messages that could not be used.

use std::sync::Arc;

use async_trait::async_trait;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use swirl_model::ids::{InstanceId, ScopeId, ScopeRef};
use swirl_model::time::Timestamp;
use swirl_service::Action;

use super::Api;
use super::problem::{Problem, cut};
use super::request::Parameters;

const LIMIT: usize = 50;
const LIMIT_MAX: usize = 500;

/// The kind of letters that are tasks: `["instance","scope"]`.
const TASK: &str = "task";

/// An original message, and the reason why it could not be used.
#[derive(Debug, Clone)]
pub struct DeadLetter {
    pub sequence: u64,
    pub at: Timestamp,
    /// `event` or `task`.
    pub kind: String,
    /// The subject that the message was sent to.
    pub subject: String,
    pub reason: String,
    pub headers: Vec<(String, String)>,
    pub payload: Vec<u8>,
    /// Its data was left out: it cannot be sent again.
    pub is_cut: bool,
}

/// The store of dead letters.
#[async_trait]
pub trait DeadLetters: Send + Sync {
    /// From this sequence number on, oldest first.
    async fn list(&self, from: u64, limit: usize) -> swirl_ports::Result<Vec<DeadLetter>>;
    async fn get(&self, sequence: u64) -> swirl_ports::Result<Option<DeadLetter>>;
    /// Sends it to its original subject. It stays a dead letter.
    async fn send_again(&self, sequence: u64) -> swirl_ports::Result<()>;
    /// False if there is no such letter.
    async fn remove(&self, sequence: u64) -> swirl_ports::Result<bool>;
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    after: Option<u64>,
    limit: Option<usize>,
}

pub async fn list(
    State(api): State<Api>,
    Parameters(query): Parameters<Query>,
) -> Result<Response, Problem> {
    let limit = query.limit.unwrap_or(LIMIT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        let detail = format!("'limit' is from 1 to {LIMIT_MAX}");
        return Err(Problem::bad_request("invalid-query", detail));
    }
    let from = query.after.unwrap_or(0).saturating_add(1);
    let letters = match &api.dead_letters {
        Some(kept) => kept.list(from, limit).await?,
        None => Vec::new(),
    };
    let last = letters.last().map(|letter| letter.sequence);
    let next = last.filter(|_| letters.len() == limit);
    let letters: Vec<Value> = letters.iter().map(summary).collect();
    Ok(Json(json!({"deadLetters": letters, "next": next})).into_response())
}

pub async fn one(
    State(api): State<Api>,
    Path(sequence): Path<String>,
) -> Result<Response, Problem> {
    let (_, letter) = find(&api, &sequence).await?;
    let mut shown = summary(&letter);
    let headers = letter.headers.iter();
    shown["headers"] = headers
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    shown["payload"] = String::from_utf8_lossy(&letter.payload).into();
    Ok(Json(shown).into_response())
}

/// Sends the message again, and drops the letter. A task's instance, which was suspended for it, continues.
pub async fn retry(
    State(api): State<Api>,
    Path(sequence): Path<String>,
) -> Result<Response, Problem> {
    let (kept, letter) = find(&api, &sequence).await?;
    if letter.is_cut {
        let detail = "the event was too large to be kept: its data is not here any more";
        return Err(Problem::conflict("letter-cut", detail));
    }
    match task(&letter) {
        Some(scope) => go_on(&api, scope).await?,
        None => kept.send_again(letter.sequence).await?,
    }
    kept.remove(letter.sequence).await?;
    let body = json!({"sequence": letter.sequence, "accepted": "retry"});
    Ok((StatusCode::ACCEPTED, Json(body)).into_response())
}

pub async fn remove(
    State(api): State<Api>,
    Path(sequence): Path<String>,
) -> Result<Response, Problem> {
    let (kept, letter) = find(&api, &sequence).await?;
    kept.remove(letter.sequence).await?;
    Ok(Json(summary(&letter)).into_response())
}

async fn find<'a>(
    api: &'a Api,
    sequence: &str,
) -> Result<(&'a Arc<dyn DeadLetters>, DeadLetter), Problem> {
    let missing = || {
        let detail = format!("there is no dead letter '{}'", cut(sequence));
        Problem::not_found("unknown-dead-letter", detail)
    };
    let kept = api.dead_letters.as_ref().ok_or_else(missing)?;
    let number = sequence.parse().ok().filter(|number| *number > 0);
    let number: u64 = number.ok_or_else(missing)?;
    let letter = kept.get(number).await?.ok_or_else(missing)?;
    Ok((kept, letter))
}

async fn go_on(api: &Api, scope: ScopeRef) -> Result<(), Problem> {
    let found = api.queries.instance(&scope.instance).await?;
    let Some(instance) = found else {
        return Err(Problem::no_instance(scope.instance.as_str()));
    };
    if instance.state.suspended && !instance.state.status.ended() {
        api.service.operate(&scope.instance, Action::Resume).await?;
    }
    api.service.queue.push(vec![scope]).await;
    Ok(())
}

fn task(letter: &DeadLetter) -> Option<ScopeRef> {
    let pair: Option<[String; 2]> = serde_json::from_slice(&letter.payload).ok();
    let [instance, scope] = pair.filter(|_| letter.kind == TASK)?;
    Some(ScopeRef {
        instance: InstanceId::new(instance),
        scope: ScopeId::new(scope),
    })
}

fn summary(letter: &DeadLetter) -> Value {
    let mut shown = json!({
        "sequence": letter.sequence,
        "at": letter.at.to_string(),
        "kind": letter.kind,
        "subject": letter.subject,
        "reason": letter.reason,
        "size": letter.payload.len(),
    });
    if letter.is_cut {
        shown["cut"] = true.into();
    }
    match task(letter) {
        Some(scope) => shown["instance"] = scope.instance.as_str().into(),
        None => {
            let event: Option<Value> = serde_json::from_slice(&letter.payload).ok();
            for name in ["id", "source", "type"] {
                if let Some(text) = event.as_ref().and_then(|event| event[name].as_str()) {
                    shown["event"][name] = text.into();
                }
            }
        }
    }
    shown
}
