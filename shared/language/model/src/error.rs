//! Errors that a workflow can see and handle.

use serde::{Deserialize, Serialize};

use crate::Data;

/// A runtime error (docs/language.md#decision-24): `onErrors` matches it, and a faulted instance ends with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkflowError {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The state in which it arose, once known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The service asked not to be called again before this time has passed (`Retry-After`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u32>,
    /// Where errors are described as RFC 7807 says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Box<Description>>,
    /// Last, since it may be large: a listing reads only the beginning of an error.
    pub message: String,
}

/// The members that RFC 7807 gives an error besides its status; its `detail` is the message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// A URI.
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The JSON pointer of the action, state or task that it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Of an error that may have none: otherwise the message is its detail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// The longest text of an error in a row of a listing, in bytes.
const SHORT_BYTES_MAX: usize = 2_000;

fn cut(text: &mut String) {
    let end = text.floor_char_boundary(SHORT_BYTES_MAX);
    if end < text.len() {
        text.truncate(end);
        text.push('…');
    }
}

/// Where the types of the errors begin that we raise in workflows of tasks.
pub const OWN_TYPES: &str = FAMILIES[0];

/// Where the language's own error types begin. They were named three times, and all names are equal
/// (docs/editions/1.0.md).
const FAMILIES: [&str; 4] = [
    "https://serverlessworkflow.io/spec/1.0.0/errors/",
    "https://open-workflow-specification.org/spec/1.0.0/errors/",
    "https://serverlessworkflow.io/dsl/errors/types/",
    "https://open-workflow-specification.org/dsl/errors/types/",
];

/// The word for one of the language's own errors, such as `timeout`, if the type is one.
pub fn own_type(kind: &str) -> Option<&str> {
    FAMILIES.iter().find_map(|prefix| kind.strip_prefix(prefix))
}

/// Whether two types name the same error.
pub fn same_type(one: &str, other: &str) -> bool {
    one == other || own_type(one).is_some_and(|word| own_type(other) == Some(word))
}

/// Names of errors that the engine raises itself (docs/language.md#decision-24).
pub mod names {
    pub const ACTION_TIMEOUT: &str = "ActionTimeout";
    pub const BRANCH_TIMEOUT: &str = "BranchTimeout";
    pub const COLLECTION_NOT_ARRAY: &str = "CollectionNotArray";
    pub const CONDITION_NOT_BOOLEAN: &str = "ConditionNotBoolean";
    pub const EVENT_TIMEOUT: &str = "EventTimeout";
    pub const EXPRESSION_ERROR: &str = "ExpressionError";
    pub const FUNCTION_ERROR: &str = "FunctionError";
    pub const INPUT_VALIDATION: &str = "InputValidation";
    pub const INVALID_VALUE: &str = "InvalidValue";
    pub const KEY_IN_USE: &str = "KeyInUse";
    pub const LIMIT_EXCEEDED: &str = "LimitExceeded";
    pub const MERGE_TYPE_MISMATCH: &str = "MergeTypeMismatch";
    pub const RESULT_MATCHED: &str = "ResultMatched";
    pub const NO_MATCHING_CONDITION: &str = "NoMatchingCondition";
    pub const OUTPUT_VALIDATION: &str = "OutputValidation";
    pub const SECRET_NOT_FOUND: &str = "SecretNotFound";
    pub const START_REFUSED: &str = "StartRefused";
    pub const STATE_TIMEOUT: &str = "StateTimeout";
    pub const SUBFLOW_FAILED: &str = "SubflowFailed";
    pub const SUBFLOW_NOT_FOUND: &str = "SubflowNotFound";
    pub const TRANSITION_REFUSED: &str = "TransitionRefused";
}

impl WorkflowError {
    pub fn new(name: &str, message: impl Into<String>) -> WorkflowError {
        WorkflowError {
            name: name.to_owned(),
            code: None,
            status: None,
            message: message.into(),
            retry_after_ms: None,
            problem: None,
            state: None,
        }
    }

    /// An elapsed timeout: all of them have the code `timeout`.
    pub fn timeout(name: &str, message: impl Into<String>) -> WorkflowError {
        WorkflowError {
            code: Some("timeout".to_owned()),
            ..WorkflowError::new(name, message)
        }
    }

    /// Where it arose, once known: `task 'pay'`, or the state in an edition with states.
    pub fn place(&self) -> Option<String> {
        let state = self.state.as_ref()?;
        let problem = self.problem.as_ref();
        let is_of_task = problem.is_some_and(|problem| problem.is_of_task());
        let word = if is_of_task { "task" } else { "state" };
        Some(format!("{word} '{state}'"))
    }

    /// The error as RFC 7807 describes it: only the members that it has.
    pub fn to_problem(&self) -> Data {
        let mut data = Data::object();
        let problem = self.problem.as_deref();
        if let Some(problem) = problem {
            data.set("type", Data::string(&*problem.kind));
        }
        if let Some(status) = self.status {
            data.set("status", Data::int(status.into()));
        }
        if let Some(problem) = problem {
            let members = [
                ("title", &problem.title),
                ("detail", &problem.detail),
                ("instance", &problem.instance),
            ];
            for (name, value) in members {
                if let Some(value) = value {
                    data.set(name, Data::string(value.as_str()));
                }
            }
        }
        data
    }

    /// The error with its long texts cut, for a row of a listing.
    #[must_use]
    pub fn shortened(mut self) -> WorkflowError {
        cut(&mut self.name);
        cut(&mut self.message);
        self.code.iter_mut().chain(&mut self.state).for_each(cut);
        if let Some(problem) = &mut self.problem {
            cut(&mut problem.kind);
            let texts = [
                &mut problem.title,
                &mut problem.instance,
                &mut problem.detail,
            ];
            texts.into_iter().flatten().for_each(cut);
        }
        self
    }

    /// As `$WORKFLOW.error` shows it.
    pub fn to_data(&self) -> Data {
        let mut data = Data::object();
        data.set("name", Data::string(&*self.name));
        data.set(
            "code",
            self.code.as_deref().map_or(Data::NULL, Data::string),
        );
        data.set("message", Data::string(&*self.message));
        data.set(
            "status",
            self.status
                .map_or(Data::NULL, |status| Data::int(status.into())),
        );
        data.set(
            "state",
            self.state.as_deref().map_or(Data::NULL, Data::string),
        );
        if let Some(problem) = &self.problem {
            data.set("type", Data::string(&*problem.kind));
            let detail = match problem.is_of_task() {
                true => problem.detail.as_deref(),
                false => Some(&*self.message),
            };
            let members = [
                ("title", problem.title.as_deref()),
                ("detail", detail),
                ("instance", problem.instance.as_deref()),
            ];
            for (name, value) in members {
                data.set(name, value.map_or(Data::NULL, Data::string));
            }
        }
        data
    }
}

impl Description {
    /// Whether the error is one of a task: its place is in a document of DSL 1.0.
    fn is_of_task(&self) -> bool {
        let place = self.instance.as_deref().unwrap_or_default();
        place == "/" || place.starts_with("/do/") || place.starts_with("/use/")
    }
}

impl std::fmt::Display for WorkflowError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(problem) = self.problem.as_ref().filter(|problem| problem.is_of_task()) {
            match (&problem.title, &problem.detail) {
                (Some(title), Some(detail)) if title != detail => write!(f, "{title}: {detail}")?,
                (Some(text), _) | (None, Some(text)) => f.write_str(text)?,
                (None, None) => f.write_str(&self.message)?,
            }
            let kind = problem
                .kind
                .strip_prefix(OWN_TYPES)
                .unwrap_or(&problem.kind);
            return match self.status {
                Some(status) => write!(f, " ({kind}, status {status})"),
                None => write!(f, " ({kind})"),
            };
        }
        write!(f, "{}", self.name)?;
        if let Some(code) = self.code.as_deref().filter(|code| *code != self.name) {
            write!(f, " ({code})")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for WorkflowError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_tasks_are_shown_with_what_filters_ask_for() {
        let problem = |title: Option<&str>, detail: Option<&str>, kind: &str| WorkflowError {
            status: Some(503),
            problem: Some(Box::new(Description {
                kind: kind.to_owned(),
                title: title.map(str::to_owned),
                instance: Some("/do/0/a".to_owned()),
                detail: detail.map(str::to_owned),
            })),
            ..WorkflowError::new("FunctionError", "down")
        };
        let standard = "https://serverlessworkflow.io/spec/1.0.0/errors/communication";
        for (error, wanted) in [
            (
                problem(Some("Service Unavailable"), Some("down"), standard),
                "Service Unavailable: down (communication, status 503)",
            ),
            (
                problem(Some("No tea"), None, "https://example.org/tea"),
                "No tea (https://example.org/tea, status 503)",
            ),
            (
                WorkflowError::new("FunctionError", "down"),
                "FunctionError: down",
            ),
        ] {
            assert_eq!(error.to_string(), wanted);
        }
    }
}
