//! Compiles expressions to find their errors.

use swirl_expr::{CompileError, PathExpr, Program};
use swirl_model::workflow::Language;

/// The findings about an expression.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(super) problem: Option<CompileError>,
    /// The names used as `$SECRETS.NAME`.
    pub(super) secrets: Vec<String>,
    /// `$SECRETS` is used in other ways than by a plain name.
    pub(super) secrets_whole: bool,
}

/// The errors in an expression, and the secrets that it uses.
pub(super) fn check_expression(
    language: Language,
    text: &str,
    vars: &[&str],
    path: bool,
) -> Checked {
    if path {
        let compiled = PathExpr::compile(language, text, vars);
        // A path denotes the target of a value, so secrets must not occur in it.
        return Checked {
            problem: compiled.err(),
            secrets: Vec::new(),
            secrets_whole: text.contains("$SECRETS"),
        };
    }
    let compiled = Program::compile(language, text, vars);
    match compiled {
        Ok(program) => {
            let secrets = program.secrets();
            Checked {
                problem: None,
                secrets: secrets.names.clone(),
                secrets_whole: secrets.other,
            }
        }
        Err(error) => Checked {
            problem: Some(error),
            secrets: Vec::new(),
            secrets_whole: false,
        },
    }
}
