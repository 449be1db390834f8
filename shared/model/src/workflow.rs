//! The canonical workflow: every edition of the language is lowered to it.
//!
//! Names are resolved to indexes, inherited settings (timeouts, retry policies) are copied to where they apply, and
//! every expression is once in [`Workflow::expressions`]. The engine never sees a document, a name that could be
//! missing, or an edition.
//!
//! Editions differ in their constructs, so the shapes here are wider than any of them: a branch or an iteration may
//! hold a flow of states, a wait may be a boolean expression over events, a handler may retry the whole state or only
//! the failed part of it, an action may have its own handlers, an entry of an event state may have its own transition.
//! Each field describes its effect; only the reader knows which edition uses it.

mod actions;
mod errors;
mod states;
mod ways;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Data;
use crate::attribute::AttributeKind;
pub use crate::language::Language;
pub use crate::recording::Recording;
use crate::time::IsoDuration;

pub use actions::*;
pub use errors::*;
pub use states::*;
pub use ways::*;

macro_rules! index {
    ($($(#[$doc:meta])* $name:ident => $field:ident: $item:ty;)+) => {$(
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl std::ops::Index<$name> for Workflow {
            type Output = $item;
            fn index(&self, id: $name) -> &$item {
                &self.$field[id.0 as usize]
            }
        }
    )+};
}

index! {
    /// A list of actions that run together, in [`Workflow::lists`].
    ListId => lists: ActionList;
    /// A flow of states: the workflow's own, or one inside a branch or iteration.
    FlowId => flows: Flow;
    StateId => states: State;
    ActionId => actions: Action;
    FunctionId => functions: Function;
    EventId => events: EventDef;
    ErrorId => errors: ErrorDef;
    ExprId => expressions: ExprSource;
    PathId => paths: ExprSource;
    AuthId => auth: AuthDef;
}

/// One definition, ready to be compiled and run.
#[derive(Debug, Clone, Default)]
pub struct Workflow {
    pub id: String,
    /// A word for people, as written in the definition.
    pub key: Option<String>,
    /// Evaluated over the input when an instance starts: the business key of the instance. Shown as
    /// `$WORKFLOW.key`. No two running instances of a workflow have the same.
    pub instance_key: Option<Template>,
    pub name: Option<String>,
    pub description: Option<String>,
    pub version: Version,
    /// The edition it was written in, for people; nothing in the engine depends on it.
    pub edition: &'static str,
    pub annotations: Vec<String>,
    /// `metadata`, plus the additional properties of the top level.
    pub metadata: Data,

    pub flows: Vec<Flow>,
    pub states: Vec<State>,
    pub lists: Vec<ActionList>,
    pub actions: Vec<Action>,
    pub functions: Vec<Function>,
    pub events: Vec<EventDef>,
    pub errors: Vec<ErrorDef>,
    pub auth: Vec<AuthDef>,
    pub expressions: Vec<ExprSource>,
    /// Expressions that must be one path: `toStateData`, `outputCollection`.
    pub paths: Vec<ExprSource>,

    pub constants: Data,
    pub secrets: Vec<String>,
    pub input_schema: Option<Schema>,
    pub output_schema: Option<Schema>,
    pub timeout: Option<WorkflowTimeout>,
    pub keep_active: bool,
    pub schedule: Option<Schedule>,
    /// Errors are described as RFC 7807 says: each has a `type` (a URI) and a status, and its
    /// `instance` is the pointer of the action or state that it came from.
    pub problems: bool,
    /// The search attributes of instances (`metadata.swirl.search`).
    pub search: Vec<SearchAttribute>,
    /// How long ended instances are kept (`metadata.swirl.retention`).
    pub retention: Retention,
    /// The data that the history keeps, where the definition says so (`metadata.swirl.history`).
    pub recording: Option<Recording>,
    /// How long the history keeps that data, in milliseconds, where the definition says so.
    pub keep_data_ms: Option<u64>,
    /// The document's property for the target of a result or payload: added to the message if one
    /// cannot be merged. Empty if there is none.
    pub merge_hint: &'static str,
}

impl Workflow {
    /// The flow of the workflow itself.
    pub const ROOT: FlowId = FlowId(0);

    pub fn state_by_name(&self, flow: FlowId, name: &str) -> Option<StateId> {
        let mut states = self[flow].states.iter();
        states.find(|&&id| *self[id].name == *name).copied()
    }
}

/// A search attribute: an expression over the state data, and the type of its result.
#[derive(Debug, Clone)]
pub struct SearchAttribute {
    pub name: Arc<str>,
    pub value: ExprId,
    pub kind: AttributeKind,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Version {
    Literal(String),
    /// Evaluated over the workflow's input when an instance starts.
    Expression(ExprId),
    /// No version is given, in an edition that then assumes `latest`. `$WORKFLOW` shows that word; the id has no
    /// version.
    Latest,
}

impl Version {
    /// The word for the version that is the latest, in references and where none is given.
    pub const LATEST: &'static str = "latest";
}

impl Default for Version {
    fn default() -> Version {
        Version::Literal(String::new())
    }
}

/// A length of time, as such or as an expression that gives an ISO 8601 duration. It is evaluated over the state data
/// when the time begins to count; that of the whole workflow over the input. Any other result is an `ExpressionError`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    Fixed(IsoDuration),
    Expression(ExprId),
}

impl From<IsoDuration> for Period {
    fn from(duration: IsoDuration) -> Period {
        Period::Fixed(duration)
    }
}

impl Period {
    /// The length, where it is known without any data.
    pub fn fixed(&self) -> Option<IsoDuration> {
        match self {
            Period::Fixed(duration) => Some(*duration),
            Period::Expression(_) => None,
        }
    }
}

/// A flow of states with its starting state.
#[derive(Debug, Clone, Default)]
pub struct Flow {
    pub start: StateId,
    pub states: Vec<StateId>,
    /// When the flow of a branch or iteration may begin. One that begins at another time is done at once, and its data
    /// is as it was. A window that doesn't count from an instant counts from the beginning of the instance.
    pub window: Option<Schedule>,
}

#[derive(Debug, Clone, Default)]
pub struct State {
    pub name: Arc<str>,
    pub flow: FlowId,
    pub kind: StateKind,
    /// Its place in the document, as a JSON pointer; empty if unused.
    pub pointer: String,
    /// `stateDataFilter.input`.
    pub input: Option<ExprId>,
    /// `stateDataFilter.output`.
    pub output: Option<ExprId>,
    /// Schemas of the state's data, after the input filter and after the output filter.
    pub input_schema: Option<Schema>,
    pub output_schema: Option<Schema>,
    /// Repeats the state as a whole, before its handlers are asked. The first rule that fits decides, even if it allows
    /// no retry.
    pub retries: Vec<StateRetryRule>,
    pub on_errors: Vec<Handler>,
    /// Absent where the kind has its own (switch) and in the last of compensating states.
    pub next: Option<Next>,
    pub compensated_by: Option<StateId>,
    pub used_for_compensation: bool,
    pub timeout: Option<Period>,
    pub metadata: Data,
}

/// The repetition of an action. Its attempts are counted again each time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Repeat {
    /// Over the state data: it continues while this holds.
    pub test: Option<ExprId>,
    /// The test comes before each repetition; otherwise after each.
    pub before: bool,
    /// At most this many times.
    pub max: Option<u32>,
    /// An error that no handler takes doesn't end it.
    pub past_errors: bool,
    /// One of these events ends it: iterations under way are finished, and no more begin.
    pub stop_on: Vec<EventId>,
}

#[derive(Debug, Clone)]
pub struct Function {
    pub name: Arc<str>,
    pub kind: FunctionKind,
    /// As written; an object (a request of `http`, an OpenAPI document of `rest`) as JSON text.
    pub operation: String,
    /// `authRef`, for the document that `operation` names.
    pub resource_auth: Option<AuthId>,
    pub auth: Option<AuthId>,
    pub metadata: Data,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FunctionKind {
    Asyncapi,
    Custom(String),
    Expression,
    Graphql,
    /// A request that the operation describes itself.
    Http,
    Odata,
    Rest,
    Rpc,
}

impl FunctionKind {
    pub fn as_str(&self) -> &str {
        match self {
            FunctionKind::Asyncapi => "asyncapi",
            FunctionKind::Custom(word) => word,
            FunctionKind::Expression => "expression",
            FunctionKind::Graphql => "graphql",
            FunctionKind::Http => "http",
            FunctionKind::Odata => "odata",
            FunctionKind::Rest => "rest",
            FunctionKind::Rpc => "rpc",
        }
    }
}

#[derive(Debug, Clone)]
pub struct EventDef {
    pub name: Arc<str>,
    pub source: Option<String>,
    pub kind: Option<String>,
    pub produced: bool,
    pub correlation: Vec<Correlation>,
    /// The payload alone is the event's data; otherwise the whole CloudEvent is.
    pub data_only: bool,
    pub metadata: Data,
}

#[derive(Debug, Clone)]
pub struct Correlation {
    /// Lower case: attribute names are compared without regard to case.
    pub attribute: Arc<str>,
    pub value: Option<Template>,
}

/// `auth`: properties may be expressions, evaluated by the worker when a function is called.
#[derive(Debug, Clone)]
pub struct AuthDef {
    pub name: String,
    pub scheme: AuthScheme,
    pub properties: Template,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthScheme {
    Basic,
    Bearer,
    OAuth2,
}

/// A value that may contain expressions.
#[derive(Debug, Clone, PartialEq)]
pub enum Template {
    Literal(Data),
    /// `${ ... }` alone: the value with its type.
    Expression(ExprId),
    /// `${ ... }` inside a longer string.
    Text(Vec<TextPart>),
    Array(Vec<Template>),
    Object(Vec<(String, Template)>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum TextPart {
    Text(String),
    Expression(ExprId),
}

/// An expression as written, without its `${ }`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ExprSource {
    pub language: Language,
    pub text: String,
    /// Iteration parameters in sight, as variables.
    pub params: Vec<Arc<str>>,
    /// Its place in the document, as a JSON pointer.
    pub pointer: String,
}

#[derive(Debug, Clone)]
pub struct Schema {
    pub schema: Data,
    /// `failOnValidationErrors`.
    pub fail: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct WorkflowTimeout {
    pub duration: Period,
    pub interrupt: bool,
    pub run_before: Option<StateId>,
}

/// The timeout that an instance was started with, in place of its definition's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimeoutOverride {
    pub duration: IsoDuration,
    pub interrupt: bool,
    pub run_before: Option<String>,
}

/// When instances are created by themselves, or may be created at all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    pub when: When,
    /// IANA name; UTC if absent.
    pub timezone: Option<String>,
    /// Only it creates instances: other requests for one, by hand, by an event or as a sub-workflow, are refused.
    pub exclusive: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum When {
    Cron {
        expression: String,
        valid_until: Option<String>,
    },
    /// `R/...`: an instance at the beginning of each interval.
    Interval(String),
    /// An ISO 8601 interval that creates nothing by itself. Events may create instances only within it; if the schedule
    /// is exclusive, the same applies to all other requests.
    Window(String),
}

/// How long instances are kept after their end, by outcome, in milliseconds (`metadata.swirl.retention`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Retention {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faulted: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminated: Option<u64>,
}

impl Retention {
    pub fn is_empty(&self) -> bool {
        *self == Retention::default()
    }
}
