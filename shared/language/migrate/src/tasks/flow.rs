//! The ways between tasks, and produced events.

use swirl_model::Data;
use swirl_model::workflow::{End, FlowId, Next, Produce, Workflow};

use super::raise::raised;
use super::writer::{Tasks, Writer, list, marked, object, tidy};

impl Writer<'_> {
    /// The states of a flow as a list of tasks.
    pub fn flow_tasks(&mut self, flow: FlowId) -> Tasks {
        let found = self.workflow[flow].clone();
        self.cannot_if(
            found.window.is_some() && flow != Workflow::ROOT,
            "a branch has a window of time",
        );
        let mut states = vec![found.start];
        states.extend(found.states.iter().filter(|id| **id != found.start));
        let mut tasks = Vec::new();
        for id in states {
            if !self.workflow[id].used_for_compensation {
                tasks.append(&mut self.state(id));
            }
        }
        tidy(&mut tasks);
        tasks
    }

    /// The directive that takes a way. Tasks that belong to the way go into `behind`. The state data is at `data`.
    pub fn way(&mut self, next: &Next, data: &str, behind: &mut Tasks) -> String {
        match next {
            Next::Transition(transition) => {
                let mut then = self.name(transition.to);
                if let Some(guard) = transition.guard {
                    let test = self.expr(guard, data);
                    then = self.guarded(&test, then, behind);
                }
                then = self.events_then(&transition.produce, data, then, behind);
                match transition.compensate {
                    true => self.compensation(then, behind),
                    false => then,
                }
            }
            Next::Leave | Next::Skip => "exit".to_owned(),
            // It ends only the compensation of its state (docs/language.md#decision-5).
            Next::End(_) if self.compensates() => "exit".to_owned(),
            Next::End(end) => {
                let then = self.end(end, behind);
                let then = self.events_then(&end.produce, data, then, behind);
                match end.compensate {
                    true => self.compensation(then, behind),
                    false => then,
                }
            }
        }
    }

    fn compensates(&self) -> bool {
        self.at
            .is_some_and(|id| self.workflow[id].used_for_compensation)
    }

    fn end(&mut self, end: &End, behind: &mut Tasks) -> String {
        self.cannot_if(
            end.continue_as.is_some(),
            "an end continues as another workflow ('continueAs'); DSL 1.0 has no such end",
        );
        self.cannot_if(
            end.terminate_parents,
            "an end with 'terminate' ends the parents too; in DSL 1.0 it ends its own instance",
        );
        if let Some(name) = &end.fail {
            let raise = raised(name, "the workflow ends with a failure");
            let at = self.new_name(&format!("{}-failure", self.current()));
            behind.push((at.clone(), raise));
            return at;
        }
        let nested = self
            .at
            .is_some_and(|id| self.workflow[id].flow != Workflow::ROOT);
        match nested && !end.terminate {
            true => "exit".to_owned(),
            false => "end".to_owned(),
        }
    }

    fn guarded(&mut self, test: &str, then: String, behind: &mut Tasks) -> String {
        let name = self.new_name(&format!("{}-guard", self.current()));
        let refused = self.new_name(&format!("{}-refused", self.current()));
        let test = format!("[{test}] | any(.[]; . != null and . != false and . != [])");
        let cases = vec![
            (
                "holds".to_owned(),
                object([("when", marked(&test)), ("then", Data::string(then))]),
            ),
            (
                "refused".to_owned(),
                object([("then", Data::string(refused.as_str()))]),
            ),
        ];
        behind.push((name.clone(), object([("switch", list(cases))])));
        let raise = raised(
            "TransitionRefused",
            "the condition of the transition doesn't hold",
        );
        behind.push((refused, raise));
        name
    }

    /// Tasks that emit events before a directive is taken.
    fn events_then(
        &mut self,
        events: &[Produce],
        data: &str,
        then: String,
        behind: &mut Tasks,
    ) -> String {
        let mut then = then;
        let mut tasks = Vec::new();
        for event in events.iter().rev() {
            let name = self.new_name(&format!("{}-event", self.current()));
            let mut task = self.emit(event, data);
            task.set("then", Data::string(then.as_str()));
            then.clone_from(&name);
            tasks.push((name, task));
        }
        tasks.reverse();
        behind.append(&mut tasks);
        then
    }

    /// Tasks that emit the events of a way, in the list of the state itself: their data are evaluated before the first
    /// one is emitted.
    pub fn events_within(&mut self, events: &[Produce]) -> Tasks {
        let fails = events.iter().filter(|event| event.data.is_some()).count() > 1;
        if !fails {
            let emits = events.iter();
            return emits
                .map(|event| ("event".to_owned(), self.emit(event, ".")))
                .collect();
        }
        let mut texts = Vec::new();
        for event in events {
            texts.push(match &event.data {
                None => "null".to_owned(),
                Some(data) => format!("({})", self.value_text(data, ".")),
            });
        }
        let all = format!("{{data: ., events: [{}]}}", texts.join(", "));
        let mut tasks = vec![("events".to_owned(), object([("set", marked(&all))]))];
        for (place, event) in events.iter().enumerate() {
            let plain = Produce {
                data: None,
                ..event.clone()
            };
            let mut task = self.emit(&plain, ".data");
            if event.data.is_some()
                && let Some(mut with) = task.get("emit").and_then(|emit| emit.get("event"))
            {
                let mut inner = with.get("with").unwrap_or_default();
                inner.set("data", marked(&format!(".events[{place}]")));
                with.set("with", inner);
                task.set("emit", object([("event", with)]));
            }
            let is_last = place + 1 == events.len();
            let text = match is_last {
                true => "$input.data",
                false => "$input",
            };
            task.set("output", object([("as", marked(text))]));
            tasks.push(("event".to_owned(), task));
        }
        tasks
    }
}
