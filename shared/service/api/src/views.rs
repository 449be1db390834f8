//! Searches for instances that are saved under a name, for all users of the namespace.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swirl_access::Need;

use crate::audited::{Action, Kind};
use crate::endpoint::{Endpoint, Method, Nothing, Reason};
use crate::instance::Condition;
use crate::instant::Instant;

pub static LIST: Endpoint<Nothing, Nothing, Nothing, SavedViews> =
    Endpoint::new(Method::Get, "/api/v1/views", Need::Read)
        .named(
            "listViews",
            "Instances",
            "The saved searches for instances, by name.",
        )
        .answers(200, "All of them.");

pub static SAVE: Endpoint<Nothing, Reason, View, SavedView> = Endpoint::new(
    Method::Post,
    "/api/v1/views",
    Need::Operate,
)
.named(
    "saveView",
    "Instances",
    "Saves a search for instances under a name, for all users, in place of the one with this name.",
)
.audited(&Kind::View, &[Action::ViewSave])
.takes(
    16 << 10,
    true,
    r#"{"name": "Failed orders", "workflow": "order", "status": "faulted"}"#,
)
.answers(201, "It is saved.")
.refuses(&[400, 409]);

pub static REMOVE: Endpoint<ViewName, Reason, Nothing, ViewName> =
    Endpoint::new(Method::Delete, "/api/v1/views/{name}", Need::Operate)
        .named("removeView", "Instances", "Removes a saved search.")
        .audited(&Kind::View, &[Action::ViewRemove])
        .answers(200, "It is removed.")
        .refuses(&[404]);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct ViewName {
    /// The name of the saved search.
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct SavedViews {
    pub views: Vec<SavedView>,
}

/// A search to save.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct View {
    #[schemars(length(min = 1, max = 60))]
    pub name: String,
    #[schemars(length(max = 1024))]
    pub workflow: Option<String>,
    pub status: Option<Condition>,
    /// The key that the instances were started with.
    #[schemars(length(max = 1024))]
    pub key: Option<String>,
    /// See GET /instances.
    #[schemars(length(max = 4096))]
    pub query: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SavedView {
    pub name: String,
    /// The caller who saved it, if the server asks for tokens.
    pub by: Option<String>,
    pub saved_at: Instant,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub status: Option<Condition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
}
