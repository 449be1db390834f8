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
    pub message: String,
    /// Where errors are described as RFC 7807 says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Box<Description>>,
    /// The state in which it arose, once known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

/// The members that RFC 7807 gives an error besides its status; its `detail` is the message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// A URI.
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The JSON pointer of the action or state that it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
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
            data.set("detail", Data::string(&*self.message));
            let members = [("title", &problem.title), ("instance", &problem.instance)];
            for (name, value) in members {
                data.set(name, value.as_deref().map_or(Data::NULL, Data::string));
            }
        }
        data
    }
}

impl std::fmt::Display for WorkflowError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.name)?;
        if let Some(code) = self.code.as_deref().filter(|code| *code != self.name) {
            write!(f, " ({code})")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for WorkflowError {}
