//! `call: mcp` and `call: a2a` (DSL 1.0, "MCP Call", "A2A Call").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::Data;
use swirl_model::workflow::{AuthId, FunctionKind, StateKind, Template};

use super::Reader;
use super::called::Called;
use super::value::DEFINITION;
use crate::build::advice::Advice;
use crate::build::ctx::{Obj, did_you_mean};

const MCP: &[&str] = &[
    "protocolVersion",
    "method",
    "parameters",
    "timeout",
    "transport",
    "client",
];
const MCP_METHODS: &[&str] = &[
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/read",
    "resources/templates/list",
];
const MCP_VERSION: &str = "2025-06-18";
const A2A: &[&str] = &["method", "agentCard", "server", "parameters"];
const A2A_METHODS: &[&str] = &[
    "message/send",
    "message/stream",
    "tasks/get",
    "tasks/list",
    "tasks/cancel",
    "tasks/resubscribe",
    "tasks/pushNotificationConfig/set",
    "tasks/pushNotificationConfig/get",
    "tasks/pushNotificationConfig/list",
    "tasks/pushNotificationConfig/delete",
    "agent/getAuthenticatedExtendedCard",
];

type Parts = Vec<(String, Template)>;

impl Reader<'_, '_> {
    pub fn mcp_call(&mut self, task: Obj<'_>) -> Option<StateKind> {
        let obj = self.with(task, "mcp", MCP, &["method", "transport"])?;
        let method = self.remote_method(obj, MCP_METHODS);
        let mut metadata = Data::object();
        let version = self.opt_string(obj, "protocolVersion");
        let version = version.unwrap_or_else(|| MCP_VERSION.to_owned());
        metadata.set("protocolVersion", Data::string(version));
        let timeout = match obj.get("timeout") {
            Some(node) => self.positive_length(node, "'timeout'").map(Some),
            None => Some(None),
        };
        let transport = obj.get("transport").map(|node| self.transport(node));
        if obj
            .get("transport")
            .is_some_and(|node| node.get("stdio").is_some())
        {
            metadata.set("transport", Data::string("stdio"));
        }
        let parameters = self.remote_parameters(obj);
        let client = match obj.get("client") {
            Some(node) => self.mcp_client(node).map(Some),
            None => Some(None),
        };
        let (mut arguments, auth) = transport??;
        arguments.extend(parameters?);
        arguments.extend(client?.map(|client| ("client".to_owned(), client)));
        let called = Called {
            kind: FunctionKind::Mcp,
            operation: method?,
            resource_auth: None,
            auth,
            metadata,
            arguments: Template::Object(arguments),
            timeout: timeout?,
        };
        Some(self.calling(task, called))
    }

    /// The arguments that say where the server is, and the authentication.
    fn transport(&mut self, node: &Node) -> Option<(Parts, Option<AuthId>)> {
        let obj = self.object(node, "'transport'", &["http", "stdio", "options"])?;
        if let Some(node) = obj.get("options") {
            self.transport_options(node);
        }
        match (obj.get("http"), obj.get("stdio")) {
            (Some(node), None) => self.mcp_http(node),
            (None, Some(node)) => self.mcp_stdio(node).map(|parts| (parts, None)),
            (None, None) => {
                self.missing(obj, "'transport'", &["http", "stdio"]);
                None
            }
            (Some(_), Some(_)) => {
                self.exclusive(obj, "'transport'", &["http", "stdio"]);
                None
            }
        }
    }

    /// The text names no option, so none can be carried out.
    fn transport_options(&mut self, node: &Node) {
        let Some(members) = node.members() else {
            return self.wrong_type(node, "'options'", "an object");
        };
        for option in members {
            let name = option.key();
            let message = format!("the transport has no option '{name}'");
            let hint = "remove it: headers are in 'http', arguments and 'environment' in 'stdio', and 'timeout' is beside \
                        'transport'"
                .to_owned();
            self.error(option.value(), codes::NOT_CARRIED_OUT, message, hint);
        }
    }

    fn mcp_http(&mut self, node: &Node) -> Option<(Parts, Option<AuthId>)> {
        let obj = self.object(node, "'http'", &["endpoint", "headers"])?;
        let headers = match obj.get("headers") {
            None => Some(None),
            Some(node) if node.members().is_none() => {
                self.wrong_type(node, "'headers'", "an object");
                None
            }
            Some(node) => self.scalars(node, DEFINITION, true).map(Some),
        };
        let Some(endpoint) = obj.get("endpoint") else {
            self.missing(obj, "'http'", &["endpoint"]);
            return None;
        };
        let (uri, auth) = self.endpoint(endpoint);
        let mut parts = vec![("endpoint".to_owned(), uri?)];
        parts.extend(headers?.map(|headers| ("headers".to_owned(), headers)));
        Some((parts, auth))
    }

    /// The process that is the server.
    fn mcp_stdio(&mut self, node: &Node) -> Option<Parts> {
        let obj = self.object(node, "'stdio'", &["command", "arguments", "environment"])?;
        let mut parts = Parts::new();
        match obj.get("command") {
            Some(node) => {
                let command = self
                    .string(node, "'command'")
                    .and_then(|_| self.text_value(node, DEFINITION, true));
                parts.extend(command.map(|command| ("command".to_owned(), command)));
            }
            None => self.missing(obj, "'stdio'", &["command"]),
        }
        let arguments = obj.get("arguments");
        if let Some(items) = arguments.and_then(|node| self.list(node, "'arguments'")) {
            for item in items {
                self.scalar(item, "an argument");
            }
        }
        if let Some(arguments) = arguments.and_then(|node| self.scalars(node, DEFINITION, true)) {
            parts.push(("arguments".to_owned(), arguments));
        }
        self.mapping(obj, "environment", &mut parts);
        Some(vec![("stdio".to_owned(), Template::Object(parts))])
    }

    /// An older text has a description in place of the version.
    fn mcp_client(&mut self, node: &Node) -> Option<Template> {
        let obj = self.object(node, "'client'", &["name", "version", "description"])?;
        let mut parts = Parts::new();
        for (name, names) in [
            ("name", &["name"][..]),
            ("version", &["version", "description"]),
        ] {
            let Some(node) = names.iter().find_map(|name| obj.get(name)) else {
                self.missing(obj, "'client'", &[name]);
                continue;
            };
            let value = self
                .string(node, &format!("'{name}'"))
                .and_then(|_| self.text_value(node, DEFINITION, false));
            parts.extend(value.map(|value| (name.to_owned(), value)));
        }
        Some(Template::Object(parts))
    }

    pub fn a2a_call(&mut self, task: Obj<'_>) -> Option<StateKind> {
        let obj = self.with(task, "a2a", A2A, &["method"])?;
        let method = self.remote_method(obj, A2A_METHODS);
        if let Some(node) = obj.get("parameters") {
            self.not_empty_object(node, "'parameters'");
        }
        let parameters = self.remote_parameters(obj);
        let mut arguments = Parts::new();
        let (card, auth, resource_auth) = match (obj.get("agentCard"), obj.get("server")) {
            (None, None) => {
                self.missing(obj, "'with'", &["agentCard", "server"]);
                return None;
            }
            (None, Some(node)) => {
                let (uri, auth) = self.endpoint(node);
                arguments.push(("server".to_owned(), uri?));
                (String::new(), auth, None)
            }
            // With a card, the language ignores the server.
            (Some(node), server) => {
                if let Some(server) = server {
                    let message = "'server' is ignored: the agent's card says where it is";
                    let hint = "remove one of the two".to_owned();
                    self.warn(server, codes::EXCLUSIVE_PROPERTIES, message, hint);
                }
                let (uri, auth) = self.described_by(node)?;
                (uri, auth, auth)
            }
        };
        arguments.extend(parameters?);
        let called = Called {
            kind: FunctionKind::A2a,
            operation: format!("{}#{card}", method?),
            resource_auth,
            auth,
            metadata: Data::object(),
            arguments: Template::Object(arguments),
            timeout: None,
        };
        Some(self.calling(task, called))
    }

    fn remote_method(&mut self, obj: Obj<'_>, known: &'static [&'static str]) -> Option<String> {
        let node = obj.get("method")?;
        let text = self.string(node, "'method'")?;
        if known.contains(&text.as_str()) {
            return Some(text);
        }
        let hint = did_you_mean(&text, known.iter().copied());
        let hint = hint.unwrap_or_else(|| format!("use one of {}", known.join(", ")));
        let message = format!("there is no method '{text}'");
        let advice = Advice::among(known, hint);
        self.error(node, codes::UNKNOWN_VALUE, message, advice);
        None
    }

    /// `parameters`: an object, or an expression that gives one.
    fn remote_parameters(&mut self, obj: Obj<'_>) -> Option<Parts> {
        let Some(node) = obj.get("parameters") else {
            return Some(Parts::new());
        };
        if node.members().is_none() && !self.is_expression(node, DEFINITION) {
            self.wrong_type(node, "'parameters'", "an object or an expression");
            return None;
        }
        let value = self.value(node, DEFINITION, true)?;
        Some(vec![("parameters".to_owned(), value)])
    }
}
