//! The parts of a definition that can run.

use swirl_documents::source::Node;
use swirl_model::scope::Exit;
use swirl_model::workflow::{
    ActionKind, ErrorSet, Handler, Next, State, StateId, StateKind, Task, Then, Workflow,
};

/// The kind of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ItemKind {
    State,
    /// From a state to the next one or to the end. For a switch, each of its branches.
    Exit,
    /// An error handler of a state or of one of its actions.
    ErrorPath,
    Retry,
    Timeout,
}

impl ItemKind {
    pub const ALL: [ItemKind; 5] = [
        ItemKind::State,
        ItemKind::Exit,
        ItemKind::ErrorPath,
        ItemKind::Retry,
        ItemKind::Timeout,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            ItemKind::State => "state",
            ItemKind::Exit => "way",
            ItemKind::ErrorPath => "error path",
            ItemKind::Retry => "retry",
            ItemKind::Timeout => "timeout",
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            ItemKind::State => "states",
            ItemKind::Exit => "ways",
            ItemKind::ErrorPath => "error paths",
            ItemKind::Retry => "retries",
            ItemKind::Timeout => "timeouts",
        }
    }
}

/// A part that can run.
#[derive(Debug)]
pub struct Item {
    pub kind: ItemKind,
    pub name: String,
    /// The line of its state, from 1.
    pub line: usize,
    /// The number of times that it ran.
    pub hits: u64,
    pub(super) key: Key,
}

/// The key that identifies a part in histories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Key {
    State(StateId),
    /// To a state, or to the end. Two branches of a switch that lead to the same state count as one, because a history
    /// doesn't distinguish them.
    Exit(StateId, Option<StateId>),
    ErrorPath {
        handler: Exit,
        state: StateId,
        /// To a state, or to the end; `None`: the state goes on.
        way: Option<Option<StateId>>,
    },
    Retry(StateId),
    /// The timeout of a state or the workflow.
    Timeout(Option<StateId>),
}

pub(super) fn items_of(workflow: &Workflow, root: Option<&Node>) -> Vec<Item> {
    let lines = lines_of_states(root);
    let mut items = Items {
        workflow,
        list: Vec::new(),
        line: 1,
    };
    if workflow.timeout.is_some() {
        items.add(
            ItemKind::Timeout,
            Key::Timeout(None),
            "the workflow".to_owned(),
        );
    }
    for (index, state) in workflow.states.iter().enumerate() {
        let id = StateId(index as u32);
        let line = match &state.task {
            Some(task) => line_of_task(root, state, task),
            None => lines
                .iter()
                .find(|(name, _)| *name == *state.name)
                .map(|(_, line)| *line),
        };
        items.line = line.unwrap_or(1);
        items.state(id, state);
    }
    items.list
}

struct Items<'w> {
    workflow: &'w Workflow,
    list: Vec<Item>,
    line: usize,
}

impl Items<'_> {
    fn add(&mut self, kind: ItemKind, key: Key, name: String) {
        match self.list.iter_mut().find(|item| item.key == key) {
            Some(known) => known.name = format!("{} or {name}", known.name),
            None => self.list.push(Item {
                kind,
                name,
                line: self.line,
                hits: 0,
                key,
            }),
        }
    }

    fn state(&mut self, id: StateId, state: &State) {
        let name = &state.name;
        self.add(ItemKind::State, Key::State(id), name.to_string());
        for (label, next) in ways(state) {
            let (target, to) = self.target(next);
            let label = label.map_or(String::new(), |label| format!(" ({label})"));
            // A compensating state leads back to wherever the compensation was triggered.
            if !state.used_for_compensation {
                self.add(
                    ItemKind::Exit,
                    Key::Exit(id, target),
                    format!("{name} -> {to}{label}"),
                );
            }
        }
        for (index, handler) in state.on_errors.iter().enumerate() {
            let exit = Exit::Handler(id, index as u16);
            self.handler(id, exit, (&handler.errors, &handler.then), name);
        }
        for list in state.kind.action_lists() {
            for action in &self.workflow[list].actions {
                for (index, handler) in self.workflow[*action].on_errors.iter().enumerate() {
                    let exit = Exit::Action(*action, index as u16);
                    self.handler(id, exit, (&handler.errors, &handler.then), name);
                }
            }
        }
        if self.retries(state) {
            self.add(ItemKind::Retry, Key::Retry(id), name.to_string());
        }
        if self.has_timeout(state) {
            self.add(ItemKind::Timeout, Key::Timeout(Some(id)), name.to_string());
        }
    }

    fn handler(
        &mut self,
        state: StateId,
        exit: Exit,
        (errors, then): (&ErrorSet, &Then),
        name: &str,
    ) {
        let (way, to) = match then {
            Then::Next(next) => {
                let (target, to) = self.target(next);
                (Some(target), to)
            }
            Then::Continue => (None, "the next action".to_owned()),
            Then::Rethrow | Then::Throw(_) => return,
        };
        let errors = match errors {
            ErrorSet::These(errors) => {
                let names = errors.iter().map(|id| self.workflow[*id].name.to_string());
                format!(" ({})", names.collect::<Vec<_>>().join(", "))
            }
            _ => String::new(),
        };
        self.add(
            ItemKind::ErrorPath,
            Key::ErrorPath {
                handler: exit,
                state,
                way,
            },
            format!("{name} -> {to}{errors}"),
        );
    }

    fn target(&self, next: &Next) -> (Option<StateId>, String) {
        match next {
            Next::Transition(transition) => {
                let name = self.workflow[transition.to].name.to_string();
                (Some(transition.to), name)
            }
            Next::Leave | Next::Skip | Next::End(_) => (None, "end".to_owned()),
        }
    }

    fn retries(&self, state: &State) -> bool {
        let some = |retries_max: Option<u32>| retries_max != Some(0);
        let handler = |handler: &Handler| {
            handler
                .retry
                .as_ref()
                .is_some_and(|retry| some(retry.policy.retries_max))
        };
        let actions = state
            .kind
            .action_lists()
            .into_iter()
            .flat_map(|list| &self.workflow[list].actions);
        let mut actions = actions.map(|id| &self.workflow[*id]);
        let of_action = actions.any(|action| {
            let own = action
                .retry
                .as_ref()
                .is_some_and(|rule| some(rule.policy.retries_max));
            let handled = |retry: &Option<_>| {
                retry
                    .as_ref()
                    .is_some_and(|policy: &swirl_model::workflow::Retry| some(policy.retries_max))
            };
            own || action
                .on_errors
                .iter()
                .any(|handler| handled(&handler.retry))
        });
        of_action
            || state.on_errors.iter().any(handler)
            || match &state.kind {
                StateKind::Try(attempt) => {
                    let retry = attempt.retry.as_ref();
                    retry.is_some_and(|retry| some(retry.retries_max))
                }
                _ => false,
            }
            || state
                .retries
                .iter()
                .any(|rule| some(rule.policy.retries_max))
    }

    fn has_timeout(&self, state: &State) -> bool {
        let of_kind = match &state.kind {
            StateKind::Callback(callback) => callback.timeout.is_some(),
            StateKind::Event(event) => {
                event.timeout.is_some() || event.entries.iter().any(|entry| entry.timeout.is_some())
            }
            StateKind::SwitchEvents(switch) => switch.timeout.is_some(),
            StateKind::Parallel(parallel) => parallel
                .branches
                .iter()
                .any(|branch| branch.timeout.is_some()),
            _ => false,
        };
        let actions = state
            .kind
            .action_lists()
            .into_iter()
            .flat_map(|list| &self.workflow[list].actions);
        let mut actions = actions.map(|id| &self.workflow[*id]);
        let of_action = actions.any(|action| {
            let waits = matches!(&action.kind, ActionKind::Event(event) if event.timeout.is_some());
            waits || action.timeout.is_some()
        });
        state.timeout.is_some() || of_kind || of_action
    }
}

/// The transitions of a state without errors, with their conditions.
fn ways(state: &State) -> Vec<(Option<String>, &Next)> {
    if matches!(state.kind, StateKind::Raise(_)) {
        return Vec::new();
    }
    let mut ways: Vec<(Option<String>, &Next)> =
        state.next.iter().map(|next| (None, next)).collect();
    let label = |name: &Option<String>, index: usize| match name {
        Some(name) => Some(name.clone()),
        None => Some(format!("condition {}", index + 1)),
    };
    let default = || Some("default".to_owned());
    match &state.kind {
        StateKind::Switch(switch) => {
            let conditions = switch.conditions.iter().enumerate();
            ways.extend(conditions.map(|(index, one)| (label(&one.name, index), &one.next)));
            ways.extend(switch.default.iter().map(|next| (default(), next)));
        }
        StateKind::SwitchEvents(switch) => {
            let conditions = switch.conditions.iter().enumerate();
            ways.extend(conditions.map(|(index, one)| (label(&one.name, index), &one.next)));
            ways.extend(switch.default.iter().map(|next| (default(), next)));
        }
        StateKind::Event(event) => {
            ways.extend(
                event
                    .entries
                    .iter()
                    .filter_map(|entry| Some((None, entry.next.as_ref()?))),
            );
        }
        _ => {}
    }
    ways
}

/// The line of a task's name.
pub fn line_of_task(root: Option<&Node>, state: &State, task: &Task) -> Option<usize> {
    let pointers = [task.reference.as_deref(), Some(state.pointer.as_str())];
    let mut named = pointers.into_iter().flatten().filter_map(|pointer| {
        let (entry, _) = pointer.rsplit_once('/')?;
        root?.at(entry)
    });
    named.next().map(Node::line)
}

/// The lines of the states, by name.
pub fn lines_of_states(root: Option<&Node>) -> Vec<(String, usize)> {
    let mut lines = Vec::new();
    let mut open: Vec<&Node> = root.into_iter().collect();
    while let Some(node) = open.pop() {
        for member in node.members().unwrap_or_default() {
            if matches!(member.key(), "states" | "tasks") {
                for state in member.value().items().unwrap_or_default() {
                    let name = state
                        .get("name")
                        .or_else(|| state.get("id"))
                        .and_then(Node::as_str);
                    lines.extend(name.map(|name| (name.to_owned(), state.line())));
                }
            }
            open.push(member.value());
        }
        open.extend(node.items().unwrap_or_default());
    }
    lines
}
