//! Lists of tasks, and what all tasks have (DSL 1.0, "Task", "Flow Directive").

use std::collections::HashMap;

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{End, Flow, FlowId, Next, State, StateId, StateKind, Task, Transition};

use super::Reader;
use super::value::{DEFINITION, EXPORT, TASK_INPUT};
use crate::build::advice::Advice;
use crate::build::ctx::{Obj, did_you_mean};

/// A kind of task.
pub(super) struct Kind {
    /// The property that says what a task does.
    pub word: &'static str,
    /// Its further properties.
    pub others: &'static [&'static str],
    pub read: fn(&mut Reader<'_, '_>, Given<'_>) -> Option<StateKind>,
}

/// A task as its kind sees it.
pub(super) struct Given<'t> {
    /// The value of the property that says what it does.
    pub node: &'t Node,
    pub task: Obj<'t>,
    pub name: &'t str,
    pub list: &'t mut List,
    /// Its place in the list.
    pub place: usize,
    pub then: Option<&'t Next>,
}

pub(super) const COMMON: [&str; 7] = [
    "if", "input", "output", "export", "timeout", "then", "metadata",
];

/// The list that is being read.
pub(super) struct List {
    pub flow: FlowId,
    ids: Vec<StateId>,
    names: HashMap<String, Vec<usize>>,
    /// The ways between its tasks, by place.
    edges: Vec<(usize, usize)>,
    /// Its `exit` skips the task that follows the list.
    skips: bool,
    /// Its tasks are the branches of a fork: none follows another.
    forks: bool,
}

impl List {
    /// The list of one task that a function is. No `then` leads back to it.
    pub fn of_one(flow: FlowId, id: StateId) -> List {
        List {
            flow,
            ids: vec![id],
            names: HashMap::new(),
            edges: Vec::new(),
            skips: false,
            forks: false,
        }
    }
}

impl Reader<'_, '_> {
    /// Reads a list of tasks as a flow.
    pub fn tasks(&mut self, node: &Node, what: &str) -> FlowId {
        self.task_list(node, what, false)
    }

    /// The branches of a fork, as a list of tasks that don't follow each other.
    pub fn branches(&mut self, node: &Node) -> FlowId {
        self.task_list(node, "'branches'", true)
    }

    fn task_list(&mut self, node: &Node, what: &str, forks: bool) -> FlowId {
        let skips = std::mem::take(&mut self.skips);
        let flow = FlowId(self.workflow.flows.len() as u32);
        self.workflow.flows.push(Flow::default());
        let items = self.list(node, what).unwrap_or_default();
        let mut named = Vec::with_capacity(items.len());
        for item in items {
            match item.members() {
                Some([member]) => named.push((member.key(), member.value())),
                Some(_) => {
                    let message = "an entry of a list of tasks has one key: the name of the task";
                    let hint = match self.kinds.iter().any(|kind| item.get(kind.word).is_some()) {
                        true => "write '- NAME:', and the task below it".to_owned(),
                        false => "begin a new entry with '- ' for each task".to_owned(),
                    };
                    self.error(item, codes::TASK_WITHOUT_NAME, message, hint);
                }
                None => self.wrong_type(item, "a task", "an object with its name as the key"),
            }
        }
        let first = self.workflow.states.len() as u32;
        let ids: Vec<StateId> = (0..named.len() as u32)
            .map(|index| StateId(first + index))
            .collect();
        self.workflow
            .states
            .extend(named.iter().map(|_| State::default()));
        let mut names: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, (name, _)) in named.iter().enumerate() {
            names.entry((*name).to_owned()).or_default().push(place);
        }
        let mut list = List {
            flow,
            ids: ids.clone(),
            names,
            edges: Vec::new(),
            skips,
            forks,
        };
        self.workflow.flows[flow.0 as usize] = Flow {
            start: ids.first().copied().unwrap_or_default(),
            states: ids.clone(),
            window: None,
        };
        self.lists.push(list.names.keys().cloned().collect());
        for (place, (name, node)) in named.iter().enumerate() {
            self.check_name(node, "the name of a task", name);
            if let Some(state) = self.task(&mut list, place, name, node) {
                self.workflow.states[ids[place].0 as usize] = state;
            }
        }
        self.lists.pop();
        if !forks {
            self.unreachable(&list, &named);
        }
        flow
    }

    pub fn task(
        &mut self,
        list: &mut List,
        place: usize,
        name: &str,
        node: &Node,
    ) -> Option<State> {
        if node.members().is_none() {
            self.wrong_type(node, &format!("the task '{name}'"), "an object");
            return None;
        }
        let obj = Obj { node };
        let kinds = self.kinds;
        let given = kinds.iter().filter(|kind| obj.has(kind.word));
        // A loop has its list in 'do'.
        let is_loop = obj.has("for");
        let given: Vec<&Kind> = given
            .filter(|kind| !(is_loop && kind.word == "do"))
            .collect();
        let kind = match given.as_slice() {
            [kind] => *kind,
            several => {
                if several.is_empty() {
                    self.no_kind(obj, name);
                } else {
                    let words = kinds.iter().map(|kind| kind.word);
                    let several: Vec<&str> = words.filter(|word| obj.has(word)).collect();
                    self.exclusive(obj, &format!("the task '{name}'"), &several);
                }
                // Whatever the task does, the rest can be wrong, too.
                self.common(list, place, obj);
                return None;
            }
        };
        let known = [&[kind.word], kind.others, &COMMON[..]].concat();
        self.object(node, &format!("the task '{name}'"), &known)?;
        let (state, task) = self.common(list, place, obj);
        let work = (kind.read)(
            self,
            Given {
                node: obj.get(kind.word)?,
                task: obj,
                name,
                list,
                place,
                then: state.next.as_ref(),
            },
        );
        Some(State {
            name: name.into(),
            kind: work?,
            task: Some(Box::new(Task {
                extensions: self.extensions_of(kind.word),
                ..task
            })),
            ..state
        })
    }

    /// The properties that all tasks have.
    fn common(&mut self, list: &mut List, place: usize, obj: Obj<'_>) -> (State, Task) {
        let node = obj.node;
        let mut task = Task {
            definition: node.to_data(),
            is_inner: self.is_inner,
            ..Task::default()
        };
        if let Some(node) = obj.get("if") {
            task.condition = self.expr(node, "'if'", TASK_INPUT);
        }
        let mut state = State {
            flow: list.flow,
            pointer: self.location(node).place.pointer,
            ..State::default()
        };
        if let Some(node) = obj.get("input") {
            let input = self.input(node, TASK_INPUT);
            task.from = input.from;
            state.input_schema = input.schema;
        }
        if let Some(node) = obj.get("timeout") {
            state.timeout = self.timeout_of(node, DEFINITION);
        }
        state.next = self.then_of(list, place, obj.get("then"));
        if let Some(node) = obj.get("output") {
            let output = self.output(node, DEFINITION);
            task.output = output.value;
            state.output_schema = output.schema;
        }
        if let Some(node) = obj.get("export") {
            let export = self.export(node, EXPORT);
            task.export = export.value;
            task.context_schema = export.schema;
        }
        if let Some(node) = obj.get("metadata") {
            match node.members() {
                Some(_) => state.metadata = node.to_data(),
                None => self.wrong_type(node, "'metadata'", "an object"),
            }
        }
        if task.condition.is_some() && place + 1 < list.ids.len() {
            list.edges.push((place, place + 1));
        }
        (state, task)
    }

    fn no_kind(&mut self, obj: Obj<'_>, name: &str) {
        let words: Vec<&str> = self.kinds.iter().map(|kind| kind.word).collect();
        let members = obj.node.members().unwrap_or_default();
        for member in members {
            if let Some(hint) = did_you_mean(member.key(), words.iter().copied()) {
                let message = format!("the task '{name}' has no property '{}'", member.key());
                let place = self.place(member.key_place());
                let advice = Advice::among(&words, hint);
                return self.error_at(&place, codes::UNKNOWN_PROPERTY, message, advice);
            }
        }
        let message = format!("the task '{name}' doesn't say what it does");
        let hint = format!("add one of {}", crate::build::ctx::words(&words));
        let advice = Advice::among(&words, hint);
        self.error(obj.node, codes::MISSING_PROPERTY, message, advice);
    }

    /// The way of a task: `then`, or what follows it.
    fn then_of(&mut self, list: &mut List, place: usize, node: Option<&Node>) -> Option<Next> {
        match node {
            Some(node) => self.directive(list, place, node),
            None => Some(following(list, place)),
        }
    }

    /// A flow directive: one of three words, or the name of a task of the same list.
    pub fn directive(&mut self, list: &mut List, place: usize, node: &Node) -> Option<Next> {
        let text = self.string(node, "'then'")?;
        match text.as_str() {
            "continue" => return Some(following(list, place)),
            "exit" if list.skips => return Some(Next::Skip),
            "exit" => return Some(Next::Leave),
            "end" => {
                return Some(Next::End(End {
                    terminate: true,
                    ..End::default()
                }));
            }
            _ => {}
        }
        match list.names.get(&text).map(Vec::as_slice) {
            Some(_) if list.forks => {
                let message = "a branch can't lead to another branch".to_owned();
                let hint = "write 'continue', 'exit' or 'end'".to_owned();
                self.error(node, codes::UNKNOWN_STATE, message, hint);
                None
            }
            Some([to]) => {
                list.edges.push((place, *to));
                Some(transition(list.ids[*to]))
            }
            Some(_) => {
                let message = format!("several tasks of this list are named '{text}'");
                let hint = "rename them, so that 'then' names one".to_owned();
                self.error(node, codes::DUPLICATE_NAME, message, hint);
                None
            }
            None if self.lists.iter().any(|names| names.contains(&text)) => {
                let message = format!("'{text}' is a task of a list around this one");
                let hint =
                    "write 'exit', and lead there with a 'then' of the task around this list";
                self.error(node, codes::UNKNOWN_STATE, message, hint.to_owned());
                None
            }
            None => {
                let known = list.names.keys().map(String::as_str);
                let hint = did_you_mean(&text, known.chain(["continue", "exit", "end"]))
                    .unwrap_or_else(|| {
                        "name a task of the same list, or write 'continue', 'exit' or 'end'"
                            .to_owned()
                    });
                let message = format!("this list has no task '{text}'");
                self.error(node, codes::UNKNOWN_STATE, message, hint);
                None
            }
        }
    }

    /// Warns of tasks that nothing leads to.
    fn unreachable(&mut self, list: &List, named: &[(&str, &Node)]) {
        let known = list.ids.iter().map(|id| self.workflow[*id].task.is_some());
        if named.is_empty() || !known.collect::<Vec<_>>().into_iter().all(|known| known) {
            return;
        }
        let mut seen = vec![false; named.len()];
        let mut open = vec![0];
        while let Some(place) = open.pop() {
            if std::mem::replace(&mut seen[place], true) {
                continue;
            }
            let state = &self.workflow[list.ids[place]];
            let ways: Vec<&Next> = match &state.kind {
                // With a default, its own way is never taken.
                StateKind::Switch(switch) => {
                    let cases = switch.conditions.iter().map(|case| &case.next);
                    let skipped = state.task.as_ref().is_some_and(|it| it.condition.is_some());
                    open.extend((skipped && place + 1 < named.len()).then_some(place + 1));
                    cases.chain(&switch.default).collect()
                }
                _ => {
                    let edges = list.edges.iter().filter(|(from, _)| *from == place);
                    open.extend(edges.map(|(_, to)| *to));
                    state.next.iter().collect()
                }
            };
            open.extend(ways.into_iter().filter_map(|way| match way {
                Next::Transition(to) => list.ids.iter().position(|id| *id == to.to),
                _ => None,
            }));
        }
        for (place, (name, node)) in named.iter().enumerate() {
            if !seen[place] {
                let message = format!("nothing leads to the task '{name}'");
                let hint = "lead to it with a 'then', or remove it".to_owned();
                self.warn(node, codes::UNREACHABLE_STATE, message, hint);
            }
        }
    }
}

/// The next task of the list, or its end.
fn following(list: &List, place: usize) -> Next {
    match list.ids.get(place + 1).filter(|_| !list.forks) {
        Some(next) => transition(*next),
        None => Next::Leave,
    }
}

fn transition(to: StateId) -> Next {
    Next::Transition(Transition {
        to,
        compensate: false,
        produce: Vec::new(),
        guard: None,
    })
}
