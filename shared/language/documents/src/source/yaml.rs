//! YAML 1.2 from parser events: anchors, aliases, merge keys, core schema.
//!
//! Aliases are replaced by copies, so that the reader sees a tree. Each copy counts towards the limits before it is
//! created. The depth limit bounds recursion.

mod value;
mod written;

use std::collections::{HashMap, HashSet};

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, StrInput};

use super::budget::{Budget, too_deep};
use super::json::duplicate;
use super::node::{Member, Node, Value, child};
use super::{Limits, Result_, empty, fatal};
use crate::codes;
use crate::diagnostic::{Diagnostics, SourceLocation};

pub use written::{Notation, Written, written};

pub(super) fn parse(text: &str, limits: &Limits, diagnostics: &mut Diagnostics) -> Result_<Node> {
    let mut options = granit_parser::Options::default();
    options.set_emit_comments(false);
    // Our own limit is reached first, and has a separate finding. The parser reads ahead in lists and objects with
    // brackets.
    options.flow_nesting_limit = limits.depth_max * 8;
    options.block_nesting_limit = limits.depth_max + 2;
    let events = Parser::new_from_str_with_options(text, options);
    let budget = Budget::new(limits);
    let (anchors, path) = (HashMap::new(), Vec::new());
    let mut builder = Builder {
        events,
        budget,
        limits,
        anchors,
        path,
        diagnostics,
    };
    loop {
        match builder.next()? {
            (Event::StreamStart | Event::DocumentStart(..), _) => {}
            (Event::StreamEnd | Event::DocumentEnd, _) => return Err(Box::new(empty())),
            (event, span) => {
                // An empty document consists of an empty plain scalar.
                if let Event::Scalar(_, ScalarStyle::Plain, 0, None) = &event
                    && span.is_empty()
                {
                    builder.finish()?;
                    return Err(Box::new(empty()));
                }
                let mut root = builder.node(event, span, 0)?;
                builder.finish()?;
                builder.point(&mut root, String::new())?;
                return Ok(root);
            }
        }
    }
}

struct Builder<'t> {
    events: Parser<'t, StrInput<'t>>,
    budget: Budget<'t>,
    limits: &'t Limits,
    /// Completed nodes with their height: 0 for scalars.
    anchors: HashMap<usize, (Node, usize)>,
    /// The keys and indexes that lead to the current value.
    path: Vec<String>,
    diagnostics: &'t mut Diagnostics,
}

fn place(span: &Span) -> SourceLocation {
    SourceLocation {
        pointer: String::new(),
        line: span.start.line(),
        column: span.start.col() + 1,
    }
}

fn node(value: Value, span: &Span) -> Node {
    let SourceLocation { line, column, .. } = place(span);
    Node {
        value,
        pointer: Box::default(),
        line,
        column,
    }
}

/// The nesting depth of lists and objects in a node.
fn height(node: &Node) -> usize {
    let below = match &node.value {
        Value::Array(items) => items.iter().map(height).max(),
        Value::Object(members) => members.iter().map(|member| height(&member.value)).max(),
        _ => return 0,
    };
    below.unwrap_or(0) + 1
}

impl<'t> Builder<'t> {
    fn next(&mut self) -> Result_<(Event<'t>, Span)> {
        match self.events.next() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(self.syntax(&error)),
            None => Ok((
                Event::StreamEnd,
                Span::empty(granit_parser::Marker::new(0, 1, 0)),
            )),
        }
    }

    fn syntax(&self, error: &ScanError) -> Box<crate::diagnostic::Diagnostic> {
        let (line, column) = (error.marker().line(), error.marker().col() + 1);
        let place = SourceLocation {
            pointer: String::new(),
            line: line.max(1),
            column,
        };
        let info = error.info();
        if matches!(error.kind(), ErrorKind::RecursionLimitExceeded) {
            let pointer = self.pointer();
            return too_deep(self.limits, SourceLocation { pointer, ..place });
        }
        let mut diagnostic = fatal(
            codes::SYNTAX_ERROR,
            place,
            format!("this is not valid YAML: {info}"),
        );
        diagnostic.hint = match info {
            _ if info.contains("tab") => Some("indent with spaces: YAML allows no tabs there"),
            _ if info.contains("mapping values") => {
                Some("put the string in quotes if it contains a colon and a space")
            }
            _ if info.contains("expected ',' or") => {
                Some("within '{ }' and '[ ]' a string with braces, brackets or a comma, such as '${ .x }', needs quotes")
            }
            _ => None,
        }
        .map(str::to_owned);
        diagnostic
    }

    /// Nothing may follow the first document.
    fn finish(&mut self) -> Result_<()> {
        loop {
            match self.next()? {
                (Event::DocumentEnd, _) => {}
                (Event::StreamEnd, _) => return Ok(()),
                (_, span) => {
                    let message = "a second document begins here, but a file may hold only one";
                    let mut error = fatal(codes::SEVERAL_DOCUMENTS, place(&span), message);
                    error.hint = Some("put each document into its own file".to_owned());
                    return Err(error);
                }
            }
        }
    }

    fn node(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result_<Node> {
        let (built, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                // The parser returns a tilde for an empty value.
                let nothing = style == ScalarStyle::Plain && span.is_empty();
                let text = if nothing { "".into() } else { text };
                self.budget.take(text.len(), || place(&span))?;
                let value = self.scalar(&text, style, tag.as_deref(), &span);
                (node(value, &span), anchor)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.enter(depth, &span)?;
                self.collection_tag(tag.as_deref(), "seq", &span);
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => break,
                        (event, span) => {
                            self.path.push(items.len().to_string());
                            items.push(self.node(event, span, depth + 1)?);
                            self.path.pop();
                        }
                    }
                }
                (node(Value::Array(items), &span), anchor)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.enter(depth, &span)?;
                self.collection_tag(tag.as_deref(), "map", &span);
                (node(Value::Object(self.members(depth)?), &span), anchor)
            }
            Event::Alias(id) => return self.alias(id, &span, depth),
            _ => {
                let message = "this is not valid YAML: a value is missing here";
                return Err(fatal(codes::SYNTAX_ERROR, place(&span), message));
            }
        };
        if anchor != 0 {
            // The kept copy needs memory as well.
            self.copy(&built, &span)?;
            let height = height(&built);
            self.anchors.insert(anchor, (built.clone(), height));
        }
        Ok(built)
    }

    fn enter(&mut self, depth: usize, span: &Span) -> Result_<()> {
        self.budget.deeper(depth + 1, || self.here(span))?;
        self.budget.take(0, || place(span))
    }

    fn alias(&mut self, id: usize, span: &Span, depth: usize) -> Result_<Node> {
        let Some((target, height)) = self.anchors.remove(&id) else {
            let message = "this is not valid YAML: an alias is inside the value that it names";
            return Err(fatal(codes::SYNTAX_ERROR, place(span), message));
        };
        let copied = self
            .budget
            .deeper(depth + height, || self.here(span))
            .and_then(|()| self.copy(&target, span))
            .map(|()| target.clone());
        self.anchors.insert(id, (target, height));
        copied
    }

    /// Counts a copy of a node before it is created.
    fn copy(&mut self, node: &Node, span: &Span) -> Result_<()> {
        self.budget.take(node.raw().len(), || place(span))?;
        match &node.value {
            Value::Array(items) => items.iter().try_for_each(|item| self.copy(item, span)),
            Value::Object(members) => members.iter().try_for_each(|member| {
                self.budget.bytes(member.key.len(), || place(span))?;
                self.copy(&member.value, span)
            }),
            _ => Ok(()),
        }
    }

    fn members(&mut self, depth: usize) -> Result_<Vec<Member>> {
        let mut members: Vec<Member> = Vec::new();
        let mut keys: HashSet<Box<str>> = HashSet::new();
        let mut merged: Vec<(usize, Node)> = Vec::new();
        let mut merge_seen = false;
        loop {
            let (event, span) = match self.next()? {
                (Event::MappingEnd, _) => break,
                next => next,
            };
            let is_merge =
                matches!(&event, Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<");
            let key_node = self.node(event, span, depth + 1)?;
            let key = self.key(&key_node, &span);
            let (event, value_span) = self.next()?;
            self.path.push(key.clone());
            let value = self.node(event, value_span, depth + 1)?;
            self.path.pop();
            let SourceLocation {
                line: key_line,
                column: key_column,
                ..
            } = place(&span);
            let member = Member {
                key: key.into(),
                key_line,
                key_column,
                value,
            };
            if is_merge && !merge_seen {
                merge_seen = true;
                merged.push((members.len(), member.value));
            } else if is_merge || keys.contains(&member.key) {
                duplicate(self.diagnostics, &members, &member, self.pointer());
            } else {
                keys.insert(member.key.clone());
                members.push(member);
            }
        }
        for (at, source) in merged {
            let added = self.merge(source, &mut keys);
            members.splice(at..at, added);
        }
        Ok(members)
    }

    /// The members that a merge key adds. Keys of the object itself take precedence, then those of earlier sources.
    fn merge(&mut self, source: Node, keys: &mut HashSet<Box<str>>) -> Vec<Member> {
        let sources = match source.value {
            Value::Array(sources) => sources,
            _ => vec![source],
        };
        let mut added = Vec::new();
        for source in sources {
            let (place, kind) = (source.place(), source.kind_word());
            let Value::Object(members) = source.value else {
                let place = SourceLocation {
                    pointer: child(&self.pointer(), "<<"),
                    ..place
                };
                self.diagnostics
                    .error(
                        codes::MERGE_KEY,
                        place,
                        format!("'<<' takes an object or a list of objects, but this is {kind}"),
                    )
                    .hint("name an object with an alias, as in '<<: *defaults'");
                continue;
            };
            added.extend(
                members
                    .into_iter()
                    .filter(|member| keys.insert(member.key.clone())),
            );
        }
        added
    }

    /// Sets the pointers, now that all locations are final.
    fn point(&mut self, node: &mut Node, pointer: String) -> Result_<()> {
        let here = SourceLocation {
            pointer: String::new(),
            line: node.line,
            column: node.column,
        };
        self.budget.bytes(pointer.len(), || here)?;
        match &mut node.value {
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.point(item, format!("{pointer}/{index}"))?;
                }
            }
            Value::Object(members) => {
                for member in members {
                    let pointer = child(&pointer, &member.key);
                    self.point(&mut member.value, pointer)?;
                }
            }
            _ => {}
        }
        node.pointer = pointer.into();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::read;

    fn show_with(text: &str, limits: &Limits) -> String {
        let parsed = read(text.as_bytes(), limits);
        let findings = parsed.diagnostics.iter();
        let findings =
            findings.map(|d| format!("{} {}:{} {}", d.code, d.line, d.column, d.pointer));
        let findings = findings.map(|row| row.trim_end().to_owned());
        let data = parsed.root.filter(|_| !parsed.diagnostics.has_errors());
        let data = data.map(|root| root.to_data().to_string());
        findings.chain(data).collect::<Vec<_>>().join(" | ")
    }

    fn show(text: &str) -> String {
        show_with(text, &Limits::default())
    }

    #[test]
    fn unquoted_expressions_in_braces_get_a_hint() {
        for text in ["a: {b: ${ .c }, d: 1}", "a: [${ .c }]"] {
            let parsed = read(text.as_bytes(), &Limits::default());
            let hint = parsed
                .diagnostics
                .iter()
                .find_map(|found| found.hint.clone());
            assert!(
                hint.is_some_and(|hint| hint.contains("needs quotes")),
                "{text}"
            );
        }
    }

    #[test]
    fn documents() {
        for (text, shown) in [
            (
                "a: 1\nb: [x, 'y', \"z\\u00e9\"]",
                r#"{"a":1,"b":["x","y","zé"]}"#,
            ),
            ("%YAML 1.2\n---\na: 1\n...\n", r#"{"a":1}"#),
            ("a:\nb: ~\nc: ''", r#"{"a":null,"b":null,"c":""}"#),
            (
                "a: |\n  x\n  y\nb: >-\n  x\n  y",
                r#"{"a":"x\ny\n","b":"x y"}"#,
            ),
            (
                "a: 2024-01-31\nb: 12:30:00\nc: yes\nd: Off",
                r#"{"a":"2024-01-31","b":"12:30:00","c":"yes","d":"Off"}"#,
            ),
            ("on: 1\nyes: 2", r#"{"on":1,"yes":2}"#),
            (
                "- !!str 1\n- !!int '2'\n- !!float 3\n- !!null ''\n- !!bool 'true'",
                r#"["1",2,3,null,true]"#,
            ),
            ("a: '${ .x }'", r#"{"a":"${ .x }"}"#),
            ("just a text", r#""just a text""#),
        ] {
            assert_eq!(show(text), shown, "{text}");
        }
    }

    #[test]
    fn aliases_and_merge_keys() {
        for (text, shown) in [
            ("a: &x {b: 1}\nc: *x", r#"{"a":{"b":1},"c":{"b":1}}"#),
            (
                "a: &x {b: 1, c: 2}\nd:\n  c: 3\n  <<: *x",
                r#"{"a":{"b":1,"c":2},"d":{"c":3,"b":1}}"#,
            ),
            (
                "a: &x {b: 1}\nc: &y {b: 2, d: 3}\ne: {<<: [*x, *y], f: 4}",
                r#"{"a":{"b":1},"c":{"b":2,"d":3},"e":{"b":1,"d":3,"f":4}}"#,
            ),
            ("a: {'<<': 1}", r#"{"a":{"<<":1}}"#),
            ("a: {<<: 1}", "merge-key 1:9 /a/<<"),
            ("a: {<<: {}, <<: {}}", "duplicate-key 1:13 /a/<<"),
            ("a: &x 1\nb: &x 2\nc: *x", r#"{"a":1,"b":2,"c":2}"#),
            ("a: *none", "syntax-error 1:4"),
            ("&k a: 1\n*k : 2", "duplicate-key 2:1 /a"),
        ] {
            assert_eq!(show(text), shown, "{text}");
        }
        let inside = show("a: &x [*x]");
        assert!(inside.starts_with("syntax-error 1:"), "{inside}");
        let text = b"a: &x {b: {c: 1}}\nd: *x";
        let root = read(text, &Limits::default()).root.unwrap();
        let value = root.at("/d/b/c").unwrap();
        assert_eq!(
            (value.pointer(), value.line(), value.column()),
            ("/d/b/c", 1, 15)
        );
    }

    #[test]
    fn findings() {
        assert!(
            read(b"a: x: y", &Limits::default())
                .diagnostics
                .iter()
                .all(|d| d
                    .hint
                    .as_deref()
                    .is_some_and(|hint| hint.contains("quotes")))
        );
        for (text, shown) in [
            (
                "a: 1\nb: 2\na: 3\nb: 4",
                "duplicate-key 3:1 /a | duplicate-key 4:1 /b",
            ),
            (
                "a: .inf\nb: .NaN\nc: 1e999",
                "number-not-finite 1:4 /a | number-not-finite 2:4 /b | number-not-finite 3:4 /c",
            ),
            (
                "1: a\n2.50: b\ntrue: c",
                r#"key-not-text 1:1 /1 | key-not-text 2:1 /2.50 | key-not-text 3:1 /true | {"1":"a","2.50":"b","true":"c"}"#,
            ),
            ("1: a\n'1': b", "key-not-text 1:1 /1 | duplicate-key 2:1 /1"),
            ("? [a]\n: b", "key-not-text 1:3"),
            (": b", "key-not-text 1:1"),
            ("a: 012", r#"leading-zero 1:4 /a | {"a":12}"#),
            (
                "a: !custom b\nc: !!set {}",
                "unsupported-tag 1:12 /a | unsupported-tag 2:10 /c",
            ),
            ("a: !!int x", "unsupported-tag 1:10 /a"),
            ("a: 1\n---\nb: 2", "several-documents 2:1"),
            ("a:\n\tb: 1", "syntax-error 2:2"),
            ("a: 'x", "syntax-error 1:4"),
            ("a: [1, 2", "syntax-error 1:4"),
            ("a: b: c", "syntax-error 1:5"),
            ("a: ${ .x | {y: 1} }", "syntax-error 1:14"),
            ("a: \"\\q\"", "syntax-error 1:4"),
            ("a: 1\n b: 2", "syntax-error 2:3"),
        ] {
            assert_eq!(show(text), shown, "{text}");
        }
    }

    #[test]
    fn limits() {
        let laughs: String = (0..12)
            .map(|level| {
                let item = if level == 0 {
                    "lol".to_owned()
                } else {
                    format!("*a{}", level - 1)
                };
                format!("a{level}: &a{level} [{}]\n", vec![item; 10].join(", "))
            })
            .collect();
        assert!(
            show(&laughs).starts_with("too-many-values "),
            "{}",
            show(&laughs)
        );
        let text = format!(
            "a: &a {}\nb: [{}]",
            "x".repeat(500_000),
            vec!["*a"; 1000].join(", ")
        );
        assert!(
            show(&text).starts_with("too-many-values 2:"),
            "{}",
            show(&text)
        );
        let key = "k".repeat(1000);
        let text = format!("{key}: [{}]", vec!["1"; 100_000].join(","));
        assert!(
            show(&text).starts_with("too-many-values 1:"),
            "{}",
            show(&text)
        );
        for open in ["[", "- ", "{a: ", "? "] {
            let shown = show(&open.repeat(5000));
            assert!(shown.starts_with("too-deep "), "{open} {shown}");
        }
        let small = Limits {
            depth_max: 3,
            ..Limits::default()
        };
        assert_eq!(show_with("[[[1]]]", &small), "[[[1]]]");
        assert_eq!(show_with("- - - 1", &small), "[[[1]]]");
        assert_eq!(show_with("- - - - 1", &small), "too-deep 1:7 /0/0/0");
        assert_eq!(
            show_with("a: &a [[1]]\nb: *a", &small),
            r#"{"a":[[1]],"b":[[1]]}"#
        );
        assert_eq!(
            show_with("a: &a [[1]]\nb: [*a]", &small),
            "too-deep 2:5 /b/0"
        );
    }
}
