//! What a definition names, and where the names stand.

use serde_json::{Value, json};
use swirl_spec::source::Node;

use super::text::{Position, Range, Text};

/// What a name is one of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    State,
    Function,
    Event,
    Error,
    Retry,
    Auth,
    Secret,
}

/// The lists of declarations, and the number that the protocol has for such symbols.
const LISTS: [(&str, Kind, u8); 8] = [
    ("states", Kind::State, 5),
    ("tasks", Kind::State, 5),
    ("functions", Kind::Function, 12),
    ("events", Kind::Event, 24),
    ("errors", Kind::Error, 22),
    ("retries", Kind::Retry, 14),
    ("auth", Kind::Auth, 20),
    ("secrets", Kind::Secret, 20),
];

/// What the text of a property refers to, in the words of the editions.
pub fn referred(key: &str) -> Option<Kind> {
    Some(match key {
        "transition" | "nextState" | "next-state" | "nextTask" | "compensatedBy" | "stateName"
        | "start" | "runBefore" | "starts-at" | "startsAt" => Kind::State,
        "functionRef" | "refName" | "resourceRef" => Kind::Function,
        "eventRef" | "eventRefs" | "produceEventRef" | "consumeEventRef" | "triggerEventRef"
        | "resultEventRef" | "publish" | "subscribe" => Kind::Event,
        "errorRef" | "errorRefs" | "retryableErrors" | "nonRetryableErrors" => Kind::Error,
        "retryRef" => Kind::Retry,
        "authRef" => Kind::Auth,
        _ => return None,
    })
}

#[derive(Debug)]
struct Occurrence {
    kind: Kind,
    name: String,
    is_declaration: bool,
    symbol: u8,
    /// From 1, of the value.
    line: usize,
    column: usize,
}

#[derive(Debug, Default)]
pub struct Names {
    all: Vec<Occurrence>,
}

impl Names {
    pub fn of(root: &Node) -> Names {
        let mut names = Names::default();
        names.collect(root, "");
        names
    }

    fn collect(&mut self, node: &Node, key: &str) {
        if let (Some(name), Some(kind)) = (node.as_str(), referred(key)) {
            self.add(kind, name, false, 0, node);
        }
        if let Some(text) = node.as_str() {
            for (at, _) in text.match_indices("fn:") {
                let name: String = text[at + 3..]
                    .trim_start()
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || "_-.".contains(*c))
                    .collect();
                self.add(Kind::Function, &name, false, 0, node);
            }
        }
        for item in node.items().unwrap_or_default() {
            self.collect(item, key);
        }
        for member in node.members().unwrap_or_default() {
            let list = LISTS.iter().find(|(list, ..)| *list == member.key());
            if let Some((_, kind, symbol)) = list {
                for item in member.value().items().unwrap_or_default() {
                    let name = item.get("name").filter(|name| name.as_str().is_some());
                    let name = name.or_else(|| item.as_str().map(|_| item));
                    if let Some((node, name)) = name.and_then(|node| Some((node, node.as_str()?))) {
                        self.add(*kind, name, true, *symbol, node);
                    }
                }
            }
            // Data of the user is no reference.
            if !matches!(member.key(), "data" | "metadata" | "constants" | "name")
                || member
                    .value()
                    .as_str()
                    .is_some_and(|text| text.contains("fn:"))
            {
                self.collect(member.value(), member.key());
            }
        }
    }

    fn add(&mut self, kind: Kind, name: &str, is_declaration: bool, symbol: u8, node: &Node) {
        self.all.push(Occurrence {
            kind,
            name: name.to_owned(),
            is_declaration,
            symbol,
            line: node.line(),
            column: node.column(),
        });
    }

    /// The declared names of a kind, each once, in the order of the document.
    pub fn declared(&self, kind: Kind) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for one in self
            .all
            .iter()
            .filter(|one| one.is_declaration && one.kind == kind)
        {
            if !names.contains(&one.name.as_str()) {
                names.push(&one.name);
            }
        }
        names
    }

    fn at(&self, text: &Text, at: Position) -> Option<&Occurrence> {
        let mut all = self.all.iter();
        all.find(|one| one.range(text).is_some_and(|range| range.holds(at)))
    }

    /// All places of what stands at a position.
    fn same(&self, text: &Text, at: Position) -> Vec<(&Occurrence, Range)> {
        let Some(meant) = self.at(text, at) else {
            return Vec::new();
        };
        let same = self
            .all
            .iter()
            .filter(|one| one.kind == meant.kind && one.name == meant.name);
        same.filter_map(|one| Some((one, one.range(text)?)))
            .collect()
    }

    pub fn definition(&self, text: &Text, at: Position, uri: &str) -> Value {
        let same = self.same(text, at);
        let declared = same.iter().filter(|(one, _)| one.is_declaration);
        declared
            .map(|(_, range)| json!({"uri": uri, "range": range}))
            .collect()
    }

    pub fn references(&self, text: &Text, at: Position, uri: &str) -> Value {
        let same = self.same(text, at);
        same.iter()
            .map(|(_, range)| json!({"uri": uri, "range": range}))
            .collect()
    }

    pub fn rename_range(&self, text: &Text, at: Position) -> Value {
        let found = self.at(text, at).and_then(|one| one.range(text));
        found.map_or(Value::Null, |range| json!(range))
    }

    /// The edits that give what stands at a position another name.
    pub fn rename(&self, text: &Text, at: Position, name: &str) -> Result<Value, String> {
        let Some(meant) = self.at(text, at) else {
            return Err("nothing that has a name stands here".to_owned());
        };
        let good = |c: char| !c.is_control() && !"\"'{}[],:#&*!|>%@`\\".contains(c);
        if name.trim() != name
            || name.is_empty()
            || !name.chars().all(good)
            || name.starts_with(['-', '?'])
        {
            return Err(format!(
                "'{name}' would need quotes: use letters, digits, spaces, '-', '_' and '.'"
            ));
        }
        if self.declared(meant.kind).contains(&name) {
            return Err(format!("'{name}' is there already"));
        }
        let same = self.same(text, at);
        Ok(same
            .iter()
            .map(|(_, range)| json!({"range": range, "newText": name}))
            .collect())
    }

    pub fn symbols(&self, text: &Text) -> Value {
        let declared = self.all.iter().filter(|one| one.is_declaration);
        let symbols = declared.filter_map(|one| {
            let range = one.range(text)?;
            Some(json!({"name": one.name, "kind": one.symbol, "range": range, "selectionRange": range}))
        });
        symbols.collect()
    }
}

impl Occurrence {
    /// Where the name itself stands. None for a text that is written otherwise than it reads, or in
    /// several lines.
    fn range(&self, text: &Text) -> Option<Range> {
        let line = text.line(self.line - 1);
        let start = line.char_indices().nth(self.column - 1)?.0;
        let part = |c: char| c.is_alphanumeric() || c == '_';
        let rest = &line[start..];
        let (at, _) = rest.match_indices(self.name.as_str()).find(|(at, name)| {
            let before = rest[..*at].chars().next_back();
            let after = rest[at + name.len()..].chars().next();
            !before.is_some_and(part) && !after.is_some_and(part)
        })?;
        Some(text.range(self.line - 1, start + at, start + at + self.name.len()))
    }
}
