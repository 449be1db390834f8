//! `call: grpc` (DSL 1.0, "gRPC Call").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::Data;
use swirl_model::workflow::{AuthId, AuthScheme, FunctionKind, StateKind};

use super::Reader;
use super::called::Called;
use crate::build::ctx::Obj;

/// The port that is called with TLS, and that is called without a port.
const TLS_PORT: u16 = 443;

impl Reader<'_, '_> {
    pub fn grpc_call(&mut self, task: Obj<'_>) -> Option<StateKind> {
        let known = &["proto", "service", "method", "arguments"];
        let obj = self.with(task, "grpc", known, &["proto", "service", "method"])?;
        let proto = obj.get("proto").map(|node| self.described_by(node));
        let service = obj.get("service").map(|node| self.grpc_service(node));
        let method = obj
            .get("method")
            .map(|node| self.grpc_name(node, "'method'"));
        let arguments = self.named_values(obj, "arguments");
        let (uri, resource_auth) = proto??;
        let (name, server, auth) = service??;
        let mut metadata = Data::object();
        metadata.set("server", Data::string(server));
        let called = Called {
            kind: FunctionKind::Rpc,
            operation: format!("{uri}#{name}#{}", method??),
            resource_auth,
            auth,
            metadata,
            arguments: arguments?,
            timeout: None,
        };
        Some(self.calling(task, called))
    }

    /// The service's name, its address, and the authentication.
    fn grpc_service(&mut self, node: &Node) -> Option<(String, String, Option<AuthId>)> {
        let known = &["name", "host", "port", "authentication"];
        let obj = self.object(node, "'service'", known)?;
        let name = match obj.get("name") {
            Some(node) => self.grpc_name(node, "'name'"),
            None => {
                self.missing(obj, "'service'", &["name"]);
                None
            }
        };
        let mut host = self.need_string(obj, "'service'", "host");
        if let (Some(text), Some(node)) = (&host, obj.get("host")) {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
            let edges = text.starts_with(['-', '.']) || text.ends_with(['-', '.']);
            if text.is_empty() || edges || !text.chars().all(plain) {
                let message = format!("'host' cannot be '{text}'");
                let hint = "write the name of a host, without a scheme, a port or an expression";
                self.error(node, codes::BAD_URI, message, hint.to_owned());
                host = None;
            }
        }
        let port = match obj.get("port") {
            None => Some(TLS_PORT),
            Some(node) => {
                let (wanted, range) = ("a whole number from 1 to 65535", 1..=i64::from(u16::MAX));
                let port = self.whole(node, "'port'", wanted, range, codes::BAD_NUMBER);
                port.and_then(|port| u16::try_from(port).ok())
            }
        };
        let auth = self.auth_of(obj)?;
        if let (Some(auth), Some(node)) = (auth, obj.get("authentication")) {
            self.no_digest(node, auth, "gRPC")?;
        }
        let port = port?;
        let scheme = if port == TLS_PORT { "grpcs" } else { "grpc" };
        Some((name?, format!("{scheme}://{}:{port}", host?), auth))
    }

    /// The name of a service or a method.
    fn grpc_name(&mut self, node: &Node, what: &str) -> Option<String> {
        let text = self.string(node, what)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
        if text.is_empty() || !text.chars().all(plain) {
            let message = format!("{what} cannot be '{text}'");
            let hint = "write the name as it is in the proto file".to_owned();
            self.error(node, codes::BAD_NAME, message, hint);
            return None;
        }
        Some(text)
    }

    /// Refuses a digest, which answers a challenge of an HTTP service.
    pub fn no_digest(&mut self, node: &Node, auth: AuthId, what: &str) -> Option<()> {
        if self.workflow[auth].scheme != AuthScheme::Digest {
            return Some(());
        }
        let message = format!("{what} has no challenge that a digest could answer");
        let hint = "use another authentication".to_owned();
        self.error(node, codes::NOT_CARRIED_OUT, message, hint);
        None
    }
}
