//! The transition or end after a state.

use swirl_model::Data;
use swirl_model::workflow::{ContinueAs, End, Next, Transition};

use super::writer::{SetIf, Writer, is_filled};

impl Writer<'_> {
    /// Sets `transition` or `end`.
    pub fn next(&mut self, next: &Next, data: &mut Data) {
        match next {
            Next::Transition(transition) => {
                let transition = self.transition(transition);
                data.set("transition", transition);
            }
            // Of tasks, which aren't written.
            Next::Leave | Next::Skip => {}
            Next::End(end) => {
                let end = self.end(end);
                data.set("end", end);
            }
        }
    }

    fn transition(&mut self, transition: &Transition) -> Data {
        self.cannot_if(
            transition.guard.is_some(),
            "a transition has a condition that must hold",
        );
        let to = Data::string(&*self.workflow[transition.to].name);
        let mut data = Data::object();
        data.flag("compensate", transition.compensate);
        let events = transition.produce.iter().map(|event| self.produce(event));
        let events = events.collect();
        data.list("produceEvents", events);
        if !is_filled(&data) {
            return to;
        }
        data.set("nextState", to);
        data
    }

    fn end(&mut self, end: &End) -> Data {
        self.cannot_if(
            end.fail.is_some(),
            "an end makes the instance fail; in 0.8 an end is a success",
        );
        self.cannot_if(
            end.terminate_parents,
            "an end with 'terminate' ends the parents too; in 0.8 it ends its own instance",
        );
        let mut data = Data::object();
        data.flag("terminate", end.terminate && end.continue_as.is_none());
        data.flag("compensate", end.compensate);
        let events = end.produce.iter().map(|event| self.produce(event));
        let events = events.collect();
        data.list("produceEvents", events);
        let continues = end.continue_as.as_ref();
        data.set_if("continueAs", continues.map(|other| self.continue_as(other)));
        match is_filled(&data) {
            true => data,
            false => Data::bool(true),
        }
    }

    fn continue_as(&mut self, other: &ContinueAs) -> Data {
        let mut data = Data::object();
        data.set("workflowId", Data::string(other.workflow.as_str()));
        data.set_if("version", other.version.as_deref().map(Data::string));
        data.set_if(
            "data",
            other.data.as_ref().map(|value| self.template(value)),
        );
        if let Some(timeout) = &other.timeout {
            let mut exec = Data::object();
            exec.set("duration", self.period(timeout.duration));
            exec.flag("interrupt", timeout.interrupt);
            exec.set_if("runBefore", timeout.run_before.as_deref().map(Data::string));
            data.set("workflowExecTimeout", exec);
        }
        data
    }
}
