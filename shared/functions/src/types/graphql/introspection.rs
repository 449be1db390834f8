//! The types of a field's arguments: stated by the definition, or requested from the service and cached.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use url::Url;

use super::query::OperationKind;
use crate::auth::Auth;
use crate::http::shown;
use crate::types::service::{Ask, Services};
use crate::{CallError, CallErrorKind};

/// How long a response is cached.
const LIFE: Duration = Duration::from_secs(300);

/// The shortest time between two requests.
const AGAIN_AFTER: Duration = Duration::from_secs(10);

/// The requested depth of types: `[[T!]!]!` and one more level.
const WRAPPINGS: usize = 7;

type ArgumentTypes = Arc<HashMap<String, String>>;

/// The types of one field's arguments, as GraphQL writes them. Arguments without an entry are unknown.
#[derive(Debug)]
pub(super) struct Types {
    given: Option<ArgumentTypes>,
    /// Concurrent callers wait for one response.
    asked: Mutex<Option<(ArgumentTypes, Instant)>>,
}

/// An introspection query: its endpoint, field and credentials.
pub(super) struct Question<'a> {
    pub(super) services: &'a Services,
    pub(super) endpoint: &'a Url,
    pub(super) kind: OperationKind,
    pub(super) field: &'a str,
    pub(super) auth: Option<&'a Auth>,
}

impl Types {
    pub(super) fn given(types: HashMap<String, String>) -> Types {
        Types {
            given: Some(Arc::new(types)),
            asked: Mutex::default(),
        }
    }

    pub(super) fn unknown() -> Types {
        Types {
            given: None,
            asked: Mutex::default(),
        }
    }

    /// The types that the definition states.
    pub(super) fn types_known(&self) -> Option<&HashMap<String, String>> {
        self.given.as_deref()
    }

    /// # Errors
    /// The service cannot be reached, or asks to retry later. It isn't an error if the service doesn't reveal its
    /// schema.
    pub(super) async fn get(&self, question: &Question<'_>) -> Result<ArgumentTypes, CallError> {
        if let Some(given) = &self.given {
            return Ok(given.clone());
        }
        let mut asked = self.asked.lock().await;
        if let Some((known, at)) = asked.as_ref()
            && at.elapsed() < LIFE
        {
            return Ok(known.clone());
        }
        *asked = None;
        Ok(match question.ask().await? {
            Introspected::Types(types) => {
                let known = Arc::new(types);
                *asked = Some((known.clone(), Instant::now()));
                known
            }
            Introspected::Unauthorised => ArgumentTypes::default(),
        })
    }

    /// The next call requests the types again, unless the response is very recent.
    pub(super) async fn forget(&self) {
        let mut asked = self.asked.lock().await;
        if asked
            .as_ref()
            .is_some_and(|(_, at)| at.elapsed() >= AGAIN_AFTER)
        {
            *asked = None;
        }
    }
}

enum Introspected {
    Types(HashMap<String, String>),
    /// These credentials are insufficient, but others may be accepted.
    Unauthorised,
}

impl Question<'_> {
    async fn ask(&self) -> Result<Introspected, CallError> {
        let what = format!("POST {}: introspection", shown(self.endpoint));
        let body = json!({"query": document(self.kind)}).to_string();
        let ask = Ask {
            method: Method::POST,
            url: self.endpoint,
            headers: &[
                ("accept", "application/json"),
                ("content-type", "application/json"),
            ],
            body: Some(body.as_bytes()),
            follows: true,
            what: &what,
            // No part of the answer is shown.
            secrets: &[],
        };
        let answer = match self.services.ask(&ask, self.auth).await {
            Ok(reply) => reply.answer,
            // A schema that is too large to be read counts as one that isn't revealed.
            Err(error) if error.kind == CallErrorKind::Limit => {
                return Ok(Introspected::Types(HashMap::new()));
            }
            Err(error) => return Err(error),
        };
        let error = CallError::new(
            CallErrorKind::Status(answer.status),
            format!("{what}: {}", answer.status),
        );
        match answer.status {
            401 | 403 => Ok(Introspected::Unauthorised),
            _ if error.can_retry => Err(error),
            _ => Ok(Introspected::Types(types(&answer.json(), self.field))),
        }
    }
}

fn document(kind: OperationKind) -> String {
    let mut of = "kind name".to_owned();
    for _ in 0..WRAPPINGS {
        of = format!("kind name ofType {{ {of} }}");
    }
    let root = root(kind);
    format!("{{ __schema {{ {root} {{ fields {{ name args {{ name type {{ {of} }} }} }} }} }} }}")
}

fn root(kind: OperationKind) -> &'static str {
    match kind {
        OperationKind::Query => "queryType",
        OperationKind::Mutation => "mutationType",
    }
}

/// Empty if the service doesn't reveal its schema.
fn types(answer: &Value, field: &str) -> HashMap<String, String> {
    let schema = answer.pointer("/data/__schema").unwrap_or(&Value::Null);
    let roots = ["queryType", "mutationType"];
    let mut fields = roots
        .iter()
        .filter_map(|root| schema.get(root)?.get("fields")?.as_array())
        .flatten();
    let found = fields.find(|found| found["name"] == field);
    let arguments = found.and_then(|found| found.get("args")?.as_array());
    let typed = |argument: &Value| {
        let name = argument.get("name")?.as_str()?.to_owned();
        Some((name, written(argument.get("type")?)?))
    };
    arguments
        .into_iter()
        .flatten()
        .filter_map(typed)
        .filter(|(_, of)| swirl_spec::graphql::is_type(of))
        .collect()
}

/// A type as GraphQL writes it, or `None` if it is nested deeper than requested.
pub(super) fn written(of: &Value) -> Option<String> {
    let inner = || written(of.get("ofType")?);
    match of.get("kind")?.as_str()? {
        "NON_NULL" => Some(format!("{}!", inner()?)),
        "LIST" => Some(format!("[{}]", inner()?)),
        _ => of.get("name")?.as_str().map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_written_as_graphql_does() {
        let named = json!({"kind": "INPUT_OBJECT", "name": "PetInput", "ofType": null});
        let some = json!({"kind": "NON_NULL", "name": null, "ofType": named});
        let list = json!({"kind": "LIST", "name": null, "ofType": some});
        let deep = json!({"kind": "LIST", "ofType": {"kind": "LIST", "ofType": {"kind": "LIST"}}});
        let answer = json!({"data": {"__schema": {"queryType": {"fields": [
            {"name": "other", "args": [{"name": "id", "type": named}]},
            {"name": "pets", "args": [
                {"name": "one", "type": some},
                {"name": "all", "type": {"kind": "NON_NULL", "ofType": list}},
                {"name": "deep", "type": deep},
            ]},
        ]}}}});
        let found = types(&answer, "pets");
        let expected = [("one", "PetInput!"), ("all", "[PetInput!]!")];
        assert_eq!(
            found,
            expected
                .map(|(name, of)| (name.to_owned(), of.to_owned()))
                .into()
        );
        for useless in [Value::Null, json!({"data": null, "errors": []}), json!([])] {
            assert_eq!(types(&useless, "pets"), HashMap::new());
        }
    }
}
