//! Pictures of definitions and instances.

use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use swirl_access::Need;

use crate::client::Text;
use crate::endpoint::{Bodies, Endpoint, Method, Nothing};
use crate::instance::InstanceId;

const SVG: Bodies = &[("image/svg+xml", SchemaGenerator::subschema_for::<String>)];

pub static DEFINITION: Endpoint<DefinitionId, Nothing, Nothing, Text> = Endpoint::new(
    Method::Get,
    "/api/v1/definitions/{id}/{version}/diagram",
    Need::Read,
)
.named(
    "drawDefinition",
    "Definitions",
    "A picture of a definition.",
)
.answers_as(200, "An SVG image.", SVG)
.refuses(&[404]);

pub static INSTANCE: Endpoint<InstanceId, DrawQuery, Nothing, Text> = Endpoint::new(
    Method::Get,
    "/api/v1/instances/{id}/diagram",
    Need::Read,
)
.named(
    "drawInstance",
    "Instances",
    "A picture of the instance's definition, with the states that it has been in and the current ones.",
)
.answers_as(200, "An SVG image.", SVG)
.refuses(&[400, 404]);

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct DefinitionId {
    /// The workflow's id.
    pub id: String,
    /// Its version.
    pub version: String,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct DrawQuery {
    /// The number of an entry of the history: shows where the instance was then.
    #[schemars(range(min = 1))]
    pub at: Option<u64>,
}
