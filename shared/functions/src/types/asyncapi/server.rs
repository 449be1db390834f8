//! Finds the server for a message.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Method;
use serde_json::Value;
use url::Url;

use super::document::{Document, Version};
use crate::CallError;
use crate::egress::Gate;
use crate::http::shown;
use crate::problem::{FaultyPart, Unusable};
use crate::types::rest::Node;

/// Characters that stay unescaped in a path segment.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The protocols as AsyncAPI names them, in the order in which errors list them.
const CARRIED_OUT: [&str; 14] = [
    "amqp",
    "amqps",
    "http",
    "https",
    "kafka",
    "kafka-secure",
    "mqtt",
    "mqtts",
    "nats",
    "redis",
    "rediss",
    "secure-mqtt",
    "ws",
    "wss",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Amqp { tls: bool },
    Http,
    Kafka { tls: bool },
    Mqtt { tls: bool, version: MqttVersion },
    Nats { tls: bool },
    Redis { tls: bool },
    Ws,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum MqttVersion {
    V4,
    V5,
}

#[derive(Debug)]
pub(super) struct Server {
    pub(super) protocol: Protocol,
    /// Has a host, but no user, query or fragment.
    pub(super) url: Url,
}

impl Server {
    pub(super) fn host(&self) -> String {
        // Only URLs have brackets around `[::1]`.
        let host = self.url.host_str().unwrap_or_default();
        host.trim_matches(['[', ']']).to_owned()
    }

    pub(super) fn port(&self) -> u16 {
        let default = match self.protocol {
            Protocol::Amqp { tls: false } => 5672,
            Protocol::Amqp { tls: true } => 5671,
            Protocol::Http | Protocol::Ws => self.url.port_or_known_default().unwrap_or(80),
            Protocol::Kafka { tls: false } => 9092,
            Protocol::Kafka { tls: true } => 9093,
            Protocol::Mqtt { tls: false, .. } => 1883,
            Protocol::Mqtt { tls: true, .. } => 8883,
            Protocol::Nats { .. } => 4222,
            Protocol::Redis { .. } => 6379,
        };
        self.url.port().unwrap_or(default)
    }

    /// The URL of an address, for protocols that have URLs.
    pub(super) fn target(&self, address: &str) -> Url {
        let mut url = self.url.clone();
        let path = self.url.path().trim_end_matches('/');
        url.set_path(&format!("{path}/{}", address.trim_start_matches('/')));
        url
    }

    /// The name of a message to an address, in errors.
    pub(super) fn message_to(&self, method: &Method, address: &str) -> String {
        match self.protocol {
            Protocol::Http => format!("{method} {}", shown(&self.target(address))),
            Protocol::Ws => format!("message to {}", shown(&self.target(address))),
            _ => format!("message to `{address}` at {}:{}", self.host(), self.port()),
        }
    }

    /// The name of a message from an address, in errors.
    pub(super) fn message_from(&self, address: &str) -> String {
        match self.protocol {
            Protocol::Http | Protocol::Ws => {
                format!("message from {}", shown(&self.target(address)))
            }
            _ => format!(
                "message from `{address}` at {}:{}",
                self.host(),
                self.port()
            ),
        }
    }

    /// Checks whether calls may reach the server; `what` names the call in the error.
    pub(super) async fn allowed(&self, gate: &Gate, what: &str) -> Result<(), CallError> {
        let checked = gate.check(&self.host(), self.port()).await;
        checked.map_err(|refused| CallError::arguments(format!("{what}: {refused}")))
    }
}

impl Protocol {
    /// OpenTelemetry's name for the messaging system.
    pub(super) fn system(self) -> Option<&'static str> {
        Some(match self {
            Protocol::Amqp { .. } => "rabbitmq",
            Protocol::Kafka { .. } => "kafka",
            Protocol::Mqtt { .. } => "mqtt",
            Protocol::Nats { .. } => "nats",
            Protocol::Redis { .. } => "redis",
            Protocol::Http | Protocol::Ws => return None,
        })
    }

    /// [`Protocol::system`], or the protocol itself.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Protocol::Http => "http",
            Protocol::Ws => "websocket",
            other => other.system().unwrap_or_default(),
        }
    }

    /// Parses the name in a document or URL. `version` is the protocol's version in the document.
    fn parse(name: &str, version: Option<&str>) -> Option<Protocol> {
        let mqtt = |tls| Protocol::Mqtt {
            tls,
            version: match version {
                Some(version) if version.starts_with('3') || version == "4" => MqttVersion::V4,
                _ => MqttVersion::V5,
            },
        };
        Some(match name.to_ascii_lowercase().as_str() {
            "amqp" | "amqp091" => Protocol::Amqp { tls: false },
            "amqps" => Protocol::Amqp { tls: true },
            "http" | "https" => Protocol::Http,
            "kafka" => Protocol::Kafka { tls: false },
            "kafka-secure" => Protocol::Kafka { tls: true },
            "mqtt" | "mqtt5" => mqtt(false),
            "mqtts" | "secure-mqtt" => mqtt(true),
            "nats" => Protocol::Nats { tls: false },
            "redis" => Protocol::Redis { tls: false },
            "rediss" => Protocol::Redis { tls: true },
            "tls" => Protocol::Nats { tls: true },
            "ws" | "wss" => Protocol::Ws,
            _ => return None,
        })
    }

    /// A parameter's value as part of an address. It must not change the structure of the address.
    pub(super) fn parameter(self, value: &str) -> Result<String, String> {
        let forbidden: &[char] = match self {
            Protocol::Http | Protocol::Ws => {
                return Ok(utf8_percent_encode(value, PATH).to_string());
            }
            Protocol::Amqp { .. } => &['.', '*', '#', '/', '\0'],
            // Names of topics have no other characters.
            Protocol::Kafka { .. } => {
                let is_other = |c: &char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
                return match value.chars().find(is_other) {
                    Some(found) => Err(format!("has a {found:?}, which topics don't have")),
                    None => Ok(value.to_owned()),
                };
            }
            Protocol::Redis { .. } => &[':', '/', '\0'],
            Protocol::Mqtt { .. } => &['/', '+', '#', '\0'],
            Protocol::Nats { .. } => &['.', '*', '>', '/', ' ', '\t', '\r', '\n', '\0'],
        };
        match value.chars().find(|c| forbidden.contains(c)) {
            Some(found) => Err(format!("has a {found:?}, which parts addresses")),
            None => Ok(value.to_owned()),
        }
    }
}

/// The server at a URL. `name` names it in errors.
pub(super) fn at(url: &str, name: &str) -> Result<Server, Unusable> {
    let named = Named {
        name: name.to_owned(),
        url: url.to_owned(),
        protocol: String::new(),
        version: None,
    };
    named.server()
}

/// What a function says about its server.
pub(super) struct Wanted<'a> {
    /// `metadata.server`: a name or a URL.
    pub(super) server: Option<&'a Value>,
    /// Any, if it isn't given.
    pub(super) protocol: Option<&'a str>,
    /// Take the place of the defaults of the server's variables.
    pub(super) variables: Option<&'a Value>,
}

/// `None` if neither the function nor the document has a server.
pub(super) fn choose(
    document: &Document,
    channel: &Node<'_>,
    given: &Wanted<'_>,
) -> Result<Option<Server>, Unusable> {
    let wanted = match given.server {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.as_str()),
        Some(_) => {
            let reason = "`metadata.server` must be a server's name or URL";
            return Err(Unusable::at(FaultyPart::Server, reason.to_owned()));
        }
    };
    if let Some(url) = wanted.filter(|text| text.contains("://")) {
        return at(url, "metadata.server").map(Some);
    }
    let servers = servers(document, channel)?;
    if let Some(name) = wanted {
        let found = servers.iter().find(|(known, _)| known == name);
        let (name, node) = found.ok_or_else(|| {
            let known: Vec<&str> = servers.iter().map(|(name, _)| name.as_str()).collect();
            let known = known.join(", ");
            let reason =
                format!("`metadata.server`: the channel has no server `{name}`; it has {known}");
            Unusable::at(FaultyPart::Server, reason)
        })?;
        return named(document, name, node, given.variables)?
            .server()
            .map(Some);
    }
    let mut first = None;
    for (name, node) in &servers {
        let found = named(document, name, node, given.variables);
        let found = found.map_err(Unusable::from);
        match found.and_then(|named| Ok((named.speaks(given.protocol), named.server()?))) {
            Ok((true, server)) => return Ok(Some(server)),
            Ok((false, _)) => {}
            Err(error) => first = first.or(Some(error)),
        }
    }
    if let (None, Some(protocol)) = (&first, given.protocol) {
        let reason = format!("the channel has no server that speaks `{protocol}`");
        first = Some(Unusable::at(FaultyPart::Protocol, reason));
    }
    first.map_or(Ok(None), Err)
}

/// The servers of a channel, otherwise of the document.
fn servers<'a>(
    document: &'a Document,
    channel: &Node<'a>,
) -> Result<Vec<(String, Node<'a>)>, String> {
    let all = document.member(&document.root(), "servers")?;
    let all = all.map(|all| all.members()).unwrap_or_default();
    let own = channel
        .get("servers")
        .map(|own| own.items())
        .unwrap_or_default();
    if own.is_empty() {
        return all
            .into_iter()
            .map(|(name, node)| Ok((name.to_owned(), document.resolve(node)?)))
            .collect();
    }
    let mut found = Vec::new();
    for node in own {
        // AsyncAPI 2 has a name here, AsyncAPI 3 a reference.
        let name = node.value.as_str();
        let name = name.or_else(|| node.text("$ref")?.rsplit('/').next());
        let name = name.unwrap_or_default();
        let server = match document.version {
            Version::V2 => {
                let server = all.iter().find(|(known, _)| *known == name);
                server.map(|(_, node)| node.clone())
            }
            Version::V3 => Some(node.clone()),
        };
        let server = server.ok_or_else(|| format!("{}: there is no server `{name}`", node.at))?;
        found.push((name.to_owned(), document.resolve(server)?));
    }
    Ok(found)
}

struct Named {
    name: String,
    url: String,
    /// The protocol, if the URL has no scheme.
    protocol: String,
    version: Option<String>,
}

fn named(
    document: &Document,
    name: &str,
    node: &Node<'_>,
    variables: Option<&Value>,
) -> Result<Named, String> {
    let text = |key: &str| node.text(key).unwrap_or_default();
    let url = match document.version {
        Version::V2 => text("url").to_owned(),
        Version::V3 => format!("{}{}", text("host"), text("pathname")),
    };
    let version = match node.value.get("protocolVersion") {
        Some(Value::String(version)) => Some(version.clone()),
        Some(Value::Number(version)) => Some(version.to_string()),
        _ => None,
    };
    Ok(Named {
        name: name.to_owned(),
        url: fill(document, &url, node, variables)?,
        protocol: text("protocol").to_owned(),
        version,
    })
}

/// Replaces the `{variables}` of a server with what is given, or else with their defaults.
fn fill(
    document: &Document,
    template: &str,
    node: &Node<'_>,
    given: Option<&Value>,
) -> Result<String, String> {
    let variables = document.member(node, "variables")?;
    let (mut url, mut rest) = (String::new(), template);
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after
            .split_once('}')
            .ok_or_else(|| format!("{}: a `{{` of the URL isn't closed", node.at))?;
        let variable = match &variables {
            Some(all) => document.member(all, name)?,
            None => None,
        };
        let default = || variable.as_ref()?.value.get("default");
        let own = given.and_then(|given| given.get(name));
        let value = own.or_else(default).and_then(|value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        });
        let value = value.ok_or_else(|| {
            format!(
                "{}: the variable `{name}` has no default; give the URL in the function's \
                 `metadata.server`",
                node.at
            )
        })?;
        url.push_str(before);
        url.push_str(&value);
        rest = after;
    }
    url.push_str(rest);
    Ok(url)
}

impl Named {
    fn speaks(&self, wanted: Option<&str>) -> bool {
        let own = self.url.split_once("://").map(|(scheme, _)| scheme);
        let own = own.unwrap_or(&self.protocol);
        let version = self.version.as_deref();
        let kind = |name: &str| Protocol::parse(name, version).map(Protocol::as_str);
        wanted.is_none_or(|wanted| {
            wanted.eq_ignore_ascii_case(own)
                || wanted.eq_ignore_ascii_case(&self.protocol)
                || kind(own).is_some_and(|own| Some(own) == kind(wanted))
        })
    }

    fn server(&self) -> Result<Server, Unusable> {
        let name = &self.name;
        let text = match self.url.contains("://") {
            true => self.url.clone(),
            false => format!("{}://{}", self.protocol, self.url),
        };
        let url = Url::parse(&text).ok().filter(Url::has_host);
        let mut url = url
            .filter(|url| url.host_str().is_some_and(|host| !host.is_empty()))
            .ok_or_else(|| {
                format!(
                    "the server `{name}`: `{}` is not a URL with a host",
                    self.url
                )
            })?;
        let version = self.version.as_deref();
        let protocol = Protocol::parse(url.scheme(), version)
            .or_else(|| Protocol::parse(&self.protocol, version))
            .ok_or_else(|| {
                let protocol = match self.protocol.as_str() {
                    "" => url.scheme(),
                    protocol => protocol,
                };
                let reason = format!(
                    "the server `{name}` speaks `{protocol}`, which this version doesn't \
                     speak; it speaks {}",
                    CARRIED_OUT.join(", ")
                );
                Unusable::at(FaultyPart::Protocol, reason)
            })?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Unusable::from(format!(
                "the server `{name}`: its URL has credentials; give them as the function's auth"
            )));
        }
        url.set_query(None);
        url.set_fragment(None);
        Ok(Server { protocol, url })
    }
}
