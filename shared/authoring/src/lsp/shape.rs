//! The keys that data may have according to the text of a definition. Used only for completion.
//!
//! A shape lists what may exist, never what must exist. Parts that aren't understood add nothing.

use std::collections::BTreeMap;

use serde_json::Value;
use swirl_documents::source::Node;

/// The maximum depth of keys.
const DEPTH_MAX: usize = 12;

/// The maximum number of keys in a schema, or in data. A recursive schema would have endless keys.
const KEYS_MAX: usize = 2_000;

/// The keys that an object may have, and the shape of a list's items.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shape {
    keys: BTreeMap<String, Shape>,
    items: Option<Box<Shape>>,
}

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Key(String),
    /// Any item of a list.
    Item,
}

impl Shape {
    /// An object with one key.
    pub fn with(key: &str, value: Shape) -> Shape {
        let mut shape = Shape::default();
        shape.keys.insert(key.to_owned(), value);
        shape
    }

    /// Data as written in a document. Expressions in it may have any value.
    pub fn of_data(node: &Node) -> Shape {
        Shape::of_node(node, 0)
    }

    fn of_node(node: &Node, depth: usize) -> Shape {
        let mut shape = Shape::default();
        if depth >= DEPTH_MAX {
            return shape;
        }
        for item in node.items().unwrap_or_default() {
            shape.item(Shape::of_node(item, depth + 1));
        }
        for member in node.members().unwrap_or_default() {
            let value = Shape::of_node(member.value(), depth + 1);
            shape.keys.insert(member.key().to_owned(), value);
        }
        shape
    }

    /// Data as a task of DSL 1.0 writes it, with expressions over data of another shape.
    pub fn of_template(node: &Node, over: &Shape) -> Shape {
        Shape::template(node, over, 0)
    }

    fn template(node: &Node, over: &Shape, depth: usize) -> Shape {
        if let Some(text) = node.as_str() {
            let is_expression = text.trim_start().starts_with("${");
            return if is_expression {
                result(text, over)
            } else {
                Shape::default()
            };
        }
        let mut shape = Shape::default();
        if depth >= DEPTH_MAX {
            return shape;
        }
        for item in node.items().unwrap_or_default() {
            shape.item(Shape::template(item, over, depth + 1));
        }
        for member in node.members().unwrap_or_default() {
            let value = Shape::template(member.value(), over, depth + 1);
            shape.keys.insert(member.key().to_owned(), value);
        }
        shape
    }

    /// Nothing, if it has too many keys to be of use.
    pub fn bounded(self) -> Shape {
        match self.count() > KEYS_MAX {
            true => Shape::default(),
            false => self,
        }
    }

    fn count(&self) -> usize {
        let keys = self.keys.values().map(|below| 1 + below.count());
        keys.sum::<usize>() + self.items.as_ref().map_or(0, |items| items.count())
    }

    /// A list of values of this shape.
    pub fn list(self) -> Shape {
        let mut shape = Shape::default();
        shape.item(self);
        shape
    }

    /// The shape that fits a JSON Schema.
    pub fn of_schema(schema: &Value) -> Shape {
        let mut shape = Shape::default();
        let mut left = KEYS_MAX;
        shape.add_schema(schema, schema, 0, &mut left);
        shape
    }

    fn add_schema(&mut self, schema: &Value, root: &Value, depth: usize, left: &mut usize) {
        if depth >= DEPTH_MAX {
            return;
        }
        let reference = schema["$ref"].as_str().and_then(|to| to.strip_prefix('#'));
        if let Some(meant) = reference.and_then(|pointer| root.pointer(pointer)) {
            self.add_schema(meant, root, depth + 1, left);
        }
        for part in ["allOf", "anyOf", "oneOf"] {
            for one in schema[part].as_array().into_iter().flatten() {
                self.add_schema(one, root, depth + 1, left);
            }
        }
        for (key, of_key) in schema["properties"].as_object().into_iter().flatten() {
            if *left == 0 {
                return;
            }
            *left -= 1;
            let below = self.keys.entry(key.clone()).or_default();
            below.add_schema(of_key, root, depth + 1, left);
        }
        if schema["items"].is_object() {
            let items = self.items.get_or_insert_default();
            items.add_schema(&schema["items"], root, depth + 1, left);
        }
    }

    fn item(&mut self, item: Shape) {
        self.items.get_or_insert_default().merge(item);
    }

    /// Joins two shapes: data may have either.
    pub fn merge(&mut self, other: Shape) {
        for (key, value) in other.keys {
            self.keys.entry(key).or_default().merge(value);
        }
        if let Some(items) = other.items {
            self.item(*items);
        }
    }

    /// Puts a shape at a path.
    pub fn put(&mut self, path: &[Step], value: Shape) {
        match path.split_first() {
            None => self.merge(value),
            Some((Step::Key(key), rest)) => {
                self.keys.entry(key.clone()).or_default().put(rest, value);
            }
            Some((Step::Item, rest)) => self.items.get_or_insert_default().put(rest, value),
        }
    }

    pub fn at(&self, path: &[Step]) -> Option<&Shape> {
        path.iter().try_fold(self, |shape, step| match step {
            Step::Key(key) => shape.keys.get(key),
            Step::Item => shape.items.as_deref(),
        })
    }

    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.keys().map(String::as_str)
    }
}

/// A path such as `.a.b`, `.a[0]."b c"` and `.a[]`, or `$.a.b` and `$.a[*]`; `None` for any other expression.
pub fn path(text: &str) -> Option<Vec<Step>> {
    let text = text.trim();
    let text = match text.strip_prefix('$') {
        // A jq variable is not a path.
        Some(rest) if rest.is_empty() || rest.starts_with(['.', '[']) => rest,
        Some(_) => return None,
        None if text.starts_with('.') => text,
        None => return None,
    };
    steps(text.trim_end_matches('?'))
}

/// The steps of a path, each with its `.` or its brackets.
fn steps(text: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (inside, behind) = inner.split_once(']')?;
            let is_index = |text: &str| {
                let number = text.strip_prefix('-').unwrap_or(text);
                text.is_empty() || text == "*" || number.chars().all(|c| c.is_ascii_digit())
            };
            steps.push(match text_in_quotes(inside.trim()) {
                Some(key) => Step::Key(key.to_owned()),
                None if is_index(inside.trim()) => Step::Item,
                None => return None,
            });
            rest = behind.trim_start_matches('?');
            continue;
        }
        rest = rest.strip_prefix('.')?;
        if rest.is_empty() || rest.starts_with('[') {
            continue;
        }
        let end = match rest.strip_prefix('"') {
            Some(inner) => inner.find('"')? + 2,
            None => rest.find(|c| !is_of_key(c)).unwrap_or(rest.len()),
        };
        let key = &rest[..end];
        if key.is_empty() {
            return None;
        }
        steps.push(Step::Key(text_in_quotes(key).unwrap_or(key).to_owned()));
        rest = rest[end..].trim_start_matches('?');
    }
    Some(steps)
}

/// Whether an unquoted key may have this character.
pub fn is_of_key(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn text_in_quotes(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    (!inner.contains(['"', '\'', '\\'])).then_some(inner)
}

/// An expression without its delimiters.
pub fn bare(text: &str) -> &str {
    let text = text.trim();
    for (open, close) in [("${", "}"), ("{{", "}}")] {
        let inner = text.strip_prefix(open);
        if let Some(inner) = inner.and_then(|inner| inner.strip_suffix(close)) {
            return inner.trim();
        }
    }
    text
}

/// The result of a simple expression for data with a given shape: a path, an object or a list of these, or their sum.
/// The result of any other expression is unknown.
pub fn result(expression: &str, over: &Shape) -> Shape {
    evaluated(bare(expression), over, 0)
}

fn evaluated(text: &str, over: &Shape, depth: usize) -> Shape {
    let text = text.trim();
    let mut shape = Shape::default();
    if depth >= DEPTH_MAX {
        return shape;
    }
    let terms = parts(text, '+');
    if terms.len() > 1 {
        for term in terms {
            shape.merge(evaluated(term, over, depth + 1));
        }
        return shape;
    }
    if let Some(path) = path(text) {
        return over.at(&path).cloned().unwrap_or_default();
    }
    if let Some(inner) = inside(text, '[', ']') {
        shape.item(evaluated(inner, over, depth + 1));
    }
    for entry in inside(text, '{', '}').map_or_else(Vec::new, |inner| parts(inner, ',')) {
        let (key, value) = match parts(entry, ':')[..] {
            [key] => (key.trim(), None),
            [key, value] => (key.trim(), Some(value)),
            _ => continue,
        };
        let name = text_in_quotes(key).unwrap_or(key);
        let name = name.strip_prefix('$').unwrap_or(name);
        if name.is_empty() || (name == key && !name.chars().all(is_of_key)) {
            continue;
        }
        let value = match value {
            Some(value) => evaluated(value, over, depth + 1),
            // `{a}` is `{a: .a}`.
            None => over.keys.get(name).cloned().unwrap_or_default(),
        };
        shape.keys.insert(name.to_owned(), value);
    }
    shape
}

/// The addition of an expression that keeps all of its input: `. + {a: 1}`.
pub fn addition(expression: &str) -> Option<Shape> {
    let terms = parts(bare(expression), '+');
    let (same, others): (Vec<&str>, Vec<&str>) =
        terms.into_iter().partition(|term| term.trim() == ".");
    if same.is_empty() {
        return None;
    }
    let mut added = Shape::default();
    for term in others {
        added.merge(evaluated(term, &Shape::default(), 0));
    }
    Some(added)
}

/// The content of a pair of brackets that encloses the whole text.
fn inside(text: &str, open: char, close: char) -> Option<&str> {
    let inner = text.strip_prefix(open)?.strip_suffix(close)?;
    let mut depth = 0_i32;
    let is_whole = characters(inner).all(|(_, c)| {
        depth += i32::from(c == open) - i32::from(c == close);
        depth >= 0
    });
    is_whole.then_some(inner)
}

/// The parts of a text between separators outside of brackets and strings.
fn parts(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_i32, 0);
    for (at, c) in characters(text) {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            c if c == separator && depth == 0 => {
                parts.push(&text[start..at]);
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// The characters outside of quoted strings.
fn characters(text: &str) -> impl Iterator<Item = (usize, char)> {
    let (mut is_text, mut is_escaped) = (false, false);
    text.char_indices().filter(move |(_, c)| {
        let is_outside = !is_text && *c != '"';
        is_text ^= *c == '"' && !is_escaped;
        is_escaped = is_text && *c == '\\' && !is_escaped;
        is_outside
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(key: &str) -> Step {
        Step::Key(key.to_owned())
    }

    fn shown(shape: &Shape) -> String {
        let mut shown: Vec<String> = Vec::new();
        for (name, below) in &shape.keys {
            shown.push(format!("{name}{}", shown_below(below)));
        }
        shown.join(" ")
    }

    fn shown_below(below: &Shape) -> String {
        match &below.items {
            _ if !below.keys.is_empty() => format!("({})", shown(below)),
            Some(items) => format!("[{}]", shown(items)),
            None => String::new(),
        }
    }

    #[test]
    fn paths() {
        for (text, steps) in [
            (".", Some(vec![])),
            (".a.b", Some(vec![key("a"), key("b")])),
            (" .a[0].b? ", Some(vec![key("a"), Step::Item, key("b")])),
            (".a[].\"b c\"", Some(vec![key("a"), Step::Item, key("b c")])),
            (".[\"a b\"]", Some(vec![key("a b")])),
            ("$", Some(vec![])),
            ("$.a[*].b", Some(vec![key("a"), Step::Item, key("b")])),
            ("$['a']", Some(vec![key("a")])),
            ("$a.b", None),
            ("a", None),
            (".a | .b", None),
            (".a[.b]", None),
            (".a + 1", None),
        ] {
            assert_eq!(path(text), steps, "{text}");
        }
    }

    #[test]
    fn schemas() {
        let schema = json!({
            "properties": {"who": {"$ref": "#/definitions/person"}, "tags": {"items": {"type": "string"}}},
            "allOf": [{"properties": {"when": {}}}],
            "definitions": {"person": {"properties": {"name": {}, "boss": {"$ref": "#/definitions/person"}}}},
        });
        let shape = Shape::of_schema(&schema);
        assert_eq!(shape.keys().collect::<Vec<_>>(), ["tags", "when", "who"]);
        let boss = shape.at(&[key("who"), key("boss"), key("boss")]).unwrap();
        assert_eq!(boss.keys().collect::<Vec<_>>(), ["boss", "name"]);
        let endless =
            json!({"properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}, "c": {"$ref": "#"}}});
        assert_eq!(Shape::of_schema(&endless).keys().count(), 3);
        assert_eq!(Shape::of_schema(&json!({"$ref": "#"})), Shape::default());
        assert_eq!(Shape::of_schema(&json!(true)), Shape::default());
    }

    #[test]
    fn results_of_simple_expressions() {
        let mut data = Shape::default();
        data.put(&[key("a"), key("b")], Shape::default());
        data.put(&[key("list"), Step::Item, key("x")], Shape::default());
        for (expression, given) in [
            (".", "a(b) list[x]"),
            ("${ .a }", "b"),
            (".list[0]", "x"),
            (
                "{a, n: 1, \"m o\": .list[].x, s: \"}, z: 1\"}",
                "a(b) m o n s",
            ),
            ("{o: {p: .a}, l: [.list[]]}", "l[x] o(p(b))"),
            (".a + {c: 1}", "b c"),
            ("{(.k): 1, $v}", "v"),
            (".a | .b", ""),
            ("map(.x)", ""),
            ("{a: 1} | {b: 2}", ""),
            ("{a", ""),
            ("", ""),
        ] {
            assert_eq!(shown(&result(expression, &data)), given, "{expression}");
        }
        assert_eq!(
            addition("${ . + {c: 1} }").map(|it| shown(&it)).as_deref(),
            Some("c")
        );
        assert_eq!(addition("${ {c: 1} }"), None);
    }
}
