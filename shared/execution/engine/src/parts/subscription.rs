//! The messages that a call takes while it runs.

use std::sync::Arc;
use std::time::Duration;

use swirl_model::instance::Header;
use swirl_model::messages::Consumes;
use swirl_model::scope::Scope;
use swirl_model::workflow::{Enough, MessageRule};
use swirl_model::{Data, WorkflowError};

use crate::definition::Definition;
use crate::scope::env::Env;
use crate::scope::eval::View;
use crate::scope::task_view::TaskView;

/// A rule with the values that its expressions see. They don't change while the call is under way.
pub(super) struct Consumer {
    pub def: Arc<Definition>,
    pub header: Header,
    pub scope: Scope,
    pub env: Env,
    pub rule: MessageRule,
    pub span: Option<Duration>,
    /// The subscription that it takes one message from.
    pub subscription: Option<u32>,
}

impl Consumer {
    fn view(&self) -> View<'_> {
        View {
            def: &self.def,
            env: &self.env,
            header: &self.header,
            params: &self.scope.params,
            last_error: self.scope.last_error.as_ref(),
            task: TaskView::of(&self.scope),
            error: None,
        }
    }
}

impl Consumes for Consumer {
    fn span(&self) -> Option<Duration> {
        self.span
    }

    fn subscription(&self) -> Option<u32> {
        self.subscription
    }

    fn takes(&self, message: &Data) -> bool {
        let filter = self.rule.filter;
        filter.is_none_or(|filter| self.view().condition(filter, message).unwrap_or(false))
    }

    fn is_enough(&self, taken: &[Data]) -> Result<bool, WorkflowError> {
        let all = || Data::array(taken.to_vec());
        if self.subscription.is_some() {
            return Ok(!taken.is_empty());
        }
        match self.rule.enough {
            Enough::Amount(amount) => Ok(taken.len() >= amount as usize),
            Enough::Until(test) => self.view().condition(test, &all()),
            Enough::While(_) if taken.is_empty() => Ok(false),
            Enough::While(test) => Ok(!self.view().condition(test, &all())?),
        }
    }
}

impl std::fmt::Debug for Consumer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Consumer({:?})", self.rule)
    }
}
