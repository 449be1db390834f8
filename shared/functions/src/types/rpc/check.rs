//! Checks arguments and answers against the messages of a proto file.

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor};
use swirl_model::Data;

use super::message::{MESSAGES, NOT_OBJECTS, VALUE, requests};
use super::number;
use crate::types::fits::did_you_mean;
use crate::types::misfit::{below, messages};
use crate::types::{Misfit, StaticValue};

/// The maximum depth of nested messages.
const DEPTH_MAX: usize = 64;

/// The reasons why a call would be refused before anything is sent.
pub(super) fn arguments(method: &MethodDescriptor, arguments: &StaticValue) -> Vec<Misfit> {
    if let Some(whole) = arguments.whole() {
        // Everything is known, so the call's own parser checks it.
        let mut found = Vec::new();
        let message = method.input();
        if !method.is_client_streaming() {
            look(
                &message,
                arguments,
                &ValueLocation::root(),
                DEPTH_MAX,
                &mut found,
            );
        }
        if found.is_empty() {
            found.extend(requests(method, &Data::from(whole)).err().map(Misfit::from));
        }
        return found;
    }
    let message = method.input();
    let mut found = Vec::new();
    if !method.is_client_streaming() {
        look(
            &message,
            arguments,
            &ValueLocation::root(),
            DEPTH_MAX,
            &mut found,
        );
        return found;
    }
    match arguments.get(MESSAGES) {
        Some(StaticValue::List(messages)) => {
            for (index, one) in messages.iter().enumerate() {
                let at = ValueLocation::root().below(MESSAGES).item(index);
                look(&message, one, &at, DEPTH_MAX, &mut found);
            }
        }
        Some(_) => {}
        None if matches!(arguments, StaticValue::Object(_)) => {
            let message = format!(
                "the method takes a stream: its only argument is `{MESSAGES}`, a list of messages of \
                 the type {}",
                message.full_name()
            );
            found.push(message.into());
        }
        None => {}
    }
    found
}

/// The parts of an answer that the service would not return.
pub(super) fn answer(method: &MethodDescriptor, answer: &StaticValue) -> Vec<String> {
    let message = method.output();
    let mut found = Vec::new();
    match (method.is_server_streaming(), answer) {
        (true, StaticValue::List(answers)) => {
            for (index, one) in answers.iter().enumerate() {
                let at = ValueLocation::root().item(index);
                look(&message, one, &at, DEPTH_MAX, &mut found);
            }
        }
        (true, _) => {}
        (false, answer) => look(
            &message,
            answer,
            &ValueLocation::root(),
            DEPTH_MAX,
            &mut found,
        ),
    }
    messages(found)
}

/// A value's location, as a name for messages and as a JSON pointer below the arguments.
struct ValueLocation {
    name: String,
    pointer: String,
}

impl ValueLocation {
    fn root() -> ValueLocation {
        ValueLocation {
            name: String::new(),
            pointer: String::new(),
        }
    }

    fn below(&self, name: &str) -> ValueLocation {
        ValueLocation {
            name: match self.name.as_str() {
                "" => name.to_owned(),
                outer => format!("{outer}.{name}"),
            },
            pointer: below(&self.pointer, name),
        }
    }

    fn item(&self, index: usize) -> ValueLocation {
        ValueLocation {
            name: format!("{}[{index}]", self.name),
            pointer: format!("{}/{index}", self.pointer),
        }
    }

    fn misfit(&self, message: String) -> Misfit {
        Misfit::new(&self.pointer, message)
    }
}

fn look(
    message: &MessageDescriptor,
    value: &StaticValue,
    at: &ValueLocation,
    depth: usize,
    found: &mut Vec<Misfit>,
) {
    // These messages have JSON forms of their own.
    if depth == 0 || message.full_name().starts_with("google.protobuf.") {
        let name = message.full_name();
        if at.name.is_empty()
            && NOT_OBJECTS.contains(&name)
            && matches!(value, StaticValue::Object(_))
        {
            let strays = match value {
                StaticValue::Object(members) => members.iter().any(|(name, _)| name != VALUE),
                _ => false,
            };
            if strays {
                let message = format!("the request is a {name}: its only argument is `{VALUE}`");
                found.push(message.into());
            }
        }
        return;
    }
    let members = match value {
        StaticValue::Object(members) => members,
        StaticValue::Unknown | StaticValue::Null => return,
        other => {
            let what = if at.name.is_empty() { "it" } else { &at.name };
            let kind = other.kind();
            found.push(at.misfit(format!(
                "{what} must be an object, the message {}, but is {kind}",
                message.full_name()
            )));
            return;
        }
    };
    let given = |name: &str| members.iter().any(|(known, _)| known == name);
    for (name, value) in members {
        let at = at.below(name);
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
            found.push(at.misfit(format!(
                "the message {} has no field `{}`{hint}",
                message.full_name(),
                at.name
            )));
            continue;
        };
        match value {
            StaticValue::Unknown | StaticValue::Null => {}
            StaticValue::List(items) if field.is_list() => {
                for (index, item) in items.iter().enumerate() {
                    single(&field, item, &at.item(index), depth, found);
                }
            }
            StaticValue::Object(members) if field.is_map() => {
                if let Kind::Message(entry) = field.kind() {
                    let of = entry.map_entry_value_field();
                    for (key, item) in members {
                        single(&of, item, &at.below(key), depth, found);
                    }
                }
            }
            other if field.is_list() || field.is_map() => {
                let wanted = if field.is_list() {
                    "a list"
                } else {
                    "an object"
                };
                let (name, kind) = (&at.name, other.kind());
                found.push(at.misfit(format!("`{name}` must be {wanted}, but is {kind}")));
            }
            value => single(&field, value, &at, depth, found),
        }
    }
}

fn single(
    field: &FieldDescriptor,
    value: &StaticValue,
    at: &ValueLocation,
    depth: usize,
    found: &mut Vec<Misfit>,
) {
    let wanted = match (field.kind(), value) {
        (_, StaticValue::Unknown | StaticValue::Null) => return,
        (Kind::Message(message), value) => {
            return look(&message, value, at, depth - 1, found);
        }
        (Kind::Bool, StaticValue::Bool(_)) => return,
        (Kind::Bool, _) => "true or false",
        (Kind::String | Kind::Bytes, StaticValue::Text(_)) => return,
        (Kind::String | Kind::Bytes, _) => "a string",
        (Kind::Enum(of), StaticValue::Text(Some(name))) if of.get_value_by_name(name).is_none() => {
            let names: Vec<String> = of.values().map(|value| value.name().to_owned()).collect();
            let hint = did_you_mean(name, names.iter().map(String::as_str));
            found.push(at.misfit(format!(
                "`{}`: the enum {} has no value `{name}`{hint}",
                at.name,
                of.full_name()
            )));
            return;
        }
        (Kind::Enum(_), StaticValue::Text(_) | StaticValue::Number(_)) => return,
        (Kind::Enum(_), _) => "the name of a value",
        // Numbers may be given as strings of digits, and floats as `NaN`.
        (kind, StaticValue::Number(Some(number))) => {
            let text = number.to_string();
            found.extend(
                number::misfit(&kind, &text)
                    .map(|why| at.misfit(format!("`{}` must be {why}, but is {text}", at.name))),
            );
            return;
        }
        (kind, StaticValue::Text(Some(text))) => {
            found.extend(number::misfit(&kind, text).map(|why| {
                at.misfit(format!(
                    "`{}` must be {why}, but is the string `{text}`",
                    at.name
                ))
            }));
            return;
        }
        (_, StaticValue::Number(None) | StaticValue::Text(None)) => return,
        (_, _) => "a number",
    };
    let (name, kind) = (&at.name, value.kind());
    found.push(at.misfit(format!("`{name}` must be {wanted}, but is {kind}")));
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
        messages(arguments(&method(name), &StaticValue::from(value))).join("; ")
    }

    #[test]
    fn arguments_are_checked_against_the_message() {
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
                "`userName` must be a string, but is a number",
            ),
            (
                json!({"friend": {"active": "yes"}}),
                "`friend.active` must be true or false, but is a string",
            ),
            (
                json!({"tags": "a"}),
                "`tags` must be a list, but is a string",
            ),
            (
                json!({"tags": [1]}),
                "`tags[0]` must be a string, but is a number",
            ),
            (
                json!({"colour": "REDD"}),
                "`colour`: the enum Colour has no value `REDD`; did you mean `RED`?",
            ),
            (
                json!({"marks": {"x": true}}),
                "`marks.x` must be a number, but is true or false",
            ),
            (
                json!({"age": "old"}),
                "`age` must be a whole number from -2147483648 to 2147483647, but is the string `old`",
            ),
            (
                json!({"age": 3000000000u64, "marks": {"x": 1.5}}),
                "`age` must be a whole number from -2147483648 to 2147483647, but is 3000000000; `marks.x` must be \
                 a whole number from -2147483648 to 2147483647, but is 1.5",
            ),
        ] {
            assert_eq!(found("Add", value.clone()), expected, "{value}");
        }
        // Errors that only the call's own parser finds.
        assert!(found("Add", json!({"since": "yesterday"})).contains("since"));
        // An unknown value doesn't hide an error in another one.
        let partly = StaticValue::Object(vec![
            ("userName".to_owned(), StaticValue::Unknown),
            ("age".to_owned(), StaticValue::Text(Some("old".to_owned()))),
        ]);
        assert_eq!(arguments(&method("Add"), &partly)[0].at, "/age");
        let unknown = StaticValue::Object(vec![
            ("userName".to_owned(), StaticValue::Unknown),
            ("age".to_owned(), StaticValue::Text(None)),
            ("activ".to_owned(), StaticValue::Bool(true)),
        ]);
        assert_eq!(
            messages(arguments(&method("Add"), &unknown)),
            ["the message User has no field `activ`; did you mean `active`?"]
        );
    }

    #[test]
    fn streams_and_wrapped_values_are_checked() {
        assert_eq!(found("All", json!({"messages": [{"age": 1}]})), "");
        assert!(found("All", json!({"messages": [{"agee": 1}]})).contains("agee"));
        assert!(found("All", json!({"age": 1})).contains("its only argument is `messages`"));
        let partly = StaticValue::Object(vec![("age".to_owned(), StaticValue::Unknown)]);
        assert!(
            arguments(&method("All"), &partly)[0]
                .message
                .contains("`messages`")
        );
        assert_eq!(found("Name", json!({"value": "Ada"})), "");
        assert!(found("Name", json!({"name": "Ada"})).contains("its only argument is `value`"));
        let answers = answer(
            &method("All"),
            &StaticValue::from(json!([{"age": 1}, {"old": 1}])),
        );
        assert_eq!(answers, ["the message User has no field `[1].old`"]);
    }
}
