//! Shapes as JSON Schema, draft 7, which editors support best.

use serde_json::{Map, Value, json};

use super::known::{LanguageObject, Property, Required};
use super::shape::{Number, Object, Shape, Text};
use crate::lsp::properties::about;

/// The schema of a definition, which is the object at `root`. `title` names the edition.
pub(super) fn render(title: &str, root: usize, objects: &[LanguageObject]) -> Value {
    let names = names(objects);
    let mut definitions = Map::new();
    for (index, known) in objects.iter().enumerate() {
        if index != root {
            definitions.insert(names[index].clone(), object(known, objects, &names));
        }
    }
    let mut schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": title,
    });
    if let (Some(schema), Value::Object(root)) = (
        schema.as_object_mut(),
        object(&objects[root], objects, &names),
    ) {
        schema.extend(root);
    }
    schema["definitions"] = Value::Object(definitions);
    schema
}

/// A name for each object, derived from the reader's name for it.
fn names(objects: &[LanguageObject]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for known in objects {
        let words = known.what.split(|c: char| !c.is_alphanumeric());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let name = match words.is_empty() {
            true => "object".to_owned(),
            false => words.join("-"),
        };
        let taken = |name: &String| names.contains(name);
        let mut one = name.clone();
        let mut count = 2;
        while taken(&one) {
            one = format!("{name}-{count}");
            count += 1;
        }
        names.push(one);
    }
    names
}

fn reference(index: usize, names: &[String]) -> Value {
    json!({"$ref": format!("#/definitions/{}", names[index])})
}

fn object(known: &LanguageObject, objects: &[LanguageObject], names: &[String]) -> Value {
    if let Some((property, variants)) = &known.variants {
        return varied(property, variants, objects, names);
    }
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    let of = |property: &Property| {
        let mut schema = shape(&property.shape, names);
        if let Some(about) = about(&camel_case(&property.name)) {
            // In this draft, everything beside a `$ref` is ignored.
            schema = match schema.get("$ref") {
                Some(_) => json!({"allOf": [schema], "description": about}),
                None => {
                    schema["description"] = json!(about);
                    schema
                }
            };
        }
        if property.is_other_editions {
            schema["deprecated"] = json!(true);
        }
        (property.name.clone(), schema)
    };
    let properties: Map<String, Value> = known.properties.iter().map(of).collect();
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !known.is_open {
        schema.insert("additionalProperties".to_owned(), json!(false));
    }
    let is_single = |of: &&Required| of.own.len() == 1 && of.of_items.is_empty();
    let single = known.required.iter().filter(is_single);
    let single: Vec<&String> = single.flat_map(|of| &of.own).collect();
    if !single.is_empty() {
        schema.insert("required".to_owned(), json!(single));
    }
    let mut all = Vec::new();
    for of in known.required.iter().filter(|of| !is_single(of)) {
        all.push(one_of(&of.own, &of.of_items));
    }
    for (property, word, set) in &known.required_for {
        all.push(json!({"if": is_word(property, word), "then": one_of(set, &[])}));
    }
    for pair in &known.exclusive {
        let mut both = json!({"required": pair.names});
        for (name, nothing) in pair.names.iter().zip(&pair.nothing) {
            if !nothing.is_empty() {
                both["properties"][name] = json!({"not": {"enum": nothing}});
            }
        }
        all.push(json!({"not": both}));
    }
    if !all.is_empty() {
        schema.insert("allOf".to_owned(), Value::Array(all));
    }
    Value::Object(schema)
}

/// One of the properties is present, or an item of a list has one.
fn one_of(own: &[String], of_items: &[(String, String)]) -> Value {
    let own = own.iter().map(|name| json!({"required": [name]}));
    let of_items = of_items.iter().map(|(list, name)| {
        json!({
            "required": [list],
            "properties": {list: {"contains": {"required": [name]}}},
        })
    });
    let mut all: Vec<Value> = own.chain(of_items).collect();
    match all.len() {
        1 => all.remove(0),
        _ => json!({"anyOf": all}),
    }
}

/// The property is present and has this word.
fn is_word(property: &str, word: &str) -> Value {
    json!({
        "required": [property],
        "properties": {property: {"pattern": format!("^{}$", in_any_case(word))}},
    })
}

/// An object whose properties depend on the word of one of them.
fn varied(
    property: &str,
    variants: &[(String, usize)],
    objects: &[LanguageObject],
    names: &[String],
) -> Value {
    let mut properties = Map::new();
    let mut all = Vec::new();
    let mut is_required = true;
    for (word, index) in variants {
        let of = objects[*index].properties.iter();
        if let Some(of) = of.clone().find(|of| of.name == property) {
            let mut schema = shape(&of.shape, names);
            if let Some(about) = about(&camel_case(property)) {
                schema["description"] = json!(about);
            }
            properties.insert(property.to_owned(), schema);
        }
        let given = json!({"required": [property]});
        let condition = match word.as_str() {
            "" => {
                is_required = false;
                json!({"not": given})
            }
            word => is_word(property, word),
        };
        all.push(json!({"if": condition, "then": reference(*index, names)}));
    }
    let mut schema = json!({"type": "object", "properties": properties, "allOf": all});
    if is_required {
        schema["required"] = json!([property]);
    }
    schema
}

fn shape(shape: &Shape, names: &[String]) -> Value {
    if shape.anything {
        return json!({});
    }
    let mut all: Vec<Value> = Vec::new();
    match &shape.text {
        None => {}
        Some(Text::Any) => all.push(json!({"type": "string"})),
        Some(Text::Words { words, any_case }) => {
            all.push(json!({"enum": words}));
            if *any_case {
                let words: Vec<String> = words.iter().map(|word| in_any_case(word)).collect();
                let pattern = format!("^({})$", words.join("|"));
                all.push(json!({"type": "string", "pattern": pattern}));
            }
        }
        Some(Text::Fitting(patterns)) => {
            let pattern = patterns.join("|");
            all.push(json!({"type": "string", "pattern": pattern}));
        }
    }
    if shape.boolean {
        all.push(json!({"type": "boolean"}));
    }
    if let Some(Number { whole, least }) = &shape.number {
        let kind = if *whole { "integer" } else { "number" };
        let mut schema = json!({"type": kind});
        if let Some(least) = least {
            schema["minimum"] = json!(least);
        }
        all.push(schema);
    }
    if shape.null {
        all.push(json!({"type": "null"}));
    }
    if let Some(list) = &shape.list {
        let mut schema = json!({"type": "array", "items": self::shape(&list.items, names)});
        if !list.may_be_empty {
            schema["minItems"] = json!(1);
        }
        all.push(schema);
    }
    all.extend(shape.objects.iter().map(|object| match object {
        Object::Free => json!({"type": "object"}),
        Object::Known(index) => reference(*index, names),
    }));
    match all.len() {
        // The reader refuses any value there.
        0 => json!({"not": {}}),
        1 => all.remove(0),
        _ => json!({"anyOf": all}),
    }
}

/// Converts `on-events` to `onEvents`, the form that has a description.
fn camel_case(name: &str) -> String {
    let mut made = String::with_capacity(name.len());
    let mut parts = name.split('-');
    made.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let mut letters = part.chars();
        made.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        made.push_str(letters.as_str());
    }
    made
}

/// A pattern for a word in any case. Schemas have no flag for that.
fn in_any_case(word: &str) -> String {
    let letter = |c: char| match c {
        c if c.is_ascii_alphabetic() => {
            format!("[{}{}]", c.to_ascii_lowercase(), c.to_ascii_uppercase())
        }
        c if c.is_ascii_digit() => c.to_string(),
        c => format!("[{c}]"),
    };
    word.chars().map(letter).collect()
}
