//! Conditions of 0.5, which test whether a path finds anything.

use swirl_expr::Program;
use swirl_model::workflow::{ExprSource, Language, StateKind, Test, Workflow};

/// A JSONPath that returns a list of matches holds if the list isn't empty, also as a condition in 0.8.
pub(super) fn simplify(workflow: &mut Workflow) {
    let Workflow {
        states,
        expressions,
        ..
    } = workflow;
    for state in states {
        let StateKind::Switch(switch) = &mut state.kind else {
            continue;
        };
        for condition in &mut switch.conditions {
            if let Test::Exists(id) = condition.test
                && gives_list(&expressions[id.0 as usize])
            {
                condition.test = Test::Holds(id);
            }
        }
    }
}

fn gives_list(source: &ExprSource) -> bool {
    let mut vars = vec!["CONST", "SECRETS", "WORKFLOW"];
    vars.extend(source.params.iter().map(|param| &**param));
    source.language == Language::JsonPath
        && Program::compile(source.language, &source.text, &vars)
            .is_ok_and(|program| program.yields_list())
}
