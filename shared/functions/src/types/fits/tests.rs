use serde_json::json;

use super::*;

struct Whole(Value);

impl Resolve for Whole {
    fn follow<'a>(&'a self, node: Node<'a>) -> Option<Node<'a>> {
        match node.text("$ref") {
            Some(to) => Some(Node {
                value: self.0.pointer(to.trim_start_matches('#'))?,
                ..node
            }),
            None => Some(node),
        }
    }
}

fn check(schema: Value, value: Value, form: Form) -> Vec<String> {
    let document = Whole(schema);
    let node = Node {
        value: &document.0,
        at: "#".to_owned(),
        document: None,
    };
    let found = Fits::new(&document, form).check(
        node,
        &StaticValue::from(value),
        ValueLocation::new("/a", "`a`"),
    );
    found.into_iter().map(|misfit| misfit.message).collect()
}

#[test]
fn types_enums_and_dates_are_checked() {
    for (schema, value, expected) in [
        (json!({"type": "string"}), json!("x"), ""),
        (
            json!({"type": "string"}),
            json!(1),
            "`a` must be a string, but is a number",
        ),
        (json!({"type": "integer"}), json!(1.0), ""),
        (
            json!({"type": "integer"}),
            json!(1.5),
            "`a` must be a whole number, but is a number",
        ),
        (json!({"type": ["string", "null"]}), json!(null), ""),
        (json!({"type": "string", "nullable": true}), json!(null), ""),
        (
            json!({"type": "string"}),
            json!(null),
            "`a` must be a string, but is null",
        ),
        (json!({"type": "strange"}), json!(1), ""),
        (
            json!({"enum": ["red", "green"]}),
            json!("gren"),
            "`a` must be one of `red`, `green`; did you mean `green`?",
        ),
        (json!({"enum": [1, 2]}), json!(2.0), ""),
        (
            json!({"format": "date-time"}),
            json!("2024-01-01T00:00:00Z"),
            "",
        ),
        (
            json!({"format": "date-time"}),
            json!("yesterday"),
            "`a` must be a string of the format `date-time`, and isn't",
        ),
        (
            json!({"format": "date"}),
            json!("2024-02-30"),
            "`a` must be a string of the format `date`, and isn't",
        ),
        (
            json!({"items": {"type": "string"}}),
            json!(["x", 1]),
            "`a`[1] must be a string, but is a number",
        ),
        (json!(true), json!(1), ""),
    ] {
        let found = check(schema.clone(), value, Form::Sent);
        assert_eq!(found.join("; "), expected, "{schema}");
    }
}

#[test]
fn members_are_checked() {
    let schema = json!({
        "type": "object", "required": ["customer", "id", "total"], "additionalProperties": false,
        "properties": {
            "customer": {"type": "string"}, "id": {"readOnly": true}, "total": {"type": "number"},
        },
    });
    let found = check(
        schema.clone(),
        json!({"custmer": "Ada", "total": "9"}),
        Form::Sent,
    );
    assert_eq!(
        found,
        [
            "`a.customer` is missing, and `custmer` is there; did you mean `customer`?",
            "`a.total` must be a number, but is a string"
        ]
    );
    let found = check(
        schema,
        json!({"customer": "Ada", "total": 1}),
        Form::Answered,
    );
    assert_eq!(found, ["`a.id` is missing"]);
}

#[test]
fn members_of_the_other_direction_are_not_required() {
    let base = json!({"properties": {"id": {"readOnly": true}, "pin": {"writeOnly": true}}});
    let required = json!({"required": ["id", "pin"]});
    let id = json!({"type": "string", "readOnly": true});
    for (schema, missing) in [
        (json!({"allOf": [base, required]}), "pin"),
        (json!({"allOf": [required, {"oneOf": [base]}]}), "pin"),
        (
            json!({"required": ["id"], "allOf": [{"allOf": [base]}]}),
            "",
        ),
        (
            json!({"required": ["id"], "properties": {"id": {"$ref": "#/x"}}, "x": id}),
            "",
        ),
        (
            json!({"required": ["id"], "properties": {"id": {"allOf": [{"$ref": "#/x"}]}}, "x": id}),
            "",
        ),
        (
            json!({"required": ["id"], "properties": {"id": {"$ref": "#/x", "readOnly": true}},
                "x": {}}),
            "",
        ),
        (
            json!({"required": ["list"], "properties": {"list": {"items": {"allOf": [base, required]}}}}),
            "list",
        ),
    ] {
        for form in [Form::Sent, Form::Text] {
            let found = check(schema.clone(), json!({"a": 1}), form).join("; ");
            let expected = match missing {
                "" => String::new(),
                name => format!("`a.{name}` is missing"),
            };
            assert_eq!(found, expected, "{schema}");
        }
    }
    let schema = json!({"allOf": [base, required]});
    let found = check(schema, json!({"a": 1}), Form::Answered);
    assert_eq!(found, ["`a.id` is missing"]);
}

#[test]
fn parts_and_alternatives_are_followed() {
    let schema = json!({
        "allOf": [{"required": ["x"]}],
        "oneOf": [{"properties": {"x": {"type": "string"}}}, {"properties": {"x": {"type": "boolean"}}}],
    });
    assert!(check(schema.clone(), json!({"x": true}), Form::Sent).is_empty());
    let found = check(schema, json!({"x": 1}), Form::Sent);
    assert_eq!(
        found,
        ["`a` fits none of `oneOf`; the first: `a.x` must be a string, but is a number"]
    );
}

#[test]
fn strings_of_digits_are_numbers_in_parameters() {
    for (schema, value, fits) in [
        (json!({"type": "integer"}), json!("5"), true),
        (json!({"type": "integer"}), json!("five"), false),
        (json!({"type": "string"}), json!(5), true),
        (json!({"type": "boolean"}), json!("true"), true),
        (
            json!({"type": "array", "items": {"type": "integer"}}),
            json!(5),
            true,
        ),
        (
            json!({"type": "array", "items": {"type": "integer"}}),
            json!("x"),
            false,
        ),
        (
            json!({"type": "string", "format": "date-time"}),
            json!(1),
            false,
        ),
        (json!({"enum": ["1"]}), json!(1), true),
        (json!({"type": "string"}), json!({"a": 1}), false),
    ] {
        let found = check(schema.clone(), value, Form::Text);
        assert_eq!(found.is_empty(), fits, "{schema}: {found:?}");
    }
}

#[test]
fn a_recursive_schema_is_bounded() {
    let schema = json!({
        "allOf": [{"$ref": "#"}, {"$ref": "#"}, {"$ref": "#"}, {"$ref": "#"}],
    });
    assert!(check(schema, json!({"a": 1}), Form::Sent).is_empty());
}
