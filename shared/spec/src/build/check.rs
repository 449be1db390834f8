//! Compiles expressions for their findings.

use swirl_expr::{PathExpr, Program};

use swirl_model::workflow::Language;

use super::expression::Checked;

/// What is wrong with an expression, and which secrets it uses.
pub(super) fn check_expression(
    language: Language,
    text: &str,
    vars: &[&str],
    path: bool,
) -> Checked {
    if path {
        let compiled = PathExpr::compile(language, text, vars);
        let problem = compiled.err().map(|error| error.to_string());
        // A path says where a value goes: secrets have no place in it at all.
        return Checked::new(problem, Vec::new(), text.contains("$SECRETS"));
    }
    let compiled = Program::compile(language, text, vars);
    match compiled {
        Ok(program) => {
            let secrets = program.secrets();
            Checked::new(None, secrets.names.clone(), secrets.other)
        }
        Err(error) => Checked::new(Some(error.to_string()), Vec::new(), false),
    }
}
