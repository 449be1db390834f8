//! `call`: the functions that the language defines (DSL 1.0, "Call"). Others: `functions.rs`.

use swirl_documents::source::Node;
use swirl_model::workflow::StateKind;

use super::Reader;
use crate::build::ctx::Obj;

impl Reader<'_, '_> {
    pub fn call(&mut self, node: &Node, task: Obj<'_>, own_name: &str) -> Option<StateKind> {
        let name = self.string(node, "'call'")?;
        match name.as_str() {
            "a2a" => self.a2a_call(task),
            "asyncapi" => self.asyncapi_call(task),
            "grpc" => self.grpc_call(task),
            "http" => self.http_call(task),
            "mcp" => self.mcp_call(task),
            "openapi" => self.openapi_call(task),
            name => self.function_call(node, name, task, own_name),
        }
    }
}
