//! Actions and their invocations.

use swirl_model::Data;
use swirl_model::workflow::{
    Action, ActionKind, Call, EventAction, FunctionKind, ListId, OnParentEnd, Period, ResultRule,
    Subflow, Template,
};

use super::writer::{SetIf, Writer, is_filled};

impl Writer<'_> {
    /// Sets `actionMode` and `actions`.
    pub fn actions(&mut self, id: ListId, data: &mut Data) {
        let list = self.workflow[id].clone();
        if list.parallel {
            data.set("actionMode", Data::string("parallel"));
        }
        let actions = list
            .actions
            .iter()
            .map(|id| self.action(&self.workflow[*id]));
        let actions: Vec<Data> = actions.collect();
        data.set("actions", Data::array(actions));
    }

    /// The common timeout of the actions in these lists.
    pub fn action_timeout(&mut self, lists: &[ListId]) -> Option<Period> {
        let workflow = self.workflow;
        let actions = lists.iter().flat_map(|id| &workflow[*id].actions);
        let mut timeouts = actions.map(|id| workflow[*id].timeout);
        let first = timeouts.next().flatten();
        if timeouts.any(|timeout| timeout != first) {
            self.cannot("actions of a state have different timeouts");
        }
        first
    }

    pub fn action(&mut self, action: &Action) -> Data {
        let mut data = Data::object();
        data.set_if("name", action.name.as_deref().map(Data::string));
        data.set_if("condition", action.condition.map(|id| self.expression(id)));
        let detached = self.invocation(&action.kind, &mut data);
        self.retry(action, detached, &mut data);
        let by_results = action.on_errors.iter().any(|handler| handler.results);
        self.cannot_if(
            !action.on_errors.is_empty(),
            match by_results {
                true => "an action's 'retry' compares results and errors with a string and leads to another state in the end; 0.8 retries by the names of errors",
                false => "an action has handlers of errors; in 0.8 states have them, and actions are retried by 'retryRef'",
            },
        );
        self.cannot_if(action.repeat.is_some(), "an action is repeated");
        let mut filter = self.results(&action.results, detached);
        filter.set_if("fromStateData", action.from.map(|id| self.expression(id)));
        if is_filled(&filter) {
            data.set("actionDataFilter", filter);
        }
        let mut sleep = Data::object();
        sleep.set_if(
            "before",
            action.sleep_before.map(|period| self.period(period)),
        );
        sleep.set_if(
            "after",
            action.sleep_after.map(|period| self.period(period)),
        );
        if is_filled(&sleep) {
            data.set("sleep", sleep);
        }
        data
    }

    fn results(&mut self, rule: &ResultRule, detached: bool) -> Data {
        let mut data = Data::object();
        if rule.ignore && !detached {
            data.set("useResults", Data::bool(false));
        }
        data.set_if("results", rule.results.map(|id| self.expression(id)));
        data.set_if("toStateData", rule.to.map(|id| self.path(id)));
        self.cannot_if(
            rule.under.is_some(),
            "an action's result goes under its own key",
        );
        self.cannot_if(
            rule.replace,
            match self.assume.objects {
                true => "the state data may be a list when a result comes, which replaces it; in 0.8 the result is merged",
                false => "a result that is not an object replaces the state data (does not happen if results are objects: `--assume objects`)",
            },
        );
        self.cannot_if(
            rule.output.is_some(),
            "a filter is applied once an action's result is merged",
        );
        data
    }

    /// Sets `functionRef`, `eventRef` or `subFlowRef`. Returns true if nothing waits for it.
    fn invocation(&mut self, kind: &ActionKind, data: &mut Data) -> bool {
        match kind {
            ActionKind::Call(call) => {
                let reference = self.call(call);
                data.set("functionRef", reference);
                call.detached
            }
            ActionKind::Expression {
                function,
                expression,
                arguments,
                detached,
            } => {
                // The function's text is written at its definition.
                self.expression(*expression);
                let mut reference = Data::object();
                reference.set("refName", Data::string(&*self.workflow[*function].name));
                reference.set_if(
                    "arguments",
                    arguments.as_ref().map(|value| self.template(value)),
                );
                invoke(&mut reference, *detached);
                data.set("functionRef", reference);
                *detached
            }
            ActionKind::Event(event) => {
                let reference = self.event_action(event);
                data.set("eventRef", reference);
                event.detached
            }
            ActionKind::Subflow(subflow) => {
                data.set("subFlowRef", self::subflow(subflow));
                subflow.detached
            }
        }
    }

    fn call(&mut self, call: &Call) -> Data {
        let mut data = Data::object();
        let function = &self.workflow[call.function];
        data.set("refName", Data::string(&*function.name));
        match &call.arguments {
            None => data.set("arguments", self.whole_data()),
            Some(Template::Literal(value))
                if !is_filled(value)
                    && value.is_object()
                    && function.kind != FunctionKind::Graphql => {}
            Some(template) => {
                let arguments = self.template(template);
                data.set("arguments", arguments);
            }
        }
        data.set_if(
            "selectionSet",
            call.selection_set.as_ref().map(|set| self.template(set)),
        );
        invoke(&mut data, call.detached);
        data
    }

    fn event_action(&mut self, event: &EventAction) -> Data {
        let mut data = Data::object();
        match &event.produce {
            Some(produce) => {
                data.set("produceEventRef", self.event_name(produce.event));
                self.produced_data(&mut data, produce);
            }
            None => self.cannot("an action waits for an event and produces none"),
        }
        data.set_if(
            "consumeEventRef",
            event.consume.map(|id| self.event_name(id)),
        );
        data.set_if(
            "consumeEventTimeout",
            event.timeout.map(|period| self.period(period)),
        );
        invoke(&mut data, event.detached);
        data
    }
}

fn subflow(subflow: &Subflow) -> Data {
    let mut data = Data::object();
    data.set("workflowId", Data::string(subflow.workflow.as_str()));
    data.set_if("version", subflow.version.as_deref().map(Data::string));
    invoke(&mut data, subflow.detached);
    if subflow.on_parent_end == OnParentEnd::Continue {
        data.set("onParentComplete", Data::string("continue"));
    }
    data
}

fn invoke(data: &mut Data, detached: bool) {
    if detached {
        data.set("invoke", Data::string("async"));
    }
}
