//! Results in 0.9: a result that isn't an object is stored under its own key. In jq, the filter can do that.

use std::sync::Arc;

use swirl_model::Data;
use swirl_model::workflow::{ExprId, ExprSource, Language, UnderWhen, Workflow};

pub(super) fn simplify(workflow: &mut Workflow, notes: &mut Vec<String>) {
    let params = params(workflow);
    let is_jq = workflow
        .expressions
        .iter()
        .all(|source| source.language == Language::Jq);
    for at in 0..workflow.actions.len() {
        let rule = &mut workflow.actions[at].results;
        let Some(under) = rule
            .under
            .take_if(|under| under.when == UnderWhen::NotObject)
        else {
            continue;
        };
        if rule.ignore || rule.to.is_some() {
            continue;
        }
        let filter = rule
            .results
            .map(|id| workflow.expressions[id.0 as usize].text.clone());
        let is_simple = filter.as_deref().is_none_or(|text| !text.contains('#'));
        if !is_jq || !is_simple {
            workflow.actions[at].results.under = Some(under);
            continue;
        }
        let key = Data::string(&*under.key);
        let named = format!("if type == \"object\" or . == null then . else {{{key}: .}} end");
        let text = match filter {
            None => named,
            Some(filter) => format!("({filter}) | {named}"),
        };
        let params = params[at].clone();
        let id = expression(workflow, text, params);
        workflow.actions[at].results.results = Some(id);
        notes.push(
            "a result that is not an object is put under the action's name by its filter"
                .to_owned(),
        );
    }
}

/// For each action: the parameters that its expressions see.
fn params(workflow: &Workflow) -> Vec<Vec<Arc<str>>> {
    use swirl_model::workflow::{Body, StateKind};
    let mut params = vec![Vec::new(); workflow.actions.len()];
    for state in &workflow.states {
        if let StateKind::Foreach(foreach) = &state.kind
            && let Body::Actions(list) = foreach.body
        {
            for id in &workflow[list].actions {
                params[id.0 as usize] = vec![foreach.param.clone()];
            }
        }
    }
    params
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
