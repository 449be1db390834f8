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
mod listen;
mod states;
mod tasks;
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
pub use listen::*;
pub use states::*;
pub use tasks::*;
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
    /// Those of them that are objects: one that is given as a text is read as JSON or YAML.
    pub secret_objects: Vec<String>,
    pub input_schema: Option<Schema>,
    pub output_schema: Option<Schema>,
    pub timeout: Option<WorkflowTimeout>,
    pub keep_active: bool,
    pub schedule: Option<Schedule>,
    /// Errors are described as RFC 7807 says: each has a `type` (a URI) and a status, and its
    /// `instance` is the pointer of the action or state that it came from. The value is the beginning of the types of the
    /// language's own errors.
    pub problems: Option<&'static str>,
    /// Of a workflow of tasks.
    pub tasks: Option<Box<TaskWorkflow>>,
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

    /// The state of the workflow's own flow that is around a state with this name.
    pub fn main_state_around(&self, name: &str) -> Option<StateId> {
        let mut main = self[Workflow::ROOT].states.iter();
        main.find(|&&id| self.is_around(id, name)).copied()
    }

    fn is_around(&self, outer: StateId, name: &str) -> bool {
        let inner = self[outer].kind.flows().into_iter();
        let mut inner = inner.flat_map(|flow| &self[flow].states);
        inner.any(|&id| *self[id].name == *name || self.is_around(id, name))
    }

    /// An action's name, or the name of its function, event or sub-workflow.
    pub fn action_name(&self, action: &Action) -> Option<String> {
        let function = |id: FunctionId| {
            let function = self.functions.get(id.0 as usize)?;
            Some(function.name.to_string())
        };
        if let Some(name) = &action.name {
            return Some(name.to_string());
        }
        match &action.kind {
            ActionKind::Call(call) => function(call.function),
            ActionKind::Expression { function: id, .. } => function(*id),
            ActionKind::Event(event) => {
                let produced = event.produce.as_ref().map(|produce| produce.event);
                let def = self.events.get(produced.or(event.consume)?.0 as usize);
                def.map(|def| def.name.to_string())
            }
            ActionKind::Subflow(subflow) => Some(subflow.workflow.clone()),
        }
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
    /// Of a task.
    pub task: Option<Box<Task>>,
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
    /// Of a call that a task describes itself: the task's place in the document, as a JSON pointer. The name is that of
    /// the task then. Otherwise empty.
    pub place: String,
    /// Of a call in a function that is defined as a task.
    pub within: Option<Box<Within>>,
}

/// The task that calls a function with further calls in it, the outermost one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Within {
    pub task: Arc<str>,
    pub place: String,
    /// The functions between the two, the innermost first.
    pub functions: Vec<Arc<str>>,
}

impl Function {
    /// What tells it from the other functions of its definition. Names of tasks aren't unique.
    pub fn key(&self) -> &str {
        match self.place.as_str() {
            "" => &self.name,
            place => place,
        }
    }

    /// The name of the task that makes its calls, as seen from outside of functions.
    pub fn task(&self) -> &Arc<str> {
        self.within
            .as_ref()
            .map_or(&self.name, |within| &within.task)
    }

    /// The place of that task.
    pub fn task_place(&self) -> &str {
        self.within
            .as_ref()
            .map_or(&self.place, |within| &within.place)
    }

    /// The keys by which a mock answers its calls, the first that is there.
    pub fn mock_keys(&self) -> impl Iterator<Item = &str> {
        let functions = self.within.iter().flat_map(|within| &within.functions);
        [self.task_place(), self.task()]
            .into_iter()
            .chain(functions.map(|name| &**name))
            .chain([&*self.name])
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FunctionKind {
    /// A request to an agent.
    A2a,
    Asyncapi,
    Custom(String),
    Expression,
    Graphql,
    /// A request that the operation describes itself.
    Http,
    /// A request that the arguments describe.
    HttpCall,
    /// A request of the Model Context Protocol.
    Mcp,
    Odata,
    /// A process that the worker runs; the operation is its kind.
    Process,
    Rest,
    Rpc,
}

impl FunctionKind {
    pub fn as_str(&self) -> &str {
        match self {
            FunctionKind::A2a => "a2a",
            FunctionKind::Asyncapi => "asyncapi",
            FunctionKind::Custom(word) => word,
            FunctionKind::Expression => "expression",
            FunctionKind::Graphql => "graphql",
            FunctionKind::Http => "http",
            FunctionKind::HttpCall => "http-call",
            FunctionKind::Mcp => "mcp",
            FunctionKind::Odata => "odata",
            FunctionKind::Process => "process",
            FunctionKind::Rest => "rest",
            FunctionKind::Rpc => "rpc",
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct EventDef {
    pub name: Arc<str>,
    pub source: Option<String>,
    pub kind: Option<String>,
    pub produced: bool,
    pub correlation: Vec<Correlation>,
    /// The payload alone is the event's data; otherwise the whole CloudEvent is.
    pub data_only: bool,
    pub metadata: Data,
    /// Of a filter of a task.
    pub filter: Option<EventAttributes>,
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
    Digest,
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
    /// A text that is an expression if it gives a value; otherwise it is itself.
    Loose(ExprId, String),
}

#[derive(Debug, Clone, PartialEq)]
pub enum TextPart {
    Text(String),
    Expression(ExprId),
}

/// Begins an expression that the reader made. Messages show the rest of its first line in place of the expression.
pub const SHOWN_AS: &str = "#: ";

/// An expression in a message, of at most this many characters.
pub fn shown(text: &str, chars_max: usize) -> String {
    if let Some(shown) = text.strip_prefix(SHOWN_AS) {
        return shown.lines().next().unwrap_or_default().to_owned();
    }
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
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
    /// An ISO 8601 duration: an instance at the deployment, then one this long after the end of the last one, however
    /// that ended, unless it was cancelled.
    After(String),
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
