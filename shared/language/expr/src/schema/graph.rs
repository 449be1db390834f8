//! Finds the parts of a document that are schemas, and the number of schemas that apply to one value.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::METER;

/// The maximum number of schemas in a document, including references between them.
const SCHEMAS_MAX: usize = 30_000;
/// The maximum number of visits, and the maximum bytes of their pointers. With long names, the pointers are larger than
/// the document.
const LOOKS_MAX: usize = 4 * SCHEMAS_MAX;
const PLACES_BYTES_MAX: usize = 32 << 20;
/// The maximum number of schemas that apply to the same value. Each `allOf` that leads twice to the next schema doubles
/// the number.
const AT_ONCE_MAX: u64 = 20_000;

/// The maximum length of a chain of references at the same location.
const CHAIN_MAX: u32 = 100;

/// The cost for one value of a schema and everything that applies together with it.
#[derive(Debug, Clone, Copy)]
struct Cost {
    schemas: u64,
    depth: u32,
}

/// Keywords whose value is a schema that applies at the same location.
const HERE: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords whose value is a list of such schemas.
const HERE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords whose value has schemas by name.
const MAPS: [&str; 6] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "dependencies",
];
/// Keywords whose value is data.
const DATA: [&str; 7] = [
    "enum",
    "const",
    "default",
    "examples",
    "example",
    "required",
    "dependentRequired",
];
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Adds a step to each part of the schema that can be applied.
///
/// # Errors
/// It is too large, or its references multiply.
pub(super) fn metered(schema: &Value) -> Result<Value, String> {
    let mut graph = Graph {
        root: schema,
        named: HashMap::new(),
        bases: vec![String::new()],
        seen: HashSet::new(),
        left: Vec::new(),
        looks: 0,
        bytes: 0,
    };
    graph.names(schema, &mut String::new())?;
    graph.walk()?;
    graph.bounded()?;
    let mut metered = schema.clone();
    let mut places: Vec<&String> = graph.seen.iter().collect();
    places.sort_unstable();
    for place in places {
        if let Some(Value::Object(members)) = metered.pointer_mut(place) {
            members.insert(METER.to_owned(), Value::Bool(true));
        }
    }
    Ok(metered)
}

struct Graph<'a> {
    root: &'a Value,
    /// Locations by the names or addresses that references may use.
    named: HashMap<String, Vec<String>>,
    /// Locations that pointers may be relative to.
    bases: Vec<String>,
    seen: HashSet<String>,
    left: Vec<String>,
    looks: usize,
    bytes: usize,
}

impl<'a> Graph<'a> {
    /// Collects anchors and addresses.
    fn names(&mut self, value: &'a Value, place: &mut String) -> Result<(), String> {
        let length = place.len();
        match value {
            Value::Object(members) => {
                for name in ["$id", "id", "$anchor", "$dynamicAnchor"] {
                    let Some(text) = members.get(name).and_then(Value::as_str) else {
                        continue;
                    };
                    self.look(1, 2 * place.len())?;
                    if name.ends_with("id") && !place.is_empty() {
                        self.bases.push(place.clone());
                    }
                    let text = text.rsplit('#').next().unwrap_or_default();
                    let last = text.rsplit('/').next().unwrap_or_default().to_owned();
                    self.named.entry(last).or_default().push(place.clone());
                }
                for (name, member) in members {
                    step(place, name);
                    self.names(member, place)?;
                    place.truncate(length);
                }
            }
            Value::Array(elements) => {
                for (at, element) in elements.iter().enumerate() {
                    step(place, &at.to_string());
                    self.names(element, place)?;
                    place.truncate(length);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn look(&mut self, looks: usize, bytes: usize) -> Result<(), String> {
        self.looks = self.looks.saturating_add(looks);
        self.bytes = self.bytes.saturating_add(bytes);
        let is_large = self.looks > LOOKS_MAX || self.bytes > PLACES_BYTES_MAX;
        if is_large || self.seen.len() > SCHEMAS_MAX {
            return Err("the JSON Schema has too many parts and references".to_owned());
        }
        Ok(())
    }

    fn push(&mut self, place: String) -> Result<(), String> {
        self.look(1, place.len())?;
        if self.seen.insert(place.clone()) {
            self.left.push(place);
        }
        Ok(())
    }

    fn walk(&mut self) -> Result<(), String> {
        self.push(String::new())?;
        while let Some(place) = self.left.pop() {
            let Some(Value::Object(members)) = self.root.pointer(&place) else {
                continue;
            };
            for (name, value) in members {
                let below = joined(&place, name);
                match value {
                    Value::Object(schemas) if MAPS.contains(&&**name) => {
                        for name in schemas.keys() {
                            self.push(joined(&below, name))?;
                        }
                    }
                    Value::Object(_) if !DATA.contains(&&**name) => self.push(below)?,
                    Value::Array(elements) if !DATA.contains(&&**name) => {
                        for (at, element) in elements.iter().enumerate() {
                            if element.is_object() {
                                self.push(joined(&below, &at.to_string()))?;
                            }
                        }
                    }
                    Value::String(to) if REFERENCES.contains(&&**name) => {
                        self.look(self.bases.len(), 0)?;
                        for target in self.targets(to) {
                            self.push(target)?;
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// The possible targets of a reference. The result may include too many, but never too few.
    fn targets(&self, to: &str) -> Vec<String> {
        let (address, fragment) = to.split_once('#').unwrap_or((to, ""));
        let fragment = decoded(fragment);
        if fragment.starts_with('/') {
            let places = self.bases.iter().map(|base| format!("{base}{fragment}"));
            return places
                .filter(|place| self.root.pointer(place).is_some())
                .collect();
        }
        if !fragment.is_empty() {
            return self.named.get(&fragment).cloned().unwrap_or_default();
        }
        match address.rsplit('/').next().unwrap_or_default() {
            "" => self.bases.clone(),
            last => self.named.get(last).cloned().unwrap_or_default(),
        }
    }

    /// Refuses a schema that applies to one value too often, or recurses too deeply.
    fn bounded(&self) -> Result<(), String> {
        let mut counted: HashMap<&str, Option<Cost>> = HashMap::new();
        // Depth-first without recursion. `None` marks a schema in progress: the validator leaves such a cycle at no
        // cost.
        for start in &self.seen {
            let mut stack: Vec<(&str, bool)> = vec![(start, false)];
            while let Some((place, done)) = stack.pop() {
                if !done && counted.contains_key(place) {
                    continue;
                }
                let next = self.here(place);
                if done {
                    let of = |next: &&str| counted.get(*next).copied().flatten();
                    let mut cost = Cost {
                        schemas: 1,
                        depth: 0,
                    };
                    for below in next.iter().filter_map(of) {
                        cost.schemas = cost.schemas.saturating_add(below.schemas);
                        cost.depth = cost.depth.max(below.depth + 1);
                    }
                    if cost.schemas > AT_ONCE_MAX {
                        return Err(format!(
                            "the references of the JSON Schema multiply: more than {AT_ONCE_MAX} schemas apply to one value"
                        ));
                    }
                    if cost.depth > CHAIN_MAX {
                        return Err(format!(
                            "the JSON Schema has a chain of more than {CHAIN_MAX} references"
                        ));
                    }
                    counted.insert(place, Some(cost));
                } else {
                    counted.insert(place, None);
                    stack.push((place, true));
                    stack.extend(next.into_iter().map(|next| (next, false)));
                }
            }
        }
        Ok(())
    }

    /// The schemas that apply at the same location as this one.
    fn here(&self, place: &str) -> Vec<&str> {
        let Some(Value::Object(members)) = self.root.pointer(place) else {
            return Vec::new();
        };
        let mut next = Vec::new();
        let mut add = |place: String| {
            if let Some(place) = self.seen.get(&place) {
                next.push(&**place);
            }
        };
        for (name, value) in members {
            let below = joined(place, name);
            match value {
                Value::Object(_) if HERE.contains(&&**name) => add(below),
                Value::Array(elements) if HERE_LISTS.contains(&&**name) => {
                    (0..elements.len()).for_each(|at| add(joined(&below, &at.to_string())));
                }
                Value::Object(schemas)
                    if ["dependentSchemas", "dependencies"].contains(&&**name) =>
                {
                    schemas.keys().for_each(|name| add(joined(&below, name)));
                }
                Value::String(to) if REFERENCES.contains(&&**name) => {
                    self.targets(to).into_iter().for_each(&mut add);
                }
                _ => {}
            }
        }
        next
    }
}

fn step(place: &mut String, name: &str) {
    place.push('/');
    place.push_str(&name.replace('~', "~0").replace('/', "~1"));
}

fn joined(place: &str, name: &str) -> String {
    let mut place = place.to_owned();
    step(&mut place, name);
    place
}

/// Decodes the percent escapes of a fragment. An invalid escape stays, and leads nowhere.
fn decoded(fragment: &str) -> String {
    let bytes = fragment.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = (bytes[at] == b'%')
            .then(|| fragment.get(at + 1..at + 3))
            .flatten()
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        plain.push(hex.unwrap_or(bytes[at]));
        at += if hex.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&plain).into_owned()
}
