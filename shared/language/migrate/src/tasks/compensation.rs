//! Compensation: `$context.completed` has the states to compensate, in the order in which they were completed.

use swirl_model::Data;
use swirl_model::workflow::{Next, StateId};

use super::super::ways;
use super::writer::{Tasks, Writer, list, marked, object, tidy};

impl Writer<'_> {
    /// Records that a state is completed, if something compensates it.
    pub fn record_completed(&mut self, id: StateId, task: Data) -> Data {
        if self.workflow[id].compensated_by.is_none() {
            return task;
        }
        let name = Data::string(self.name(id));
        let text = format!("$context + {{completed: (($context.completed // []) + [{name}])}}");
        let mut task = match task.get("export").is_some() {
            true => object([("do", list(vec![("work".to_owned(), task)]))]),
            false => task,
        };
        task.set("export", object([("as", marked(&text))]));
        task
    }

    /// The task that compensates all completed states, last first, before another directive is taken.
    pub fn compensation(&mut self, then: String, behind: &mut Tasks) -> String {
        let name = self.new_name(&format!("{}-compensation", self.current()));
        let mut tasks = Vec::new();
        let states = self.workflow.states.iter().enumerate();
        let compensated: Vec<(StateId, StateId)> = states
            .filter_map(|(at, state)| {
                Some((StateId(u32::try_from(at).ok()?), state.compensated_by?))
            })
            .collect();
        for (id, by) in compensated {
            let state = Data::string(self.name(id));
            let mut chain = Vec::new();
            for id in self.chain(by) {
                let mut tasks = self.state(id);
                // The next one in the list isn't the next state.
                if self.workflow[id].next.is_none()
                    && let Some((_, task)) = tasks.first_mut()
                    && task.get("then").is_none()
                {
                    task.set("then", Data::string("exit"));
                }
                chain.append(&mut tasks);
            }
            tidy(&mut chain);
            let task = object([
                ("if", marked(&format!("$state == {state}"))),
                ("do", list(chain)),
            ]);
            tasks.push((format!("compensate-{}", self.name(id)), task));
        }
        let each = object([
            ("each", Data::string("state")),
            ("in", marked("$context.completed // [] | reverse")),
        ]);
        let context = marked("$context + {completed: []}");
        let task = object([
            ("for", each),
            ("do", list(tasks)),
            ("export", object([("as", context)])),
            ("then", Data::string(then)),
        ]);
        behind.push((name.clone(), task));
        name
    }

    /// The compensating states that follow this one, by any way.
    fn chain(&self, first: StateId) -> Vec<StateId> {
        let mut chain = vec![first];
        let mut at = 0;
        while let Some(id) = chain.get(at) {
            for next in ways::of_state(&self.workflow[*id]) {
                if let Next::Transition(transition) = next
                    && !chain.contains(&transition.to)
                    && self.workflow[transition.to].used_for_compensation
                {
                    chain.push(transition.to);
                }
            }
            at += 1;
        }
        chain
    }
}
