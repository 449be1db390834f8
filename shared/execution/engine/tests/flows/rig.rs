//! Runs an instance and its branches in virtual time, with as much of a store as the engine's commands need.

use std::collections::BTreeMap;
use std::sync::Arc;

use swirl_commit::{Numbers, failures};
use swirl_engine::{
    Command, Definition, Env, Event, Input, NewInstance, Outcome, Rejection, branch_scope,
    new_instance, pending_request, step,
};
use swirl_model::ids::{InstanceId, ScopeId};
use swirl_model::instance::{EndStatus, Header};
use swirl_model::scope::{Fork, Scope, StartEvent, Timer};
use swirl_model::time::{IsoDuration, Timestamp};
use swirl_model::workflow::*;
use swirl_model::{CloudEvent, Data, WorkflowError};

/// A function's answer and its delay in seconds.
pub type Answer = (i64, Result<Data, WorkflowError>);

/// How an instance ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    pub status: EndStatus,
    pub output: Option<Data>,
    pub error: Option<String>,
    /// Time of the end, in seconds.
    pub at: i64,
}

pub struct Rig {
    pub def: Arc<Definition>,
    header: Header,
    scopes: BTreeMap<ScopeId, Scope>,
    forks: BTreeMap<(ScopeId, u32), Fork>,
    timers: Vec<(ScopeId, Timer)>,
    /// Calls under way, with the time of their answers.
    calls: Vec<(i64, ScopeId, Input)>,
    inbox: Vec<(ScopeId, Input)>,
    answers: fn(&str, usize) -> Answer,
    /// Function names and seconds, in the order in which the calls began.
    pub called: Vec<(String, i64)>,
    /// The key of each call.
    pub keys: Vec<String>,
    pub history: Vec<Event>,
    pub ended: Option<Ended>,
    now: i64,
}

impl Rig {
    pub fn new(workflow: Workflow, input: Data, answers: fn(&str, usize) -> Answer) -> Rig {
        let new = NewInstance {
            input,
            ..NewInstance::default()
        };
        Rig::of(Definition::compile(workflow).unwrap(), new, answers, 0)
    }

    /// An instance that was started by events of these types.
    pub fn started_by(
        workflow: Workflow,
        kinds: &[&str],
        answers: fn(&str, usize) -> Answer,
    ) -> Rig {
        let started = kinds.iter().map(|kind| {
            let mut defs = workflow.events.iter();
            let def = defs.position(|def| def.kind.as_deref() == Some(kind));
            StartEvent {
                def: def.unwrap() as u32,
                event: cloud_event(kind, 0),
            }
        });
        let new = NewInstance {
            input: Data::object(),
            events: started.collect(),
            ..NewInstance::default()
        };
        Rig::of(Definition::compile(workflow).unwrap(), new, answers, 0)
    }

    /// An instance that starts at this second.
    pub fn of(
        def: Arc<Definition>,
        new: NewInstance,
        answers: fn(&str, usize) -> Answer,
        at: i64,
    ) -> Rig {
        let now = at * 1000;
        let (header, root) = new_instance(&def, InstanceId::new("i"), new, Timestamp(now)).unwrap();
        let mut rig = Rig {
            def,
            header,
            scopes: BTreeMap::from([(ScopeId::root(), root)]),
            forks: BTreeMap::new(),
            timers: Vec::new(),
            calls: Vec::new(),
            inbox: vec![(ScopeId::root(), Input::Wake)],
            answers,
            called: Vec::new(),
            keys: Vec::new(),
            history: Vec::new(),
            ended: None,
            now,
        };
        rig.settle();
        rig
    }

    /// Runs to the end, or until only events could change anything.
    pub fn run(&mut self) -> Option<Ended> {
        while self.ended.is_none() && self.advance(i64::MAX) {}
        self.ended.clone()
    }

    /// Delivers an event of this type at this second.
    pub fn event(&mut self, kind: &str, at: i64) {
        while self.advance(at * 1000) {}
        self.now = at * 1000;
        let mut found = None;
        for (id, scope) in &self.scopes {
            for wait in scope.waits() {
                for slot in &wait.slots {
                    let mut filters = slot.filters.iter();
                    if let Some(filter) = filters.find(|f| f.kind.as_deref() == Some(kind)) {
                        found = Some((id.clone(), wait.wait, slot.slot, filter.def));
                    }
                }
            }
        }
        let Some((scope, wait, slot, def)) = found else {
            return;
        };
        let input = Input::Event {
            wait,
            slot,
            def,
            event: cloud_event(kind, at),
            offered: false,
            early: false,
        };
        self.inbox.push((scope, input));
        self.settle();
    }

    /// An operator's input at this second.
    pub fn operate(&mut self, input: Input, at: i64) -> Option<Ended> {
        while self.advance(at * 1000) {}
        self.now = at * 1000;
        self.ended = None;
        self.inbox.push((ScopeId::root(), input));
        self.settle();
        self.run()
    }

    /// The root scope's decision on an input at this second. Nothing else is notified of it.
    pub fn ask(&mut self, input: Input, at: i64) -> Result<Vec<Command>, Rejection> {
        let env = Env {
            now: Timestamp(at * 1000),
            ..Env::default()
        };
        let root = self.scopes.get_mut(&ScopeId::root()).unwrap();
        match step(&self.def, &self.header, root, input, &env) {
            Outcome::Accepted { events, commands } => {
                self.history.extend(events);
                Ok(commands)
            }
            Outcome::Rejected(reason) => Err(reason),
        }
    }

    /// Gives the answer of the only call under way to its scope as another input.
    pub fn instead(&mut self, input: fn(u32) -> Input) {
        let (_, scope, answer) = self.calls.remove(0);
        let Input::CallDone { call, .. } = answer else {
            panic!("{answer:?}")
        };
        self.inbox.push((scope, input(call)));
        self.settle();
    }

    pub fn root(&self) -> &Scope {
        &self.scopes[&ScopeId::root()]
    }

    /// Processes the next due item, unless it is after `until`.
    fn advance(&mut self, until: i64) -> bool {
        let call = self.calls.iter().map(|call| call.0).min();
        let timer = self.timers.iter().map(|(_, timer)| timer.due.0).min();
        let Some(next) = call
            .into_iter()
            .chain(timer)
            .min()
            .filter(|at| *at <= until)
        else {
            return false;
        };
        self.now = self.now.max(next);
        if call == Some(next) {
            let place = self.calls.iter().position(|call| call.0 == next).unwrap();
            let (_, scope, input) = self.calls.remove(place);
            self.inbox.push((scope, input));
        } else {
            let place = self
                .timers
                .iter()
                .position(|(_, timer)| timer.due.0 == next);
            let (scope, timer) = self.timers.remove(place.unwrap());
            self.inbox.push((scope, Input::Timer { seq: timer.seq }));
        }
        self.settle();
        true
    }

    fn settle(&mut self) {
        let mut turns = 0;
        while !self.inbox.is_empty() {
            let (scope, input) = self.inbox.remove(0);
            self.step(&scope, input);
            turns += 1;
            assert!(turns < 10_000, "it goes on for ever");
        }
    }

    fn step(&mut self, id: &ScopeId, input: Input) {
        let mut scope = match self.scopes.get(id) {
            Some(scope) => scope.clone(),
            None => {
                let mut forks = self.forks.iter();
                let found = forks.find_map(|((parent, fork), record)| {
                    let index =
                        (0..record.total).find(|index| parent.child(*fork, *index) == *id)?;
                    Some(branch_scope(&self.def, record, index))
                });
                match found {
                    Some(scope) => scope,
                    None => return,
                }
            }
        };
        let env = Env {
            now: Timestamp(self.now),
            ..Env::default()
        };
        let before = scope.pending_call();
        let outcome = step(&self.def, &self.header, &mut scope, input, &env);
        let Outcome::Accepted { events, commands } = outcome else {
            return;
        };
        assert!(self.def.fits(&scope), "{scope:?}");
        let json = serde_json::to_string(&scope).unwrap();
        let read: Scope = serde_json::from_str(&json).unwrap();
        assert_eq!(read, scope, "a scope is what its record says");
        self.history.extend(events);
        self.scopes.insert(id.clone(), scope.clone());
        let request = scope.pending_call().filter(|call| before != Some(*call));
        if request.is_some()
            && let Some(request) = pending_request(&self.def, &self.header, &scope, &env)
        {
            let request = request.unwrap();
            let name = self.def.workflow[request.function].name.to_string();
            let count = self
                .called
                .iter()
                .filter(|(known, _)| *known == name)
                .count();
            self.called.push((name.clone(), self.now / 1000));
            self.keys.push(request.key.clone());
            let (after, result) = (self.answers)(&name, count + 1);
            let input = Input::CallDone {
                call: request.call,
                result,
            };
            self.calls
                .push((self.now + after * 1000, id.clone(), input));
        }
        for command in commands {
            self.carry_out(id, command);
        }
    }

    fn carry_out(&mut self, id: &ScopeId, command: Command) {
        match command {
            Command::Arm(timer) => self.timers.push((id.clone(), timer)),
            Command::Disarm(seq) => self
                .timers
                .retain(|(scope, timer)| scope != id || timer.seq != seq),
            Command::Fork(fork) => {
                let (number, open) = (fork.fork, fork.open);
                self.forks.insert((id.clone(), number), fork);
                self.wake(id, number, 0..open);
            }
            Command::ExtendFork { fork, open, needed } => {
                let record = self.forks.get_mut(&(id.clone(), fork)).unwrap();
                let mut numbers = Numbers::of(record, 0);
                let opened = numbers.extend(open, needed);
                let is_news = numbers.renew();
                numbers.apply(record);
                self.wake(id, fork, opened);
                if is_news {
                    self.join(id, fork);
                }
            }
            Command::CloseFork(fork) => {
                if let Some(record) = self.forks.get_mut(&(id.clone(), fork)) {
                    record.closed = true;
                    for index in 0..record.open {
                        let branch = id.child(fork, index);
                        let status = EndStatus::Cancelled;
                        self.inbox.push((branch.clone(), Input::Cancel { status }));
                        self.calls.retain(|(_, scope, _)| *scope != branch);
                    }
                }
            }
            Command::ReviveBranch {
                fork,
                index,
                input,
                others,
            } => {
                let record = self.forks.get_mut(&(id.clone(), fork)).unwrap();
                let mut numbers = Numbers::of(record, 0);
                let mut failed: Vec<(u32, usize)> = failures(record).collect();
                failed.retain(|(at, _)| others || *at == index);
                failed.sort_by_key(|(at, _)| *at != index);
                for (index, bytes) in failed {
                    record.results.remove(&index);
                    numbers.revive(bytes);
                    let input = (*input).clone();
                    self.inbox.push((id.child(fork, index), input));
                }
                let is_news = numbers.renew();
                numbers.apply(record);
                if is_news {
                    self.join(id, fork);
                }
            }
            Command::Detach(scope) => {
                let id = scope.id.clone();
                self.scopes.insert(id.clone(), *scope);
                self.inbox.push((id, Input::Wake));
            }
            Command::Reopen => self.ended = None,
            Command::Report(result) => {
                let mut forks = self.forks.iter_mut();
                let found = forks.find_map(|((parent, fork), record)| {
                    let index =
                        (0..record.total).find(|index| parent.child(*fork, *index) == *id)?;
                    Some((parent.clone(), *fork, record, index))
                });
                let (parent, fork, record, index) = found.unwrap();
                if record.closed || record.results.contains_key(&index) {
                    return;
                }
                let mut numbers = Numbers::of(record, 0);
                let notifies = numbers.count(result.is_done(), result.bytes());
                numbers.apply(record);
                record.results.insert(index, result);
                if notifies {
                    self.join(&parent, fork);
                }
            }
            Command::End {
                status,
                output,
                error,
            } => {
                self.ended = Some(Ended {
                    status,
                    output,
                    error: error.map(|error| error.name),
                    at: self.now / 1000,
                });
            }
            Command::Send { to, input } => self.inbox.push((to.scope, *input)),
            Command::Yield => self.inbox.push((id.clone(), Input::Wake)),
            _ => {}
        }
    }

    fn wake(&mut self, parent: &ScopeId, fork: u32, indexes: std::ops::Range<u32>) {
        for index in indexes {
            self.inbox.push((parent.child(fork, index), Input::Wake));
        }
    }

    fn join(&mut self, parent: &ScopeId, fork: u32) {
        let record = self.forks.get_mut(&(parent.clone(), fork)).unwrap();
        record.notified = true;
        let numbers = Numbers::of(record, 0);
        let results = match numbers.passes_results() {
            true => record.results.clone().into_iter().collect(),
            false => Vec::new(),
        };
        let done = Some(numbers.done);
        let input = Input::Joined {
            fork,
            results,
            done,
        };
        self.inbox.push((parent.clone(), input));
    }
}

/// Builds a workflow piece by piece.
pub struct Make(pub Workflow);

impl Make {
    pub fn new() -> Make {
        Make(Workflow {
            id: "w".to_owned(),
            flows: vec![Flow {
                start: StateId(0),
                states: Vec::new(),
                ..Flow::default()
            }],
            ..Workflow::default()
        })
    }

    /// Adds a state to a flow. The flow begins with its first state.
    pub fn state(&mut self, flow: FlowId, kind: StateKind, next: Option<Next>) -> StateId {
        let id = StateId(self.0.states.len() as u32);
        self.0.states.push(State {
            name: format!("S{}", id.0).into(),
            flow,
            kind,
            next,
            ..State::default()
        });
        let found = &mut self.0.flows[flow.0 as usize];
        if found.states.is_empty() {
            found.start = id;
        }
        found.states.push(id);
        id
    }

    pub fn flow(&mut self) -> FlowId {
        self.0.flows.push(Flow {
            start: StateId(0),
            states: Vec::new(),
            ..Flow::default()
        });
        FlowId(self.0.flows.len() as u32 - 1)
    }

    pub fn expr(&mut self, text: &str) -> ExprId {
        self.0.expressions.push(source(text));
        ExprId(self.0.expressions.len() as u32 - 1)
    }

    pub fn path(&mut self, text: &str) -> PathId {
        self.0.paths.push(source(text));
        PathId(self.0.paths.len() as u32 - 1)
    }

    pub fn event(&mut self, kind: &str) -> EventId {
        self.0.events.push(EventDef {
            name: kind.into(),
            source: None,
            kind: Some(kind.to_owned()),
            produced: false,
            correlation: Vec::new(),
            data_only: true,
            metadata: Data::NULL,
            filter: None,
        });
        EventId(self.0.events.len() as u32 - 1)
    }

    pub fn list(&mut self, actions: Vec<Action>) -> ListId {
        let first = self.0.actions.len() as u32;
        let count = actions.len() as u32;
        self.0.actions.extend(actions);
        self.0.lists.push(ActionList {
            actions: (first..first + count).map(ActionId).collect(),
            parallel: false,
        });
        ListId(self.0.lists.len() as u32 - 1)
    }

    pub fn call(&mut self, name: &str) -> Action {
        self.0.functions.push(Function {
            name: name.into(),
            kind: FunctionKind::Rest,
            operation: String::new(),
            place: String::new(),
            resource_auth: None,
            auth: None,
            metadata: Data::NULL,
            within: None,
        });
        Action {
            kind: ActionKind::Call(Call {
                function: FunctionId(self.0.functions.len() as u32 - 1),
                arguments: Some(Template::Literal(Data::object())),
                selection_set: None,
                detached: false,
                subscription: None,
            }),
            ..Action::default()
        }
    }

    pub fn calls(&mut self, name: &str) -> ListId {
        let action = self.call(name);
        self.list(vec![action])
    }
}

/// Its data is the time of its arrival. It belongs to order 7.
fn cloud_event(kind: &str, at: i64) -> CloudEvent {
    let mut data = Data::object();
    data.set(kind, Data::int(at));
    CloudEvent {
        specversion: "1.0".to_owned(),
        id: format!("{kind}-{at}"),
        source: "/s".to_owned(),
        kind: kind.to_owned(),
        attributes: BTreeMap::from([("order".to_owned(), Data::string("7"))]),
        data: Some(data),
    }
}

fn source(text: &str) -> ExprSource {
    ExprSource {
        language: Language::Jq,
        text: text.to_owned(),
        params: Vec::new(),
        pointer: String::new(),
    }
}

pub fn end() -> Option<Next> {
    Some(Next::End(End::default()))
}

pub fn to(id: u32) -> Next {
    Next::Transition(Transition {
        to: StateId(id),
        compensate: false,
        produce: Vec::new(),
        guard: None,
    })
}

pub fn seconds(seconds: u64) -> Option<Period> {
    Some(IsoDuration::from_secs(seconds).into())
}

/// Waits this many seconds, and returns the function's name as its result.
pub fn after(seconds: i64, name: &str) -> Answer {
    let mut data = Data::object();
    data.set(name, Data::bool(true));
    (seconds, Ok(data))
}

pub fn failing(name: &str) -> Answer {
    (0, Err(WorkflowError::new(name, "it failed")))
}
