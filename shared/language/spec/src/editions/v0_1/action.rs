//! Actions (section "Action Definition").

use swirl_documents::source::Node;
use swirl_model::workflow::{
    Action, ActionId, ActionKind, Call, Function, FunctionId, FunctionKind, Language, ListId,
    PathId, ResultRule, Template,
};

use super::Reader;
use super::filter::{self, FilterPath};
use crate::build::ctx::Obj;
use crate::build::expression::VisibleVars;

const PROPERTIES: [&str; 4] = ["function", "timeout", "retry", "name"];

impl Reader<'_, '_> {
    /// `actions` of a state or of an entry of one, with `action-mode`. `result`: the state's target for results.
    pub fn actions(&mut self, obj: Obj<'_>, result: Option<FilterPath<'_>>) -> ListId {
        let modes = ["SEQUENTIAL", "PARALLEL"];
        let mode = obj.get("action-mode");
        let mode = mode.and_then(|node| self.word_of(node, "'action-mode'", &modes, &[]));
        let items = match obj.get("actions") {
            Some(node) => self.ctx.list(node, "'actions'").unwrap_or_default(),
            None => &[],
        };
        let to = self.target(result);
        let mut actions = Vec::with_capacity(items.len());
        for item in items {
            actions.extend(self.action(item, to));
        }
        self.ctx.action_list(actions, mode == Some("PARALLEL"))
    }

    fn action(&mut self, node: &Node, to: Option<PathId>) -> Option<ActionId> {
        let mut known: Vec<&str> = PROPERTIES.to_vec();
        known.extend(filter::PROPERTIES);
        let obj = self.ctx.object(node, "an action", &known)?;
        let name = self.ctx.opt_name(obj, "name");
        let paths = self.filter(obj, "an action");
        let from = self.selection(paths.input);
        let results = ResultRule {
            to: self.target(paths.result).or(to),
            replace: true,
            output: self.selection(paths.output),
            ..ResultRule::default()
        };
        let timeout = self.timeout(obj, "timeout");
        let on_errors = self.retry(obj);
        let call = match obj.get("function") {
            Some(node) => self.function(node),
            None => {
                self.ctx.missing(obj, "an action", &["function"]);
                None
            }
        };
        let (function, arguments) = call?;
        let kind = self.call(obj, function, arguments)?;
        Some(self.ctx.add_action(Action {
            name: name.map(Into::into),
            kind,
            from,
            results,
            on_errors,
            timeout: timeout.map(Into::into),
            ..Action::default()
        }))
    }

    /// A call, or the expression that the function stands for.
    fn call(
        &mut self,
        action: Obj<'_>,
        function: FunctionId,
        arguments: Option<Template>,
    ) -> Option<ActionKind> {
        let Function {
            name,
            kind,
            operation,
            ..
        } = &self.ctx.workflow[function];
        if *kind != FunctionKind::Expression {
            return Some(ActionKind::Call(Call {
                function,
                arguments,
                selection_set: None,
                detached: false,
                subscription: None,
            }));
        }
        let (name, operation) = (name.clone(), operation.clone());
        let location = self
            .ctx
            .location(action.get("function").unwrap_or(action.node));
        // A function that is provided at deployment is written as in 0.8.
        let is_given = self.ctx.given_expression(&name).is_some();
        let language = self.ctx.language;
        if is_given {
            self.ctx.language = Language::Jq;
        }
        let sight = VisibleVars {
            args: true,
            ..VisibleVars::PLAIN
        };
        let expression = self.ctx.compile(&location, &operation, sight);
        self.ctx.language = language;
        Some(ActionKind::Expression {
            function,
            expression: expression?,
            arguments,
            detached: false,
        })
    }
}
