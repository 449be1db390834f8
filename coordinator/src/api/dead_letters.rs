//! `/dead-letters`: lists, shows, resends and drops messages that could not be processed.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use swirl_model::ids::{InstanceId, ScopeId, ScopeRef};
use swirl_service::{Action, Audited, Operator};

use super::Api;
use super::audit::audited;
use super::letters::{DeadLetter, DeadLetters};
use super::operate::Asker;
use super::problem::{Problem, cut};
use super::request::Parameters;

const LIMIT: usize = 50;
const LIMIT_MAX: usize = 500;

/// The kind of dead letters that are tasks: `["instance","scope"]`.
const TASK: &str = "task";

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
    let (letters, has_more) = match &api.dead_letters {
        Some(kept) => kept.list(from, limit).await?,
        None => (Vec::new(), false),
    };
    let last = letters.last().map(|letter| letter.sequence);
    let next = last.filter(|_| has_more);
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

/// Sends the message again and drops the dead letter. If it is a task, its instance was suspended and now continues.
pub async fn retry(
    State(api): State<Api>,
    Path(sequence): Path<String>,
    Asker(operator): Asker,
) -> Result<Response, Problem> {
    let (kept, letter) = find(&api, &sequence).await?;
    if letter.is_cut {
        let detail = "the event was too large to be kept, so its data is no longer available";
        return Err(Problem::conflict("letter-cut", detail));
    }
    match task(&letter) {
        Some(scope) => retry_task(&api, scope).await?,
        None => kept.send_again(letter.sequence).await?,
    }
    let entry = entry("dead-letter-retry", &letter, &operator);
    // It was sent, even if it cannot be dropped now.
    let dropped = kept.remove(letter.sequence).await;
    let body = json!({"sequence": letter.sequence, "accepted": "retry"});
    let answer = (StatusCode::ACCEPTED, Json(body));
    let answer = dropped.map(|_| answer).map_err(Problem::from);
    Ok(audited(answer.into_response(), entry))
}

pub async fn remove(
    State(api): State<Api>,
    Path(sequence): Path<String>,
    Asker(operator): Asker,
) -> Result<Response, Problem> {
    let (kept, letter) = find(&api, &sequence).await?;
    kept.remove(letter.sequence).await?;
    let entry = entry("dead-letter-drop", &letter, &operator);
    Ok(audited(Json(summary(&letter)).into_response(), entry))
}

/// The entry in the audit log.
fn entry(action: &'static str, letter: &DeadLetter, operator: &Operator) -> Audited {
    let entry = Audited::new(action, "dead-letter", letter.sequence.to_string())
        .because(operator.reason.as_deref())
        .with("letter", &letter.reason);
    match task(letter) {
        Some(scope) => entry.with("instance", scope.instance),
        None => entry.with("subject", &letter.subject),
    }
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

async fn retry_task(api: &Api, scope: ScopeRef) -> Result<(), Problem> {
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
