//! The canonical workflow: what every edition of the language is lowered to.
//!
//! Names are resolved to indexes, inherited settings (timeouts, retry policies) are pushed down to
//! where they hold, and every expression stands once in [`Workflow::expressions`]. The engine never
//! sees a document, a name that could be missing, or an edition.
//!
//! Editions differ in what they can say, so the shapes here are wider than 0.8: a branch or an
//! iteration may hold a flow of states (0.1, tasks draft), a wait may be a boolean expression over
//! events (0.1), a handler may retry the whole state (0.5), an entry of an event state may have a
//! transition of its own (0.1).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Data;
use crate::time::IsoDuration;

macro_rules! index {
    ($($(#[$doc:meta])* $name:ident => $field:ident: $item:ty;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
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
    pub key: Option<String>,
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
}

impl Workflow {
    /// The flow of the workflow itself.
    pub const ROOT: FlowId = FlowId(0);

    pub fn state_by_name(&self, flow: FlowId, name: &str) -> Option<StateId> {
        let mut states = self[flow].states.iter();
        states.find(|&&id| *self[id].name == *name).copied()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Version {
    Literal(String),
    /// Evaluated over the workflow's input when an instance starts.
    Expression(ExprId),
}

impl Default for Version {
    fn default() -> Version {
        Version::Literal(String::new())
    }
}

/// A flow of states with its starting state.
#[derive(Debug, Clone)]
pub struct Flow {
    pub start: StateId,
    pub states: Vec<StateId>,
}

#[derive(Debug, Clone)]
pub struct State {
    pub name: Arc<str>,
    pub flow: FlowId,
    pub kind: StateKind,
    /// `stateDataFilter.input`.
    pub input: Option<ExprId>,
    /// `stateDataFilter.output`.
    pub output: Option<ExprId>,
    /// Schemas of a state's data (0.5 and the tasks draft).
    pub input_schema: Option<Schema>,
    pub output_schema: Option<Schema>,
    pub on_errors: Vec<Handler>,
    /// Absent where the kind has its own (switch) and in the last of compensating states.
    pub next: Option<Next>,
    pub compensated_by: Option<StateId>,
    pub used_for_compensation: bool,
    pub timeout: Option<IsoDuration>,
    pub metadata: Data,
}

#[derive(Debug, Clone)]
pub enum StateKind {
    Callback(Callback),
    Event(EventState),
    Foreach(Foreach),
    Inject(Data),
    Operation(ListId),
    Parallel(Parallel),
    Sleep(IsoDuration),
    Switch(Switch),
    SwitchEvents(SwitchEvents),
}

impl StateKind {
    /// The language's word for it.
    pub fn word(&self) -> &'static str {
        match self {
            StateKind::Callback(_) => "callback",
            StateKind::Event(_) => "event",
            StateKind::Foreach(_) => "foreach",
            StateKind::Inject(_) => "inject",
            StateKind::Operation(_) => "operation",
            StateKind::Parallel(_) => "parallel",
            StateKind::Sleep(_) => "sleep",
            StateKind::Switch(_) | StateKind::SwitchEvents(_) => "switch",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Callback {
    /// A list of one.
    pub actions: ListId,
    pub event: EventId,
    pub filter: EventFilter,
    pub timeout: Option<IsoDuration>,
}

#[derive(Debug, Clone)]
pub struct EventState {
    /// The first entry whose wait is over ends the state; else all entries run.
    pub exclusive: bool,
    pub entries: Vec<OnEvents>,
    pub timeout: Option<IsoDuration>,
    /// The timeout starts anew with each event (tasks draft).
    pub timeout_restarts: bool,
}

#[derive(Debug, Clone)]
pub struct OnEvents {
    /// Each takes one event.
    pub events: Vec<EventId>,
    /// When the entry's wait is over, over the positions in `events`.
    pub wait: Wait,
    pub filter: EventFilter,
    pub actions: ListId,
    /// Where to go after the actions, if the entry says so itself (0.1).
    pub next: Option<Next>,
    /// How long to wait for this entry (0.1).
    pub timeout: Option<IsoDuration>,
}

/// When enough events of an entry are there.
#[derive(Debug, Clone, PartialEq)]
pub enum Wait {
    Event(u16),
    All(Vec<Wait>),
    Any(Vec<Wait>),
    Not(Box<Wait>),
}

impl Wait {
    pub fn holds(&self, arrived: &dyn Fn(u16) -> bool) -> bool {
        match self {
            Wait::Event(index) => arrived(*index),
            Wait::All(list) => list.iter().all(|wait| wait.holds(arrived)),
            Wait::Any(list) => list.iter().any(|wait| wait.holds(arrived)),
            Wait::Not(wait) => !wait.holds(arrived),
        }
    }
}

/// `eventDataFilter`.
#[derive(Debug, Clone, Default)]
pub struct EventFilter {
    /// `useData: false`.
    pub ignore: bool,
    pub data: Option<ExprId>,
    pub to: Option<PathId>,
}

#[derive(Debug, Clone)]
pub struct Switch {
    pub conditions: Vec<Condition>,
    pub default: Option<Next>,
}

#[derive(Debug, Clone)]
pub struct Condition {
    pub name: Option<String>,
    pub test: ExprId,
    /// True if anything is selected (JSONPath editions); else it must be a boolean (decision 16).
    pub existence: bool,
    pub next: Next,
}

#[derive(Debug, Clone)]
pub struct SwitchEvents {
    pub conditions: Vec<EventCondition>,
    pub timeout: Option<IsoDuration>,
    pub default: Option<Next>,
}

#[derive(Debug, Clone)]
pub struct EventCondition {
    pub name: Option<String>,
    pub event: EventId,
    pub filter: EventFilter,
    pub next: Next,
}

#[derive(Debug, Clone)]
pub struct Parallel {
    pub branches: Vec<Branch>,
    /// `None`: all of them.
    pub at_least: Option<Count>,
    /// The state's output is the list of the branches' outputs (0.1).
    pub collect: bool,
}

#[derive(Debug, Clone)]
pub struct Branch {
    pub name: Arc<str>,
    pub body: Body,
    pub timeout: Option<IsoDuration>,
    /// False: the state goes on without it (0.1, `wait-for-completion`).
    pub awaited: bool,
}

/// What a branch or iteration runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Body {
    Actions(ListId),
    Flow(FlowId),
}

#[derive(Debug, Clone)]
pub struct Foreach {
    pub input: ExprId,
    pub output: Option<PathId>,
    pub param: Arc<str>,
    pub mode: IterationMode,
    pub body: Body,
    /// Pause between iterations (tasks draft, `timeDelay`).
    pub pause: Option<IsoDuration>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum IterationMode {
    Sequential,
    /// All at once.
    Parallel,
    /// One batch after another (`batchSize`).
    Batches(Count),
    /// So many at any time (`max`, before 0.6).
    Window(Count),
}

/// A number given as such or as an expression over the state data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    Fixed(u32),
    Expression(ExprId),
}

/// `onErrors` of a state.
#[derive(Debug, Clone)]
pub struct Handler {
    pub errors: ErrorSet,
    /// Retries the whole state's actions before the handler's own way is taken (0.5).
    pub retry: Option<Retry>,
    pub next: Next,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ErrorSet {
    /// `*`: all that no other handler of the state names.
    Any,
    These(Vec<ErrorId>),
    /// An expression over the error (tasks draft).
    When(ExprId),
}

/// `errors`: matched by `code` (equal to the code or the status), without one by `name`.
#[derive(Debug, Clone, PartialEq)]
pub struct ErrorDef {
    pub name: String,
    pub code: Option<String>,
}

/// Where control goes after a state.
#[derive(Debug, Clone)]
pub enum Next {
    Transition(Transition),
    End(End),
}

#[derive(Debug, Clone)]
pub struct Transition {
    pub to: StateId,
    pub compensate: bool,
    pub produce: Vec<Produce>,
    /// Must hold, else the instance faults with `TransitionRefused` (before 0.6).
    pub guard: Option<ExprId>,
}

#[derive(Debug, Clone, Default)]
pub struct End {
    pub terminate: bool,
    pub compensate: bool,
    pub produce: Vec<Produce>,
    pub continue_as: Option<ContinueAs>,
    /// The instance ends as faulted (0.1, END with a failing status).
    pub fail: Option<String>,
    /// Terminates the parents too (0.5 and the tasks draft, decision 45).
    pub terminate_parents: bool,
}

#[derive(Debug, Clone)]
pub struct ContinueAs {
    pub workflow: String,
    pub version: Option<String>,
    pub data: Option<Template>,
    /// Replaces the continuing workflow's own `workflowExecTimeout`.
    pub timeout: Option<TimeoutOverride>,
}

/// A CloudEvent to produce.
#[derive(Debug, Clone)]
pub struct Produce {
    pub event: EventId,
    pub data: Option<Template>,
    pub attributes: Vec<(String, Template)>,
}

/// Actions that run in sequence, or at once as branches of one action each.
#[derive(Debug, Clone, Default)]
pub struct ActionList {
    pub actions: Vec<ActionId>,
    pub parallel: bool,
}

#[derive(Debug, Clone)]
pub struct Action {
    pub name: Option<Arc<str>>,
    pub kind: ActionKind,
    pub condition: Option<ExprId>,
    pub sleep_before: Option<IsoDuration>,
    pub sleep_after: Option<IsoDuration>,
    /// `actionDataFilter.fromStateData`.
    pub from: Option<ExprId>,
    pub results: ResultRule,
    pub retry: Option<RetryRule>,
    /// Bounds each attempt: `actionExecTimeout` of the branch, the state or the workflow.
    pub timeout: Option<IsoDuration>,
}

/// What becomes of an action's result.
#[derive(Debug, Clone, Default)]
pub struct ResultRule {
    /// `useResults: false`.
    pub ignore: bool,
    pub results: Option<ExprId>,
    pub to: Option<PathId>,
    /// A result that is no object replaces the data (0.1).
    pub replace: bool,
}

#[derive(Debug, Clone)]
pub enum ActionKind {
    Call(Call),
    Event(EventAction),
    Expression {
        function: FunctionId,
        expression: ExprId,
        arguments: Option<Template>,
        detached: bool,
    },
    Subflow(Subflow),
}

#[derive(Debug, Clone)]
pub struct Call {
    pub function: FunctionId,
    /// `None`: the action's data itself (decision 54).
    pub arguments: Option<Template>,
    pub selection_set: Option<Template>,
    /// `invoke: async`.
    pub detached: bool,
}

#[derive(Debug, Clone)]
pub struct EventAction {
    pub produce: Produce,
    pub consume: Option<EventId>,
    pub timeout: Option<IsoDuration>,
    pub detached: bool,
}

#[derive(Debug, Clone)]
pub struct Subflow {
    pub workflow: String,
    pub version: Option<String>,
    pub detached: bool,
    /// `onParentComplete`: of a detached one only.
    pub on_parent_end: OnParentEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnParentEnd {
    Terminate,
    Continue,
}

/// For which errors an action is retried, and how.
#[derive(Debug, Clone)]
pub struct RetryRule {
    pub policy: Retry,
    pub errors: RetryErrors,
}

#[derive(Debug, Clone, PartialEq)]
pub enum RetryErrors {
    All,
    Only(Vec<ErrorId>),
    Except(Vec<ErrorId>),
    /// An expression over the task data with the error (tasks draft), or a text to match (0.1).
    When(ExprId),
}

/// A retry policy (decisions 20 and 21).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Retry {
    pub delay: Option<IsoDuration>,
    pub increment: Option<IsoDuration>,
    pub multiplier: Option<f64>,
    pub max_delay: Option<IsoDuration>,
    pub jitter: Jitter,
    /// How many retries may follow the first attempt; `None` is unlimited.
    pub retries_max: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub enum Jitter {
    #[default]
    None,
    /// Of the delay, 0.0 to 1.0, added or subtracted.
    Fraction(f64),
    Absolute(IsoDuration),
}

#[derive(Debug, Clone)]
pub struct Function {
    pub name: Arc<str>,
    pub kind: FunctionKind,
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
    Odata,
    Rest,
    Rpc,
}

impl FunctionKind {
    pub fn word(&self) -> &str {
        match self {
            FunctionKind::Asyncapi => "asyncapi",
            FunctionKind::Custom(word) => word,
            FunctionKind::Expression => "expression",
            FunctionKind::Graphql => "graphql",
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
    /// The payload alone is the event's data; else the whole CloudEvent is.
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

/// A value in which expressions may stand.
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
    /// Where it stands in the document, as a JSON pointer.
    pub pointer: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    Jq,
    JsonPath,
}

#[derive(Debug, Clone)]
pub struct Schema {
    pub schema: Data,
    /// `failOnValidationErrors`.
    pub fail: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkflowTimeout {
    pub duration: IsoDuration,
    pub interrupt: bool,
    pub run_before: Option<StateId>,
}

/// A [`WorkflowTimeout`] for another workflow, whose states are known by name only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimeoutOverride {
    pub duration: IsoDuration,
    pub interrupt: bool,
    pub run_before: Option<String>,
}

/// When instances are created by themselves, or may be created at all.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    pub when: When,
    /// IANA name; UTC if absent.
    pub timezone: Option<String>,
    /// Starts by hand outside of it are refused (`directInvoke: deny`).
    pub exclusive: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum When {
    Cron {
        expression: String,
        valid_until: Option<String>,
    },
    /// `R/...`: an instance at the beginning of each interval.
    Interval(String),
    /// A window in which instances may be created (0.5, tasks draft).
    Window(String),
}
