//! Refusals and failures.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::events::Reach;

/// RFC 9457. 'code' is stable.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Problem {
    pub title: String,
    #[schemars(range(min = 400, max = 599))]
    pub status: u16,
    pub code: String,
    pub detail: String,
    #[serde(flatten)]
    pub more: Box<Members>,
}

/// A finding about a document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Finding {
    pub severity: String,
    pub code: String,
    pub message: String,
    /// A JSON Pointer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub related: Option<Related>,
}

impl Finding {
    /// An error without a place.
    pub fn error(code: &str, message: &str) -> Finding {
        Finding {
            severity: "error".to_owned(),
            code: code.to_owned(),
            message: message.to_owned(),
            ..Finding::default()
        }
    }
}

/// The second place of a finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Related {
    pub message: String,
    pub path: String,
    pub line: usize,
    pub column: usize,
}

/// What some problems have in addition.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Members {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub diagnostics: Vec<Finding>,
    /// Of several events: which one, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// With 'index', if the server failed: what became of the events before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<Reach>,
    /// With 'forbidden': the role that is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// With 'unknown-namespace': the one that is served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// With 'invalid-search' and 'unknown-attribute': where in the query, in characters from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
    /// With 'position': the length of the wrong part, in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<usize>,
    /// With 'key-in-use' and 'key-conflict': the instance that has the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// With 'definition-in-use': how many instances use it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instances: Option<usize>,
    /// With 'definition-conflict': the workflow's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// With 'definition-conflict': the version that is deployed with another content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// With 'definition-conflict', if 'diagram=true' asked for it: an SVG image of the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagram: Option<String>,
    /// With 'start-refused': the error of the workflow's schema or limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
    /// With 'wrong-status', if the data of what failed cannot be changed: the state that can be run again instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerun_state: Option<String>,
}
