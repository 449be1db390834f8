//! The actions of operators.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swirl_access::Need;

pub use crate::audited::{Action, Kind};
use crate::client::pages;
use crate::endpoint::{Endpoint, Method, Nothing};
use crate::instant::Instant;

pub static LIST: Endpoint<Nothing, ListQuery, Nothing, AuditLog> =
    Endpoint::new(Method::Get, "/api/v1/audit", Need::Operate)
        .named(
            "listAudit",
            "Audit",
            "The actions of operators, newest first.",
        )
        .answers(200, "A page of them.")
        .refuses(&[400]);

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct ListQuery {
    /// Only this action.
    pub action: Option<Action>,
    /// Only the actions of the caller with this name.
    pub by: Option<String>,
    /// Only actions on objects of this kind.
    pub kind: Option<Kind>,
    /// Only actions on the object with this id.
    pub subject: Option<String>,
    /// Where to go on: 'next' of another page.
    pub after: Option<String>,
    /// How many at most.
    #[schemars(range(min = 1, max = 1000), extend("default" = 100))]
    pub limit: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct AuditLog {
    pub entries: Vec<AuditEntry>,
    /// There are no more.
    pub complete: bool,
    /// For 'after' of the next page.
    pub next: Option<String>,
}

pages!(AuditLog.entries, ListQuery);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditEntry {
    pub id: String,
    pub at: Instant,
    /// The caller, if the server asks for tokens.
    pub by: Option<String>,
    /// Such as 'cancel' or 'deploy'.
    #[schemars(with = "String")]
    pub action: Action,
    pub subject: Subject,
    pub reason: Option<String>,
    /// Such as the state of a 'rerun'.
    pub details: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Subject {
    /// Such as 'instance' or 'definition'.
    #[schemars(with = "String")]
    pub kind: Kind,
    pub id: String,
    /// Of a definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}
