//! Compiles expressions for their findings.

use swirl_expr::{PathExpr, Program};

use swirl_model::workflow::Language;

use super::expression::Checked;

/// The errors of an expression, and the secrets that it uses.
pub(super) fn check_expression(
    language: Language,
    text: &str,
    vars: &[&str],
    path: bool,
) -> Checked {
    if path {
        let compiled = PathExpr::compile(language, text, vars);
        // A path says where a value goes: secrets have no place in it at all.
        return Checked::new(compiled.err(), Vec::new(), text.contains("$SECRETS"));
    }
    let compiled = Program::compile(language, text, vars);
    match compiled {
        Ok(program) => {
            let secrets = program.secrets();
            Checked::new(None, secrets.names.clone(), secrets.other)
        }
        Err(error) => Checked::new(Some(error), Vec::new(), false),
    }
}
