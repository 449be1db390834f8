//! Converts between messages and data, by protobuf's JSON mapping.

use bytes::Bytes;
use prost_reflect::prost::Message as _;
use prost_reflect::{DynamicMessage, MessageDescriptor, MethodDescriptor, SerializeOptions};
use serde_json::Value;
use swirl_model::Data;

/// The arguments for values that aren't objects: the messages of a stream, and a message whose JSON form is a string, a
/// number or a list.
pub(super) const MESSAGES: &str = "messages";
pub(super) const VALUE: &str = "value";

/// The maximum nesting depth of arguments. Protobuf parsers refuse deeper messages, and ours is recursive.
const NESTING_MAX: usize = 100;

/// Messages of these types have a JSON form that isn't an object.
pub(super) const NOT_OBJECTS: [&str; 14] = [
    "google.protobuf.BoolValue",
    "google.protobuf.BytesValue",
    "google.protobuf.DoubleValue",
    "google.protobuf.Duration",
    "google.protobuf.FieldMask",
    "google.protobuf.FloatValue",
    "google.protobuf.Int32Value",
    "google.protobuf.Int64Value",
    "google.protobuf.ListValue",
    "google.protobuf.StringValue",
    "google.protobuf.Timestamp",
    "google.protobuf.UInt32Value",
    "google.protobuf.UInt64Value",
    "google.protobuf.Value",
];

/// The request messages for a call's arguments, encoded for sending.
///
/// # Errors
/// The reason, as a sentence that names the argument.
pub(super) fn requests(method: &MethodDescriptor, arguments: &Data) -> Result<Vec<Bytes>, String> {
    let arguments = match Value::from(arguments) {
        Value::Null => Value::Object(serde_json::Map::new()),
        arguments => arguments,
    };
    if nesting(&arguments) > NESTING_MAX {
        return Err(format!(
            "the arguments are nested more than {NESTING_MAX} deep"
        ));
    }
    let input = method.input();
    if !method.is_client_streaming() {
        return encode(&input, arguments).map(|message| vec![message]);
    }
    let Value::Object(mut arguments) = arguments else {
        return Err("the arguments must be an object".to_owned());
    };
    let messages = arguments.remove(MESSAGES);
    let (Some(Value::Array(messages)), true) = (messages, arguments.is_empty()) else {
        return Err(format!(
            "the method takes a stream: its only argument is `{MESSAGES}`, a list of messages of \
             the type {}",
            input.full_name()
        ));
    };
    let messages = messages.into_iter().enumerate();
    messages
        .map(|(index, message)| {
            encode(&input, message).map_err(|error| format!("message {index}: {error}"))
        })
        .collect()
}

fn nesting(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(nesting).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(nesting).max().unwrap_or(0),
        _ => 0,
    }
}

fn encode(descriptor: &MessageDescriptor, arguments: Value) -> Result<Bytes, String> {
    let arguments = match arguments {
        Value::Object(mut object) if NOT_OBJECTS.contains(&descriptor.full_name()) => {
            match (object.remove(VALUE), object.is_empty()) {
                (Some(value), true) => value,
                _ => {
                    return Err(format!(
                        "the request is a {}: its only argument is `{VALUE}`",
                        descriptor.full_name()
                    ));
                }
            }
        }
        arguments => arguments,
    };
    let mut track = serde_path_to_error::Track::new();
    let tracked = serde_path_to_error::Deserializer::new(arguments, &mut track);
    let message = DynamicMessage::deserialize(descriptor.clone(), tracked);
    let message = message.map_err(|error: serde_json::Error| {
        let path = track.path().to_string();
        match path.as_str() {
            "." => format!("{error}, in a {}", descriptor.full_name()),
            path => format!("`{path}`: {error}, in a {}", descriptor.full_name()),
        }
    })?;
    Ok(Bytes::from(message.encode_to_vec()))
}

/// Decodes a message of an answer. Fields without a value are present with their default, so that an expression finds a
/// list where the proto file declares one.
///
/// # Errors
/// The bytes are not a valid message of this type, or the message has no JSON form.
pub(super) fn answer(descriptor: &MessageDescriptor, bytes: Bytes) -> Result<Data, String> {
    let message = DynamicMessage::decode(descriptor.clone(), bytes)
        .map_err(|error| format!("it is not a valid {}: {error}", descriptor.full_name()))?;
    let options = SerializeOptions::new().skip_default_fields(false);
    let value = message.serialize_with_options(serde_json::value::Serializer, &options);
    value.map(Data::from).map_err(|error| {
        let name = descriptor.full_name();
        format!("a {name} in it has no JSON form: {error}")
    })
}

#[cfg(test)]
mod tests {
    use swirl_model::data;

    use super::super::proto::Proto;
    use super::super::sources::Sources;
    use super::*;

    const ALL: &str = r#"
        syntax = "proto3";
        import "google/protobuf/any.proto";
        import "google/protobuf/duration.proto";
        import "google/protobuf/struct.proto";
        import "google/protobuf/timestamp.proto";
        import "google/protobuf/wrappers.proto";
        service S {
          rpc One(All) returns (All);
          rpc Many(stream All) returns (All);
          rpc Text(google.protobuf.StringValue) returns (google.protobuf.StringValue);
          rpc Free(google.protobuf.Struct) returns (google.protobuf.Struct);
        }
        enum Colour { NONE = 0; RED = 1; }
        message All {
          string user_name = 1;
          int32 count = 2;
          int64 total = 3;
          bool good = 4;
          bytes raw = 5;
          Colour colour = 6;
          repeated string tags = 7;
          map<string, All> parts = 8;
          All inner = 9;
          double ratio = 10;
          optional int32 maybe = 11;
          oneof way { string left = 12; string right = 13; }
          google.protobuf.Timestamp at = 14;
          google.protobuf.Duration took = 15;
          google.protobuf.Struct free = 16;
          google.protobuf.Int32Value boxed = 17;
          google.protobuf.Any any = 18;
        }"#;

    fn method(name: &str) -> MethodDescriptor {
        Proto::compile(Sources::read("a.proto", ALL, |_| None).unwrap())
            .unwrap()
            .method("S", name)
            .unwrap()
    }

    fn round(name: &str, arguments: Data) -> Result<Data, String> {
        let method = method(name);
        let mut messages = requests(&method, &arguments)?;
        answer(&method.input(), messages.remove(0))
    }

    /// Cases: an argument, and the value that comes back when the service echoes it.
    #[test]
    fn fields_follow_the_json_mapping() {
        for (field, value, expected) in [
            ("userName", data!("Ada"), data!("Ada")),
            ("count", data!(7), data!(7)),
            ("count", data!("7"), data!(7)),
            ("count", data!(7.0), data!(7)),
            (
                "total",
                data!(9007199254740993_i64),
                data!("9007199254740993"),
            ),
            ("total", data!("-1"), data!("-1")),
            ("raw", data!("aGk="), data!("aGk=")),
            ("colour", data!("RED"), data!("RED")),
            ("colour", data!(1), data!("RED")),
            ("ratio", data!("NaN"), data!("NaN")),
            ("maybe", data!(0), data!(0)),
            ("left", data!(""), data!("")),
            (
                "at",
                data!("2024-01-01T00:00:00Z"),
                data!("2024-01-01T00:00:00Z"),
            ),
            ("took", data!("1.5s"), data!("1.500s")),
            ("free", data!({"a": [1, null]}), data!({"a": [1.0, null]})),
            ("boxed", data!(0), data!(0)),
        ] {
            let mut arguments = Data::object();
            arguments.set(field, value);
            let found = round("One", arguments).unwrap();
            assert_eq!(found.get(field), Some(expected), "{field}");
        }
        let found = round("One", data!({"user_name": "by its own name", "tags": null})).unwrap();
        assert_eq!(found.get("userName"), Some(data!("by its own name")));
    }

    #[test]
    fn fields_without_a_value_have_their_default() {
        assert_eq!(
            round("One", Data::NULL).unwrap(),
            data!({"userName": "", "count": 0, "total": "0", "good": false, "raw": "",
                "colour": "NONE", "tags": [], "parts": {}, "ratio": 0.0})
        );
    }

    #[test]
    fn invalid_arguments_are_named() {
        for (arguments, expected) in [
            (data!({"nam": 1}), "unrecognized field name 'nam'"),
            (data!({"count": "x"}), "`count`: "),
            (data!({"count": 1.5}), "`count`: "),
            (data!({"count": 3000000000_i64}), "`count`: "),
            (
                data!({"userName": 1}),
                "`userName`: invalid type: integer `1`",
            ),
            (
                data!({"parts": {"a": {"inner": {"tags": ["x", 1]}}}}),
                "`parts.a.inner.tags[1]`: ",
            ),
            (data!({"inner": {"zap": 1}}), "'zap'"),
            (data!({"colour": "BLUE"}), "`colour`: "),
            (data!({"at": "yesterday"}), "`at`: "),
            (data!({"raw": "*"}), "`raw`: "),
            (data!({"left": "a", "right": "b"}), "way"),
            (data!([1]), "All"),
        ] {
            let error = round("One", arguments).unwrap_err();
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }

    #[test]
    fn streams_and_wrapped_messages_have_a_special_argument() {
        let method = method("Many");
        let messages = requests(&method, &data!({"messages": [{"count": 1}, {}]})).unwrap();
        assert_eq!(messages.len(), 2);
        assert_eq!(
            requests(&method, &data!({"messages": []})).unwrap().len(),
            0
        );
        for (arguments, expected) in [
            (data!({"count": 1}), "a list of messages of the type All"),
            (
                data!({"messages": [], "count": 1}),
                "its only argument is `messages`",
            ),
            (data!({"messages": [{}, {"x": 1}]}), "message 1: "),
            (Data::NULL, "`messages`"),
        ] {
            let error = requests(&method, &arguments).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(round("Text", data!({"value": "hi"})).unwrap(), data!("hi"));
        assert!(
            round("Text", data!({"text": "hi"}))
                .unwrap_err()
                .contains("`value`")
        );
        assert_eq!(
            round("Free", data!({"value": "hi"})).unwrap(),
            data!({"value": "hi"})
        );
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = |levels: usize| {
            let mut arguments = data!({"count": 1});
            for _ in 1..levels {
                let mut outer = Data::object();
                outer.set("inner", arguments);
                arguments = outer;
            }
            arguments
        };
        let method = method("One");
        assert!(requests(&method, &deep(NESTING_MAX)).is_ok());
        let error = requests(&method, &deep(NESTING_MAX + 1)).unwrap_err();
        assert!(error.contains("nested more than 100"), "{error}");
        // As deep as an answer can be.
        let mut free = data!([1]);
        for _ in 0..20 {
            free = Data::array(vec![free]);
        }
        let mut inner = Data::object();
        inner.set("a", free);
        let mut arguments = Data::object();
        arguments.set("free", inner);
        let found = round("One", arguments).unwrap();
        assert!(
            found
                .get("free")
                .is_some_and(|free| free.get("a").is_some())
        );
    }

    #[test]
    fn invalid_messages_are_rejected() {
        let error = answer(&method("One").output(), Bytes::from_static(b"\x0a\xff")).unwrap_err();
        assert!(error.contains("it is not a valid All"), "{error}");
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = answer(&method("One").output(), bytes.into());
        }
    }
}
