//! A caller for coordinators, which take only turns that call no functions.

use std::sync::Arc;

use async_trait::async_trait;
use swirl_assembly::Calls;
use swirl_model::error::names;
use swirl_model::{Data, WorkflowError};
use swirl_ports::{CallRequest, FunctionCaller, Secrets};

struct NoCalls;

#[async_trait]
impl FunctionCaller for NoCalls {
    async fn call(&self, _: CallRequest) -> Result<Data, WorkflowError> {
        let message = "a coordinator calls no functions";
        Err(WorkflowError::new(names::FUNCTION_ERROR, message))
    }
}

#[async_trait]
impl Secrets for NoCalls {
    async fn get(&self, _: &[String]) -> Data {
        Data::object()
    }
}

pub fn calls() -> Calls {
    Calls {
        caller: Arc::new(NoCalls),
        secrets: Arc::new(NoCalls),
    }
}
