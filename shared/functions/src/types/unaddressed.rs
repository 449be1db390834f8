//! Functions whose service has no address here. They are deployed, since the address may be configured where the
//! workflow runs, and each call of them is an error.

use async_trait::async_trait;
use swirl_model::Data;
use swirl_model::workflow::AuthScheme;
use swirl_ports::CallRequest;

use super::{Clients, Compiled, CompiledFunction, Context, Misfit, StaticValue};
use crate::CallError;

/// The placeholder for an address when nothing is called.
pub(crate) const NOWHERE: &str = "http://server.invalid";

pub(crate) struct Unaddressed {
    /// Compiled with a placeholder, so that calls can be checked.
    inner: Compiled,
    reason: String,
}

impl Unaddressed {
    pub(crate) fn wrap(inner: Compiled, reason: String) -> Compiled {
        Box::new(Unaddressed { inner, reason })
    }
}

#[async_trait]
impl CompiledFunction for Unaddressed {
    async fn call(&self, _: &Clients, _: &CallRequest, _: &Context<'_>) -> Result<Data, CallError> {
        Err(CallError::arguments(self.reason.clone()))
    }

    fn unaddressed(&self) -> Option<&str> {
        Some(&self.reason)
    }

    fn release_documents(&mut self) -> Result<(), String> {
        self.inner.release_documents()
    }

    fn check(&self, arguments: &StaticValue) -> Vec<Misfit> {
        self.inner.check(arguments)
    }

    fn check_auth(&self, auth: AuthScheme, arguments: &StaticValue) -> Option<String> {
        self.inner.check_auth(auth, arguments)
    }

    fn check_selection(&self, set: &str) -> Vec<String> {
        self.inner.check_selection(set)
    }

    fn check_answer(&self, answer: &StaticValue) -> Vec<String> {
        self.inner.check_answer(answer)
    }
}
