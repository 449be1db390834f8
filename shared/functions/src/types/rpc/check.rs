//! Arguments and answers against the messages of a proto file.

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor};
use swirl_model::Data;

use super::message::{MESSAGES, NOT_OBJECTS, VALUE, requests};
use crate::types::Known;
use crate::types::fits::did_you_mean;

/// How deep messages are looked into.
const DEPTH_MAX: usize = 64;

/// What a call would be refused for before anything is sent.
pub(super) fn arguments(method: &MethodDescriptor, arguments: &Known) -> Vec<String> {
    if let Some(whole) = arguments.whole() {
        // All of it is known: the call's own reading says it.
        let mut found = Vec::new();
        let message = method.input();
        if !method.is_client_streaming() {
            look(&message, arguments, "", DEPTH_MAX, &mut found);
        }
        if found.is_empty() {
            found.extend(requests(method, &Data::from(whole)).err());
        }
        return found;
    }
    let message = method.input();
    let mut found = Vec::new();
    if !method.is_client_streaming() {
        look(&message, arguments, "", DEPTH_MAX, &mut found);
        return found;
    }
    match arguments.get(MESSAGES) {
        Some(Known::List(messages)) => {
            for (index, one) in messages.iter().enumerate() {
                let at = format!("{MESSAGES}[{index}]");
                look(&message, one, &at, DEPTH_MAX, &mut found);
            }
        }
        Some(_) => {}
        None if matches!(arguments, Known::Object(_)) => found.push(format!(
            "the method takes a stream: its only argument is `{MESSAGES}`, a list of messages of the \
             type {}",
            message.full_name()
        )),
        None => {}
    }
    found
}

/// What the service would not answer.
pub(super) fn answer(method: &MethodDescriptor, answer: &Known) -> Vec<String> {
    let message = method.output();
    let mut found = Vec::new();
    match (method.is_server_streaming(), answer) {
        (true, Known::List(answers)) => {
            for (index, one) in answers.iter().enumerate() {
                look(&message, one, &format!("[{index}]"), DEPTH_MAX, &mut found);
            }
        }
        (true, _) => {}
        (false, answer) => look(&message, answer, "", DEPTH_MAX, &mut found),
    }
    found
}

fn look(
    message: &MessageDescriptor,
    value: &Known,
    at: &str,
    depth: usize,
    found: &mut Vec<String>,
) {
    // The JSON forms of these are their own.
    if depth == 0 || message.full_name().starts_with("google.protobuf.") {
        let name = message.full_name();
        if at.is_empty() && NOT_OBJECTS.contains(&name) && matches!(value, Known::Object(_)) {
            let strays = match value {
                Known::Object(members) => members.iter().any(|(name, _)| name != VALUE),
                _ => false,
            };
            if strays {
                found.push(format!(
                    "the request is a {name}: its only argument is `{VALUE}`"
                ));
            }
        }
        return;
    }
    let members = match value {
        Known::Object(members) => members,
        Known::Unknown | Known::Null => return,
        other => {
            let what = if at.is_empty() { "it" } else { at };
            let kind = other.kind();
            found.push(format!(
                "{what} must be an object, the message {}, and is {kind}",
                message.full_name()
            ));
            return;
        }
    };
    let given = |name: &str| members.iter().any(|(known, _)| known == name);
    for (name, value) in members {
        let at = match at {
            "" => name.clone(),
            at => format!("{at}.{name}"),
        };
        let field = message
            .get_field_by_json_name(name)
            .or_else(|| message.get_field_by_name(name));
        let Some(field) = field else {
            let names: Vec<String> = message
                .fields()
                .map(|field| field.json_name().to_owned())
                .collect();
            let free = names.iter().map(String::as_str);
            let hint = did_you_mean(name, free.filter(|name| !given(name)));
            found.push(format!(
                "the message {} has no field `{at}`{hint}",
                message.full_name()
            ));
            continue;
        };
        match value {
            Known::Unknown | Known::Null => {}
            Known::List(items) if field.is_list() => {
                for (index, item) in items.iter().enumerate() {
                    single(&field, item, &format!("{at}[{index}]"), depth, found);
                }
            }
            Known::Object(members) if field.is_map() => {
                if let Kind::Message(entry) = field.kind() {
                    let of = entry.map_entry_value_field();
                    for (key, item) in members {
                        single(&of, item, &format!("{at}.{key}"), depth, found);
                    }
                }
            }
            other if field.is_list() || field.is_map() => {
                let wanted = if field.is_list() {
                    "a list"
                } else {
                    "an object"
                };
                found.push(format!("`{at}` must be {wanted}, and is {}", other.kind()));
            }
            value => single(&field, value, &at, depth, found),
        }
    }
}

fn single(field: &FieldDescriptor, value: &Known, at: &str, depth: usize, found: &mut Vec<String>) {
    let wanted = match (field.kind(), value) {
        (_, Known::Unknown | Known::Null) => return,
        (Kind::Message(message), value) => {
            return look(&message, value, at, depth - 1, found);
        }
        (Kind::Bool, Known::Bool(_)) => return,
        (Kind::Bool, _) => "true or false",
        (Kind::String | Kind::Bytes, Known::Text(_)) => return,
        (Kind::String | Kind::Bytes, _) => "a text",
        (Kind::Enum(of), Known::Text(Some(name))) if of.get_value_by_name(name).is_none() => {
            let names: Vec<String> = of.values().map(|value| value.name().to_owned()).collect();
            let hint = did_you_mean(name, names.iter().map(String::as_str));
            found.push(format!(
                "`{at}`: the enum {} has no value `{name}`{hint}",
                of.full_name()
            ));
            return;
        }
        (Kind::Enum(_), Known::Text(_) | Known::Number(_)) => return,
        (Kind::Enum(_), _) => "the name of a value",
        // Numbers may be given as texts of digits, and floats as `NaN`.
        (_, Known::Number(_) | Known::Text(_)) => return,
        (_, _) => "a number",
    };
    found.push(format!("`{at}` must be {wanted}, and is {}", value.kind()));
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::proto::Proto;
    use super::super::sources::Sources;
    use super::*;

    const PROTO: &str = r#"
        syntax = "proto3";
        import "google/protobuf/timestamp.proto";
        import "google/protobuf/wrappers.proto";
        service S {
          rpc Add(User) returns (User);
          rpc All(stream User) returns (stream User);
          rpc Name(google.protobuf.StringValue) returns (User);
        }
        enum Colour { NONE = 0; RED = 1; }
        message User {
          string user_name = 1; int32 age = 2; bool active = 3; Colour colour = 4;
          repeated string tags = 5; map<string, int32> marks = 6; User friend = 7;
          google.protobuf.Timestamp since = 8; bytes data = 9;
        }"#;

    fn method(name: &str) -> MethodDescriptor {
        let sources = Sources::read("s.proto", PROTO, |_| None).unwrap();
        Proto::compile(sources).unwrap().method("S", name).unwrap()
    }

    fn found(name: &str, value: Value) -> String {
        arguments(&method(name), &Known::from(value)).join("; ")
    }

    #[test]
    fn arguments_are_fields_of_the_message() {
        for (value, expected) in [
            (
                json!({"userName": "Ada", "age": "36", "active": true, "colour": "RED", "tags": ["a"],
                "marks": {"x": 1}, "friend": {"user_name": "Bob"}, "since": "2024-01-01T00:00:00Z", "data": "aGk="}),
                "",
            ),
            (
                json!({"usrName": "Ada"}),
                "the message User has no field `usrName`; did you mean `userName`?",
            ),
            (
                json!({"userName": 5}),
                "`userName` must be a text, and is a number",
            ),
            (
                json!({"friend": {"active": "yes"}}),
                "`friend.active` must be true or false, and is a text",
            ),
            (json!({"tags": "a"}), "`tags` must be a list, and is a text"),
            (
                json!({"tags": [1]}),
                "`tags[0]` must be a text, and is a number",
            ),
            (
                json!({"colour": "REDD"}),
                "`colour`: the enum Colour has no value `REDD`; did you mean `RED`?",
            ),
            (
                json!({"marks": {"x": true}}),
                "`marks.x` must be a number, and is true or false",
            ),
        ] {
            assert_eq!(found("Add", value.clone()), expected, "{value}");
        }
        // What only the call's own reading sees.
        assert!(found("Add", json!({"age": 1.5})).contains("age"));
        assert!(found("Add", json!({"since": "yesterday"})).contains("since"));
        let unknown = Known::Object(vec![
            ("userName".to_owned(), Known::Unknown),
            ("age".to_owned(), Known::Text(None)),
            ("activ".to_owned(), Known::Bool(true)),
        ]);
        assert_eq!(
            arguments(&method("Add"), &unknown),
            ["the message User has no field `activ`; did you mean `active`?"]
        );
    }

    #[test]
    fn streams_and_values_have_arguments_of_their_own() {
        assert_eq!(found("All", json!({"messages": [{"age": 1}]})), "");
        assert!(found("All", json!({"messages": [{"agee": 1}]})).contains("agee"));
        assert!(found("All", json!({"age": 1})).contains("its only argument is `messages`"));
        let partly = Known::Object(vec![("age".to_owned(), Known::Unknown)]);
        assert!(arguments(&method("All"), &partly)[0].contains("`messages`"));
        assert_eq!(found("Name", json!({"value": "Ada"})), "");
        assert!(found("Name", json!({"name": "Ada"})).contains("its only argument is `value`"));
        let answers = answer(
            &method("All"),
            &Known::from(json!([{"age": 1}, {"old": 1}])),
        );
        assert_eq!(answers, ["the message User has no field `[1].old`"]);
    }
}
