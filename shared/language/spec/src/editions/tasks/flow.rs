//! Flows of states: the workflow's own flow, and those of branches and iterations.

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{FlowId, StateId, StateKind, When};

use super::Reader;
use super::transition::is_nothing;
use crate::build::ctx::{Obj, StateHead};

impl Reader<'_, '_> {
    /// The states of a branch or iteration. `None` after a finding that makes them unusable.
    pub fn nested_flow(&mut self, obj: Obj<'_>, what: &str) -> Option<FlowId> {
        let node = self.states_node(obj, what)?;
        let (name, _) = self.variant.states;
        let items = self.full_list(node, &format!("'{name}'"))?;
        if items.is_empty() {
            return None;
        }
        let flow = self.enter_flow();
        let named = obj.get("startsAt").filter(|node| node.as_str().is_some());
        let (start, window) = self.states_of(items, named);
        let ends = self.states_of_flow();
        let is_read = !self.of_unknown_kind.contains(&self.flow());
        if is_read && !self.ends.iter().any(|state| ends.contains(state)) {
            let state = self.variant.state;
            let message = format!("no {state} of {what} has an 'end'");
            let hint = "add 'end: {kind: default}' to the last one".to_owned();
            self.error(node, codes::MISSING_PROPERTY, message, hint);
        }
        self.leave_flow(start);
        if let Some(window) = window {
            if let (When::Interval(_), Some(item)) = (
                &window.when,
                items.iter().find(|item| item.get("start").is_some()),
            ) {
                let why = format!(
                    "{what} begins when it is reached; only a workflow starts again and again"
                );
                self.ignored(item.get("start").unwrap_or(item), "schedule", &why);
            }
            self.workflow.flows[flow.0 as usize].window = Some(window);
        }
        Some(flow)
    }

    /// The list of states, by its name here or in the other text.
    pub fn states_node<'n>(&mut self, obj: Obj<'n>, what: &str) -> Option<&'n Node> {
        let (name, other) = self.variant.states;
        let node = self.named(obj, name, &[other]);
        if node.is_none() {
            self.missing(obj, what, &[name]);
        }
        node
    }

    /// Reads the states of the innermost flow, and returns its starting state and that state's window. `named`: the
    /// starting state, if something else names it.
    pub fn states_of(
        &mut self,
        items: &[Node],
        named: Option<&Node>,
    ) -> (StateId, Option<swirl_model::workflow::Schedule>) {
        self.heads(items);
        let ids = self.states_of_flow();
        let first = ids.first().copied().unwrap_or(StateId(0));
        let mut start = None;
        let mut window = None;
        for (id, item) in ids.iter().copied().zip(items) {
            self.enter_state(id);
            let mark = item.get("start").filter(|node| !is_nothing(node));
            if let Some(node) = mark {
                let found = self.start_definition(node).flatten();
                if start.is_some() {
                    self.several_starts(node);
                } else {
                    let location = self.location(node);
                    self.set_start_location(location);
                    (start, window) = (Some(id), found);
                }
            }
            let state = self.read_state(item);
            self.put_state(id, state);
        }
        if let Some(node) = named {
            let named = self.state_ref(node, "'startsAt'");
            if start.is_none() {
                let location = self.location(node);
                self.set_start_location(location);
            } else if named.is_some() && named != start {
                let state = self.variant.state;
                let message =
                    format!("'startsAt' names another starting {state} than the one with 'start'");
                let hint = format!("remove 'startsAt', or the 'start' of that {state}");
                self.error(node, codes::EXCLUSIVE_PROPERTIES, message, hint);
            }
            start = start.or(named);
        } else if let (None, Some(item)) = (start, items.first()) {
            let state = self.variant.state;
            let message = format!("no {state} here has a 'start': the first one is taken");
            let hint = "add 'start: {kind: default}' to it".to_owned();
            self.warn(item, codes::MISSING_PROPERTY, message, hint);
        }
        let start = start.unwrap_or(first);
        self.counts_anew(start);
        if !items.is_empty() {
            self.check_graph(start);
        }
        (start, window)
    }

    /// At the start of a workflow, the time of an event state counts from one event to the next; elsewhere it counts
    /// from the beginning of the state.
    fn counts_anew(&mut self, start: StateId) {
        let is_outermost = self.flows.len() == 1;
        if let Some(state) = self.workflow.states.get_mut(start.0 as usize)
            && let StateKind::Event(event) = &mut state.kind
        {
            event.timeout_restarts = is_outermost;
        }
    }

    fn several_starts(&mut self, node: &Node) {
        let state = self.variant.state;
        let message = format!("another {state} has a 'start' already: only one may have it");
        let hint = "remove 'start' here, or there".to_owned();
        self.error(node, codes::EXCLUSIVE_PROPERTIES, message, hint);
    }

    /// Reads names and ids before anything refers to them.
    fn heads(&mut self, items: &[Node]) {
        for item in items {
            let text = |name: &str| item.get(name).and_then(Node::as_str);
            let kind = text("type").unwrap_or_default();
            let head = StateHead {
                name: text("name").or(text("id")).unwrap_or_default().to_owned(),
                flow: self.flow(),
                location: self.location(item),
                is_event: kind.eq_ignore_ascii_case("event"),
                mark: None,
                used_for_compensation: false,
                compensated_by: None,
            };
            self.add_state(item, head);
        }
        // A transition may refer to a state by its id, if the id is unique (docs/language.md#decision-100).
        for (state, item) in self.states_of_flow().into_iter().zip(items) {
            let Some(node) = item.get("id") else {
                continue;
            };
            let Some(id) = node.as_str().filter(|id| !id.is_empty()) else {
                continue;
            };
            let same = |other: &&Node| other.get("id").and_then(Node::as_str) == Some(id);
            if items.iter().filter(same).count() > 1 {
                let message =
                    format!("the id '{id}' appears here more than once: no transition can use it");
                let hint = "give each its own id".to_owned();
                self.warn(node, codes::DUPLICATE_NAME, message, hint);
            } else if let Some(scope) = self.flows.last_mut() {
                scope.names.entry(id.to_owned()).or_insert(state);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use swirl_model::workflow::{FlowId, Next, StateId};

    use crate::editions::tasks::testing::{findings, workflow};

    #[test]
    fn transitions_use_ids_and_names() {
        let workflow = workflow(
            "tasks:\n- {id: one, name: A, type: inject, transition: {nextTask: two}}\n- {id: two, name: B, type: inject, transition: {nextTask: C}}\n- {id: A, name: C, type: inject, start: {kind: default}, transition: {nextTask: A}}\n",
        );
        assert_eq!(workflow[FlowId(0)].start, StateId(2));
        let to: Vec<StateId> = workflow
            .states
            .iter()
            .map(|state| match &state.next {
                Some(Next::Transition(transition)) => transition.to,
                other => panic!("{other:?}"),
            })
            .collect();
        // A name takes precedence over an id.
        assert_eq!(to, [StateId(1), StateId(2), StateId(0)]);
    }

    #[test]
    fn branches_know_only_their_own_names() {
        let of = |target: &str| {
            findings(&format!(
                "tasks:\n- name: P\n  type: parallel\n  start: {{kind: default}}\n  branches:\n  - name: b\n    tasks:\n    - {{name: P, type: inject, start: {{kind: default}}, transition: {{nextTask: {target}}}}}\n    - {{name: B, type: inject, end: {{kind: default}}}}\n  transition: {{nextTask: Q}}\n- {{name: Q, type: inject, end: {{kind: default}}}}\n"
            ))
        };
        assert_eq!(of("B"), "");
        let found = of("Q");
        assert!(found.starts_with("error unknown-state "), "{found}");
    }

    #[test]
    fn the_start() {
        let inject = |name: &str, more: &str| format!("- {{name: {name}, type: inject{more}}}\n");
        let end = ", end: {kind: default}";
        let next = ", transition: {nextTask: A}";
        let of = |top: &str, a: &str, b: &str| {
            findings(&format!(
                "{top}tasks:\n{}{}",
                inject("A", a),
                inject("B", b)
            ))
        };
        let marked = |text: &str| format!(", start: {{kind: default}}{text}");
        assert_eq!(of("", end, &marked(next)), "");
        assert_eq!(of("startsAt: B\n", end, next), "");
        let found = of("", end, next);
        assert_eq!(
            found,
            "warning missing-property /tasks/0 5\nwarning unreachable-state /tasks/1 6"
        );
        assert!(of("startsAt: C\n", end, next).contains("error unknown-state /startsAt 4"));
    }
}
