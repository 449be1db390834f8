//! Starting instances.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swirl_access::Need;

use crate::actions::Json;
use crate::endpoint::{Endpoint, Method};
use crate::instance::Instance;
use crate::schedules::{Started, Workflow};

pub static START: Endpoint<Workflow, StartQuery, Json, Begun> = Endpoint::new(
    Method::Post,
    "/api/v1/workflows/{id}/instances",
    Need::Start,
)
.named("startInstance", "Instances", "Starts an instance.")
.keyed("The same key gives the same instance; with another input it is a conflict.")
.prefers("'wait=10' waits for the end, in seconds.")
.takes(1 << 20, false, "the input as JSON")
.absent("{}", "The input, at most 1 MiB; {} if absent.")
.answers(
    200,
    "With 'wait': it has ended, however. Without: it was started before with the same key.",
)
.located()
.answers_with::<Started>(201, "It is started.")
.located()
.answers_with::<Instance>(202, "With 'wait': it is still running.")
.located()
.refuses(&[404, 409, 422]);

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct StartQuery {
    /// Its version; the latest if absent.
    pub version: Option<String>,
    /// Waits for the end, PT60S at most.
    #[schemars(extend("format" = "duration"))]
    pub wait: Option<String>,
}

/// The instance; after waiting as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Begun {
    Started(Started),
    Instance(Box<Instance>),
}

impl Begun {
    pub fn id(&self) -> &str {
        match self {
            Begun::Started(started) => &started.id,
            Begun::Instance(instance) => &instance.id,
        }
    }
}
