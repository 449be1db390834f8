//! Messages that could not be processed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swirl_access::Need;

use crate::audited::{self, Action};
use crate::endpoint::{Endpoint, Method, Nothing, Reason};
use crate::instant::Instant;
use crate::words::words;

const TAG: &str = "Dead letters";
/// The largest correction, in bytes: an event of 1 MiB, of which JSON may escape each byte.
const CORRECTION_BYTES_MAX: usize = 8 << 20;

pub static LIST: Endpoint<Nothing, ListQuery, Nothing, DeadLetters> =
    Endpoint::new(Method::Get, "/api/v1/dead-letters", Need::Read)
        .named(
            "listDeadLetters",
            TAG,
            "Messages that could not be processed, oldest first.",
        )
        .answers(200, "The letters.")
        .refuses(&[403]);

pub static GET: Endpoint<Letter, Nothing, Nothing, DeadLetter> =
    Endpoint::new(Method::Get, "/api/v1/dead-letters/{sequence}", Need::Read)
        .named(
            "getDeadLetter",
            TAG,
            "A dead letter with its headers and payload.",
        )
        .answers(200, "The letter.")
        .refuses(&[404]);

pub static DROP: Endpoint<Letter, Reason, Nothing, DeadLetter> = Endpoint::new(
    Method::Delete,
    "/api/v1/dead-letters/{sequence}",
    Need::Operate,
)
.named("dropDeadLetter", TAG, "Drops a dead letter.")
.audited(&audited::Kind::DeadLetter, &[Action::DeadLetterDrop])
.answers(200, "The letter that was dropped.")
.refuses(&[404]);

pub static RETRY: Endpoint<Letter, Reason, Option<Correction>, Retried> = Endpoint::new(
    Method::Post,
    "/api/v1/dead-letters/{sequence}/retry",
    Need::Operate,
)
.named(
    "retryDeadLetter",
    TAG,
    "Sends the message again, as it was or corrected, and drops the letter. An instance that was suspended for a task \
     continues.",
)
.audited(&audited::Kind::DeadLetter, &[Action::DeadLetterRetry])
.takes(
    CORRECTION_BYTES_MAX,
    false,
    r#"empty or {"payload": "the corrected message"}"#,
)
.answers(202, "Accepted.")
.refuses(&[400, 404, 409]);

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Letter {
    /// The letter's number.
    #[schemars(with = "u64", range(min = 1))]
    pub sequence: String,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct ListQuery {
    /// Those that come after this number.
    pub after: Option<u64>,
    /// How many at most.
    #[schemars(range(min = 1, max = 500), extend("default" = 50))]
    pub limit: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct DeadLetters {
    pub dead_letters: Vec<DeadLetter>,
    /// For 'after', if there may be more.
    pub next: Option<u64>,
}

words! {
    /// The kind of a message.
    Kind {
        Event = "event",
        Task = "task",
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetter {
    pub sequence: u64,
    pub at: Instant,
    pub kind: Kind,
    /// The subject that the message was sent to.
    pub subject: String,
    pub reason: String,
    /// Of the payload, in bytes.
    pub size: usize,
    /// The event was too large: its data is not kept, and it cannot be sent again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Of a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<EventName>,
    /// Only where one letter is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<Vec<Header>>,
    /// Only where one letter is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct EventName {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Header {
    pub name: String,
    pub value: String,
}

/// The payload to send in place of the message's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Correction {
    /// The whole payload, at most 1 MiB. Headers and subject stay as they were.
    pub payload: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Retried {
    pub sequence: u64,
    #[schemars(extend("const" = "retry"))]
    pub accepted: String,
}
