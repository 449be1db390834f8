//! Matches errors with handlers and rules, and describes and throws errors.

use std::sync::Arc;

use swirl_model::error::{Description, names};
use swirl_model::workflow::{ErrorFilter, ErrorId, ErrorSet, Language, Problem, Template, Throw};
use swirl_model::{Data, WorkflowError};

use crate::scope::conditions::exists;
use crate::scope::eval::View;
use crate::scope::{Check, Ctx};

/// The variable with the data, in jq expressions over an error.
const DATA: &str = "data";

impl Ctx<'_> {
    /// Returns the first of the candidates that matches the error. `Any` counts last, wherever it is.
    pub(crate) fn first_fit<'s>(
        &self,
        sets: impl Iterator<Item = &'s ErrorSet>,
        error: &WorkflowError,
    ) -> Result<Option<u16>, WorkflowError> {
        let mut any = None;
        for (index, set) in sets.enumerate() {
            if *set == ErrorSet::Any {
                any = any.or(Some(index as u16));
            } else if self.fits(set, error)? {
                return Ok(Some(index as u16));
            }
        }
        Ok(any)
    }

    pub(crate) fn fits(
        &self,
        set: &ErrorSet,
        error: &WorkflowError,
    ) -> Result<bool, WorkflowError> {
        Ok(match set {
            ErrorSet::Any => true,
            ErrorSet::These(errors) => self.matches_any(errors, error),
            ErrorSet::Except(errors) => !self.matches_any(errors, error),
            ErrorSet::TheseExcept(errors, except) => {
                self.matches_any(errors, error) && !self.matches_any(except, error)
            }
            ErrorSet::When(expression) => {
                let (shown, mut data) = (shown(error), self.scope.data.clone());
                let params = [(Arc::from(DATA), data.clone())];
                if !data.is_object() {
                    data = Data::object();
                }
                data.set("error", shown.clone());
                // In jq the error's members stand at the top (docs/language.md#decision-106).
                let input = match self.def.workflow[*expression].language {
                    Language::Jq => {
                        let mut input = shown.clone();
                        input.set("error", shown.clone());
                        input
                    }
                    _ => data,
                };
                let view = View {
                    error: Some(shown),
                    params: &params,
                    ..self.view()
                };
                view.condition(*expression, &input)?
            }
            ErrorSet::Text(text) => {
                error.name == *text || error.code.as_ref() == Some(text) || has_status(error, text)
            }
        })
    }

    /// Whether a successful result is one of the set. `Text` is compared with the whole result.
    pub(crate) fn fits_result(&self, set: &ErrorSet, result: &Data) -> Result<bool, WorkflowError> {
        match set {
            ErrorSet::Text(text) => Ok(result.to_text() == *text),
            ErrorSet::When(expression) => {
                let params = [(Arc::from(DATA), result.clone())];
                let view = View {
                    params: &params,
                    ..self.view()
                };
                let found = view.eval(*expression, result)?;
                Ok(found.is_some_and(|found| exists(&found)))
            }
            ErrorSet::Any
            | ErrorSet::These(_)
            | ErrorSet::Except(_)
            | ErrorSet::TheseExcept(..) => Ok(false),
        }
    }

    pub(crate) fn matches_any(&self, errors: &[ErrorId], error: &WorkflowError) -> bool {
        errors.iter().any(|id| self.matches(*id, error))
    }

    /// Matches by description, otherwise by code or status; without a code, by name (docs/language.md#decision-24).
    fn matches(&self, id: ErrorId, error: &WorkflowError) -> bool {
        let def = &self.def.workflow[id];
        match (&def.problem, &def.code) {
            (Some(problem), _) => is_problem(problem, error),
            (None, Some(code)) => error.code.as_ref() == Some(code) || has_status(error, code),
            (None, None) => def.name == error.name,
        }
    }

    /// The error as handlers of the definition see it: with type, status and origin if it has them.
    pub(crate) fn described(&self, mut error: WorkflowError, pointer: &str) -> WorkflowError {
        let Some(types) = self.def.workflow.problems else {
            return error;
        };
        let has_tasks = self.has_tasks();
        let (kind, status, title) = match error.name.as_str() {
            names::SECRET_NOT_FOUND if has_tasks => ("authorization", 403, "Authorization"),
            _ => description(&error),
        };
        let detail = has_tasks.then(|| error.message.clone());
        error.status = error.status.or(Some(status));
        let problem = error.problem.get_or_insert_with(|| {
            Box::new(Description {
                kind: format!("{types}{kind}"),
                title: Some(title.to_owned()),
                instance: None,
                detail,
            })
        });
        if problem.instance.is_none() && !pointer.is_empty() {
            // An error in an extension is one of the extended task.
            let extended = self.scope.extended().filter(|_| pointer != "/");
            let extended = extended.map(|(id, _, _)| self.def.workflow[id].pointer.as_str());
            problem.instance = Some(extended.unwrap_or(pointer).to_owned());
        }
        error
    }

    /// The error to throw instead of the given one.
    pub(crate) fn thrown(
        &self,
        throw: &Throw,
        cause: &WorkflowError,
    ) -> Result<WorkflowError, WorkflowError> {
        // The error that is being handled, not an earlier one.
        let view = View {
            last_error: Some(cause),
            ..self.view()
        };
        let text = |template: &Option<Template>| {
            let value = template
                .as_ref()
                .map(|template| view.template(template, &self.scope.data));
            let value = value.transpose()?.filter(|value| !value.is_null());
            Ok::<_, WorkflowError>(value.map(|value| value.to_text()))
        };
        let kind = text(&throw.kind)?;
        let status = match text(&throw.status)? {
            Some(status) => Some(status.trim().parse().map_err(|_| {
                let message = format!("the status of an error must be a number, but is '{status}'");
                WorkflowError::new(names::INVALID_VALUE, message)
            })?),
            None => None,
        };
        let last = kind.as_deref().and_then(|kind| kind.rsplit('/').next());
        let name = throw.name.as_deref().or(last).unwrap_or(&cause.name);
        let name = name.to_owned();
        let title = text(&throw.title)?;
        let detail = text(&throw.detail)?.or_else(|| title.clone());
        let instance = cause
            .problem
            .as_ref()
            .and_then(|cause| cause.instance.clone());
        let problem = kind.map(|kind| {
            Box::new(Description {
                kind,
                title,
                instance,
                detail: None,
            })
        });
        Ok(WorkflowError {
            problem,
            status,
            ..WorkflowError::new(&name, detail.unwrap_or_else(|| cause.message.clone()))
        })
    }

    /// Merges into the state data the part of an error that its handler selects.
    pub(crate) fn merge_error(&mut self, filter: &ErrorFilter, error: &WorkflowError) -> Check {
        let shown = error.to_data();
        let value = match filter.data {
            Some(expression) => self.view().eval(expression, &shown)?.unwrap_or_default(),
            None => shown,
        };
        if value.is_null() {
            return Ok(());
        }
        self.merge_into_data(filter.to, &value)
    }
}

/// The error as conditions over it see it (docs/language.md#decision-27).
fn shown(error: &WorkflowError) -> Data {
    let mut data = error.to_data();
    data.set("trace", Data::string(error.to_string()));
    data
}

fn has_status(error: &WorkflowError, text: &str) -> bool {
    error
        .status
        .is_some_and(|status| status.to_string() == *text)
}

fn is_problem(problem: &Problem, error: &WorkflowError) -> bool {
    let found = error.problem.as_deref();
    let inside = |outer: &String| {
        let inner = found.and_then(|found| found.instance.as_deref());
        let rest = inner.and_then(|inner| inner.strip_prefix(outer.as_str()));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    problem
        .kind
        .as_ref()
        .is_none_or(|kind| found.is_some_and(|found| found.kind == *kind))
        && problem
            .status
            .is_none_or(|status| error.status == Some(status))
        && problem.instance.as_ref().is_none_or(inside)
}

/// The type, status and title of an internal error or a call's error.
fn description(error: &WorkflowError) -> (&'static str, u16, &'static str) {
    if error.code.as_deref() == Some("timeout") {
        return ("timeout", 408, "Timeout");
    }
    match error.name.as_str() {
        names::INPUT_VALIDATION | names::OUTPUT_VALIDATION => ("validation", 400, "Validation"),
        names::EXPRESSION_ERROR
        | names::CONDITION_NOT_BOOLEAN
        | names::COLLECTION_NOT_ARRAY
        | names::MERGE_TYPE_MISMATCH
        | names::INVALID_VALUE => ("expression", 400, "Expression"),
        names::SECRET_NOT_FOUND | names::SUBFLOW_NOT_FOUND => {
            ("configuration", 400, "Configuration")
        }
        names::FUNCTION_ERROR => ("communication", 500, "Communication"),
        _ if error.status.is_some() => ("communication", 500, "Communication"),
        _ => ("runtime", 500, "Runtime"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_given_properties_of_a_problem_must_match() {
        let error = WorkflowError {
            problem: Some(Box::new(Description {
                kind: "t".to_owned(),
                title: None,
                instance: Some("/states/1/actions/0".to_owned()),
                detail: None,
            })),
            status: Some(503),
            ..WorkflowError::new("E", "")
        };
        let problem = |kind: Option<&str>, status, instance: Option<&str>| Problem {
            kind: kind.map(str::to_owned),
            status,
            instance: instance.map(str::to_owned),
        };
        for (given, fits) in [
            (problem(None, None, None), true),
            (problem(Some("t"), Some(503), None), true),
            (problem(Some("t"), Some(500), None), false),
            (problem(Some("u"), None, None), false),
            (problem(None, None, Some("/states/1")), true),
            (problem(None, None, Some("/states/1/actions/0")), true),
            (problem(None, None, Some("/states/1/act")), false),
        ] {
            assert_eq!(is_problem(&given, &error), fits, "{given:?}");
        }
    }
}
