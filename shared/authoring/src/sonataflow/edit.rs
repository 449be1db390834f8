//! Changes of a document's text that keep everything else, proved by reading the result.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use swirl_documents::source::{self, Limits, Member, Node, Notation, Written, written};
use swirl_model::Data;

/// A line and a column, from 1.
type Position = (usize, usize);

/// A replacement in the text.
#[derive(Debug, Clone)]
pub(super) struct Edit {
    /// The byte range.
    pub place: Range<usize>,
    /// The byte at which the changed value or key begins.
    pub from: usize,
    pub new: String,
    pub message: String,
    /// Where the value or key stands that becomes another.
    at: Position,
    effect: Effect,
}

/// The meaning of an edit, by which its result is checked.
#[derive(Debug, Clone)]
enum Effect {
    /// The value becomes another.
    Value(Data),
    /// The list gets further items.
    Items(Vec<String>),
    /// The member with this key is gone.
    Gone,
    /// The object gets a member before this key.
    Added(&'static str, Data),
}

/// The text of a document, with the places of its scalars.
pub(super) struct Source<'t> {
    pub text: &'t str,
    pub is_json: bool,
    lines: Vec<usize>,
    scalars: BTreeMap<Position, Written>,
}

impl<'t> Source<'t> {
    pub fn new(text: &'t str) -> Source<'t> {
        let bytes = text.as_bytes();
        let is_end = |at: usize| match bytes[at] {
            b'\n' => true,
            b'\r' => bytes.get(at + 1) != Some(&b'\n'),
            _ => false,
        };
        let ends = (0..bytes.len()).filter(|at| is_end(*at));
        let is_json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        Source {
            text,
            is_json,
            lines: std::iter::once(0).chain(ends.map(|at| at + 1)).collect(),
            scalars: match is_json {
                true => BTreeMap::new(),
                false => written(text),
            },
        }
    }

    /// The byte at a line and a column.
    fn at(&self, (line, column): Position) -> Option<usize> {
        let start = *self.lines.get(line.checked_sub(1)?)?;
        let rest = &self.text[start..];
        let mut columns = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
        Some(start + columns.nth(column.checked_sub(1)?)?)
    }

    /// The line of a byte, from 0.
    fn line_of(&self, byte: usize) -> usize {
        self.lines.partition_point(|start| *start <= byte) - 1
    }

    /// The line and column of a byte, from 1.
    pub fn position(&self, byte: usize) -> Position {
        let line = self.line_of(byte);
        let column = self.text[self.lines[line]..byte].chars().count() + 1;
        (line + 1, column)
    }

    /// Where a scalar stands, with its quotes.
    fn scalar(&self, node: &Node) -> Option<Written> {
        let position = (node.line(), node.column());
        if !self.is_json {
            let mut written = self.scalars.get(&position).cloned()?;
            // The end of a block is where the next key begins.
            let content = self.text[written.bytes.clone()].trim_end();
            written.bytes.end = written.bytes.start + content.len();
            return Some(written);
        }
        let begin = self.at(position)?;
        let rest = &self.text[begin..];
        let (length, notation) = match rest.starts_with('"') {
            false => (node.raw().len(), Notation::Plain),
            true => {
                let mut escaped = false;
                let end = rest.char_indices().skip(1).find(|(_, c)| {
                    let ends = *c == '"' && !escaped;
                    escaped = *c == '\\' && !escaped;
                    ends
                });
                (end?.0 + 1, Notation::Quoted)
            }
        };
        let bytes = begin..begin + length;
        Some(Written { notation, bytes })
    }

    /// Changes a text. White space around it stays, and a block stays a block.
    pub fn text(
        &self,
        node: &Node,
        message: &str,
        change: impl Fn(&str) -> Option<String>,
    ) -> Option<Edit> {
        let around = |text: &str| -> Option<String> {
            let inner = text.trim();
            let start = text.len() - text.trim_start().len();
            let (before, after) = (&text[..start], &text[start + inner.len()..]);
            Some(format!("{before}{}{after}", change(inner)?))
        };
        let written = self.scalar(node)?;
        let value = around(node.as_str()?)?;
        let new = match written.notation {
            Notation::Block => around(&self.text[written.bytes.clone()])?,
            Notation::Plain | Notation::Quoted => quoted(&value),
        };
        Some(Edit {
            from: written.bytes.start,
            place: written.bytes,
            new,
            message: message.to_owned(),
            at: (node.line(), node.column()),
            effect: Effect::Value(Data::string(value)),
        })
    }

    /// Replaces a scalar by a value, `new` as it is written.
    pub fn value(&self, node: &Node, new: &str, value: Data, message: &str) -> Option<Edit> {
        let written = self.scalar(node)?;
        (written.notation != Notation::Block).then(|| Edit {
            from: written.bytes.start,
            place: written.bytes,
            new: new.to_owned(),
            message: message.to_owned(),
            at: (node.line(), node.column()),
            effect: Effect::Value(value),
        })
    }

    /// A scalar's text as it can be written within braces.
    pub fn within_braces(&self, node: &Node) -> Option<String> {
        let written = self.scalar(node)?;
        let text = node.as_str()?;
        Some(match written.notation {
            Notation::Quoted if !self.text[written.bytes.clone()].contains(['\n', '\r']) => {
                self.text[written.bytes].to_owned()
            }
            _ => self.word(text),
        })
    }

    /// A text as it can be written within braces, without quotes if it doesn't need them.
    fn word(&self, text: &str) -> String {
        let plain = format!("[{text}]");
        let limits = Limits::default();
        let is_plain = !self.is_json
            && source::parse(plain.as_bytes(), &limits).is_ok_and(|list| {
                let items = list.items().unwrap_or_default();
                matches!(items, [one] if one.as_str() == Some(text))
            });
        match is_plain {
            true => text.to_owned(),
            false => quoted(text),
        }
    }

    /// A list of texts in brackets.
    pub fn list(&self, items: &[String]) -> String {
        let items: Vec<String> = items.iter().map(|item| self.word(item)).collect();
        format!("[{}]", items.join(", "))
    }

    /// Adds texts to a list.
    pub fn items(&self, list: &Node, new: Vec<String>, message: &str) -> Option<Edit> {
        let begin = self.at((list.line(), list.column()))?;
        let words: Vec<String> = new.iter().map(|item| self.word(item)).collect();
        let last = list.items()?.last();
        let in_brackets = self.text[begin..].starts_with('[');
        let (at, text) = match last {
            None if in_brackets => (begin + 1, words.join(", ")),
            None => return None,
            Some(last) => {
                let end = self.scalar(last)?.bytes.end;
                if in_brackets {
                    (end, format!(", {}", words.join(", ")))
                } else {
                    // `- `, with the indentation before it.
                    let start = self.scalar(last)?.bytes.start;
                    let dash = &self.text[self.lines[self.line_of(start)]..start];
                    if dash.trim() != "-" {
                        return None;
                    }
                    let rest = &self.text[end..];
                    let line = rest.find(['\n', '\r']).unwrap_or(rest.len());
                    let lines = words.iter().map(|word| format!("\n{dash}{word}"));
                    (end + line, lines.collect())
                }
            }
        };
        Some(Edit {
            place: at..at,
            from: begin,
            new: text,
            message: message.to_owned(),
            at: (list.line(), list.column()),
            effect: Effect::Items(new),
        })
    }

    /// Inserts a member before another, `new` as it is written.
    pub fn before(
        &self,
        member: &Member,
        (key, new, value): (&'static str, &str, Data),
        message: &str,
    ) -> Option<Edit> {
        let at = key_of(member);
        let begin = self.at(at)?;
        let indent = &self.text[self.lines[at.0 - 1]..begin];
        // A key that begins its line, also behind the dashes of a list.
        let is_block = !self.is_json && indent.chars().all(|c| matches!(c, ' ' | '-'));
        let new = match (self.is_json, is_block) {
            (true, _) => format!("\"{key}\": {new}, "),
            (false, false) => format!("{key}: {new}, "),
            (false, true) => format!("{key}: {new}\n{}", " ".repeat(indent.len())),
        };
        Some(Edit {
            place: begin..begin,
            from: begin,
            new,
            message: message.to_owned(),
            at,
            effect: Effect::Added(key, value),
        })
    }

    /// Removes a member that has a scalar.
    pub fn without(&self, holder: &Node, member: &Member, message: &str) -> Option<Edit> {
        let at = key_of(member);
        let begin = self.at(at)?;
        let end = self.scalar(member.value())?.bytes.end;
        let start = self.lines[at.0 - 1];
        let rest = &self.text[end..];
        let line = rest.find('\n').map_or(rest, |at| &rest[..=at]);
        let keys = holder.members()?.iter().map(key_of);
        let next = keys.filter(|key| *key > at).min();
        let is_block = !self.is_json && self.text[start..begin].trim().is_empty();
        let place = if is_block && line.trim().is_empty() {
            start..end + line.len()
        } else if is_block && line.trim_start().starts_with('#') {
            begin..end + line.len() - line.trim_start().len()
        } else if let Some(next) = next {
            begin..self.at(next)?
        } else {
            self.text[..begin].rfind(',')?..end
        };
        Some(Edit {
            place,
            from: begin,
            new: String::new(),
            message: message.to_owned(),
            at,
            effect: Effect::Gone,
        })
    }

    /// The line above which the comment for a place goes: no text reaches over its beginning.
    fn comment_line(&self, byte: usize) -> usize {
        let mut line = self.line_of(byte);
        for scalar in self.scalars.values() {
            let content = self.text[scalar.bytes.clone()].trim_end();
            let first = match scalar.notation {
                Notation::Plain | Notation::Quoted => self.line_of(scalar.bytes.start),
                Notation::Block => self.header(scalar.bytes.start),
            };
            let last = self.line_of(scalar.bytes.start + content.len());
            if first < line && line <= last {
                line = first;
            }
        }
        line
    }

    /// The line of the `|` of a block, whose content begins at a byte. Empty lines may be between.
    fn header(&self, content: usize) -> usize {
        let before = self.text[..self.lines[self.line_of(content)]].trim_end();
        self.line_of(before.len())
    }
}

fn key_of(member: &Member) -> Position {
    (member.key_line(), member.key_column())
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A text with, for each of its bytes and for its end, the byte of the original that it comes from.
#[derive(Debug, Clone)]
pub(super) struct Tracked {
    pub text: String,
    origins: Vec<usize>,
}

impl Tracked {
    pub fn new(text: &str) -> Tracked {
        Tracked {
            text: text.to_owned(),
            origins: (0..=text.len()).collect(),
        }
    }

    pub fn origin(&self, byte: usize) -> usize {
        self.origins[byte]
    }

    /// Replaces parts of the text: ranges in order that don't overlap.
    fn replaced(&self, parts: &[(Range<usize>, String)]) -> Tracked {
        let mut text = String::with_capacity(self.text.len());
        let mut origins = Vec::with_capacity(self.origins.len());
        let mut at = 0;
        for (place, new) in parts {
            text.push_str(&self.text[at..place.start]);
            origins.extend_from_slice(&self.origins[at..place.start]);
            text.push_str(new);
            origins.resize(origins.len() + new.len(), self.origins[place.start]);
            at = place.end;
        }
        text.push_str(&self.text[at..]);
        origins.extend_from_slice(&self.origins[at..]);
        Tracked { text, origins }
    }
}

/// Applies those of the edits that mean what they should, and returns them with the text.
pub(super) fn apply(tracked: &Tracked, root: &Node, mut edits: Vec<Edit>) -> (Tracked, Vec<Edit>) {
    edits.sort_by_key(|edit| (edit.place.start, edit.place.end));
    let mut end = 0;
    // An alias has the place of its anchor, so the same edit may be there twice.
    let mut inserted = None;
    edits.retain(|edit| {
        let is_free = edit.place.start >= end && inserted != Some(edit.place.clone());
        if is_free {
            end = edit.place.end;
            inserted = Some(edit.place.clone());
        }
        is_free
    });
    let source = Source::new(&tracked.text);
    let applied = right_ones(&source, tracked, root, &edits);
    let text = written_with(&source, tracked, &applied);
    (text, applied)
}

/// All edits if their result is right, else those of each half for which it is.
fn right_ones(source: &Source<'_>, tracked: &Tracked, root: &Node, edits: &[Edit]) -> Vec<Edit> {
    let is_right = |edits: &[Edit]| {
        let text = written_with(source, tracked, edits).text;
        let effects: HashMap<Position, &Effect> =
            edits.iter().map(|edit| (edit.at, &edit.effect)).collect();
        source::parse(text.as_bytes(), &Limits::default())
            .is_ok_and(|after| after.to_data() == expected(root, &effects))
    };
    if edits.is_empty() || is_right(edits) {
        return edits.to_vec();
    }
    let (first, second) = edits.split_at(edits.len() / 2);
    if first.is_empty() {
        return Vec::new();
    }
    let mut found = right_ones(source, tracked, root, first);
    let alone = found.len();
    found.extend(right_ones(source, tracked, root, second));
    if !is_right(&found) {
        found.truncate(alone);
    }
    found
}

/// The text with the edits; in YAML with a comment above each line that changes.
fn written_with(source: &Source<'_>, tracked: &Tracked, edits: &[Edit]) -> Tracked {
    let newline = match source.text.contains("\r\n") {
        true => "\r\n",
        false => "\n",
    };
    let mut parts: Vec<(Range<usize>, String)> = Vec::new();
    if !source.is_json {
        let comments = edits.iter().map(|edit| {
            let line = source.comment_line(edit.place.start);
            (line, edit.message.as_str())
        });
        for (line, message) in comments.collect::<BTreeSet<_>>() {
            let start = source.lines[line];
            let rest = &source.text[start..];
            let indent = &rest[..rest.len() - rest.trim_start_matches(' ').len()];
            let comment = format!("{indent}# swirl migrate: {message}{newline}");
            parts.push((start..start, comment));
        }
    }
    for edit in edits {
        parts.push((
            edit.place.clone(),
            edit.new.replace("\r\n", "\n").replace('\n', newline),
        ));
    }
    // At one position the comment comes first: sorting keeps the order.
    parts.sort_by_key(|(place, _)| (place.start, place.end));
    tracked.replaced(&parts)
}

/// The value that a document must have after its edits.
fn expected(node: &Node, effects: &HashMap<Position, &Effect>) -> Data {
    match effects.get(&(node.line(), node.column())) {
        Some(Effect::Value(value)) if node.items().is_none() && node.members().is_none() => {
            return value.clone();
        }
        Some(Effect::Items(new)) if node.items().is_some() => {
            let old = node.items().unwrap_or_default();
            let old = old.iter().map(|item| expected(item, effects));
            let new = new.iter().map(|item| Data::string(item.as_str()));
            return Data::array(old.chain(new).collect());
        }
        _ => {}
    }
    if let Some(items) = node.items() {
        return Data::array(items.iter().map(|item| expected(item, effects)).collect());
    }
    let Some(members) = node.members() else {
        return node.to_data();
    };
    let mut data = Data::object();
    for member in members {
        match effects.get(&key_of(member)) {
            Some(Effect::Gone) => continue,
            Some(Effect::Added(key, value)) => data.set(key, value.clone()),
            _ => {}
        }
        data.set(member.key(), expected(member.value(), effects));
    }
    data
}
