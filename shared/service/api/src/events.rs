//! CloudEvents: their publication, what would become of one, and the last ones.

use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use swirl_access::Need;

use crate::endpoint::{Endpoint, Method, Nothing, SchemaOf};
use crate::instant::Instant;
use crate::words::words;

const TAG: &str = "Events";

/// The media types of one event, and of several.
pub const STRUCTURED: &str = "application/cloudevents+json";
pub const BATCHED: &str = "application/cloudevents-batch+json";

const EVENT: (&str, SchemaOf) = (STRUCTURED, SchemaGenerator::subschema_for::<CloudEvent>);
/// An event in binary mode is data of any type.
const BINARY: (&str, SchemaOf) = ("*/*", SchemaGenerator::subschema_for::<Value>);

pub static RECENT: Endpoint<Nothing, RecentQuery, Nothing, RecentEvents> =
    Endpoint::new(Method::Get, "/api/v1/events", Need::Read)
        .named(
            "listRecentEvents",
            TAG,
            "The last events that the coordinators received, newest first, and their effects.",
        )
        .answers(
            200,
            "The events: the last 500 of the last day. `swirl dev` knows those since it started.",
        )
        .refuses(&[400]);

/// Its body is one event or several, in any of the content modes.
pub static PUBLISH: Endpoint<Nothing, Nothing, CloudEvent, Published> = Endpoint::new(
    Method::Post,
    "/api/v1/events",
    Need::Start,
)
.named("publishEvents", TAG, "Publishes CloudEvents.")
.repeatable()
.takes_any(
    &[EVENT, (BATCHED, SchemaGenerator::subschema_for::<Batch>), BINARY],
    "One event, or a batch of at most 100; in binary mode the data, with the attributes in headers that begin with \
     ce-. An event has at most 1 MiB. An event is identified by its source and id: sending it again changes nothing.",
)
.answers(202, "All are committed.")
.answers_as(
    204,
    "All are committed, and the sender asked for a response without a body: with Prefer: return=minimal, or as \
     brokers of Knative do.",
    &[],
)
.refuses(&[400, 413, 415]);

pub static EXPLAIN: Endpoint<Nothing, ExplainQuery, CloudEvent, Explained> = Endpoint::new(
    Method::Post,
    "/api/v1/events/explain",
    Need::Read,
)
.named(
    "explainEvent",
    TAG,
    "Says which instances would receive an event, and what excludes the others. The event is not published.",
)
.repeatable()
.takes_any(&[EVENT, BINARY], "One event, in structured or binary mode.")
.answers(200, "Its effects.")
.refuses(&[400, 404, 413, 415]);

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct RecentQuery {
    /// How many at most.
    #[schemars(range(min = 1, max = 500), extend("default" = 50))]
    pub limit: Option<u32>,
    /// Only events of this type.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Only events with this outcome.
    pub outcome: Option<Outcome>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct ExplainQuery {
    /// Explains only what this instance would do.
    pub instance: Option<String>,
}

/// An event in the JSON format of CloudEvents 1.0. Other members are extension attributes.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
pub struct CloudEvent {
    #[schemars(extend("const" = "1.0"))]
    pub specversion: String,
    #[schemars(length(min = 1))]
    pub id: String,
    #[schemars(length(min = 1))]
    pub source: String,
    #[serde(rename = "type")]
    #[schemars(length(min = 1))]
    pub kind: String,
    #[schemars(with = "Option<Instant>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datacontenttype: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataschema: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_base64: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Batch(#[schemars(length(max = 100))] pub Vec<CloudEvent>);

words! {
    /// The outcome of an event.
    Outcome {
        // An instance waited for it, or was started by it.
        Received = "received",
        // It starts an instance together with others, which have not arrived yet.
        Collected = "collected",
        // It is kept for instances that wait for it later.
        Kept = "kept",
        // It was processed before.
        Duplicate = "duplicate",
        // No instance waits for it, and none will.
        NotReceived = "not-received",
        // It is not a CloudEvent, or it could not be processed.
        Refused = "refused",
    }
}

words! {
    /// How an event came.
    Via {
        Http = "http",
        Nats = "nats",
        Workflow = "workflow",
    }
}

/// An event and its effects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AcceptedEvent")]
pub struct Reach {
    pub source: String,
    pub id: String,
    /// The event's outcome.
    pub outcome: Outcome,
    /// It was received before: nothing was done.
    pub duplicate: bool,
    /// Instances that waited for it.
    pub instances: Vec<String>,
    /// Instances that it started.
    pub started: Vec<Started>,
    /// Workflows that it starts together with others, which are still missing.
    pub collected_by: Vec<String>,
    /// It is kept for instances that wait for it later.
    pub kept: bool,
    /// The reasons why nothing received it.
    pub reasons: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Started {
    pub id: String,
    pub workflow: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Published {
    pub accepted: Vec<Reach>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct RecentEvents {
    pub events: Vec<RecentEvent>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecentEvent {
    pub at: Instant,
    /// How it came; `workflow`: an instance produced it.
    pub via: Via,
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(flatten)]
    pub reach: Reach,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ExplainedEvent")]
pub struct Explained {
    /// The workflows that it would start.
    pub starts: Vec<WouldStart>,
    /// Instances that wait for it.
    pub taken_by: Vec<Receiver>,
    /// Those that consume events of this type and would not receive this one, nearest first.
    pub not_taken_by: Vec<NonReceiver>,
    /// It would be kept for instances that wait for it later.
    pub kept: bool,
    /// How many running instances were examined, newest first.
    pub instances_seen: usize,
    /// No others could receive it.
    pub complete: bool,
    /// That nothing consumes events of this type, and the type that is most like it.
    pub unknown_type: Option<String>,
}

/// An event that a definition consumes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Consumed {
    pub workflow: String,
    pub version: String,
    /// Its name in the definition.
    pub event: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct WouldStart {
    #[serde(flatten)]
    pub consumed: Consumed,
    /// Whether this event alone starts it; otherwise it needs other events, too.
    pub alone: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Receiver {
    #[serde(flatten)]
    pub consumed: Consumed,
    pub instance: String,
    pub state: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct NonReceiver {
    #[serde(flatten)]
    pub consumed: Consumed,
    /// Null: no instance would be started.
    pub instance: Option<String>,
    /// How many further instances do not receive it for the same reasons.
    pub others: usize,
    pub why: Vec<Why>,
}

/// A reason why an event isn't received.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Why {
    pub text: String,
    #[serde(flatten)]
    pub attribute: Option<Differing>,
}

/// An attribute with another value, or without one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Differing {
    pub attribute: String,
    #[schemars(extend("x-null" = true))]
    pub expected: Option<String>,
    #[schemars(extend("x-null" = true))]
    pub found: Option<String>,
}
