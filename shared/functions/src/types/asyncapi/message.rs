//! A message: its schemas, compiled at deployment, and its bytes in a call.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::utf8_percent_encode;
use serde_json::{Map, Value, json};
use swirl_expr::{JsonSchema, Limits, SchemaError};
use swirl_model::Data;

use super::bundle::POINTER;
use super::came::Came;
use super::document::Document;
use crate::types::rest::media::body_kind;
use crate::types::rest::{BodyKind, Node};
use crate::{CallError, CallErrorKind};

#[derive(Debug)]
pub(super) struct Message {
    pub(super) name: String,
    pub(super) content_type: String,
    kind: BodyKind,
    payload: Option<JsonSchema>,
    headers: Option<JsonSchema>,
    /// The names of the payload's properties, as far as its schema defines them.
    properties: Vec<String>,
    /// Whether its Kafka binding declares a key.
    pub(super) has_key: bool,
    /// The schema's JSON pointer in the document.
    pub(super) payload_at: Option<String>,
    /// Where its correlation id is.
    correlation: Option<Location>,
}

/// A runtime expression of AsyncAPI: a JSON pointer in the headers or the payload.
#[derive(Debug)]
struct Location {
    in_headers: bool,
    pointer: String,
}

impl Location {
    fn parse(text: &str) -> Option<Location> {
        let (part, pointer) = text.strip_prefix("$message.")?.split_once('#')?;
        let in_headers = match part {
            "header" => true,
            "payload" => false,
            _ => return None,
        };
        Some(Location {
            in_headers,
            pointer: pointer.to_owned(),
        })
    }
}

/// The payload of a received message as the first of these that it fits, and that message.
///
/// # Errors
/// It fits none.
pub(super) fn first_fitting<'m>(
    messages: &'m [Message],
    came: &Came,
    what: &str,
) -> Result<(Data, &'m Message), CallError> {
    let mut refused = None;
    for message in messages {
        match message.decode(&came.payload) {
            Ok(data) => return Ok((data, message)),
            Err(reason) => refused = refused.or(Some(reason)),
        }
    }
    let reason = refused.unwrap_or_default();
    let message = match messages.len() {
        1 => format!("{what}: {reason}"),
        many => format!("{what}: it fits none of the {many} messages; the first: {reason}"),
    };
    Err(CallError::new(CallErrorKind::Response, message))
}

impl Message {
    /// Any message, for a document that doesn't describe its messages.
    pub(super) fn any(document: &Document) -> Result<Message, String> {
        let content_type = default_content_type(document);
        Ok(Message {
            name: "message".to_owned(),
            kind: kind(&content_type, "#/defaultContentType")?,
            content_type,
            payload: None,
            headers: None,
            properties: Vec::new(),
            has_key: false,
            payload_at: None,
            correlation: None,
        })
    }

    pub(super) fn compile(
        document: &Document,
        name: &str,
        node: &Node<'_>,
    ) -> Result<Message, String> {
        let content_type = document
            .trait_member(node, "contentType")?
            .and_then(|found| found.value.as_str().map(str::to_owned))
            .unwrap_or_else(|| default_content_type(document));
        let format = node.text("schemaFormat");
        let payload = schema(document, node, "payload", format)?;
        let headers = schema(document, node, "headers", None)?;
        let properties = match &payload {
            Some(found) => document.member(found, "properties")?,
            None => None,
        };
        let properties = properties.map(|all| all.members()).unwrap_or_default();
        let bindings = document.trait_member(node, "bindings")?;
        let kafka = match &bindings {
            Some(all) => document.member(all, "kafka")?,
            None => None,
        };
        let correlation = match document.trait_member(node, "correlationId")? {
            Some(found) => document
                .resolve(found)?
                .text("location")
                .and_then(Location::parse),
            None => None,
        };
        Ok(Message {
            correlation,
            has_key: kafka.is_some_and(|kafka| kafka.get("key").is_some()),
            name: node.text("name").unwrap_or(name).to_owned(),
            kind: kind(&content_type, &node.at)?,
            content_type,
            payload_at: payload
                .as_ref()
                .map(|found| found.at.trim_start_matches('#').to_owned()),
            payload: payload.map(|at| validator(document, &at)).transpose()?,
            headers: headers.map(|at| validator(document, &at)).transpose()?,
            properties: properties
                .into_iter()
                .map(|(name, _)| name.to_owned())
                .collect(),
        })
    }

    pub(super) fn has_property(&self, name: &str) -> bool {
        self.properties.iter().any(|known| known == name)
    }

    /// # Errors
    /// Payload or headers don't fit their schemas. The error doesn't show values.
    pub(super) fn check(&self, payload: &Value, headers: &Value) -> Result<(), String> {
        self.check_part("payload", self.payload.as_ref(), payload)?;
        self.check_part("headers", self.headers.as_ref(), headers)
    }

    fn check_part(
        &self,
        part: &str,
        validator: Option<&JsonSchema>,
        value: &Value,
    ) -> Result<(), String> {
        let Some(validator) = validator else {
            return Ok(());
        };
        let wrong = match validator.check_masked(value, &Limits::default()) {
            Ok(()) => return Ok(()),
            Err(SchemaError::Invalid { message, place }) => format!("{place}: {message}"),
            Err(error @ SchemaError::Limit(_)) => format!(": {error}"),
        };
        Err(format!(
            "the {part} doesn't fit the schema of the message `{}`: {part}{wrong}",
            self.name,
        ))
    }

    /// The correlation id of a received message, if it is where the document says.
    pub(super) fn correlation(&self, payload: &Data, headers: &Data) -> Option<Data> {
        let location = self.correlation.as_ref()?;
        let within = if location.in_headers {
            headers
        } else {
            payload
        };
        let within = Value::from(within);
        let found = within.pointer(&location.pointer)?;
        let found = Data::from(found.clone());
        (!found.is_null()).then(|| Data::string(found.to_text()))
    }

    /// Decodes a received payload.
    ///
    /// # Errors
    /// It doesn't match its content type or its schema. The error doesn't show values.
    pub(super) fn decode(&self, payload: &[u8]) -> Result<Data, String> {
        let content_type = &self.content_type;
        let text = || {
            swirl_content::text(payload, Some(content_type))
                .map_err(|error| format!("the payload cannot be read: {error}"))
        };
        let data = match self.kind {
            BodyKind::Json if payload.is_empty() => Data::NULL,
            BodyKind::Json => Data::parse(text()?.as_bytes())
                .map_err(|_| format!("the payload isn't the JSON that `{content_type}` says"))?,
            BodyKind::Text => Data::string(text()?.as_ref()),
            _ => Data::string(STANDARD.encode(payload)),
        };
        self.check_part("payload", self.payload.as_ref(), &Value::from(&data))?;
        Ok(data)
    }

    /// Encodes a payload for sending.
    pub(super) fn encode(&self, payload: &Value) -> Result<Vec<u8>, String> {
        match (self.kind, payload) {
            (BodyKind::Json, value) => Ok(value.to_string().into_bytes()),
            (BodyKind::Binary, Value::String(text)) => STANDARD
                .decode(text)
                .map_err(|_| format!("a payload of `{}` must be base64", self.content_type)),
            (BodyKind::Text, Value::String(text)) => {
                swirl_content::encode(text, &self.content_type).map_err(|error| error.to_string())
            }
            (BodyKind::Text, Value::Number(_) | Value::Bool(_)) => {
                Ok(payload.to_string().into_bytes())
            }
            _ => Err(format!(
                "a payload of `{}` must be a string; pass it as the argument `payload`",
                self.content_type
            )),
        }
    }
}

fn default_content_type(document: &Document) -> String {
    let root = document.root();
    let found = root.text("defaultContentType");
    found.unwrap_or("application/json").to_owned()
}

fn kind(content_type: &str, at: &str) -> Result<BodyKind, String> {
    match body_kind(content_type) {
        BodyKind::Form | BodyKind::Multipart => Err(format!(
            "{at}: messages of the content type `{content_type}` aren't sent"
        )),
        kind => Ok(kind),
    }
}

/// A schema of a message, if it is a JSON Schema.
fn schema<'a>(
    document: &'a Document,
    message: &Node<'a>,
    key: &str,
    format: Option<&str>,
) -> Result<Option<Node<'a>>, String> {
    let Some(found) = document.trait_member(message, key)? else {
        return Ok(None);
    };
    // In AsyncAPI 3 the format may be next to the schema.
    let own = found.text("schemaFormat");
    let inner = match own {
        Some(_) => document.member(&found, "schema")?,
        None => None,
    };
    let found = inner.unwrap_or(found);
    if let Some(format) = own.or(format)
        && !format.starts_with("application/vnd.aai.asyncapi")
        && !format.starts_with("application/schema+")
    {
        return Err(format!(
            "{}: a schema of the format `{format}` isn't supported; use JSON Schema",
            found.at
        ));
    }
    Ok(Some(found))
}

/// Compiles the schema at this location. It may refer to other parts of the document, so it gets the whole document.
fn validator(document: &Document, at: &Node<'_>) -> Result<JsonSchema, String> {
    let pointer = at.at.trim_start_matches('#');
    let mut all = document.root.clone();
    all["$ref"] = json!(format!("#{}", utf8_percent_encode(pointer, POINTER)));
    JsonSchema::compile_draft7(&all)
        .map_err(|error| format!("{}: this is not a valid schema: {error}", at.at))
}

/// The arguments of a call, split into parts.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) parameters: Map<String, Value>,
    pub(super) payload: Value,
    pub(super) headers: Value,
    pub(super) key: Option<String>,
}

impl Parts {
    /// Those of a task.
    pub(super) fn of_task(mut arguments: Value) -> Result<Parts, String> {
        let mut own = |name: &str| arguments.get_mut(name).map(Value::take);
        let payload = own("payload").unwrap_or_default();
        let headers = match own("headers").unwrap_or_default() {
            Value::Null => json!({}),
            headers @ Value::Object(_) => headers,
            _ => return Err("`headers` must be an object".to_owned()),
        };
        Ok(Parts {
            parameters: Map::new(),
            payload,
            headers,
            key: None,
        })
    }

    pub(super) fn of<'a>(
        arguments: Value,
        messages: &[Message],
        parameters: impl Iterator<Item = (&'a str, bool)>,
    ) -> Result<Parts, String> {
        let mut arguments = match arguments {
            Value::Null => Map::new(),
            Value::Object(members) => members,
            _ => return Err("the arguments must be an object".to_owned()),
        };
        let in_payload = |name: &str| messages.iter().any(|message| message.has_property(name));
        let mut given = Map::new();
        let is_apart = arguments.contains_key("payload") && !in_payload("payload");
        for (name, is_located) in parameters {
            let stays = !is_apart && (in_payload(name) || is_located);
            let value = match stays {
                true => arguments.get(name).cloned(),
                false => arguments.shift_remove(name),
            };
            if let Some(value) = value.filter(|value| !value.is_null()) {
                given.insert(name.to_owned(), value);
            }
        }
        let mut own = |name: &str| match in_payload(name) {
            true => None,
            false => arguments.shift_remove(name),
        };
        let headers = match own("headers") {
            None | Some(Value::Null) => json!({}),
            Some(headers @ Value::Object(_)) => headers,
            Some(_) => return Err("the argument `headers` must be an object".to_owned()),
        };
        let key = match messages.iter().any(|message| message.has_key) {
            true => own("key"),
            false => None,
        };
        let key = match key {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text),
            Some(value @ (Value::Number(_) | Value::Bool(_))) => Some(value.to_string()),
            Some(_) => {
                return Err("the argument `key` must be a string, a number or a boolean".to_owned());
            }
        };
        let payload = match own("payload") {
            Some(payload) => match arguments.keys().next() {
                None => payload,
                Some(more) => {
                    return Err(format!(
                        "the argument `payload` is the whole payload, so `{more}` can't be added to it"
                    ));
                }
            },
            None => Value::Object(arguments),
        };
        Ok(Parts {
            parameters: given,
            payload,
            headers,
            key,
        })
    }

    /// Headers as texts, which is how they are sent.
    pub(super) fn header_texts(&self) -> Result<Vec<(String, String)>, String> {
        let members = self.headers.as_object().into_iter().flatten();
        let text = |(name, value): (&String, &Value)| match value {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some((name.clone(), text.clone()))),
            Value::Number(_) | Value::Bool(_) => Ok(Some((name.clone(), value.to_string()))),
            _ => Err(format!("the header `{name}` must be a string or a number")),
        };
        members
            .filter_map(|member| text(member).transpose())
            .collect()
    }
}
