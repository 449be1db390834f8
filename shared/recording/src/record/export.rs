//! The export of an instance: the API's answers about the instance and those that it started, with their definitions.
//! It has its own file format, so that it can be kept and shared.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use swirl_engine::{child_id, continuation_id};
use swirl_model::Data;
use swirl_model::event::HistoryEntry;
use swirl_model::ids::{DefinitionId, InstanceId, ScopeId, ScopeRef};
use swirl_model::instance::{Header, ParentLink};
use swirl_model::redact::CUT;
use swirl_model::time::Timestamp;
use swirl_model::trace::Trace;

/// The only format version of an export so far.
pub const FORM: u32 = 1;

/// The reason why an answer of the API, or a file, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("the {what} cannot be read: {why}")]
    Unreadable { what: String, why: String },
    #[error("this export has the form {0}, and this version of swirl reads form {FORM}")]
    Form(u32),
    #[error("the export holds no instance")]
    Empty,
    #[error(
        "this is a history alone; an export has the instance's input and definition, too: \
         'swirl record ID --export FILE' writes one"
    )]
    HistoryAlone,
}

/// An instance and those that it started, with the instance itself first.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Export {
    /// Equals `FORM`.
    pub recording: u32,
    pub instances: Vec<Exported>,
    pub definitions: Vec<ExportedDefinition>,
}

/// The answers of the API about one instance.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exported {
    /// From `GET /instances/{id}`.
    pub instance: Value,
    /// From `GET /instances/{id}/history`.
    pub history: Value,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportedDefinition {
    pub id: String,
    pub version: String,
    pub document: String,
    /// The documents that it refers to, by URI.
    #[serde(default)]
    pub resources: BTreeMap<String, String>,
}

/// The parts of `GET /instances/{id}` that are used.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct View {
    id: String,
    workflow: String,
    version: String,
    status: String,
    #[serde(default)]
    suspended: bool,
    started_at: String,
    parent: Option<String>,
    continued_from: Option<String>,
    scheduled_at: Option<String>,
    input: Value,
    #[serde(default, deserialize_with = "present")]
    output: Option<Value>,
    error: Option<Failed>,
    /// Those that have not ended.
    scopes: Option<Vec<serde::de::IgnoredAny>>,
}

/// A null output counts as present.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// The error of an instance, as far as scenarios describe errors.
#[derive(Debug, Clone, Deserialize)]
pub struct Failed {
    pub name: String,
    #[serde(default)]
    pub code: Option<String>,
    #[serde(default)]
    pub status: Option<u16>,
    #[serde(default)]
    pub message: String,
}

/// A parsed instance.
#[derive(Debug, Clone)]
pub struct Recorded {
    pub header: Header,
    /// The status as the API writes it.
    pub status: String,
    pub suspended: bool,
    pub output: Option<Data>,
    pub error: Option<Failed>,
    pub history: Vec<HistoryEntry>,
    /// The number of older entries that are no longer kept.
    pub gone: u64,
    /// It has ended, and calls that it doesn't wait for are still to come.
    pub is_calling: bool,
}

impl Export {
    pub fn new() -> Export {
        Export {
            recording: FORM,
            instances: Vec::new(),
            definitions: Vec::new(),
        }
    }

    /// Parses a file.
    ///
    /// # Errors
    /// It is not an export, or has another format.
    pub fn parse(content: &[u8]) -> Result<Export, ExportError> {
        let unreadable = |error: serde_json::Error| ExportError::Unreadable {
            what: "export".to_owned(),
            why: error.to_string(),
        };
        let value: Value = serde_json::from_slice(content).map_err(unreadable)?;
        if let Some(form) = value["recording"]
            .as_u64()
            .filter(|form| *form != u64::from(FORM))
        {
            return Err(ExportError::Form(u32::try_from(form).unwrap_or(u32::MAX)));
        }
        if value["recording"].is_null() && value["entries"].is_array() {
            return Err(ExportError::HistoryAlone);
        }
        let export: Export = serde_json::from_value(value).map_err(unreadable)?;
        match export.instances.is_empty() {
            true => Err(ExportError::Empty),
            false => Ok(export),
        }
    }

    /// Parses all instances.
    ///
    /// # Errors
    /// The first instance that is not a valid answer of the API.
    pub fn recorded(&self) -> Result<Vec<Recorded>, ExportError> {
        self.instances.iter().map(Exported::read).collect()
    }

    /// Where values of secrets are missing, because the server has cut them out: JSON pointers into the export.
    pub fn cut(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (index, one) in self.instances.iter().enumerate() {
            cut_in(
                &one.instance,
                &format!("/instances/{index}/instance"),
                &mut found,
            );
            cut_in(
                &one.history,
                &format!("/instances/{index}/history"),
                &mut found,
            );
        }
        found
    }

    pub fn definition(&self, id: &DefinitionId) -> Option<&ExportedDefinition> {
        let mut definitions = self.definitions.iter();
        definitions.find(|one| *one.id == *id.workflow && *one.version == *id.version)
    }
}

fn cut_in(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.contains(CUT) => found.push(at.to_owned()),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                cut_in(item, &format!("{at}/{index}"), found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                cut_in(member, &format!("{at}/{name}"), found);
            }
        }
        _ => {}
    }
}

impl Default for Export {
    fn default() -> Export {
        Export::new()
    }
}

impl Exported {
    /// # Errors
    /// It is not a valid answer of the API.
    pub fn read(&self) -> Result<Recorded, ExportError> {
        let id = self.instance["id"].as_str().unwrap_or("?");
        let unreadable = |what: &str, why: String| ExportError::Unreadable {
            what: format!("{what} of instance {id}"),
            why,
        };
        let view: View = serde_json::from_value(self.instance.clone())
            .map_err(|error| unreadable("state", error.to_string()))?;
        let entries = self.history["entries"].as_array();
        let entries = entries.ok_or_else(|| unreadable("history", "no entries".to_owned()))?;
        let history = entries
            .iter()
            .enumerate()
            .map(|(index, value)| {
                entry(value)
                    .map_err(|why| unreadable(&format!("entry {index} in the history"), why))
            })
            .collect::<Result<Vec<HistoryEntry>, ExportError>>()?;
        let started_at = Timestamp::parse(&view.started_at)
            .map_err(|error| unreadable("start", error.to_string()))?;
        let scheduled_at = view
            .scheduled_at
            .as_deref()
            .map(Timestamp::parse)
            .transpose();
        let scheduled_at = scheduled_at
            .map_err(|error| unreadable("instant of the schedule", error.to_string()))?;
        let parent = view.parent.map(|id| ParentLink {
            scope: ScopeRef::root(InstanceId::new(id)),
            call: 0,
            detached: false,
        });
        let header = Header {
            id: InstanceId::new(view.id),
            definition: DefinitionId {
                workflow: view.workflow.into(),
                version: view.version.clone().into(),
            },
            version: view.version,
            input: data(&view.input),
            started_at,
            parent,
            continued_from: view.continued_from.map(InstanceId::new),
            scheduled_at,
            key: None,
            instance_key: None,
            timeout: None,
            depth: 0,
            hops: 0,
            trace: Trace::default(),
            retention: Default::default(),
        };
        Ok(Recorded {
            header,
            is_calling: view.status == "completed"
                && view.scopes.is_some_and(|scopes| !scopes.is_empty()),
            status: view.status,
            suspended: view.suspended,
            output: view.output.as_ref().map(data),
            error: view.error,
            history,
            gone: self.history["before"].as_u64().unwrap_or(0),
        })
    }
}

impl Recorded {
    /// The sub-workflow that a scope started with its call of this number.
    pub fn subflow(&self, scope: &ScopeId, call: u32) -> InstanceId {
        InstanceId::new(child_id(&self.header, scope, call))
    }

    /// The instance that continues after `continueAs`.
    pub fn continuation(&self) -> InstanceId {
        continuation_id(&self.header)
    }
}

pub(super) fn data(value: &Value) -> Data {
    Data::parse(value.to_string().as_bytes()).unwrap_or_default()
}

/// An entry whose instants are in the form of the API.
fn entry(value: &Value) -> Result<HistoryEntry, String> {
    let mut value = value.clone();
    for pointer in ["/at", "/timer/due"] {
        if let Some(at) = value.pointer_mut(pointer)
            && let Some(text) = at.as_str()
        {
            let parsed = Timestamp::parse(text).map_err(|error| error.to_string())?;
            *at = Value::from(parsed.0);
        }
    }
    serde_json::from_value(value).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_export_can_be_written_and_read() {
        let exported = Exported {
            instance: json!({"id": "i", "workflow": "w", "version": "1", "status": "completed",
                "suspended": false, "startedAt": "2024-01-01T00:00:00.250Z", "input": {}, "output": null,
                "parent": null, "continuedFrom": null, "scopes": []}),
            history: json!({"before": 0, "entries": [
                {"at": "2024-01-01T00:00:00.250Z", "scope": "r", "event": "instance_started"},
                {"at": "2024-01-01T00:00:01.000Z", "scope": "r", "event": "timed_out",
                    "timer": {"seq": 1, "kind": "sleep", "due": "2024-01-01T00:00:01.000Z"}},
            ]}),
        };
        let export = Export {
            instances: vec![exported],
            ..Export::new()
        };
        let text = serde_json::to_vec(&export).unwrap();
        let read = Export::parse(&text).unwrap().recorded().unwrap().remove(0);
        assert_eq!(read.output, Some(Data::NULL));
        assert_eq!(read.history[1].at.0 - read.header.started_at.0, 750);
    }

    #[test]
    fn other_files_are_rejected() {
        let why = |text: &str| Export::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(why("{").starts_with("the export cannot be read"));
        assert!(why(r#"{"recording": 2}"#).contains("form 2"));
        let empty = r#"{"recording": 1, "instances": [], "definitions": []}"#;
        assert_eq!(why(empty), "the export holds no instance");
        assert!(why(r#"{"before": 0, "entries": []}"#).contains("swirl record ID --export FILE"));
    }
}
