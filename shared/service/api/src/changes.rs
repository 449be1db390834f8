//! Changes to the state data of an instance.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swirl_access::Need;

use crate::endpoint::{Endpoint, Method, Nothing};
use crate::instance::InstanceId;
use crate::words::words;

pub static COMPARE: Endpoint<InstanceId, CompareQuery, Nothing, Compared> = Endpoint::new(
    Method::Get,
    "/api/v1/instances/{id}/changes",
    Need::Read,
)
.named(
    "compareStateData",
    "Instances",
    "What has changed in the state data of an instance: in the state before, and since the current state began. This \
     needs histories that record everything (history.data is 'all').",
)
.answers(200, "The changes.")
.refuses(&[400, 404]);

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct CompareQuery {
    /// The number of an entry of the history: compares the data as it was then.
    #[schemars(range(min = 1))]
    pub at: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Compared {
    pub id: String,
    pub at: Option<u64>,
    /// The scope whose data is compared: with 'at' that of the entry, if it has states of its own, otherwise the main flow
    /// ('r').
    pub scope: String,
    /// The newest first: since the last state began, and in the state before it.
    pub comparisons: Vec<Comparison>,
    /// There is no state before.
    pub first: bool,
    /// The beginnings of the last two states were found, or there are not as many. Only the last 2000 entries are
    /// searched.
    pub complete: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Comparison {
    pub from: Beginning,
    pub to: Until,
    /// Why there is nothing to compare.
    pub missing: Option<Missing>,
    /// The first 200 changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<Vec<Change>>,
    /// There are no further changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete: Option<bool>,
}

/// The beginning of a state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Beginning {
    /// The number of the history's entry.
    pub line: u64,
    pub state: String,
}

/// The beginning of the next state; without a line, the instance as it is now or at its end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Until {
    pub line: Option<u64>,
    pub state: Option<String>,
    pub ended: bool,
}

words! {
    /// The reason for which data is missing.
    Missing {
        NotRecorded = "not-recorded",
        NoLongerKept = "no-longer-kept",
        TooLong = "too-long",
    }
}

words! {
    /// The kind of change to a value.
    ChangeKind {
        Added = "added",
        Changed = "changed",
        Removed = "removed",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Change {
    /// A JSON Pointer; empty for the whole data. An element of an array has its index in the newer data, or in the older
    /// one if it was removed.
    pub path: String,
    pub kind: ChangeKind,
    /// The value as JSON, cut after 1000 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The value as JSON, cut after 1000 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}
