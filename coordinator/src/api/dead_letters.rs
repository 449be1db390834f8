//! `/dead-letters`: lists, shows, resends and drops messages that could not be processed.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use swirl_api::dead_letters::{
    self, Correction, DeadLetters as Listed, EventName, Header, Letter, ListQuery, Retried,
};
use swirl_api::{Nothing, Reason};
use swirl_model::ids::{InstanceId, ScopeId, ScopeRef};
use swirl_service::{Action, Audited, Operator, read_message};

use super::letters::{DeadLetter, DeadLetters};
use super::problem::{Problem, cut};
use super::serve::{Asked, Done};
use super::{Api, paging};

const LIMIT: usize = 50;
const LIMIT_MAX: usize = 500;

/// The largest message, in bytes.
const PAYLOAD_BYTES_MAX: usize = 1 << 20;

/// The kind of dead letters that are tasks: `["instance","scope"]`.
const TASK: &str = "task";

pub async fn list(
    api: Api,
    Asked { query, .. }: Asked<Nothing, ListQuery, Nothing>,
) -> Result<Listed, Problem> {
    let limit = paging::number("limit", query.limit, LIMIT, LIMIT_MAX)?;
    let from = query.after.unwrap_or(0).saturating_add(1);
    let (letters, has_more) = match &api.dead_letters {
        Some(kept) => kept.list(from, limit, summary).await?,
        None => (Vec::new(), false),
    };
    let last = letters.last().map(|letter| letter.sequence);
    Ok(Listed {
        dead_letters: letters,
        next: last.filter(|_| has_more),
    })
}

pub async fn one(
    api: Api,
    asked: Asked<Letter, Nothing, Nothing>,
) -> Result<dead_letters::DeadLetter, Problem> {
    let (_, letter) = find(&api, &asked.path).await?;
    let headers = letter.headers.iter().cloned();
    let headers = headers.map(|(name, value)| Header { name, value });
    Ok(dead_letters::DeadLetter {
        headers: Some(headers.collect()),
        payload: Some(String::from_utf8_lossy(&letter.payload).into_owned()),
        ..summary(&letter)
    })
}

/// Sends the message again and drops the dead letter. If it is a task, its instance was suspended and now continues.
pub async fn retry(
    api: Api,
    asked: Asked<Letter, Reason, Option<Correction>>,
) -> Result<Done<Retried>, Problem> {
    let operator = asked.operator()?;
    let (kept, letter) = find(&api, &asked.path).await?;
    let correction = asked.body.map(|correction| correction.payload);
    if letter.is_cut && correction.is_none() {
        let detail = "the event was too large to be kept, so its data is no longer available";
        return Err(Problem::conflict("letter-cut", detail));
    }
    let sequence = letter.sequence;
    let is_corrected = correction.is_some();
    if letter.kind == TASK && is_corrected {
        let detail =
            "this message is a task, which has no content to correct: correct its instance instead";
        return Err(Problem::conflict("letter-of-task", detail));
    }
    match (task(&letter), correction) {
        (Some(scope), _) => retry_task(&api, scope).await?,
        (None, Some(payload)) => {
            let corrected = corrected(letter.clone(), payload)?;
            kept.send_again(corrected).await?;
        }
        (None, None) => kept.send_again(letter.clone()).await?,
    }
    // It was sent, even if it cannot be dropped now.
    let answer = kept.remove(sequence).await.map(|_| Retried {
        sequence,
        accepted: "retry".to_owned(),
    });
    let mut entry = entry(&letter, &operator);
    if is_corrected {
        entry = entry.with("corrected", "yes");
    }
    Ok(Done::new(answer.map_err(Problem::from)).audited(entry))
}

/// The letter with another payload, which is UTF-8 and not encoded. Refuses one that would be a dead letter at once.
fn corrected(mut letter: DeadLetter, payload: String) -> Result<DeadLetter, Problem> {
    let wrong = |detail: String| Problem::bad_request("invalid-event", detail);
    if payload.len() > PAYLOAD_BYTES_MAX {
        let detail = format!("the message is larger than {PAYLOAD_BYTES_MAX} bytes");
        return Err(wrong(detail));
    }
    let is_coding = |name: &str| name.eq_ignore_ascii_case("content-encoding");
    letter.headers.retain(|(name, _)| !is_coding(name));
    for (name, value) in &mut letter.headers {
        if name.eq_ignore_ascii_case("content-type") {
            *value = without_charset(value);
        }
    }
    letter.payload = payload.into_bytes();
    let headers = letter.headers.iter();
    let headers = headers.map(|(name, value)| (name.as_str(), value.as_str()));
    read_message(headers, &letter.payload).map_err(|error| wrong(error.to_string()))?;
    Ok(letter)
}

/// A content type without its charset, for a payload that is UTF-8 now. Other parameters stay.
fn without_charset(content_type: &str) -> String {
    let is_charset = |part: &&str| {
        let name = part.split('=').next().unwrap_or_default();
        name.trim().eq_ignore_ascii_case("charset")
    };
    let parts: Vec<&str> = content_type
        .split(';')
        .filter(|part| !is_charset(part))
        .collect();
    parts.join(";")
}

pub async fn remove(
    api: Api,
    asked: Asked<Letter, Reason, Nothing>,
) -> Result<Done<dead_letters::DeadLetter>, Problem> {
    let operator = asked.operator()?;
    let (kept, letter) = find(&api, &asked.path).await?;
    kept.remove(letter.sequence).await?;
    let entry = entry(&letter, &operator);
    Ok(Done::from(summary(&letter)).audited(entry))
}

/// The entry in the audit log.
fn entry(letter: &DeadLetter, operator: &Operator) -> Audited {
    let entry = Audited::of(letter.sequence)
        .because(operator.reason.as_deref())
        .with("letter", &letter.reason);
    match task(letter) {
        Some(scope) => entry.with("instance", scope.instance),
        None => entry.with("subject", &letter.subject),
    }
}

async fn find<'a>(
    api: &'a Api,
    Letter { sequence }: &Letter,
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

/// The attributes that name an event; its data is not read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Names {
    id: Option<Value>,
    source: Option<Value>,
    #[serde(rename = "type")]
    kind: Option<Value>,
}

fn summary(letter: &DeadLetter) -> dead_letters::DeadLetter {
    let instance = task(letter).map(|scope| scope.instance.to_string());
    let names = match instance {
        Some(_) => Names::default(),
        None => serde_json::from_slice(&letter.payload).unwrap_or_default(),
    };
    let text = |value: Option<Value>| value?.as_str().map(str::to_owned);
    let event = EventName {
        id: text(names.id),
        source: text(names.source),
        kind: text(names.kind),
    };
    dead_letters::DeadLetter {
        sequence: letter.sequence,
        at: letter.at.into(),
        kind: letter.kind.as_str().into(),
        subject: letter.subject.clone(),
        reason: letter.reason.clone(),
        size: letter.payload.len(),
        cut: letter.is_cut,
        instance,
        event: (event != EventName::default()).then_some(event),
        headers: None,
        payload: None,
    }
}

#[cfg(test)]
mod tests {
    use super::without_charset;

    #[test]
    fn a_correction_keeps_the_parameters_of_the_content_type_but_the_charset() {
        let kept = [
            ("application/json", "application/json"),
            ("text/plain; charset=latin1", "text/plain"),
            (
                "application/json; Charset=\"utf-16\"; profile=a",
                "application/json; profile=a",
            ),
        ];
        for (before, after) in kept {
            assert_eq!(without_charset(before), after);
        }
    }
}
