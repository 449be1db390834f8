//! Actions as tasks, and the way of their results into the state data.

use swirl_model::Data;
use swirl_model::workflow::{
    Action, ActionHandler, ActionId, ActionKind, ExprId, ListId, OnParentEnd, RetryErrors, Subflow,
    Template, Then,
};

use super::jq_text::{grouped, one, piped, uses_variable};
use super::merge::{Taking, with_definitions};
use super::writer::{Tasks, Writer, append, do_list, list, marked, object};

/// Where a task finds the state data, and keeps the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// `.` is the state data.
    Plain,
    /// Of a branch: the state data is `.data`, and the result of each action is at its place in `.results`, to be merged
    /// when all branches are done.
    Branch,
    /// Of an iteration: its own state data is `.own`, its result `.result`.
    Iteration,
}

impl Layout {
    pub fn data(self) -> &'static str {
        match self {
            Layout::Plain => ".",
            Layout::Branch => ".data",
            Layout::Iteration => ".own",
        }
    }
}

impl Writer<'_> {
    /// The actions of a list, which work on the state data.
    pub fn list_tasks(&mut self, id: ListId, layout: Layout) -> Tasks {
        let actions = &self.workflow[id];
        if actions.parallel && actions.actions.len() > 1 {
            return vec![self.at_once(&actions.actions, layout)];
        }
        let mut tasks = Vec::new();
        for (place, action) in actions.actions.iter().enumerate() {
            tasks.append(&mut self.action_tasks(*action, layout, place));
        }
        tasks
    }

    /// Actions that run at once are branches with one action each.
    fn at_once(&mut self, actions: &[ActionId], layout: Layout) -> (String, Data) {
        let mut branches = Vec::new();
        let mut merges = ".".to_owned();
        for (place, id) in awaited(self, actions).iter().enumerate() {
            let label = self.label(&self.workflow[*id]);
            let tasks = self.action_tasks(*id, Layout::Branch, 0);
            branches.push((label, branch(tasks, layout.data())));
            let kept = self.kept(&self.workflow[*id], layout, place, &branch_result(place, 0));
            merges = piped(&merges, &kept);
        }
        ("actions".to_owned(), fork(branches, merges, false))
    }

    /// The name of an action's task: its function, so that mocks of the function answer it.
    pub fn label(&self, action: &Action) -> String {
        let unnamed = Action {
            name: None,
            ..action.clone()
        };
        let name = self.workflow.action_name(&unnamed);
        name.filter(|name| !name.trim().is_empty())
            .unwrap_or_else(|| "action".to_owned())
    }

    /// An action, with its sleeps.
    pub fn action_tasks(&mut self, id: ActionId, layout: Layout, place: usize) -> Tasks {
        let action = &self.workflow[id];
        if matches!(&action.kind, ActionKind::Expression { detached, .. } if *detached) {
            self.note("expressions that nothing waits for are left out: they have no effect");
            return Vec::new();
        }
        let name = self.label(action);
        let data = layout.data();
        self.cannot_if(action.repeat.is_some(), "an action is repeated");
        let mut task = self.invocation(action, data);
        let output = self.output_of(action, layout, place);
        if let Some(text) = output {
            task.set("output", object([("as", marked(&text))]));
        }
        if self.tracks && layout == Layout::Plain {
            if task.get("export").is_some() {
                task = do_list(vec![(name.clone(), task)]);
            }
            let context = marked("$context + {data: .}");
            task.set("export", object([("as", context)]));
        }
        self.timeout(&mut task, action.timeout, data);
        let detached = action.kind.is_detached();
        let mut outer = action.condition;
        // The error of the condition is retried, too.
        if let Some(condition) = outer
            && !detached
            && is_retried_for_all(action)
        {
            let sleeps = action.sleep_before.is_some() || action.sleep_after.is_some();
            self.cannot_if(
                sleeps,
                "an action that sleeps retries the error of its condition",
            );
            task = self.only_if(condition, data, task);
            outer = None;
        }
        let mut task = self.with_retry(action, &name, task);
        task = self.with_handlers(action, &name, task, data);
        let mut tasks = Vec::new();
        if let Some(period) = action.sleep_before.filter(|_| !detached) {
            let wait = self.period(period, data);
            tasks.push(("sleep-before".to_owned(), object([("wait", wait)])));
        }
        let alone = tasks.is_empty();
        tasks.push((name.clone(), task));
        if let Some(period) = action.sleep_after.filter(|_| !detached) {
            let wait = self.period(period, data);
            tasks.push(("sleep-after".to_owned(), object([("wait", wait)])));
        }
        let Some(condition) = outer else {
            return tasks;
        };
        let task = match tasks.len() {
            1 if alone => tasks.remove(0).1,
            _ => do_list(tasks),
        };
        vec![(name, self.only_if(condition, data, task))]
    }

    fn only_if(&mut self, condition: ExprId, data: &str, task: Data) -> Data {
        let condition = self.expr(condition, data);
        let mut whole = object([("if", marked(&condition))]);
        append(&mut whole, &task);
        whole
    }

    /// `output.as` of an action's task: what becomes of the result.
    fn output_of(&mut self, action: &Action, layout: Layout, place: usize) -> Option<String> {
        let gives_input = match &action.kind {
            ActionKind::Subflow(subflow) => subflow.detached,
            ActionKind::Event(event) => event.consume.is_none(),
            _ => false,
        };
        if gives_input {
            return None;
        }
        if action.results.ignore {
            return Some("$input".to_owned());
        }
        let taken = self.taken(Taking::from(&action.results));
        let kept = self.kept(action, layout, place, "$result");
        let taken = grouped(&taken);
        Some(with_definitions(format!(
            "{taken} as $result | $input | {kept}"
        )))
    }

    /// Keeps the result of an action in the data of its task.
    fn kept(&mut self, action: &Action, layout: Layout, place: usize, result: &str) -> String {
        if action.results.ignore {
            return ".".to_owned();
        }
        let taking = Taking::from(&action.results);
        let merged = self.merged(taking, result);
        match layout {
            Layout::Plain => merged,
            Layout::Branch => {
                format!(".results[{place}] = {result} | .data |= ({merged})")
            }
            Layout::Iteration => {
                let collected =
                    format!("if {result} == null then . else .result |= merge({result}) end");
                let own = format!(".own |= ({merged})");
                match taking.to.is_none() && !taking.replace {
                    // A result that isn't an object is only collected.
                    true => format!(
                        "{collected} | if ({result} | type) == \"object\" then {own} else . end"
                    ),
                    false => format!("{collected} | {own}"),
                }
            }
        }
    }

    /// Merges the results of a branch, which are in `$branches`.
    pub fn replayed(&mut self, list: ListId, branch: usize) -> String {
        let mut text = ".".to_owned();
        for (place, id) in self.workflow[list].actions.iter().enumerate() {
            let action = &self.workflow[*id];
            if action.results.ignore || action.kind.is_detached() {
                continue;
            }
            let taking = Taking::from(&action.results);
            let merged = self.merged(taking, &branch_result(branch, place));
            text = piped(&text, &merged);
        }
        text
    }

    /// What an action does, as a task whose output is the result.
    fn invocation(&mut self, action: &Action, data: &str) -> Data {
        let from = match action.from {
            Some(id) => {
                let text = self.expr(id, ".");
                piped(data, &one(&text))
            }
            None => data.to_owned(),
        };
        match &action.kind {
            ActionKind::Call(call) => self.call(call, &from),
            ActionKind::Expression {
                expression,
                arguments,
                ..
            } => {
                let text = self.expr(*expression, ".");
                let text = match arguments {
                    // Without arguments it is null.
                    None if uses_variable(&text, "args") => {
                        piped(&from, &format!("null as $args | {text}"))
                    }
                    None => piped(&from, &text),
                    Some(arguments) => {
                        let arguments = self.value_text(arguments, ".");
                        piped(&from, &format!("{} as $args | {text}", grouped(&arguments)))
                    }
                };
                object([("set", marked(&text))])
            }
            ActionKind::Event(event) => self.event_action(event, &from),
            ActionKind::Subflow(subflow) => self.subflow(subflow, &from),
        }
    }

    fn subflow(&mut self, subflow: &Subflow, from: &str) -> Data {
        let mut workflow = self.target.workflow(&subflow.workflow);
        let version = match &subflow.version {
            None => Some("latest".to_owned()),
            Some(version) => super::task_version(version),
        };
        match version {
            Some(version) => workflow.set("version", Data::string(version)),
            None => self.cannot(format!(
                "the version '{}' of a sub-workflow is not a semantic version",
                subflow.version.as_deref().unwrap_or_default()
            )),
        }
        let input = match &subflow.input {
            Some(template) => self.value(template, from),
            None => marked(from),
        };
        workflow.set("input", input);
        self.note(format!(
            "the sub-workflow '{}' is the document '{}' of DSL 1.0, to which it must be migrated too",
            subflow.workflow,
            self.target.id_of(&subflow.workflow)
        ));
        let mut run = object([("workflow", workflow)]);
        if subflow.detached {
            run.set("await", Data::bool(false));
            self.cannot_if(
                subflow.on_parent_end == OnParentEnd::Terminate,
                "a sub-workflow that nothing waits for ends with its parent ('onParentComplete: terminate'); in DSL 1.0 it goes on",
            );
        }
        object([("run", run)])
    }

    /// The handlers of an action itself.
    fn with_handlers(&mut self, action: &Action, name: &str, task: Data, data: &str) -> Data {
        let handler = match action.on_errors.as_slice() {
            [] => return task,
            [handler] => handler,
            _ => {
                self.cannot("an action has several handlers of errors");
                return task;
            }
        };
        if handler.results {
            self.cannot("a result counts as a failure");
            return task;
        }
        let Some(mut catch) = self.catch_of(&handler.errors) else {
            return task;
        };
        if let Some(policy) = &handler.retry {
            let Some(retry) = self.retry(policy, data) else {
                return task;
            };
            catch.set("retry", retry);
        }
        if self.keeps_error {
            self.cannot("a handler of an action handles an error that an expression reads later");
        }
        match self.then_in_action(handler, data) {
            Some(Some(handler)) => catch.set("do", list(handler)),
            Some(None) => {}
            None => return task,
        }
        let body = list(vec![(name.to_owned(), task)]);
        object([("try", body), ("catch", catch)])
    }

    /// The tasks that handle an action's error: `None` if it cannot be said, `Some(None)` if there are none.
    fn then_in_action(&mut self, handler: &ActionHandler, data: &str) -> Option<Option<Tasks>> {
        if handler.data.is_some() && data != "." {
            self.cannot("a handler of an action in a branch puts the error into the state data");
            return None;
        }
        match &handler.then {
            Then::Rethrow if handler.retry.is_some() && handler.data.is_none() => Some(None),
            Then::Continue => {
                let merged = handler.data.as_ref().map(|filter| self.error_data(filter));
                let text = merged.unwrap_or_else(|| ".".to_owned());
                let task = object([("set", marked(&text))]);
                Some(Some(vec![("continue-after-error".to_owned(), task)]))
            }
            Then::Throw(throw) => {
                let parts = [&throw.kind, &throw.status, &throw.title, &throw.detail];
                let mut given = parts.into_iter().flatten();
                let is_computed = given.any(|part| !matches!(part, Template::Literal(_)));
                let retries = self.at.is_some_and(|id| {
                    let state = &self.workflow[id];
                    let mut handlers = state.on_errors.iter();
                    !state.retries.is_empty() || handlers.any(|handler| handler.retry.is_some())
                });
                self.cannot_if(
                    is_computed && retries,
                    "an action's handler computes an error in a state that is retried: DSL 1.0 repeats the state if that fails",
                );
                let raise = self.thrown(throw);
                Some(Some(vec![("throw".to_owned(), raise)]))
            }
            Then::Rethrow => {
                self.cannot("a handler of an action passes the error on");
                None
            }
            Then::Next(_) => {
                self.cannot("a handler of an action leads to another state");
                None
            }
        }
    }
}

fn branch_result(branch: usize, place: usize) -> String {
    format!("$branches[{branch}][{place}]")
}

/// Without expressions that nothing waits for.
fn awaited(writer: &Writer<'_>, actions: &[ActionId]) -> Vec<ActionId> {
    let gone = |id: &ActionId| matches!(&writer.workflow[*id].kind, ActionKind::Expression { detached, .. } if *detached);
    actions.iter().copied().filter(|id| !gone(id)).collect()
}

/// A branch whose tasks keep their results.
pub(super) fn branch(tasks: Tasks, data: &str) -> Data {
    let begin = marked(&format!("{{data: {data}, results: []}}"));
    let mut task = object([("input", object([("from", begin)]))]);
    append(&mut task, &do_list(tasks));
    task.set("output", object([("as", marked(".results"))]));
    task
}

/// A fork whose output is the state data with the branches' results, which are in `$branches`.
pub(super) fn fork(branches: Tasks, merges: String, compete: bool) -> Data {
    let mut fork = object([("branches", list(branches))]);
    if compete {
        fork.set("compete", Data::bool(true));
    }
    let text = match merges.as_str() {
        "." => "$input".to_owned(),
        merges => with_definitions(format!(". as $branches | $input | {merges}")),
    };
    object([("fork", fork), ("output", object([("as", marked(&text))]))])
}

/// Whether an action is retried for other errors than those that it names.
fn is_retried_for_all(action: &Action) -> bool {
    action.retry.as_ref().is_some_and(|rule| {
        let all = matches!(rule.errors, RetryErrors::All | RetryErrors::Except(_));
        all && rule.policy.retries_max != Some(0)
    })
}
