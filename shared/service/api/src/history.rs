//! The history of an instance. An entry is the one that is stored; only its instants are written as texts.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use swirl_model::event::Event;
use swirl_model::ids::ScopeId;
use swirl_model::time::Timestamp;

use crate::instance::Status;
use crate::instant::Instant;

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct HistoryQuery {
    /// How many entries are known already: they are left out.
    pub after: Option<u64>,
    /// How many entries at most; without it, 2000.
    #[schemars(range(min = 0, max = 2000))]
    pub limit: Option<usize>,
    /// The number of the last entries to return, in place of 'after'.
    #[schemars(range(min = 0, max = 2000))]
    pub last: Option<usize>,
    /// The number of the last entry to return. 'last' counts back from it.
    pub to: Option<u64>,
}

/// A part of a history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct History {
    pub id: String,
    pub workflow: String,
    pub version: String,
    pub status: Status,
    /// How many entries came before the first of these: those that the client knows, and those that are no longer kept.
    #[serde(default)]
    pub before: u64,
    /// How many there are.
    #[serde(default)]
    pub total: u64,
    /// Whether entries come after these: 'after' with 'before' and the number of these gives them.
    #[serde(default)]
    pub more: bool,
    pub entries: Vec<HistoryEntry>,
}

impl History {
    /// How many entries are known with these.
    pub fn known(&self) -> u64 {
        self.before + self.entries.len() as u64
    }
}

/// Something that happened. The kind of event says which other members there are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryEntry {
    pub at: Instant,
    pub scope: String,
    #[serde(flatten)]
    pub event: Happened,
    /// What is recorded of arguments, a result, an event or the state data with which a state begins ('state_data'), as
    /// far as 'history.data' says, with secrets cut out. A value that is too long is an object with the members 'cut' and
    /// 'bytes'.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Map<String, Value>>,
    /// When 'data' is removed, if it is not kept as long as the entry ('history.keep_data'). It stays when the data is
    /// gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_until: Option<Instant>,
    /// The name of the branch or iteration, if it is not the main flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

impl From<&swirl_model::event::HistoryEntry> for HistoryEntry {
    fn from(entry: &swirl_model::event::HistoryEntry) -> HistoryEntry {
        let data = entry.data.as_ref().map(Value::from);
        HistoryEntry {
            at: entry.at.into(),
            scope: entry.scope.to_string(),
            event: Happened::Event(entry.event.clone()),
            data: data.and_then(|data| serde_json::from_value(data).ok()),
            data_until: entry.data_until.map(Into::into),
            place: None,
        }
    }
}

impl HistoryEntry {
    /// The entry as it is stored; `None` if only another version knows its event.
    pub fn stored(&self) -> Option<swirl_model::event::HistoryEntry> {
        let data = self.data.clone().map(Value::Object);
        Some(swirl_model::event::HistoryEntry {
            at: self.at.0,
            scope: ScopeId::new(&*self.scope),
            event: self.event.event()?.clone(),
            data: data.and_then(|data| serde_json::from_value(data).ok()),
            data_until: self.data_until.map(|at| at.0),
        })
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Happened {
    Event(Event),
    /// An event that only other versions know, with its members.
    Unknown(Map<String, Value>),
}

impl Happened {
    pub fn event(&self) -> Option<&Event> {
        match self {
            Happened::Event(event) => Some(event),
            Happened::Unknown(_) => None,
        }
    }

    /// The kind of event, such as `state_entered`.
    pub fn kind(&self) -> String {
        let members = serde_json::to_value(self).unwrap_or_default();
        let kind = members.get("event").and_then(Value::as_str);
        kind.unwrap_or_default().to_owned()
    }
}

/// The one instant that is a member of an event: stored as a number, sent as a text.
const DUE: &str = "/timer/due";

impl Serialize for Happened {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let event = match self {
            Happened::Event(Event::TimedOut { .. }) => self.sent(),
            Happened::Event(event) => return event.serialize(to),
            Happened::Unknown(members) => return members.serialize(to),
        };
        event.serialize(to)
    }
}

impl Happened {
    fn sent(&self) -> Value {
        let mut value = serde_json::to_value(self.event()).unwrap_or_default();
        if let Some(due) = value.pointer_mut(DUE)
            && let Some(ms) = due.as_i64()
        {
            *due = Instant(Timestamp(ms)).to_string().into();
        }
        value
    }
}

impl<'d> Deserialize<'d> for Happened {
    fn deserialize<D: Deserializer<'d>>(from: D) -> Result<Happened, D::Error> {
        let members = Map::deserialize(from)?;
        let mut event = Value::Object(members.clone());
        if let Some(due) = event.pointer_mut(DUE)
            && let Some(at) = due.as_str().and_then(|text| Timestamp::parse(text).ok())
        {
            *due = at.0.into();
        }
        Ok(match Event::deserialize(event) {
            Ok(event) => Happened::Event(event),
            Err(_) => Happened::Unknown(members),
        })
    }
}

impl JsonSchema for Happened {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Happened".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "properties": {
                "event": {"type": "string"},
                "in_state": {
                    "type": "string",
                    "description": "Of an action or a fork: the name of the state that it belongs to. Entries of older \
                                    versions don't have it.",
                },
            },
            "required": ["event"],
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use swirl_model::scope::TimerKind;

    use super::*;

    #[test]
    fn instants_are_written_out_and_read_again() {
        let sent = json!({"at": "1970-01-01T00:00:02.000Z", "scope": "r", "event": "timed_out",
            "timer": {"seq": 1, "kind": "sleep", "due": "1970-01-01T00:00:01.000Z"}});
        let entry: HistoryEntry = serde_json::from_value(sent.clone()).unwrap();
        let Some(Event::TimedOut { timer }) = entry.event.event() else {
            panic!("{entry:?}");
        };
        assert_eq!((timer.kind, timer.due), (TimerKind::Sleep, Timestamp(1000)));
        assert_eq!(serde_json::to_value(&entry).unwrap(), sent);
        assert_eq!(entry.event.kind(), "timed_out");
    }

    #[test]
    fn an_event_of_another_version_keeps_its_members() {
        let sent = json!({"at": "1970-01-01T00:00:02.000Z", "scope": "r", "event": "teleported", "to": "Mars"});
        let entry: HistoryEntry = serde_json::from_value(sent.clone()).unwrap();
        assert_eq!(entry.event.kind(), "teleported");
        assert_eq!(serde_json::to_value(&entry).unwrap(), sent);
    }
}
