//! What a task gives for a process that has ended (DSL 1.0, "Process Result").

use swirl_model::{Data, WorkflowError};

use super::child::Ended;
use crate::auth::beginning;
use crate::types::task_answer::{DETAIL_BYTES_MAX, described, in_words_of};
use crate::{CallError, CallErrorKind};

/// The task's output, as its `return` says.
///
/// # Errors
/// The process failed, and its exit code isn't part of the output.
pub(super) fn output(
    arguments: &Data,
    ended: &Ended,
    secrets: &[String],
) -> Result<Data, CallError> {
    let gives = arguments.get("return");
    let gives = gives.as_ref().and_then(Data::as_str);
    let (stdout, stderr) = (Data::string(&*ended.stdout), Data::string(&*ended.stderr));
    match gives {
        Some("code") => return Ok(Data::int(ended.code.into())),
        Some("none") => return Ok(Data::NULL),
        Some("all") => {
            let mut all = Data::object();
            all.set("code", Data::int(ended.code.into()));
            all.set("stdout", stdout);
            all.set("stderr", stderr);
            return Ok(all);
        }
        _ if ended.code != 0 => {}
        Some("stderr") => return Ok(stderr),
        _ => return Ok(stdout),
    }
    let mut detail = format!("the process ended with code {}", ended.code);
    let said = beginning(ended.stderr.trim_end(), secrets, DETAIL_BYTES_MAX);
    if !said.is_empty() {
        detail.push_str(": ");
        detail.push_str(&said);
    }
    let error = CallError::new(CallErrorKind::Exit(Some(ended.code)), detail);
    Err(described(error, "runtime", 500))
}

/// The outcome of a simulated process.
///
/// # Errors
/// As for a real one.
pub fn simulated(
    arguments: &Data,
    code: i32,
    stdout: &str,
    stderr: &str,
) -> Result<Data, WorkflowError> {
    let ended = Ended {
        code,
        stdout: stdout.to_owned(),
        stderr: stderr.to_owned(),
    };
    output(arguments, &ended, &[]).map_err(|error| WorkflowError::from(&error))
}

/// A failure before the process has ended, in the language's own words.
pub(super) fn in_words(error: CallError) -> CallError {
    match error.kind {
        CallErrorKind::Timeout => described(error, "timeout", 408),
        _ => in_words_of(error, "runtime"),
    }
}

#[cfg(test)]
mod tests {
    use swirl_model::data;

    use super::*;

    #[test]
    fn outputs() {
        for (gives, code, expected) in [
            ("stdout", 0, "\"out\\n\""),
            ("stderr", 0, "\"err\""),
            ("code", 3, "3"),
            ("none", 3, "null"),
            ("all", 3, r#"{"code":3,"stdout":"out\n","stderr":"err"}"#),
        ] {
            let mut arguments = data!({});
            arguments.set("return", Data::string(gives));
            let found = simulated(&arguments, code, "out\n", "err").unwrap();
            assert_eq!(found.to_string(), expected);
        }
        let failed = simulated(&data!({}), 3, "out", "no\n").unwrap_err();
        assert_eq!(
            failed.to_problem().to_string(),
            r#"{"type":"https://serverlessworkflow.io/spec/1.0.0/errors/runtime","status":500,"title":"Runtime","detail":"the process ended with code 3: no"}"#
        );
    }
}
