//! `raise` (DSL 1.0, "Raise", "Error").

use swirl_model::WorkflowError;
use swirl_model::error::{Description, names};
use swirl_model::workflow::{Raise, Template};

use super::{At, Kind};
use crate::scope::Step;

impl Kind for Raise {
    fn begin(&self, at: &mut At<'_, '_>) -> Step {
        let view = at.view();
        let data = at.data();
        let text = |template: &Template| {
            let value = view.template(template, data)?;
            Ok::<_, WorkflowError>((!value.is_null()).then(|| value.to_text()))
        };
        let optional = |template: &Option<_>| match template {
            Some(template) => text(template),
            None => Ok(None),
        };
        let wrong = |what: &str| {
            let message = format!("the error's '{what}'");
            WorkflowError::new(names::EXPRESSION_ERROR, message)
        };
        let kind = text(&self.kind)?.ok_or_else(|| wrong("type' gives no text"))?;
        let status = text(&self.status)?.unwrap_or_default();
        let status = status.trim().parse().map_err(|_| {
            let message = format!("the status of an error must be a number, but is '{status}'");
            WorkflowError::new(names::EXPRESSION_ERROR, message)
        })?;
        let instance = optional(&self.instance)?;
        if instance
            .as_ref()
            .is_some_and(|text| !text.is_empty() && !text.starts_with('/'))
        {
            let message = "the error's 'instance' must be a JSON Pointer, such as '/do/0/pay'";
            return Err(WorkflowError::new(names::EXPRESSION_ERROR, message));
        }
        let title = optional(&self.title)?;
        let detail = optional(&self.detail)?;
        let name = kind.rsplit('/').next().unwrap_or_default().to_owned();
        let message = detail.clone().or_else(|| title.clone());
        let message = message.unwrap_or_else(|| kind.clone());
        Err(WorkflowError {
            status: Some(status),
            problem: Some(Box::new(Description {
                kind,
                title,
                instance,
                detail,
            })),
            ..WorkflowError::new(&name, message)
        })
    }
}
