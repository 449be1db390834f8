//! JSON-RPC 2.0 over HTTP, for A2A and MCP: an answer is JSON or a stream of server-sent events.

use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use swirl_model::Data;
use url::Url;

use super::service::{Ask, Reply, Services};
use super::task_answer::{described, in_words_of};
use crate::auth::{Auth, beginning, redact};
use crate::event_stream::{MEDIA_TYPE, events};
use crate::http::Answer;
use crate::{CallError, CallErrorKind};

/// The number of bytes of an answer that an error shows.
const EXCERPT_BYTES_MAX: usize = 500;

pub(super) struct Peer<'a> {
    pub(super) services: &'a Services,
    pub(super) url: &'a Url,
    pub(super) headers: Vec<(String, String)>,
    pub(super) auth: Option<&'a Auth>,
    pub(super) secrets: &'a [String],
    /// The call's name in errors.
    pub(super) what: &'a str,
}

/// What a peer answered.
pub(super) struct Answered {
    /// All responses, in their order.
    pub(super) results: Vec<Value>,
    pub(super) headers: HeaderMap,
}

pub(super) fn request(id: &str, method: &str, params: Option<&Value>) -> Value {
    let mut message = json!({"jsonrpc": "2.0", "id": id, "method": method});
    if let Some(params) = params {
        message["params"] = params.clone();
    }
    message
}

impl Peer<'_> {
    /// Makes a request and waits for its response, or for all responses if the answer is a stream.
    ///
    /// # Errors
    /// There is no response, or it is an error.
    pub(super) async fn ask(
        &self,
        id: &str,
        method: &str,
        params: Option<&Value>,
    ) -> Result<Answered, CallError> {
        let message = request(id, method, params);
        let reply = self.send(Method::POST, Some(&message)).await?;
        let answer = &reply.answer;
        if !(200..300).contains(&answer.status) {
            return Err(self.refused(&reply));
        }
        let messages = messages(answer).map_err(|reason| self.wrong(&reason))?;
        let mut results = Vec::new();
        for message in messages {
            if let Some(error) = message.get("error") {
                return Err(failed(Some(error), self.what, &reply.secrets));
            }
            results.extend(message.get("result").cloned());
        }
        match results.is_empty() {
            true => Err(self.wrong("the answer has no JSON-RPC response")),
            false => Ok(Answered {
                results,
                headers: reply.answer.headers,
            }),
        }
    }

    /// Sends a notification, which has no response.
    pub(super) async fn notify(&self, method: &str) -> Result<(), CallError> {
        let message = json!({"jsonrpc": "2.0", "method": method});
        let reply = self.send(Method::POST, Some(&message)).await?;
        match reply.answer.status {
            200..300 => Ok(()),
            _ => Err(self.refused(&reply)),
        }
    }

    pub(super) async fn send(
        &self,
        method: Method,
        message: Option<&Value>,
    ) -> Result<Reply, CallError> {
        let body = message.map(|message| message.to_string().into_bytes());
        let own = self.headers.iter();
        let mut headers: Vec<(&str, &str)> = own
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let further = [
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
        ];
        for (name, value) in further {
            let mut given = headers.iter();
            if !given.any(|(known, _)| known.eq_ignore_ascii_case(name)) {
                headers.push((name, value));
            }
        }
        let ask = Ask {
            method,
            url: self.url,
            headers: &headers,
            body: body.as_deref(),
            follows: true,
            what: self.what,
            secrets: self.secrets,
        };
        self.services.ask(&ask, self.auth).await
    }

    /// A status other than 2xx.
    fn refused(&self, reply: &Reply) -> CallError {
        let answer = &reply.answer;
        if let Some(error) = answer.json().get("error").filter(|error| error.is_object()) {
            return failed(Some(error), self.what, &reply.secrets);
        }
        let text = answer.text().unwrap_or_default();
        let text = beginning(text.trim(), &reply.secrets, EXCERPT_BYTES_MAX);
        let message = format!("{}: status {}: {text}", self.what, answer.status);
        let mut error = CallError::new(CallErrorKind::Status(answer.status), message);
        error.retry_after = answer.retry_after();
        described(error, "runtime", answer.status)
    }

    pub(super) fn wrong(&self, reason: &str) -> CallError {
        let message = format!("{}: {reason}", self.what);
        described(
            CallError::new(CallErrorKind::Response, message),
            "runtime",
            500,
        )
    }
}

/// An error of JSON-RPC.
pub(super) fn failed(error: Option<&Value>, what: &str, secrets: &[String]) -> CallError {
    let part = |name: &str| error.and_then(|error| error.get(name));
    let text = part("message").and_then(Value::as_str).unwrap_or_default();
    let code = part("code").map_or_else(String::new, Value::to_string);
    let mut message = format!("{what}: error {code}: {text}");
    if let Some(data) = part("data").filter(|data| !data.is_null()) {
        let data = beginning(&data.to_string(), secrets, EXCERPT_BYTES_MAX);
        message.push_str(&format!(" ({data})"));
    }
    let mut error = CallError::new(CallErrorKind::Failed, redact(&message, secrets));
    error.given_code = Some(code.into());
    described(error, "runtime", 500)
}

/// A failure of such a call in the language's words: `runtime`, but for credentials and arguments.
pub(super) fn in_words(error: CallError) -> CallError {
    in_words_of(error, "runtime")
}

/// The messages of an answer that are responses.
fn messages(answer: &Answer) -> Result<Vec<Value>, String> {
    let text = answer.text()?;
    let is_stream = answer
        .header("content-type")
        .is_some_and(|media| media.trim_start().starts_with(MEDIA_TYPE));
    let all: Vec<Value> = match is_stream {
        true => events(&text)
            .filter_map(|event| event.data)
            .map(|data| serde_json::from_str(&data))
            .collect::<Result<_, _>>()
            .map_err(|error| format!("an event of the stream is not valid JSON: {error}"))?,
        false => {
            let whole = serde_json::from_str(&text);
            match whole.map_err(|error| format!("the answer is not valid JSON: {error}"))? {
                Value::Array(batch) => batch,
                one => vec![one],
            }
        }
    };
    Ok(all.into_iter().filter(is_response).collect())
}

/// Whether there is a response among complete events of a stream: servers need not close it.
pub(super) fn has_response(complete: &[u8]) -> bool {
    let text = String::from_utf8_lossy(complete);
    let mut all = events(&text).filter_map(|event| event.data);
    all.any(|data| is_response(&serde_json::from_str(&data).unwrap_or_default()))
}

fn is_response(message: &Value) -> bool {
    message.get("method").is_none()
        && (message.get("result").is_some() || message.get("error").is_some())
}

/// A result as data.
pub(super) fn data(value: &Value) -> Data {
    Data::from(value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_ends_a_stream() {
        let note = "data: {\"method\": \"notifications/progress\", \"params\": {}}\n\n";
        assert!(!has_response(note.as_bytes()));
        let end = format!("{note}data: {{\"id\": 1, \"result\": {{}}}}\n\n");
        assert!(has_response(end.as_bytes()));
    }
}
