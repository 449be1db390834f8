//! The export of an instance: the API's answers about the instance and those that it started, with their definitions.
//! It has its own file format, so that it can be kept and shared.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use swirl_api::history::History;
use swirl_api::{Instance, Status};
use swirl_engine::{child_id, continuation_id};
use swirl_model::Data;
use swirl_model::event::HistoryEntry;
use swirl_model::ids::{DefinitionId, InstanceId, ScopeId, ScopeRef};
use swirl_model::instance::{Header, ParentLink};
use swirl_model::redact::CUT;
use swirl_model::trace::Trace;

/// The only format version of an export so far.
pub const FORM: u32 = 1;

/// The reason why an answer of the API, or a file, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("the {what} cannot be read: {why}")]
    Unreadable { what: String, why: String },
    #[error("this export has format {0}, but this version of swirl reads format {FORM}")]
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
    pub instance: Instance,
    /// The whole history.
    pub history: History,
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

/// A parsed instance.
#[derive(Debug, Clone)]
pub struct Recorded {
    pub header: Header,
    pub status: Status,
    pub suspended: bool,
    pub output: Option<Data>,
    pub error: Option<swirl_api::instance::Error>,
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
        // The types have nothing that JSON cannot hold.
        let instances = serde_json::to_value(&self.instances).unwrap_or_default();
        cut_in(&instances, "/instances", &mut found);
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
    /// Its history has entries that only another version knows.
    pub fn read(&self) -> Result<Recorded, ExportError> {
        let view = self.instance.clone();
        let entries = self.history.entries.iter().enumerate();
        let history = entries.map(|(index, entry)| {
            entry.stored().ok_or_else(|| ExportError::Unreadable {
                what: format!("entry {index} in the history of instance {}", view.id),
                why: format!("this version knows no '{}'", entry.event.kind()),
            })
        });
        let history = history.collect::<Result<_, _>>()?;
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
            started_at: view.started_at.0,
            parent,
            continued_from: view.continued_from.map(InstanceId::new),
            scheduled_at: view.scheduled_at.map(|at| at.0),
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
            is_calling: view.status == Status::Completed && !view.scopes.is_empty(),
            status: view.status,
            suspended: view.suspended,
            output: view.output.as_ref().map(data),
            error: view.error,
            history,
            gone: self.history.before,
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_export_can_be_written_and_read() {
        let exported = json!({
            "instance": {"id": "i", "workflow": "w", "version": "1", "status": "completed",
                "suspended": false, "startedAt": "2024-01-01T00:00:00.250Z", "input": {}, "output": null,
                "parent": null, "continuedFrom": null, "scopes": []},
            "history": {"id": "i", "workflow": "w", "version": "1", "status": "completed", "before": 0, "entries": [
                {"at": "2024-01-01T00:00:00.250Z", "scope": "r", "event": "instance_started"},
                {"at": "2024-01-01T00:00:01.000Z", "scope": "r", "event": "timed_out",
                    "timer": {"seq": 1, "kind": "sleep", "due": "2024-01-01T00:00:01.000Z"}},
            ]},
        });
        let exported = serde_json::from_value(exported).unwrap();
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
        assert!(why(r#"{"recording": 2}"#).contains("format 2"));
        let empty = r#"{"recording": 1, "instances": [], "definitions": []}"#;
        assert_eq!(why(empty), "the export holds no instance");
        assert!(why(r#"{"before": 0, "entries": []}"#).contains("swirl record ID --export FILE"));
    }
}
