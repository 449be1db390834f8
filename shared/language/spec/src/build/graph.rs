//! Rules about the graph of states (sections "Workflow Compensation", "Workflow Timeout Definition",
//! docs/language.md#decision-2 and #decision-5).

use std::collections::{HashMap, HashSet};

use swirl_documents::codes;
use swirl_model::workflow::StateId;

use super::ctx::{Ctx, Edge, StateHead};
use super::location::Location;

impl Ctx<'_> {
    /// Checks the current flow, after its states have been read.
    pub fn check_graph(&mut self, start: StateId) {
        self.check_compensation(start);
        let main = self.reachable([start]);
        let run_before = self.check_run_before(start, &main);
        self.check_unreachable(&main, &run_before);
    }

    fn name(&self, state: StateId) -> String {
        self.states
            .get(state.0 as usize)
            .map(|head| head.name.clone())
            .unwrap_or_default()
    }

    fn is_compensating(&self, state: StateId) -> bool {
        self.states
            .get(state.0 as usize)
            .is_some_and(|head| head.used_for_compensation)
    }

    /// The states that can be reached from `from`, including these.
    fn reachable(&self, from: impl IntoIterator<Item = StateId>) -> HashSet<StateId> {
        let mut ways: HashMap<StateId, Vec<StateId>> = HashMap::new();
        for edge in &self.edges {
            ways.entry(edge.from).or_default().push(edge.to);
        }
        let mut found: HashSet<StateId> = HashSet::new();
        let mut open: Vec<StateId> = from.into_iter().collect();
        while let Some(state) = open.pop() {
            if found.insert(state) {
                open.extend(ways.get(&state).into_iter().flatten());
            }
        }
        found
    }

    /// `(state, target, location)` for each `compensatedBy`.
    fn compensations(&self) -> Vec<(StateId, StateId, Location)> {
        let heads = self.heads().filter_map(|(id, head)| {
            let location = head.compensated_by.clone()?;
            let state = self.workflow.states.get(id.0 as usize)?;
            Some((id, state.compensated_by?, location))
        });
        heads.collect()
    }

    /// The facts known about the states of the current flow.
    fn heads(&self) -> impl Iterator<Item = (StateId, &StateHead)> {
        let flow = self.flow();
        let heads = (0u32..).map(StateId).zip(&self.states);
        heads.filter(move |(_, head)| head.flow == flow)
    }

    fn check_compensation(&mut self, start: StateId) {
        let mut targets = HashSet::new();
        for (state, target, location) in self.compensations() {
            targets.insert(target);
            let name = self.name(target);
            if self.is_compensating(state) {
                let message = format!(
                    "'{}' is used for compensation, so it cannot be compensated itself",
                    self.name(state)
                );
                self.error_at(
                    &location,
                    codes::COMPENSATION_RULE,
                    message,
                    "remove 'compensatedBy'".to_owned(),
                );
            }
            let head = self.states.get(target.0 as usize);
            if head.is_some_and(|head| head.is_event) {
                let message = format!("'{name}' is an event state: those cannot compensate");
                let hint = "use a state of another type".to_owned();
                self.error_at(&location, codes::COMPENSATION_RULE, message, hint);
            } else if target == state {
                let message = "a state cannot compensate itself";
                self.error_at(&location, codes::COMPENSATION_RULE, message, None);
            } else if let Some(head) = head.filter(|head| !head.used_for_compensation) {
                let place = head.mark.clone().unwrap_or_else(|| head.location.clone());
                let message = format!(
                    "'{name}' compensates '{}', but is not marked for it",
                    self.name(state)
                );
                let hint = format!("set 'usedForCompensation: true' in '{name}'");
                self.error_at(&place, codes::COMPENSATION_RULE, message, hint);
            }
        }
        let heads: Vec<(StateId, Location)> = self
            .heads()
            .filter(|(_, head)| head.used_for_compensation)
            .map(|(id, head)| (id, head.location.clone()))
            .collect();
        if self.is_compensating(start) {
            let message = format!(
                "the workflow starts with '{}', which is used for compensation",
                self.name(start)
            );
            let named = self
                .flows
                .last()
                .and_then(|scope| scope.start_location.clone());
            let location = named.unwrap_or_else(|| self.states[start.0 as usize].location.clone());
            self.error_at(
                &location,
                codes::COMPENSATION_RULE,
                message,
                "start with another state".to_owned(),
            );
        }
        let flow = self.flow();
        let here = |edge: &&Edge| {
            let from = self.states.get(edge.from.0 as usize);
            from.is_some_and(|head| head.flow == flow)
        };
        let crossings: Vec<(Location, String)> = self
            .edges
            .iter()
            .filter(here)
            .filter_map(|edge| {
                let (from, to) = (self.name(edge.from), self.name(edge.to));
                match (self.is_compensating(edge.from), self.is_compensating(edge.to)) {
                    (false, true) => Some((edge.location.clone(), format!("'{to}' is used for compensation, so '{from}' cannot lead to it"))),
                    (true, false) => Some((edge.location.clone(), format!("'{from}' is used for compensation, so it cannot lead to '{to}', which is not"))),
                    _ => None,
                }
            })
            .collect();
        for (location, message) in crossings {
            let hint = "compensating states are separate from the other flow: they are run by 'compensate: true' only".to_owned();
            self.error_at(&location, codes::COMPENSATION_RULE, message, hint);
        }
        let used = self.reachable(targets);
        for (state, location) in heads.iter().filter(|(state, _)| !used.contains(state)) {
            let message = format!(
                "'{}' is marked for compensation, and no state is compensated by it",
                self.name(*state)
            );
            let hint = "name it in the 'compensatedBy' of a state".to_owned();
            self.warn_at(location, codes::COMPENSATION_UNUSED, message, hint);
        }
    }

    /// Checks the rules for `runBefore`, and returns the states that it leads to.
    fn check_run_before(&mut self, start: StateId, main: &HashSet<StateId>) -> HashSet<StateId> {
        let Some((target, location)) = self.run_before.clone() else {
            return HashSet::new();
        };
        let flow = self.reachable([target]);
        let entered: HashSet<StateId> = self
            .edges
            .iter()
            .filter(|edge| !flow.contains(&edge.from))
            .map(|edge| edge.to)
            .collect();
        let mut rules: Vec<(String, &str)> = Vec::new();
        let mut states: Vec<StateId> = flow.iter().copied().collect();
        states.sort();
        for state in states {
            let name = self.name(state);
            if state == start || main.contains(&state) {
                rules.push((format!("'{name}' is part of the main flow, and 'runBefore' must be separate from it"), "use a state that nothing else leads to"));
            } else if entered.contains(&state) {
                rules.push((format!("another state leads to '{name}', and 'runBefore' must be separate from the other flow"), "remove that transition, or use another state"));
            }
            if self.is_compensating(state) {
                rules.push((
                    format!("'{name}' is used for compensation, and 'runBefore' cannot lead there"),
                    "use a state without 'usedForCompensation'",
                ));
            }
        }
        if !self.ends.iter().any(|state| flow.contains(state)) {
            rules.push((
                format!(
                    "neither '{}' nor a state that it leads to has an 'end'",
                    self.name(target)
                ),
                "add 'end: true' to the last one",
            ));
        }
        for (message, hint) in rules {
            self.error_at(&location, codes::RUN_BEFORE_RULE, message, hint.to_owned());
        }
        flow
    }

    /// Reports nothing if a transition may be missing because of another mistake.
    fn check_unreachable(&mut self, main: &HashSet<StateId>, run_before: &HashSet<StateId>) {
        let hides = [
            codes::MISSING_PROPERTY,
            codes::UNKNOWN_PROPERTY,
            codes::UNKNOWN_STATE,
        ];
        let mut findings = self.diagnostics.iter();
        let is_hidden = self.of_unknown_kind.contains(&self.flow())
            || findings.any(|found| {
                found.is_error() && hides.contains(&found.code) && found.pointer.contains("/states")
            });
        if is_hidden {
            return;
        }
        let lost: Vec<(String, Location)> = self
            .heads()
            .filter(|(state, head)| {
                !main.contains(state)
                    && !run_before.contains(state)
                    && !head.used_for_compensation
                    // A state without a name has its own finding, and nothing could lead to it.
                    && !head.name.is_empty()
            })
            .map(|(_, head)| (head.name.clone(), head.location.clone()))
            .collect();
        for (name, location) in lost {
            let message = format!("nothing leads to the state '{name}'");
            let hint = "add a transition to it, or remove it".to_owned();
            self.warn_at(&location, codes::UNREACHABLE_STATE, message, hint);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::build::parts::testing::findings;

    fn of(states: &[&str]) -> String {
        let states: String = states
            .iter()
            .map(|state| format!("- {{type: inject, data: {{}}, {state}}}\n"))
            .collect();
        findings(&format!("states:\n{states}"))
    }

    #[test]
    fn compensation() {
        let rule = |place: &str, line: u32| format!("error compensation-rule {place} {line}");
        assert_eq!(
            of(&[
                "name: A, compensatedBy: B, end: true",
                "name: B, usedForCompensation: true"
            ]),
            ""
        );
        assert_eq!(
            of(&["name: A, compensatedBy: B, end: true", "name: B, end: true"]),
            rule("/states/1", 6) + "\nwarning unreachable-state /states/1 6"
        );
        assert_eq!(
            of(&[
                "name: A, compensatedBy: B, end: true",
                "name: B, usedForCompensation: true, end: true"
            ]),
            "warning compensation-end-ignored /states/1/end 6"
        );
        assert_eq!(
            of(&[
                "name: A, compensatedBy: B, transition: B",
                "name: B, usedForCompensation: true"
            ]),
            rule("/states/0/transition", 5)
        );
        assert_eq!(
            of(&[
                "name: A, compensatedBy: B, end: true",
                "name: B, usedForCompensation: true, transition: A"
            ]),
            rule("/states/1/transition", 6)
        );
        assert_eq!(
            of(&[
                "name: A, compensatedBy: B, end: true",
                "name: B, usedForCompensation: true, compensatedBy: C",
                "name: C, usedForCompensation: true",
            ]),
            rule("/states/1/compensatedBy", 6)
        );
        assert_eq!(
            of(&["name: A, end: true", "name: B, usedForCompensation: true"]),
            "warning compensation-unused /states/1 6"
        );
        assert_eq!(
            of(&[
                "name: A, compensatedBy: B, end: true",
                "name: B, usedForCompensation: true, transition: C",
                "name: C, usedForCompensation: true",
            ]),
            ""
        );
        assert_eq!(
            of(&[
                "name: A, usedForCompensation: true",
                "name: B, compensatedBy: A, end: true"
            ]),
            rule("/states/0", 5) + "\nwarning unreachable-state /states/1 6"
        );
        assert_eq!(
            of(&[
                "name: A, compensatedBy: B, end: true",
                "name: B, usedForCompensation: false, end: true"
            ]),
            "warning unreachable-state /states/1 6\n".to_owned()
                + &rule("/states/1/usedForCompensation", 6)
        );
        assert_eq!(
            of(&["name: A, compensatedBy: A, end: true"]),
            rule("/states/0/compensatedBy", 5)
        );
        assert_eq!(
            of(&[
                "name: A, compensatedBy: B, end: {compensate: true}",
                "name: B, usedForCompensation: true, transition: {nextState: C, compensate: true}",
                "name: C, usedForCompensation: true",
            ]),
            "warning ignored-property /states/1/transition/compensate 6"
        );
    }

    #[test]
    fn compensating_states_and_start_states() {
        let rule = |place: &str, line: u32| format!("error compensation-rule {place} {line}");
        let marked = "- {name: A, type: inject, data: {}, usedForCompensation: true}\n";
        let plain = "- {name: B, type: inject, data: {}, compensatedBy: A, end: true}\n";
        for (start, place) in [
            ("start: A", "/start"),
            (
                "start: {stateName: A, schedule: R/PT1H}",
                "/start/stateName",
            ),
        ] {
            let found = findings(&format!("{start}\nstates:\n{plain}{marked}"));
            assert!(found.contains(&rule(place, 4)), "{found}");
        }
        let event = |mark: &str| {
            findings(&format!(
                "events: [{{name: e, type: e}}]\nstates:\n- {{name: B, type: inject, data: {{}}, compensatedBy: A, end: true}}\n- {{name: A, type: event, {mark}onEvents: [{{eventRefs: [e]}}], end: true}}\n"
            ))
        };
        let cannot = rule("/states/0/compensatedBy", 6);
        let lost = "\nwarning unreachable-state /states/1 7";
        assert_eq!(event(""), format!("{cannot}{lost}"));
        let unknown = "\nerror unknown-property /states/1/usedForCompensation 7";
        let found = event("usedForCompensation: true, ");
        assert_eq!(
            found,
            format!("{cannot}{unknown}\nwarning compensation-end-ignored /states/1/end 7")
        );
    }

    #[test]
    fn run_before() {
        let of = |states: &[&str]| {
            let states: String = states
                .iter()
                .map(|state| format!("- {{type: inject, data: {{}}, {state}}}\n"))
                .collect();
            findings(&format!(
                "timeouts: {{workflowExecTimeout: {{duration: PT1S, runBefore: R}}}}\nstates:\n{states}"
            ))
        };
        let rule = "error run-before-rule /timeouts/workflowExecTimeout/runBefore 4";
        assert_eq!(of(&["name: A, end: true", "name: R, end: true"]), "");
        assert_eq!(
            of(&["name: A, end: true"]),
            "error unknown-state /timeouts/workflowExecTimeout/runBefore 4"
        );
        assert_eq!(of(&["name: A, transition: R", "name: R, end: true"]), rule);
        assert_eq!(of(&["name: A, end: true", "name: R, transition: A"]), rule);
        assert_eq!(of(&["name: R, end: true"]), rule);
        assert_eq!(
            of(&[
                "name: A, end: true",
                "name: R, usedForCompensation: true, transition: S",
                "name: S, usedForCompensation: true"
            ])
            .matches("run-before-rule")
            .count(),
            3
        );
        assert_eq!(of(&["name: A, end: true", "name: R, transition: R"]), rule);
    }

    #[test]
    fn unreachable() {
        assert_eq!(
            of(&[
                "name: A, end: true",
                "name: B, transition: C",
                "name: C, end: true"
            ]),
            "warning unreachable-state /states/1 6\nwarning unreachable-state /states/2 7"
        );
    }
}
