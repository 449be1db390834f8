//! The operations of the documents that describe services, with the arguments of each: OpenAPI, AsyncAPI, proto files.
//!
//! Documents are only looked through here, for names. Whether they are valid is for the deployment.

use swirl_documents::source::{Limits, Node, parse};

use crate::operations;

/// The number of references that are followed one after another.
const REFERENCES_MAX: usize = 16;

/// An operation, by the name that follows the `#` of its document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    pub name: String,
    pub arguments: Vec<String>,
}

/// The operations of a document; none if it is of no known form.
pub fn offered(uri: &str, document: &[u8]) -> Vec<Offered> {
    if uri.to_ascii_lowercase().ends_with(".proto") {
        return of_proto(&String::from_utf8_lossy(document));
    }
    let Ok(root) = parse(document, &Limits::default()) else {
        return Vec::new();
    };
    if root.get("asyncapi").is_some() {
        return of_asyncapi(&root);
    }
    let found = operations::operations(document).unwrap_or_default();
    let found = found.into_iter().map(|one| Offered {
        name: one.id,
        arguments: one.arguments,
    });
    found.collect()
}

fn members(node: Option<&Node>) -> Vec<(String, Node)> {
    let members = node.and_then(Node::members).unwrap_or_default().iter();
    let members = members.map(|one| (one.key().to_owned(), one.value().clone()));
    members.collect()
}

/// AsyncAPI 2 has operations in its channels, and AsyncAPI 3 beside them.
fn of_asyncapi(root: &Node) -> Vec<Offered> {
    let mut found = Vec::new();
    for (name, operation) in members(root.get("operations")) {
        let operation = resolved(root, &operation);
        let own = operation.get("messages").and_then(Node::items);
        let first = own.and_then(|all| all.first().cloned());
        let channel = operation.get("channel");
        let channel = channel.map(|channel| resolved(root, channel));
        let of_channel = || {
            members(channel.as_ref()?.get("messages"))
                .into_iter()
                .next()
        };
        let message = first.or_else(|| of_channel().map(|(_, message)| message));
        let arguments = payload(root, message.as_ref());
        found.push(Offered { name, arguments });
    }
    for (_, channel) in members(root.get("channels")) {
        let channel = resolved(root, &channel);
        for side in ["publish", "subscribe"] {
            let Some(operation) = channel.get(side).map(|side| resolved(root, side)) else {
                continue;
            };
            let Some(name) = operation.get("operationId").and_then(Node::as_str) else {
                continue;
            };
            let message = operation.get("message").map(|one| resolved(root, one));
            let one_of = message
                .as_ref()
                .and_then(|one| one.get("oneOf")?.items()?.first().cloned());
            let arguments = payload(root, one_of.or(message).as_ref());
            let name = name.to_owned();
            found.push(Offered { name, arguments });
        }
    }
    found
}

/// The properties of a message's payload.
fn payload(root: &Node, message: Option<&Node>) -> Vec<String> {
    let message = message.map(|message| resolved(root, message));
    let payload = message.and_then(|message| message.get("payload").cloned());
    let payload = payload.map(|payload| resolved(root, &payload));
    let properties = payload
        .as_ref()
        .and_then(|one| one.get("properties")?.members());
    let properties = properties.unwrap_or_default().iter();
    properties.map(|one| one.key().to_owned()).collect()
}

/// Follows references within the document.
fn resolved(root: &Node, node: &Node) -> Node {
    let mut node = node;
    for _ in 0..REFERENCES_MAX {
        let target = node.get("$ref").and_then(Node::as_str);
        match target.and_then(|target| root.at(target.strip_prefix('#')?)) {
            Some(found) => node = found,
            None => break,
        }
    }
    node.clone()
}

/// The methods of a proto file's services, as `SERVICE#METHOD`.
fn of_proto(text: &str) -> Vec<Offered> {
    let words = words(text);
    let mut found: Vec<(String, String, bool)> = Vec::new();
    let mut messages: Vec<(String, Vec<String>)> = Vec::new();
    // The blocks around a word, each by its keyword and name.
    let mut blocks: Vec<(&str, &str)> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let next = |ahead: usize| words.get(at + ahead).copied().unwrap_or_default();
        match (*word, blocks.as_slice()) {
            ("{", _) => {
                let begins = |keyword: &str| at >= 2 && words[at - 2] == keyword;
                let keyword = ["service", "message", "oneof"]
                    .into_iter()
                    .find(|one| begins(one));
                let name = if at >= 1 { words[at - 1] } else { "" };
                if keyword == Some("message") {
                    messages.push((name.to_owned(), Vec::new()));
                }
                blocks.push((keyword.unwrap_or_default(), name));
            }
            ("}", _) => drop(blocks.pop()),
            ("rpc", [("service", service)]) => {
                let takes_stream = next(3) == "stream";
                let request = if takes_stream { next(4) } else { next(3) };
                let name = format!("{service}#{}", next(1));
                found.push((name, request.to_owned(), takes_stream));
            }
            // `type name = 1`
            ("=", [.., ("message", message)] | [.., ("message", message), ("oneof", _)])
                if at >= 2
                    && next(1).parse::<u32>().is_ok()
                    && words[at - 2] != "option"
                    && words[at - 1] != ")" =>
            {
                let fields = messages.iter_mut().rev().find(|(name, _)| name == message);
                if let Some((_, fields)) = fields {
                    fields.push(words[at - 1].to_owned());
                }
            }
            _ => {}
        }
    }
    let fields = |name: &str| {
        let name = name.rsplit('.').next().unwrap_or(name);
        let message = messages.iter().find(|(known, _)| known == name);
        message.map_or_else(Vec::new, |(_, fields)| fields.clone())
    };
    let found = found
        .into_iter()
        .map(|(name, request, takes_stream)| Offered {
            name,
            arguments: match takes_stream {
                true => vec!["messages".to_owned()],
                false => fields(&request),
            },
        });
    found.collect()
}

/// The words and signs of a proto file, without comments and texts.
fn words(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |at| at + 2)
        } else if matches!(c, '"' | '\'') {
            let mut escaped = false;
            let end = rest.char_indices().skip(1).find(|(_, inner)| {
                let ends = *inner == c && !escaped;
                escaped = *inner == '\\' && !escaped;
                ends
            });
            end.map_or(rest.len(), |(at, _)| at + 1)
        } else {
            let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
            let length = match is_word(c) {
                true => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                false => c.len_utf8(),
            };
            if !c.is_whitespace() {
                found.push(&rest[..length]);
            }
            length
        };
        rest = &rest[length..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(uri: &str, document: &str) -> Vec<String> {
        let found = offered(uri, document.as_bytes()).into_iter();
        let found = found.map(|one| format!("{}({})", one.name, one.arguments.join(", ")));
        found.collect()
    }

    #[test]
    fn methods_of_proto_files() {
        let proto = r#"
            syntax = "proto3"; // service X { rpc Y (Z) returns (Z); }
            package acme.v1;
            import "google/api/annotations.proto";
            option go_package = "a;b";
            /* service Old {} */
            service Users {
              option deprecated = false;
              rpc Get (GetRequest) returns (User) { option (google.api.http) = {get: "/v1/{name=users/*}"}; }
              rpc Put(stream acme.v1.User) returns (stream User);
            }
            service Other { rpc Get (.acme.v1.User) returns (User) {} }
            message GetRequest { string name = 1; }
            message User {
              reserved 9;
              option (x) = 1;
              enum Kind { NONE = 0; }
              message Inner { int32 hidden = 1; }
              string full_name = 1 [json_name = "fullName"];
              repeated Inner more = 2;
              map<string, int32> counts = 3;
              oneof by { string mail = 4; string phone = 5; }
            }
        "#;
        assert_eq!(
            show("protos/x.PROTO", proto),
            [
                "Users#Get(name)",
                "Users#Put(messages)",
                "Other#Get(full_name, more, counts, mail, phone)"
            ]
        );
        assert_eq!(show("x.proto", "service X { rpc"), ["X#()"; 1]);
        assert_eq!(show("x.proto", "} \" {"), [""; 0]);
    }

    #[test]
    fn operations_of_asyncapi() {
        let second = r##"{"asyncapi": "2.6.0", "channels": {"lights": {
            "subscribe": {"operationId": "onLight", "message": {"$ref": "#/components/messages/Light"}},
            "publish": {"operationId": "turnOn", "message": {"oneOf": [{"payload": {"properties": {"on": {}}}}]}}}},
            "components": {"messages": {"Light": {"payload": {"$ref": "#/components/schemas/Light"}}},
                "schemas": {"Light": {"type": "object", "properties": {"id": {}, "lumens": {}}}}}}"##;
        assert_eq!(
            show("a.json", second),
            ["turnOn(on)", "onLight(id, lumens)"]
        );
        let third = "asyncapi: 3.0.0
channels: {lights: {messages: {light: {payload: {properties: {id: {}}}}}}}
operations:
  sendLight: {action: send, channel: {$ref: '#/channels/lights'}}
  other: {action: receive, messages: [{$ref: '#/channels/lights/messages/light'}]}
";
        assert_eq!(show("a.yaml", third), ["sendLight(id)", "other(id)"]);
        assert_eq!(show("a.yaml", "a: ["), [""; 0]);
    }
}
