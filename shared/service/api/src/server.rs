//! The server itself: its health, its metrics, and its document.

use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use swirl_access::Need;

use crate::client::Text;
use crate::endpoint::{Endpoint, Method, Nothing};

const TAG: &str = "Server";

pub static LIVE: Endpoint<Nothing, Nothing, Nothing, Health> =
    Endpoint::new(Method::Get, "/healthz", Need::Nothing)
        .named("isAlive", TAG, "Whether the process runs.")
        .answers(200, "It does.")
        .answers(503, "It runs, but works again only after a restart.")
        .refuses(&[403]);

pub static READY: Endpoint<Nothing, Nothing, Nothing, Health> =
    Endpoint::new(Method::Get, "/readyz", Need::Nothing)
        .named("isReady", TAG, "Whether the store can be read.")
        .answers(200, "It can.")
        .refuses(&[403, 503]);

pub static METRICS: Endpoint<Nothing, Nothing, Nothing, Text> =
    Endpoint::new(Method::Get, "/metrics", Need::Nothing)
        .named(
            "getMetrics",
            TAG,
            "Metrics in the text format of Prometheus.",
        )
        .answers_as(
            200,
            "The metrics of this process.",
            &[("text/plain", SchemaGenerator::subschema_for::<String>)],
        )
        .refuses(&[403]);

pub static OPENAPI: Endpoint<Nothing, Nothing, Nothing, Map<String, Value>> =
    Endpoint::new(Method::Get, "/api/v1/openapi.json", Need::Nothing)
        .named("getOpenapi", TAG, "This document.")
        .answers(200, "An OpenAPI document.")
        .refuses(&[403]);

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    pub status: String,
    /// The version of the program; only at /healthz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Why only a restart lets it work again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The functions that are unavailable now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limited: Vec<String>,
}
