//! Rewrites a whole definition from JSONPath to jq if some part of it can be expressed only in jq, because a document
//! of 0.8 has a single expression language.

mod conditions;
mod filters;
mod paths;
mod results;

use std::sync::Arc;

use swirl_model::workflow::{
    ActionKind, ExprId, ExprSource, FunctionKind, Language, StateKind, Test, UnderWhen, Workflow,
};

use conditions::Conditions;
pub(super) use filters::filters;
use paths::Selection;

/// Rewrites the definition if needed, and returns whether it did. A path without a form in jq stays unchanged.
pub(super) fn rewrite(workflow: &mut Workflow, notes: &mut Vec<String>) -> bool {
    if !is_needed(workflow) {
        return false;
    }
    let parsed = paths_in_jq(workflow);
    results::rewrite(workflow, &parsed, notes);
    tests(workflow, &parsed);
    notes.push("expressions are in jq, which can express more than JSONPath".to_owned());
    true
}

/// Rewrites all paths that have a form in jq, and the conditions.
pub(super) fn in_jq(workflow: &mut Workflow) {
    let parsed = paths_in_jq(workflow);
    tests(workflow, &parsed);
}

/// The selections of the expressions that were paths.
fn paths_in_jq(workflow: &mut Workflow) -> Vec<Option<Selection>> {
    let parsed: Vec<Option<Selection>> = workflow
        .expressions
        .iter()
        .map(|source| match source.language {
            Language::JsonPath => Selection::parse(&source.text),
            _ => None,
        })
        .collect();
    functions(workflow);
    for (source, selection) in workflow.expressions.iter_mut().zip(&parsed) {
        if let Some(selection) = selection {
            source.text = selection.expression();
            source.language = Language::Jq;
        }
    }
    for source in &mut workflow.paths {
        if source.language == Language::JsonPath
            && let Some(Selection::One(one)) = Selection::parse(&source.text)
            && let Some(place) = one.place()
        {
            source.text = place;
            source.language = Language::Jq;
        }
    }
    parsed
}

fn is_needed(workflow: &Workflow) -> bool {
    let compares = workflow.states.iter().any(|state| match &state.kind {
        StateKind::Switch(switch) => switch
            .conditions
            .iter()
            .any(|condition| !matches!(condition.test, Test::Holds(_))),
        _ => false,
    });
    let named = |under: &Option<swirl_model::workflow::Under>| {
        under
            .as_ref()
            .is_some_and(|under| under.when == UnderWhen::Always)
    };
    let mut rules = workflow.actions.iter().map(|action| &action.results);
    let mut filters = workflow.states.iter().flat_map(filters::filters);
    let paths = || workflow.expressions.iter().chain(&workflow.paths);
    let has = |language: Language| paths().any(|source| source.language == language);
    let collects = |state: &swirl_model::workflow::State| matches!(&state.kind, StateKind::Parallel(parallel) if parallel.collect);
    compares
        || workflow.states.iter().any(collects)
        || rules.any(|rule| named(&rule.under) || rule.replace)
        || filters.any(|filter| named(&filter.under))
        || has(Language::Jq) && has(Language::JsonPath)
}

/// The text of an expression function is stored at the actions that call it.
fn functions(workflow: &mut Workflow) {
    let Workflow {
        actions,
        expressions,
        functions,
        ..
    } = workflow;
    for action in actions.iter() {
        if let ActionKind::Expression {
            function,
            expression,
            ..
        } = &action.kind
            && expressions[expression.0 as usize].language == Language::JsonPath
            && let Some(function) = functions.get_mut(function.0 as usize)
            && function.kind == FunctionKind::Expression
            && let Some(selection) = Selection::parse(&function.operation)
        {
            function.operation = selection.expression();
        }
    }
}

fn tests(workflow: &mut Workflow, parsed: &[Option<Selection>]) {
    let path = |id: ExprId| parsed.get(id.0 as usize).cloned().flatten();
    let conditions = Conditions {
        path: &path,
        object: is_object(workflow),
    };
    for at in 0..workflow.states.len() {
        let StateKind::Switch(switch) = &workflow.states[at].kind else {
            continue;
        };
        let mut tests: Vec<Test> = Vec::new();
        for condition in &switch.conditions {
            tests.push(condition.test.clone());
        }
        for (number, test) in tests.into_iter().enumerate() {
            let is_one = |id: &ExprId| !matches!(path(*id), Some(Selection::Many(_)));
            if matches!(&test, Test::Holds(id) if is_one(id)) {
                continue;
            }
            let Some(written) = conditions.written(&test) else {
                continue;
            };
            let params = params(workflow, &test);
            let id = expression(workflow, written.text, params);
            if let StateKind::Switch(switch) = &mut workflow.states[at].kind {
                switch.conditions[number].test = Test::Holds(id);
            }
        }
    }
}

/// The names that the paths in the test see.
fn params(workflow: &Workflow, test: &Test) -> Vec<Arc<str>> {
    match test {
        Test::Holds(id) | Test::Exists(id) | Test::Compare { path: id, .. } => {
            workflow[*id].params.clone()
        }
        Test::All(tests) | Test::Any(tests) => tests
            .first()
            .map(|test| params(workflow, test))
            .unwrap_or_default(),
        Test::Not(test) => params(workflow, test),
    }
}

/// Whether the state data always stays an object.
pub(super) fn is_object(workflow: &Workflow) -> bool {
    let stays = |state: &swirl_model::workflow::State| {
        let injected = match &state.kind {
            StateKind::Inject(data) => data.is_object() || data.is_null(),
            _ => true,
        };
        injected
            && state.input.is_none()
            && state.output.is_none()
            && filters::filters(state).all(|filter| filter.output.is_none())
    };
    let merged = |action: &swirl_model::workflow::Action| {
        !action.results.replace && action.results.output.is_none()
    };
    workflow.states.iter().all(stays) && workflow.actions.iter().all(merged)
}

fn expression(workflow: &mut Workflow, text: String, params: Vec<Arc<str>>) -> ExprId {
    let id = ExprId(u32::try_from(workflow.expressions.len()).unwrap_or(u32::MAX));
    workflow.expressions.push(ExprSource {
        language: Language::Jq,
        text,
        params,
        pointer: String::new(),
    });
    id
}
