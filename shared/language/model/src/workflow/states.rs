//! The kinds of states.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::*;

#[derive(Debug, Clone)]
pub enum StateKind {
    Callback(Callback),
    /// Tasks in a list.
    Do(FlowId),
    Emit(Emit),
    Event(EventState),
    For(For),
    Foreach(Foreach),
    /// Tasks of a function.
    Function(TaskFunction),
    /// A value to merge into the state data; null adds nothing.
    Inject(Data),
    Listen(Box<Listen>),
    Operation(ListId),
    Parallel(Parallel),
    Raise(Raise),
    /// The data becomes this value.
    Set(Template),
    Sleep(Period),
    Switch(Switch),
    SwitchEvents(SwitchEvents),
    Try(Box<Try>),
}

impl Default for StateKind {
    fn default() -> StateKind {
        StateKind::Inject(Data::NULL)
    }
}

impl StateKind {
    /// The language's word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            StateKind::Callback(_) => "callback",
            StateKind::Do(_) => "do",
            StateKind::Emit(_) => "emit",
            StateKind::For(_) => "for",
            StateKind::Function(_) => "call",
            StateKind::Listen(_) => "listen",
            StateKind::Raise(_) => "raise",
            StateKind::Set(_) => "set",
            StateKind::Try(_) => "try",
            StateKind::Event(_) => "event",
            StateKind::Foreach(_) => "foreach",
            StateKind::Inject(_) => "inject",
            StateKind::Operation(_) => "operation",
            StateKind::Parallel(_) => "parallel",
            StateKind::Sleep(_) => "sleep",
            StateKind::Switch(_) | StateKind::SwitchEvents(_) => "switch",
        }
    }

    /// The ways that a switch chooses from.
    pub fn switch_ways(&self) -> Vec<&Next> {
        let (conditions, default): (Vec<&Next>, _) = match self {
            StateKind::Switch(switch) => {
                let conditions = switch.conditions.iter().map(|condition| &condition.next);
                (conditions.collect(), &switch.default)
            }
            StateKind::SwitchEvents(switch) => {
                let conditions = switch.conditions.iter().map(|condition| &condition.next);
                (conditions.collect(), &switch.default)
            }
            _ => return Vec::new(),
        };
        conditions.into_iter().chain(default).collect()
    }

    /// The lists of actions that the state itself runs. Those of states inside it aren't among them.
    pub fn action_lists(&self) -> Vec<ListId> {
        let of_body = |body: &Body| match body {
            Body::Actions(list) => Some(*list),
            Body::Flow(_) => None,
        };
        match self {
            StateKind::Callback(callback) => vec![callback.actions],
            StateKind::Event(event) => event.entries.iter().map(|entry| entry.actions).collect(),
            StateKind::Foreach(foreach) => of_body(&foreach.body).into_iter().collect(),
            StateKind::Listen(listen) => listen.source.into_iter().collect(),
            StateKind::Operation(list) => vec![*list],
            StateKind::Parallel(parallel) => {
                let bodies = parallel.branches.iter().map(|branch| &branch.body);
                bodies.filter_map(of_body).collect()
            }
            StateKind::Do(_)
            | StateKind::Emit(_)
            | StateKind::For(_)
            | StateKind::Function(_)
            | StateKind::Inject(_)
            | StateKind::Raise(_)
            | StateKind::Set(_)
            | StateKind::Sleep(_)
            | StateKind::Switch(_)
            | StateKind::SwitchEvents(_)
            | StateKind::Try(_) => Vec::new(),
        }
    }

    /// The flows of states inside it, in its own scope and in others.
    pub fn flows(&self) -> Vec<FlowId> {
        let of_body = |body: &Body| match body {
            Body::Flow(flow) => Some(*flow),
            Body::Actions(_) => None,
        };
        let mut flows: Vec<FlowId> = self.inner_flows().collect();
        match self {
            StateKind::Foreach(foreach) => flows.extend(of_body(&foreach.body)),
            StateKind::Parallel(parallel) => {
                let bodies = parallel.branches.iter().map(|branch| &branch.body);
                flows.extend(bodies.filter_map(of_body));
            }
            _ => {}
        }
        flows
    }

    /// The lists of tasks that run in the same scope.
    pub fn inner_flows(&self) -> impl Iterator<Item = FlowId> {
        let (body, handler) = match self {
            StateKind::Do(flow) => (Some(*flow), None),
            StateKind::For(each) => (Some(each.body), None),
            StateKind::Function(function) => (Some(function.body), None),
            StateKind::Listen(listen) => {
                let each = listen.each.as_ref();
                (each.and_then(|each| each.body), None)
            }
            StateKind::Try(attempt) => (Some(attempt.body), attempt.handler),
            _ => (None, None),
        };
        body.into_iter().chain(handler)
    }
}

#[derive(Debug, Clone)]
pub struct Callback {
    /// A list of one.
    pub actions: ListId,
    pub event: EventId,
    pub filter: EventFilter,
    pub timeout: Option<Period>,
}

/// Waits for events, anywhere in a workflow; as the starting state of a workflow its entries, waits and timeouts say
/// which events start an instance.
#[derive(Debug, Clone, Default)]
pub struct EventState {
    /// The first entry whose wait ends also ends the state. Otherwise all entries run, in parallel,
    /// each as soon as its wait is over.
    pub exclusive: bool,
    pub entries: Vec<OnEvents>,
    pub timeout: Option<Period>,
    /// The timeout restarts with each event.
    pub timeout_restarts: bool,
}

#[derive(Debug, Clone, Default)]
pub struct OnEvents {
    /// Each takes one event.
    pub events: Vec<EventId>,
    /// When the entry's wait is over: an expression over the positions in `events`. It may require several events in an
    /// exclusive state too.
    pub wait: Wait,
    pub filter: EventFilter,
    pub actions: ListId,
    /// Where to go after the actions, if the entry has its own transition. It ends the state.
    pub next: Option<Next>,
    /// How long to wait for this entry, from the beginning of the state (in an instance that events start: from the
    /// first of them). After that it is no longer awaited. If no other entry is left, the state continues without
    /// actions: by this entry's `next` if there is one, otherwise by its own.
    pub timeout: Option<Period>,
}

/// When enough events of an entry are there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Wait {
    Event(u16),
    All(Vec<Wait>),
    Any(Vec<Wait>),
    Not(Box<Wait>),
}

impl Default for Wait {
    /// Always holds: nothing is waited for.
    fn default() -> Wait {
        Wait::All(Vec::new())
    }
}

impl Wait {
    /// Each of the first `count` positions.
    pub fn all(count: u16) -> Wait {
        Wait::All((0..count).map(Wait::Event).collect())
    }

    /// Any of the first `count` positions.
    pub fn any(count: u16) -> Wait {
        Wait::Any((0..count).map(Wait::Event).collect())
    }

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
    /// Where `data` selects nothing in the payload, it is applied to the event as a whole: its
    /// attributes and `data`.
    pub or_whole: bool,
    pub to: Option<PathId>,
    /// The value that `data` selects goes under a key.
    pub under: Option<Under>,
    /// Applied to the state data once the payload is in it: its selection becomes the state data.
    pub output: Option<ExprId>,
}

#[derive(Debug, Clone)]
pub struct Switch {
    pub conditions: Vec<Condition>,
    pub default: Option<Next>,
}

#[derive(Debug, Clone)]
pub struct Condition {
    pub name: Option<String>,
    pub test: Test,
    pub next: Next,
}

/// A condition over the state data.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// Must give a boolean (docs/language.md#decision-16).
    Holds(ExprId),
    /// Holds if anything is selected: not null, not false, no empty list.
    Exists(ExprId),
    /// Compares the selection of a path with a value. If the path selects a list of matches, one of them must fit; if
    /// it selects nothing, the condition doesn't hold.
    Compare {
        path: ExprId,
        operator: Comparison,
        value: Data,
        /// True: both sides are compared as texts. False: as numbers if both are numbers or look like them, otherwise
        /// as texts.
        as_text: bool,
    },
    All(Vec<Test>),
    Any(Vec<Test>),
    Not(Box<Test>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// The value is a regular expression, which some part of the text must match.
    Matches,
    /// It is present, and null. The value is not examined.
    Null,
    /// It is present, also as null. The value is not examined.
    Present,
}

#[derive(Debug, Clone)]
pub struct SwitchEvents {
    pub conditions: Vec<EventCondition>,
    pub timeout: Option<Period>,
    pub default: Option<Next>,
}

#[derive(Debug, Clone)]
pub struct EventCondition {
    pub name: Option<String>,
    pub event: EventId,
    pub filter: EventFilter,
    pub next: Next,
}

#[derive(Debug, Clone, Default)]
pub struct Parallel {
    pub branches: Vec<Branch>,
    /// How many of the awaited branches must be done. `None`: all of them.
    pub at_least: Option<Count>,
    /// True: the state data becomes the list of the outputs of the awaited branches, in their order. False: the result
    /// of each branch is merged into the state data, in the order of the branches. The result of a list of actions is
    /// the actions' results, that of a flow of states is the output of the state in which it ended.
    pub collect: bool,
    /// Where in the state data that list goes; `None`: it becomes the state data.
    pub collect_to: Option<PathId>,
    /// The output of the first branch that completes becomes the state data. A branch that fails is out of the race.
    pub race: bool,
}

impl Parallel {
    /// One of the branches that the state waits for, by its place among them.
    pub fn awaited(&self, index: u32) -> Option<&Branch> {
        let mut awaited = self.branches.iter().filter(|branch| branch.awaited);
        awaited.nth(index as usize)
    }
}

#[derive(Debug, Clone)]
pub struct Branch {
    pub name: Arc<str>,
    pub body: Body,
    pub timeout: Option<Period>,
    /// False: it isn't waited for, its errors are ignored, and nothing of it is merged. It is cancelled if it still
    /// runs when the instance ends. An end with `terminate` in it ends the instance.
    pub awaited: bool,
}

/// The work of a branch or iteration. A flow begins with the state data, and yields the data output of the state that
/// it ends in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Body {
    Actions(ListId),
    Flow(FlowId),
}

#[derive(Debug, Clone)]
pub struct Foreach {
    /// One value, an array; or the list of matches of a path.
    pub input: ExprId,
    pub output: Option<PathId>,
    pub param: Arc<str>,
    pub mode: IterationMode,
    pub body: Body,
    /// Pause before each iteration, or each batch of them, but the first.
    pub pause: Option<Period>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum IterationMode {
    Sequential,
    /// All at once.
    Parallel,
    /// One batch after another (`batchSize`).
    Batches(Count),
    /// This many at any time: whenever one is done, the next one begins. 0: without a bound.
    Window(Count),
}

/// A number given as such or as an expression over the state data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    Fixed(u32),
    Expression(ExprId),
}
