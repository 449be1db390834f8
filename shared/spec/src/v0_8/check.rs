//! Compiles expressions for their findings.

use swirl_expr::{PathExpr, Program};

use super::expression::Checked;

/// What is wrong with an expression, and which secrets it uses.
pub(super) fn check_expression(text: &str, vars: &[&str], path: bool) -> Checked {
    if path {
        let problem = PathExpr::jq(text, vars)
            .err()
            .map(|error| error.to_string());
        // A path says where a value goes: secrets have no place in it at all.
        return Checked::new(problem, Vec::new(), text.contains("$SECRETS"));
    }
    match Program::jq(text, vars) {
        Ok(program) => {
            let secrets = program.secrets();
            Checked::new(None, secrets.names.clone(), secrets.other)
        }
        Err(error) => Checked::new(Some(error.to_string()), Vec::new(), false),
    }
}
