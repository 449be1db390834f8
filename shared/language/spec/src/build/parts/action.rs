//! Actions and their invocations (sections "Action Definition", "FunctionRef Definition", "EventRef Definition",
//! "SubFlowRef Definition").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::Data;
use swirl_model::workflow::{
    Action, ActionId, ActionKind, ActionList, Call, FunctionKind, ListId, OnParentEnd, Period,
    Subflow, Template, Under, UnderWhen,
};

use crate::build::ctx::{Ctx, Obj};
use crate::build::expression::VisibleVars;

const PROPERTIES: &[&str] = &[
    "name",
    "functionRef",
    "eventRef",
    "subFlowRef",
    "retryRef",
    "nonRetryableErrors",
    "retryableErrors",
    "actionDataFilter",
    "sleep",
    "condition",
];

const INVOKES: [&str; 3] = ["functionRef", "eventRef", "subFlowRef"];

impl Ctx<'_> {
    /// `actions` of a state, branch or event entry. `needed`: the language requires them.
    pub fn actions(
        &mut self,
        obj: Obj<'_>,
        what: &str,
        needed: bool,
        timeout: Option<Period>,
    ) -> ListId {
        let parallel =
            self.word(obj, "actionMode", &["sequential", "parallel"]) == Some("parallel");
        let items = match obj.get("actions") {
            Some(node) => self.list(node, "'actions'").unwrap_or_default(),
            None => {
                if needed {
                    self.missing(obj, what, &["actions"]);
                }
                &[]
            }
        };
        self.unique(items, "name", "action");
        let mut actions = Vec::with_capacity(items.len());
        for item in items {
            actions.extend(self.action(item, timeout));
        }
        self.action_list(actions, parallel)
    }

    pub fn action_list(&mut self, actions: Vec<ActionId>, parallel: bool) -> ListId {
        let id = ListId(self.workflow.lists.len() as u32);
        self.workflow.lists.push(ActionList { actions, parallel });
        id
    }

    pub fn action(&mut self, node: &Node, timeout: Option<Period>) -> Option<ActionId> {
        let parts = self.dialect.parts;
        let properties = parts.action.map_or(PROPERTIES, |reader| reader.properties);
        let mut properties = properties.to_vec();
        let hint = "write 'timeouts: {actionExecTimeout: ...}' in the state";
        let timed = self.earlier_part(parts.action_timeout, node, "timeout", hint);
        properties.extend(timed.then_some("timeout"));
        properties.extend(parts.repeat.map(|_| "repeat"));
        let obj = self.object(node, "an action", &properties)?;
        let own_timeout = timed.then(|| self.timeout(obj, "timeout"));
        let timeout = own_timeout.flatten().or(timeout);
        let params = self.params.clone();
        let sight = VisibleVars {
            params: &params,
            ..VisibleVars::PLAIN
        };
        let name = self.opt_name(obj, "name");
        let condition = self.opt_condition(obj, "condition", sight.with_secrets());
        let (sleep_before, sleep_after) = self.sleeps(obj);
        let kind = self.invocation(obj);
        let detached = kind.as_ref().is_some_and(is_detached);
        let (from, mut results) = self.action_filter(obj, sight, detached);
        if let (true, Some(name)) = (parts.result_under_name, &name) {
            results.under = Some(Under {
                key: format!("{name}-output").into(),
                when: UnderWhen::NotObject,
            });
        }
        // An expression over the same data would fail in the same way each time.
        let plain = matches!(kind, Some(ActionKind::Expression { .. }));
        let retry = self.retry_rule(obj, detached, plain);
        let on_errors = parts
            .errors
            .map(|reader| (reader.of_action)(self, obj))
            .unwrap_or_default();
        let pointer = self.location(node).place.pointer;
        let repeat = match (parts.repeat, obj.get("repeat")) {
            (Some(read), Some(node)) => Some(read(self, node)?),
            _ => None,
        };
        let action = Action {
            name: name.map(Into::into),
            kind: kind?,
            condition,
            sleep_before,
            sleep_after,
            from,
            results,
            retry,
            on_errors,
            timeout,
            pointer,
            repeat,
        };
        Some(self.add_action(action))
    }

    pub fn add_action(&mut self, action: Action) -> ActionId {
        let id = ActionId(self.workflow.actions.len() as u32);
        self.workflow.actions.push(action);
        id
    }

    fn sleeps(&mut self, obj: Obj<'_>) -> (Option<Period>, Option<Period>) {
        let Some(node) = obj.get("sleep") else {
            return (None, None);
        };
        let Some(obj) = self.object(node, "'sleep'", &["before", "after"]) else {
            return (None, None);
        };
        if !obj.has("before") && !obj.has("after") {
            self.missing(obj, "'sleep'", &["before", "after"]);
        }
        (
            self.opt_duration(obj, "before"),
            self.opt_duration(obj, "after"),
        )
    }

    fn invocation(&mut self, obj: Obj<'_>) -> Option<ActionKind> {
        let reader = self.dialect.parts.action;
        let invokes = reader.map_or(&INVOKES[..], |reader| reader.invocations);
        let known = invokes.iter().copied();
        let given: Vec<&str> = known.filter(|name| obj.has(name)).collect();
        match given.as_slice() {
            [] => {
                self.missing(obj, "an action", invokes);
                None
            }
            [only] => self.invocation_by(only, obj),
            several => {
                self.exclusive(obj, "an action", several);
                // Errors inside them are reported too.
                for name in several {
                    self.invocation_by(name, obj);
                }
                None
            }
        }
    }

    fn invocation_by(&mut self, name: &str, obj: Obj<'_>) -> Option<ActionKind> {
        let node = obj.get(name)?;
        match name {
            "functionRef" => self.function_ref(node),
            "eventRef" => self.event_ref(node),
            "subFlowRef" => self.subflow_ref(node),
            other => (self.dialect.parts.action?.invocation)(self, other, node),
        }
    }

    /// The location in the document that errors state as their source.
    pub fn problem_pointer(&self, node: &Node) -> String {
        match self.dialect.parts.errors {
            Some(_) => self.location(node).place.pointer,
            None => String::new(),
        }
    }

    pub fn function_ref(&mut self, node: &Node) -> Option<ActionKind> {
        if node.as_str().is_some() {
            return self.call(node, None);
        }
        if node.members().is_none() {
            self.wrong_type(node, "'functionRef'", "a function's name or an object");
            return None;
        }
        let known = &[
            "refName",
            "arguments",
            "parameters",
            "selectionSet",
            "invoke",
        ];
        let obj = self.object(node, "a functionRef", known)?;
        match obj.get("refName") {
            Some(name) => self.call(name, Some(obj)),
            None => {
                self.missing(obj, "a functionRef", &["refName"]);
                // The rest of it is still checked.
                let params = self.params.clone();
                let sight = VisibleVars {
                    params: &params,
                    secrets: true,
                    ..VisibleVars::PLAIN
                };
                self.arguments(obj, sight);
                self.invoke_async(obj);
                None
            }
        }
    }

    /// The call of the function that `node` names. `obj` is the reference in its long form.
    fn call(&mut self, node: &Node, obj: Option<Obj<'_>>) -> Option<ActionKind> {
        let params = self.params.clone();
        let sight = VisibleVars {
            params: &params,
            secrets: true,
            ..VisibleVars::PLAIN
        };
        let detached = obj.is_some_and(|obj| self.invoke_async(obj));
        // An expression function may return its arguments, and its result becomes data (docs/language.md#decision-84).
        let named = node.as_str().and_then(|name| self.functions.get(name));
        let expression = named.is_some_and(|entry| entry.kind == FunctionKind::Expression);
        let arguments = match obj {
            Some(obj) if expression => self.arguments(
                obj,
                VisibleVars {
                    secrets: false,
                    ..sight
                },
            ),
            Some(obj) => self.arguments(obj, sight),
            None => Some(None),
        };
        let selection_set = obj
            .and_then(|obj| obj.get("selectionSet"))
            .map(|node| self.selection_set(node, sight));
        let name = self.string(node, "a function's name")?;
        let Some(entry) = self.functions.get(&name) else {
            let location = self.location(node);
            self.unknown_function(&location, &name, None);
            return None;
        };
        let (function, kind, operation) = (entry.id, entry.kind.clone(), entry.operation.clone());
        let kind_known = entry.kind_known;
        match (&kind, obj) {
            (FunctionKind::Graphql, Some(obj)) => {
                for needed in ["arguments", "selectionSet"] {
                    let other_name = needed == "arguments" && obj.has("parameters");
                    if !obj.has(needed) && !other_name {
                        self.missing(obj, "the call of a graphql function", &[needed]);
                    }
                }
            }
            (FunctionKind::Graphql, None) => {
                let message = "the call of a graphql function needs 'arguments' and 'selectionSet'";
                let hint =
                    "write {refName: ..., arguments: {...}, selectionSet: '{ ... }'}".to_owned();
                self.error(node, codes::MISSING_PROPERTY, message, hint);
            }
            (kind, Some(obj)) => {
                // In a scenario, the function may be mocked with any type.
                if *kind == FunctionKind::Odata && !self.options.provided.contains(&name) {
                    self.odata_arguments(obj);
                }
                if let (Some(node), true) = (obj.get("selectionSet"), kind_known) {
                    let why = format!("the function is of type '{}', not 'graphql'", kind.as_str());
                    self.ignored(node, "selectionSet", &why);
                }
            }
            _ => {}
        }
        let arguments = arguments?;
        if kind == FunctionKind::Expression {
            if let (true, Some(invoke)) = (detached, obj.and_then(|obj| obj.get("invoke"))) {
                self.warn(
                    invoke,
                    codes::IGNORED_PROPERTY,
                    "with 'invoke: async' nothing uses the expression's result: the action has no effect",
                    "remove 'invoke'".to_owned(),
                );
            }
            if operation.is_empty() {
                return None;
            }
            let expression = self.compile(
                &self.location(node),
                &operation,
                // Its result becomes data, which must not contain secrets (docs/language.md#decision-84).
                VisibleVars {
                    args: true,
                    secrets: false,
                    ..sight
                },
            )?;
            return Some(ActionKind::Expression {
                function,
                expression,
                arguments,
                detached,
            });
        }
        Some(ActionKind::Call(Call {
            function,
            // Without arguments, a function is called with none (docs/language.md#decision-68).
            arguments: Some(arguments.unwrap_or(Template::Literal(Data::object()))),
            selection_set: match selection_set {
                Some(template) => Some(template?),
                None => None,
            },
            detached,
            subscription: None,
        }))
    }

    fn subflow_ref(&mut self, node: &Node) -> Option<ActionKind> {
        let subflow = match node.members() {
            None if node.as_str().is_none() => {
                self.wrong_type(node, "'subFlowRef'", "a workflow's id or an object");
                return None;
            }
            None => Subflow {
                workflow: self.reference(node, "'subFlowRef'")?,
                version: None,
                input: None,
                detached: false,
                on_parent_end: OnParentEnd::Terminate,
            },
            Some(_) => {
                let known = &["workflowId", "version", "invoke", "onParentComplete"];
                let obj = self.object(node, "a subFlowRef", known)?;
                let version = obj
                    .get("version")
                    .and_then(|node| self.version_reference(node));
                let detached = self.invoke_async(obj);
                let on_parent_end =
                    match self.word(obj, "onParentComplete", &["terminate", "continue"]) {
                        Some("continue") => OnParentEnd::Continue,
                        _ => OnParentEnd::Terminate,
                    };
                if let (Some(node), false) = (obj.get("onParentComplete"), detached) {
                    self.ignored(
                        node,
                        "onParentComplete",
                        "the parent waits for the sub-workflow",
                    );
                }
                let workflow = self.workflow_reference(obj, "a subFlowRef")?;
                Subflow {
                    workflow,
                    version,
                    input: None,
                    detached,
                    on_parent_end,
                }
            }
        };
        if subflow.workflow == self.workflow.id {
            let message = "the workflow starts itself as its sub-workflow, without end unless a condition stops it";
            self.warn(
                node,
                codes::RECURSIVE_SUBFLOW,
                message,
                "make sure that a condition ends this".to_owned(),
            );
        } else {
            self.check_known_workflow(node, &subflow.workflow);
        }
        Some(ActionKind::Subflow(subflow))
    }
}

fn is_detached(kind: &ActionKind) -> bool {
    match kind {
        ActionKind::Call(call) => call.detached,
        ActionKind::Event(event) => event.detached,
        ActionKind::Subflow(subflow) => subflow.detached,
        ActionKind::Expression { detached, .. } => *detached,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::parts::testing::{findings, in_actions, of_actions, workflow};

    #[test]
    fn one_reference_each() {
        for (actions, expected) in [
            ("{functionRef: f}", ""),
            ("{}", "error missing-property /states/0/actions/0 7"),
            (
                "{functionRef: f, subFlowRef: x}",
                "error exclusive-properties /states/0/actions/0 7",
            ),
            (
                "{functionRef: g}",
                "error unknown-function /states/0/actions/0/functionRef 7",
            ),
            (
                "{functionRef: 7}",
                "error wrong-type /states/0/actions/0/functionRef 7",
            ),
            (
                "{functionRef: {}}",
                "error missing-property /states/0/actions/0/functionRef 7",
            ),
            (
                "{functionRef: {refName: f, args: {}}}",
                "error unknown-property /states/0/actions/0/functionRef/args 7",
            ),
            (
                "{functionRef: {refName: f, parameters: {}}}",
                "warning other-editions-name /states/0/actions/0/functionRef/parameters 7",
            ),
            (
                "{functionRef: {refName: f, arguments: '${ .x }'}}",
                "warning loose-form /states/0/actions/0/functionRef/arguments 7",
            ),
            (
                "{functionRef: {refName: f, arguments: {a: [.x, $.x.y, .5, 'a.b']}}}",
                "warning expression-not-marked /states/0/actions/0/functionRef/arguments/a/0 7\nwarning expression-not-marked /states/0/actions/0/functionRef/arguments/a/1 7",
            ),
            (
                "{functionRef: {refName: f, arguments: []}}",
                "error wrong-type /states/0/actions/0/functionRef/arguments 7",
            ),
            (
                "{functionRef: {refName: f, selectionSet: '{ a }'}}",
                "warning ignored-property /states/0/actions/0/functionRef/selectionSet 7",
            ),
            (
                "{functionRef: {refName: f, invoke: Async}}",
                "error unknown-value /states/0/actions/0/functionRef/invoke 7",
            ),
            (
                "{subFlowRef: {workflowId: x, onParentComplete: continue}}",
                "warning ignored-property /states/0/actions/0/subFlowRef/onParentComplete 7",
            ),
            (
                "{subFlowRef: test}",
                "warning recursive-subflow /states/0/actions/0/subFlowRef 7",
            ),
            (
                "{name: x, functionRef: f}, {name: x, functionRef: f}",
                "error duplicate-name /states/0/actions/1/name 7",
            ),
            (
                "{functionRef: f, sleep: {}}",
                "error missing-property /states/0/actions/0/sleep 7",
            ),
            (
                "{name: '', functionRef: f}",
                "error bad-name /states/0/actions/0/name 7",
            ),
            (
                "{subFlowRef: {workflowId: '${ .x }', version: 1}}",
                "warning expression-not-evaluated /states/0/actions/0/subFlowRef/workflowId 7\nwarning version-not-semver /states/0/actions/0/subFlowRef/version 7",
            ),
            (
                "{subFlowRef: '${ .x }'}",
                "warning expression-not-evaluated /states/0/actions/0/subFlowRef 7",
            ),
            (
                "{functionRef: {refName: e, invoke: async}}",
                "warning ignored-property /states/0/actions/0/functionRef/invoke 7",
            ),
            (
                "{functionRef: {refName: f, invoke: async}, retryRef: r}",
                "error unknown-retry /states/0/actions/0/retryRef 7\nwarning ignored-property /states/0/actions/0/retryRef 7",
            ),
        ] {
            assert_eq!(of_actions(actions), expected, "{actions}");
        }
    }

    #[test]
    fn events_are_produced_and_consumed() {
        let body = |reference: &str| {
            format!(
                "events: [{{name: p, type: p, kind: produced}}, {{name: c, type: c}}]\n{}",
                in_actions(&format!("{{eventRef: {reference}}}"))
            )
        };
        let at = "/states/0/actions/0/eventRef";
        for (reference, expected) in [
            ("{produceEventRef: p, consumeEventRef: c}", String::new()),
            (
                "{produceEventRef: c}",
                format!("warning loose-form {at}/produceEventRef 8"),
            ),
            (
                "{produceEventRef: p, consumeEventRef: p}",
                format!("error event-kind {at}/consumeEventRef 8"),
            ),
            (
                "{consumeEventRef: c}",
                format!("error missing-property {at} 8"),
            ),
            (
                "{triggerEventRef: p, resultEventRef: c}",
                format!(
                    "warning other-editions-name {at}/triggerEventRef 8\nwarning other-editions-name {at}/resultEventRef 8"
                ),
            ),
            (
                "{produceEventRef: p, consumeEventTimeout: PT1S}",
                format!("warning ignored-property {at}/consumeEventTimeout 8"),
            ),
            ("{produceEventRef: p, data: .x}", String::new()),
            (
                "{produceEventRef: p, contextAttributes: [{a: 1}, {A: 2, 'b c': 3}]}",
                format!(
                    "error duplicate-name {at}/contextAttributes/1/A 8\nerror bad-attribute {at}/contextAttributes/1/b c 8"
                ),
            ),
        ] {
            assert_eq!(findings(&body(reference)), expected, "{reference}");
        }
    }

    #[test]
    fn calls_are_lowered() {
        let body =
            in_actions("{functionRef: f}, {functionRef: {refName: e, arguments: {x: '${ .b }'}}}");
        let workflow = workflow(&body);
        let ActionKind::Call(call) = &workflow.actions[0].kind else {
            panic!()
        };
        assert_eq!(call.arguments, Some(Template::Literal(Data::object())));
        let ActionKind::Expression {
            expression,
            arguments,
            ..
        } = &workflow.actions[1].kind
        else {
            panic!()
        };
        assert_eq!(workflow[*expression].text, ".a");
        assert!(matches!(arguments, Some(Template::Object(members)) if members[0].0 == "x"));
    }
}
