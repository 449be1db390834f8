//! The names that a definition declares and uses, with their locations.

mod tasks;

use serde_json::{Value, json};
use swirl_documents::source::{Member, Node};

use super::entries::before;
use super::scalar::Scalar;
use super::text::{Position, Range, Text};

/// The kind of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    State,
    Function,
    Event,
    Error,
    Retry,
    Auth,
    Secret,
    // Only of DSL 1.0.
    Timeout,
    Catalog,
    Extension,
}

/// The lists of declarations, with the protocol's numbers for these symbols.
const LISTS: [(&str, NameKind, u8); 8] = [
    ("states", NameKind::State, 5),
    ("tasks", NameKind::State, 5),
    ("functions", NameKind::Function, 12),
    ("events", NameKind::Event, 24),
    ("errors", NameKind::Error, 22),
    ("retries", NameKind::Retry, 14),
    ("auth", NameKind::Auth, 20),
    ("secrets", NameKind::Secret, 20),
];

/// The kind of name that a property's text refers to, for the properties of all editions.
pub fn referred(key: &str) -> Option<NameKind> {
    Some(match key {
        "transition" | "nextState" | "next-state" | "nextTask" | "compensatedBy" | "stateName"
        | "start" | "runBefore" | "starts-at" | "startsAt" => NameKind::State,
        "functionRef" | "refName" | "resourceRef" => NameKind::Function,
        "eventRef" | "eventRefs" | "produceEventRef" | "consumeEventRef" | "triggerEventRef"
        | "resultEventRef" | "publish" | "subscribe" => NameKind::Event,
        "errorRef" | "errorRefs" | "retryableErrors" | "nonRetryableErrors" => NameKind::Error,
        "retryRef" => NameKind::Retry,
        "authRef" => NameKind::Auth,
        _ => return None,
    })
}

#[derive(Debug)]
struct Occurrence {
    kind: NameKind,
    /// The list in which a task of DSL 1.0 is known, as a pointer; otherwise empty.
    list: String,
    name: String,
    /// The kind that a declaration declares.
    declares: Option<Block>,
    /// The byte of the value at which the name begins, if it is inside an expression.
    within: Option<usize>,
    /// The line of the value, from 1.
    line: usize,
    column: usize,
}

/// The block of a declared name.
#[derive(Debug, Clone, Copy)]
struct Block {
    /// The protocol's number for such symbols.
    symbol: u8,
    /// From 1.
    line: usize,
    column: usize,
    last_line: usize,
}

#[derive(Debug, Default)]
pub struct Names {
    all: Vec<Occurrence>,
}

impl Names {
    /// Of a document with states.
    pub fn of_states(root: &Node) -> Names {
        let mut names = Names::default();
        names.collect(root, "", usize::MAX);
        names
    }

    /// The node ends on `last_line` or before.
    fn collect(&mut self, node: &Node, key: &str, last_line: usize) {
        if let (Some(name), Some(kind)) = (node.as_str(), referred(key)) {
            self.add(kind, name, None, node);
        }
        self.in_expressions(node);
        let items = node.items().unwrap_or_default();
        for (index, item) in items.iter().enumerate() {
            let next = items.get(index + 1).map(Node::line);
            self.collect(item, key, before(next, item.line(), last_line));
        }
        let members = node.members().unwrap_or_default();
        for (index, member) in members.iter().enumerate() {
            let next = members.get(index + 1).map(Member::key_line);
            let last_line = before(next, member.key_line(), last_line);
            let list = LISTS.iter().find(|(list, ..)| *list == member.key());
            if let Some((_, kind, symbol)) = list {
                self.declare(member.value(), *kind, *symbol, last_line);
            }
            // User data contains no references.
            if !matches!(member.key(), "data" | "metadata" | "constants" | "name")
                || member
                    .value()
                    .as_str()
                    .is_some_and(|text| text.contains("fn:") || text.contains("$SECRETS."))
            {
                self.collect(member.value(), member.key(), last_line);
            }
        }
    }

    /// Adds the names that the expressions in a text refer to.
    fn in_expressions(&mut self, node: &Node) {
        self.in_text(node, "fn:", NameKind::Function, "_-.");
        self.in_text(node, "$SECRETS.", NameKind::Secret, "_");
    }

    /// Adds the names that follow a prefix in a text. They consist of letters, digits and these signs.
    fn in_text(&mut self, node: &Node, prefix: &str, kind: NameKind, signs: &str) {
        let text = node.as_str().unwrap_or_default();
        for (at, _) in text.match_indices(prefix) {
            let rest = &text[at + prefix.len()..];
            let name = rest.trim_start();
            let begin = text.len() - name.len();
            let end = name.find(|c: char| !c.is_alphanumeric() && !signs.contains(c));
            let name = &name[..end.unwrap_or(name.len())];
            if !name.is_empty() {
                self.add(kind, name, None, node);
                if let Some(one) = self.all.last_mut() {
                    one.within = Some(begin);
                }
            }
        }
    }

    /// Adds the names in a list of declarations, each of which is an object with a name or just a name.
    fn declare(&mut self, list: &Node, kind: NameKind, symbol: u8, last_line: usize) {
        let items = list.items().unwrap_or_default();
        for (index, item) in items.iter().enumerate() {
            let named = item.get("name").unwrap_or(item);
            let Some(name) = named.as_str() else {
                continue;
            };
            let next = items.get(index + 1).map(Node::line);
            let block = Block {
                symbol,
                line: item.line(),
                column: item.column(),
                last_line: before(next, item.line(), last_line),
            };
            self.add(kind, name, Some(block), named);
        }
    }

    fn add(&mut self, kind: NameKind, name: &str, declares: Option<Block>, node: &Node) {
        self.add_in("", kind, name, declares, (node.line(), node.column()));
    }

    /// Adds a name at a line and column, from 1.
    fn add_in(
        &mut self,
        list: &str,
        kind: NameKind,
        name: &str,
        declares: Option<Block>,
        (line, column): (usize, usize),
    ) {
        self.all.push(Occurrence {
            kind,
            list: list.to_owned(),
            name: name.to_owned(),
            declares,
            within: None,
            line,
            column,
        });
    }

    /// The declared names of a kind, without duplicates, in document order.
    pub fn declared(&self, kind: NameKind) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for one in self
            .all
            .iter()
            .filter(|one| one.declares.is_some() && one.kind == kind)
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

    /// All locations of the name at a position.
    fn same(&self, text: &Text, at: Position) -> Vec<(&Occurrence, Range)> {
        let Some(meant) = self.at(text, at) else {
            return Vec::new();
        };
        let same = self.all.iter().filter(|one| one.is_same(meant));
        same.filter_map(|one| Some((one, one.range(text)?)))
            .collect()
    }

    pub fn definition(&self, text: &Text, at: Position, uri: &str) -> Value {
        let same = self.same(text, at);
        let declared = same.iter().filter(|(one, _)| one.declares.is_some());
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

    /// The edits that rename the name at a position.
    pub fn rename(&self, text: &Text, at: Position, name: &str) -> Result<Value, String> {
        let Some(meant) = self.at(text, at) else {
            return Err("there is no name here".to_owned());
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
        let is_taken = |one: &Occurrence| {
            one.declares.is_some()
                && (one.kind, one.list.as_str(), one.name.as_str())
                    == (meant.kind, meant.list.as_str(), name)
        };
        if self.all.iter().any(is_taken) {
            return Err(format!("'{name}' already exists"));
        }
        let same = self.same(text, at);
        if self.all.iter().filter(|one| one.is_same(meant)).count() > same.len() {
            return Err(format!(
                "'{}' is also written in another form, on several lines or with escapes: write it plainly there first",
                meant.name
            ));
        }
        Ok(same
            .iter()
            .map(|(_, range)| json!({"range": range, "newText": name}))
            .collect())
    }

    pub fn symbols(&self, text: &Text) -> Value {
        let symbols = self.all.iter().filter_map(|one| {
            let (block, name) = (one.declares?, one.range(text)?);
            let (symbol, range) = (block.symbol, block.range(text));
            Some(json!({"name": one.name, "kind": symbol, "range": range, "selectionRange": name}))
        });
        symbols.collect()
    }

    /// The state at a position. Of nested states, the inner one.
    pub fn state_at(&self, text: &Text, at: Position) -> Option<&str> {
        let place = text.place(at);
        let around = self.all.iter().filter(|one| {
            one.declares.is_some_and(|block| {
                one.kind == NameKind::State
                    && (block.line, block.column) <= place
                    && place.0 <= block.last_line
            })
        });
        let begin = |one: &&Occurrence| one.declares.map(|block| (block.line, block.column));
        around.max_by_key(begin).map(|one| one.name.as_str())
    }
}

impl Block {
    /// Excludes empty lines at the end.
    fn range(&self, text: &Text) -> Range {
        let start = text.position(text.offset(self.line, self.column));
        let mut last = self.last_line.min(text.end().line + 1);
        while last > self.line && text.line(last - 1).trim().is_empty() {
            last -= 1;
        }
        let end = text.position(text.offset(last, usize::MAX));
        Range { start, end }
    }
}

impl Occurrence {
    fn is_same(&self, other: &Occurrence) -> bool {
        self.kind == other.kind && self.list == other.list && self.name == other.name
    }

    /// The range of the name itself; `None` for a text with escapes or on several lines.
    fn range(&self, text: &Text) -> Option<Range> {
        if let Some(begin) = self.within {
            let scalar = Scalar::at(text.as_str(), text.offset(self.line, self.column));
            let place = scalar.place(begin..begin + self.name.len())?;
            let is_name = text.as_str().get(place.clone()) == Some(self.name.as_str());
            return is_name.then(|| text.between(place));
        }
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
