//! `call: a2a` of DSL 1.0: JSON-RPC to an agent.
//!
//! The function's operation is the method, `#`, and the address of the agent's card. Without a card the arguments have the
//! agent's address (`server`). `parameters` are the method's, with expressions evaluated.

use async_trait::async_trait;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use swirl_model::Data;
use swirl_model::workflow::Function;
use swirl_ports::CallRequest;
use url::Url;

use super::json_rpc::{Peer, data, in_words};
use super::service::{IDEMPOTENCY_KEY, TRACEPARENT, in_time, service_url};
use super::{Clients, CompileResult, Compiled, CompiledFunction, Context, Documents, FunctionType};
use crate::CallError;
use crate::http::shown;

pub(crate) const TYPE: FunctionType = FunctionType {
    word: "a2a",
    document: |function| card(function),
    compile,
};

/// The methods whose answer is a stream.
const STREAMS: [&str; 2] = ["message/stream", "tasks/resubscribe"];
/// The methods that send a message.
const MESSAGES: [&str; 2] = ["message/send", "message/stream"];

/// The address of the agent's card.
fn card(function: &Function) -> Option<&str> {
    let (_, uri) = function.operation.split_once('#')?;
    Some(uri).filter(|uri| !uri.is_empty())
}

fn compile(functions: &[&Function], documents: &Documents<'_>) -> Vec<CompileResult> {
    let each = functions.iter().map(|function| {
        let method = function.operation.split('#').next().unwrap_or_default();
        let agent = match card(function) {
            None => None,
            Some(uri) => {
                let text = documents
                    .get(uri)
                    .ok_or_else(|| format!("`{uri}`: it isn't among the definition's resources"))?;
                let agent = agent(text).map_err(|reason| format!("`{uri}`: {reason}"))?;
                // Credentials are sent only to the host that they are for.
                let is_near = Url::parse(uri).is_ok_and(|card| card.origin() == agent.origin());
                Some((agent, is_near))
            }
        };
        Ok(Box::new(A2aCall {
            method: method.to_owned(),
            agent,
        }) as Compiled)
    });
    each.collect()
}

/// The address for JSON-RPC in an agent's card.
fn agent(card: &str) -> Result<Url, String> {
    let card: Value = serde_json::from_str(card)
        .map_err(|error| format!("the agent's card is not valid JSON: {error}"))?;
    let text = |value: &Value, names: &[&str]| {
        let mut names = names.iter();
        names.find_map(|name| Some(value.get(name)?.as_str()?.to_owned()))
    };
    let is_json =
        |kind: Option<String>| kind.is_none_or(|kind| kind.eq_ignore_ascii_case("jsonrpc"));
    let main = text(&card, &["url"]).filter(|_| is_json(text(&card, &["preferredTransport"])));
    let lists = ["additionalInterfaces", "supportedInterfaces"];
    let interfaces = lists.iter().filter_map(|name| card.get(name)?.as_array());
    let other = interfaces.flatten().find_map(|interface| {
        let kind = text(interface, &["transport", "protocolBinding"]);
        text(interface, &["url"]).filter(|_| is_json(kind))
    });
    let found = main
        .or(other)
        .ok_or("the agent's card names no address for JSON-RPC")?;
    service_url(&found, "the agent's address")
}

/// The parameters of a method as they are sent: a message has an id and a role. `key` is the call's.
pub fn parameters(method: &str, given: &Data, key: &str) -> Data {
    let mut parameters = Value::from(given);
    let method = method.split('#').next().unwrap_or_default();
    if MESSAGES.contains(&method)
        && let Some(message) = parameters.get_mut("message").and_then(Value::as_object_mut)
    {
        let missing = |value: Option<&Value>| value.is_none_or(Value::is_null);
        if missing(message.get("messageId")) {
            message.insert("messageId".to_owned(), json!(uuid(key)));
        }
        if missing(message.get("role")) {
            message.insert("role".to_owned(), json!("user"));
        }
    }
    Data::from(parameters)
}

/// A UUID that a repeated call has, too.
fn uuid(key: &str) -> String {
    let hash = digest(&SHA256, key.as_bytes());
    let mut bytes = [0u8; 16];
    bytes.copy_from_slice(&hash.as_ref()[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    parts.join("-")
}

struct A2aCall {
    method: String,
    /// From its card, and whether it is where its card is.
    agent: Option<(Url, bool)>,
}

#[async_trait]
impl CompiledFunction for A2aCall {
    async fn call(
        &self,
        clients: &Clients,
        request: &CallRequest,
        context: &Context<'_>,
    ) -> Result<Data, CallError> {
        let refuse = |reason: String| in_words(CallError::arguments(reason));
        let (url, auth) = match &self.agent {
            Some((url, is_near)) => (url.clone(), context.auth.filter(|_| *is_near)),
            None => {
                let server = request.arguments.get("server");
                let server = server.map(|server| server.to_text()).unwrap_or_default();
                let url = service_url(&server, "the server").map_err(refuse)?;
                (url, context.auth)
            }
        };
        let what = format!("A2A {} at {}", self.method, shown(&url));
        let mut headers = vec![(IDEMPOTENCY_KEY.to_owned(), request.key.clone())];
        if let Some(trace) = request.trace {
            headers.push((TRACEPARENT.to_owned(), trace.to_string()));
        }
        let peer = Peer {
            services: &clients.services,
            url: &url,
            headers,
            auth,
            secrets: request.secrets.expose(),
            what: &what,
        };
        let given = request.arguments.get("parameters").unwrap_or_default();
        let sent = Value::from(&parameters(&self.method, &given, &request.key));
        let sent = Some(&sent).filter(|sent| !sent.is_null());
        let asked = peer.ask(&request.key, &self.method, sent);
        let done = in_time(context.timeout, &what, asked)
            .await
            .map_err(in_words)?;
        match STREAMS.contains(&self.method.as_str()) {
            true => Ok(Data::array(
                done.results.iter().map(data).collect::<Vec<_>>(),
            )),
            false => Ok(done.results.last().map(data).unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use swirl_model::data;

    use super::*;

    #[test]
    fn a_message_gets_an_id_and_a_role() {
        let given = data!({"message": {"parts": []}});
        let sent = parameters("message/send", &given, "k");
        let message = sent.get("message").unwrap();
        assert_eq!(message.get("role"), Some(data!("user")));
        let id = message.get("messageId").unwrap().to_text();
        assert_eq!(id.len(), 36, "{id}");
        assert_eq!(sent, parameters("message/send", &given, "k"));
        assert_eq!(parameters("tasks/get", &given, "k"), given);
    }

    #[test]
    fn the_card_names_the_address() {
        for (card, expected) in [
            (r#"{"url": "https://a/rpc"}"#, Ok("https://a/rpc")),
            (
                r#"{"url": "https://a/grpc", "preferredTransport": "GRPC", "additionalInterfaces": [{"url": "https://a/rpc", "transport": "JSONRPC"}]}"#,
                Ok("https://a/rpc"),
            ),
            (
                r#"{"supportedInterfaces": [{"url": "https://a/v1", "protocolBinding": "JSONRPC"}]}"#,
                Ok("https://a/v1"),
            ),
            (r#"{"name": "x"}"#, Err("names no address")),
            ("[", Err("not valid JSON")),
        ] {
            match (agent(card), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found.as_str(), expected),
                (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
                (found, _) => panic!("{card}: {found:?}"),
            }
        }
    }
}
