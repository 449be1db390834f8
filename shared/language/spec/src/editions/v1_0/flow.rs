//! `for`, `fork`, `set` and `switch`.

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{
    Body, Branch, Condition, Count, Flow, FlowId, For, Next, Parallel, StateKind, Switch, Template,
    Test,
};

use super::Reader;
use super::tasks::List;
use super::value::DEFINITION;
use crate::build::ctx::Obj;

impl Reader<'_, '_> {
    pub fn for_task(&mut self, node: &Node, task: Obj<'_>) -> Option<StateKind> {
        let obj = self.object(node, "'for'", &["each", "in", "at"])?;
        let items = match obj.get("in") {
            None => {
                self.missing(obj, "'for'", &["in"]);
                None
            }
            Some(node) if node.items().is_some() => self.value(node, DEFINITION, false),
            Some(node) => self
                .data_expr(node, "'in'", DEFINITION)
                .map(Template::Expression),
        };
        let item = self.variable(self.meant(obj, "each"), "'each'", "item");
        let index = self.variable(self.meant(obj, "at"), "'at'", "index");
        if item == index {
            let message = format!("'each' and 'at' are both '{item}'");
            self.error(
                node,
                codes::BAD_ITERATION_PARAM,
                message,
                "use two names".to_owned(),
            );
        }
        let outside = self.params.len();
        self.params.extend([item.clone(), index.clone()]);
        let test = task
            .get("while")
            .and_then(|node| self.expr(node, "'while'", DEFINITION));
        let body = match task.get("do") {
            Some(node) => Some(self.tasks(node, "'do'")),
            None => {
                self.missing(task, "a task with 'for'", &["do"]);
                None
            }
        };
        self.params.truncate(outside);
        Some(StateKind::For(For {
            items: items?,
            item,
            index,
            test,
            body: body?,
        }))
    }

    pub fn fork(&mut self, node: &Node) -> Option<StateKind> {
        let obj = self.object(node, "'fork'", &["branches", "compete"])?;
        let race = self.truth(obj, "compete", false);
        let Some(node) = obj.get("branches") else {
            self.missing(obj, "'fork'", &["branches"]);
            return None;
        };
        let items = self.list(node, "'branches'")?;
        // Each branch is a list of one task, since none leads to another.
        let whole = self.branches(node);
        let branches: Vec<_> = self.workflow[whole].states.clone();
        if branches.len() != items.len() {
            return None;
        }
        let mut parallel = Parallel {
            at_least: (race && !items.is_empty()).then_some(Count::Fixed(1)),
            collect: true,
            race,
            ..Parallel::default()
        };
        for (place, state) in branches.iter().enumerate() {
            let flow = match place {
                0 => whole,
                _ => {
                    let flow = FlowId(self.workflow.flows.len() as u32);
                    self.workflow.flows.push(Flow::default());
                    flow
                }
            };
            self.workflow.flows[flow.0 as usize] = Flow {
                start: *state,
                states: vec![*state],
                window: None,
            };
            let found = &mut self.workflow.states[state.0 as usize];
            found.flow = flow;
            parallel.branches.push(Branch {
                name: found.name.clone(),
                body: Body::Flow(flow),
                timeout: None,
                awaited: true,
            });
        }
        Some(StateKind::Parallel(parallel))
    }

    pub fn set(&mut self, node: &Node) -> Option<StateKind> {
        if node.as_str().is_none() && node.members().is_none() {
            self.wrong_type(node, "'set'", "an object or a string");
            return None;
        }
        self.not_empty_object(node, "'set'")?;
        self.value(node, DEFINITION, false).map(StateKind::Set)
    }

    pub fn switch(
        &mut self,
        list: &mut List,
        place: usize,
        node: &Node,
        then: Option<&Next>,
    ) -> Option<StateKind> {
        let items = self.full_list(node, "'switch'")?;
        let mut switch = Switch {
            conditions: Vec::new(),
            default: None,
        };
        for item in items {
            let Some([case]) = item.members() else {
                let message = "an entry of 'switch' has one key: the name of the case".to_owned();
                let hint = "begin a new entry with '- ' for each case".to_owned();
                self.error(item, codes::TASK_WITHOUT_NAME, message, hint);
                continue;
            };
            let (name, node) = (case.key(), case.value());
            let Some(obj) = self.object(node, &format!("the case '{name}'"), &["when", "then"])
            else {
                continue;
            };
            let next = match obj.get("then") {
                Some(node) => self.directive(list, place, node),
                None => {
                    self.missing(obj, &format!("the case '{name}'"), &["then"]);
                    None
                }
            };
            let Some(when) = obj.get("when") else {
                if switch.default.is_some() {
                    let message = format!("the case '{name}' is a second one without 'when'");
                    let hint = "add 'when', or remove it".to_owned();
                    self.error(node, codes::EXCLUSIVE_PROPERTIES, message, hint);
                }
                switch.default = next.or(switch.default);
                continue;
            };
            let test = self.expr(when, "'when'", DEFINITION);
            if let (Some(test), Some(next)) = (test, next) {
                switch.conditions.push(Condition {
                    name: Some(name.to_owned()),
                    test: Test::Holds(test),
                    next,
                });
            }
        }
        // Nothing fits: the task's own way.
        if switch.default.is_none() {
            switch.default = then.cloned();
        }
        Some(StateKind::Switch(switch))
    }
}
