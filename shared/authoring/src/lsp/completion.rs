//! Completions at the cursor.
//!
//! Only the reader knows which properties an object has and which words a property accepts. So a placeholder is put at
//! the cursor, and the reader's finding about it has the names. Completions are therefore exactly the accepted names,
//! in each edition. The reader gets only the path to the cursor, so a long document costs no more than a short one.

use serde_json::{Value, json};
use swirl_documents::codes;
use swirl_documents::diagnostic::Diagnostic;
use swirl_documents::source::Node;
use swirl_model::Data;
use swirl_spec::edition::{self, Edition};
use swirl_spec::resource::{MapResources, Resources};
use swirl_spec::{Options, Reading, read_as, vocabulary};

use super::declared::{has_tasks, names_of};
use super::expressions::key_and_value;
use super::functions::Grpc;
use super::names::{Names, referred};
use super::text::{Position, Text};
use super::{functions, properties, unfinished};

/// Unlike any word of the language, so that no finding suggests another word for it.
const STAND_IN: &str = "zzqqxxkkww";

const PROPERTY: u8 = 10;
const WORD: u8 = 12;
const NAME: u8 = 18;

/// The completions for the word at a position. `edition` is the edition that was last recognised for the document.
pub fn complete(
    text: &Text,
    names: &Names,
    edition: Option<Edition>,
    resources: &dyn Resources,
    at: Position,
) -> Value {
    let typed = Typed::at(text, at);
    let mut found = (PROPERTY, Vec::new());
    if !typed.is_value {
        found.1 = typed.properties(text, edition, resources);
    }
    if found.1.is_empty() {
        // The apparent beginning of a property may be an item of a list.
        found = typed.values(text, names, edition, resources);
    }
    let (kind, words) = found;
    typed.items(text, words, kind, edition)
}

/// The word that is being typed.
struct Typed {
    line: usize,
    /// The typed part of the word without its quotes, as bytes of the line.
    start: usize,
    end: usize,
    cursor: Position,
    quote: Option<char>,
    /// It is the value of a property; otherwise it may be a property's name.
    is_value: bool,
    /// The property already has its colon.
    has_value: bool,
}

impl Typed {
    fn at(text: &Text, at: Position) -> Typed {
        let line = text.line(at.line);
        let before = text.before(at);
        let part = before.rfind(['{', ',', '[']).map_or(0, |at| at + 1);
        let bare = |from: usize| {
            let rest = &before[from..];
            from + rest.len() - rest.trim_start_matches([' ', '-']).len()
        };
        let mut start = bare(part);
        let colon = before[start..].find(':').map(|at| start + at + 1);
        let is_value = colon.is_some() || before[..part].ends_with('[');
        if let Some(colon) = colon {
            start = colon + before[colon..].len() - before[colon..].trim_start().len();
        }
        let quote = before[start..].chars().next();
        let quote = quote.filter(|c| matches!(c, '"' | '\''));
        start += quote.map_or(0, char::len_utf8);
        let rest = &line[before.len()..];
        let end = match quote {
            Some(quote) => rest.find(quote),
            None => rest.find([',', '}', ']', ':', '#', ' ']),
        };
        let end = before.len() + end.unwrap_or(rest.trim_end().len());
        let behind = line[end..].trim_start_matches(['"', '\'']).trim_start();
        Typed {
            line: at.line,
            start: start.min(before.len()),
            end,
            cursor: at,
            quote,
            is_value,
            has_value: behind.starts_with(':'),
        }
    }

    fn items(&self, text: &Text, words: Vec<String>, kind: u8, edition: Option<Edition>) -> Value {
        let range = json!({
            "start": text.range(self.line, self.start, self.start).start,
            "end": self.cursor,
        });
        let is_json = text.as_str().trim_start().starts_with('{');
        let rows = words.into_iter().map(|word| {
            let about = properties::about_in(edition, &word).filter(|_| kind == PROPERTY);
            let mut new = match (is_json, self.quote) {
                (true, None) if !matches!(word.as_str(), "true" | "false") => format!("\"{word}\""),
                _ => word.clone(),
            };
            if kind == PROPERTY && !self.has_value && self.quote.is_none() {
                new.push_str(": ");
            }
            json!({
                "label": word,
                "kind": kind,
                "filterText": word,
                "textEdit": {"range": range, "newText": new},
                "documentation": about,
            })
        });
        rows.collect()
    }

    /// The document with the placeholder instead of the word, as a property or as a value.
    fn stand_in(&self, text: &Text, is_value: bool) -> Option<CompletionDocument> {
        let line = text.line(self.line);
        let quote = self.quote.map_or(0, char::len_utf8);
        let before = &line[..self.start - quote];
        let after = &line[self.end..];
        let after = match self.quote {
            Some(quote) => after.strip_prefix(quote).unwrap_or(after),
            None => after,
        };
        let is_json = text.as_str().trim_start().starts_with('{');
        let behind = after.trim_start();
        let word = match is_value || self.has_value {
            true => format!("\"{STAND_IN}\""),
            // Lines indented below belong to the property.
            false if !is_json && behind.is_empty() => format!("\"{STAND_IN}\":"),
            // An extra comma does no harm, but a missing one does.
            false if is_json && behind.is_empty() => format!("\"{STAND_IN}\": 0,"),
            false => format!("\"{STAND_IN}\": 0"),
        };
        let is_apart = before.is_empty() || before.ends_with([' ', '{', '[', ',']);
        let space = if is_apart { "" } else { " " };
        let document = with_line(text, self.line, &format!("{before}{space}{word}{after}"));
        let root = unfinished::read(&document, self.line)?;
        let mut pointer = None;
        find(&root, &mut pointer);
        Some(CompletionDocument {
            pointer: pointer?,
            root,
        })
    }

    fn properties(
        &self,
        text: &Text,
        edition: Option<Edition>,
        resources: &dyn Resources,
    ) -> Vec<String> {
        let Some(asked) = self.stand_in(text, false) else {
            return Vec::new();
        };
        let Some(edition) = edition.or_else(|| asked.edition()) else {
            return Vec::new();
        };
        let holder = asked.holder();
        let present = asked.root.at(holder).and_then(Node::members);
        let present = present.unwrap_or_default();
        let call = ["/arguments", "/parameters"]
            .into_iter()
            .find_map(|end| asked.root.at(holder.strip_suffix(end)?));
        let of_function = asked.of_function(holder);
        let mut all = match (holder, call) {
            _ if of_function.is_some() => of_function.unwrap_or_default(),
            ("", _) => vocabulary::of_definition(edition)
                .into_iter()
                .map(str::to_owned)
                .collect(),
            (_, Some(call)) => functions::arguments(&asked.root, call, resources),
            _ if edition == Edition::V1_0 && asked.is_task_without_kind() => {
                vocabulary::of_task().map(str::to_owned).collect()
            }
            _ => asked.said(edition, codes::UNKNOWN_PROPERTY),
        };
        all.retain(|word| present.iter().all(|member| member.key() != word));
        all
    }

    fn values(
        &self,
        text: &Text,
        names: &Names,
        edition: Option<Edition>,
        resources: &dyn Resources,
    ) -> (u8, Vec<String>) {
        let own = |declared: Vec<&str>| declared.into_iter().map(str::to_owned).collect();
        let Some(asked) = self.stand_in(text, true) else {
            // The kind of name that the property refers to may be known even if the text can't be parsed.
            let line = &text.line(self.line)[..self.start];
            let kind = key_and_value(line).and_then(|(key, _)| referred(key));
            return (
                NAME,
                kind.map_or_else(Vec::new, |kind| own(names.declared(kind))),
            );
        };
        let steps = asked.pointer.rsplit('/');
        let mut keys = steps.filter(|step| step.parse::<usize>().is_err());
        let key = keys.next().unwrap_or_default();
        let written = names_of(&asked.root);
        if has_tasks(&asked.root)
            && let Some(all) = written.instead_of(STAND_IN)
        {
            return (NAME, all);
        }
        if let Some(kind) = referred(key) {
            let declared = written.declared(kind);
            if !declared.is_empty() {
                return (NAME, own(declared));
            }
        }
        if key == "operationId" {
            let with = asked.root.at(asked.holder());
            let all = with.map(|with| functions::operations_of_call(with, resources));
            return (NAME, all.unwrap_or_default());
        }
        let with = |path: &str| asked.root.at(path);
        let is_call = |node: &Node| node.get("proto").is_some();
        if key == "method"
            && let Some(call) = with(asked.holder()).filter(|node| is_call(node))
        {
            return (NAME, functions::of_grpc(call, Grpc::Method, resources));
        }
        if key == "name"
            && let Some(call) = asked.holder().strip_suffix("/service").and_then(with)
            && is_call(call)
        {
            return (NAME, functions::of_grpc(call, Grpc::Service, resources));
        }
        if key == "operation"
            && let Some(call) = with(asked.holder()).filter(|node| node.get("document").is_some())
        {
            return (NAME, functions::operations_of_call(call, resources));
        }
        if key == "operation" {
            let typed = &text.before(self.cursor)[self.start..];
            return (NAME, functions::operations(&asked.root, typed, resources));
        }
        let Some(edition) = edition.or_else(|| asked.edition()) else {
            return (WORD, Vec::new());
        };
        let mut words = asked.said(edition, codes::UNKNOWN_VALUE);
        if !words.is_empty() {
            let further = vocabulary::of_property(edition, key).into_iter();
            words.extend(further.map(str::to_owned));
            words.retain(|word| asked.takes(edition, word));
            words.sort();
            words.dedup();
            return (WORD, words);
        }
        // A flag.
        (WORD, asked.said(edition, codes::WRONG_TYPE))
    }
}

/// A document that contains the placeholder.
struct CompletionDocument {
    root: Node,
    pointer: String,
}

impl CompletionDocument {
    /// The pointer to the object with the placeholder.
    fn holder(&self) -> &str {
        let holder = self.pointer.rsplit_once('/');
        holder.map_or("", |(holder, _)| holder)
    }

    /// The members that the called function expects, if the placeholder is in the `with` of a task that calls one.
    fn of_function(&self, holder: &str) -> Option<Vec<String>> {
        let task = self.root.at(holder.strip_suffix("/with")?)?;
        functions::input(&self.root, task)
    }

    /// Whether the placeholder is in a task that doesn't say yet what it does. The reader suggests no properties then.
    fn is_task_without_kind(&self) -> bool {
        let (all, pointer) = self.read(Edition::V1_0, STAND_IN);
        let holder = pointer.rsplit_once('/').map_or("", |(holder, _)| holder);
        all.iter().any(|found| {
            let words = found.words.iter().map(String::as_str);
            found.pointer == holder
                && found.code == codes::MISSING_PROPERTY
                && words.eq(vocabulary::kinds_of_task())
        })
    }

    fn edition(&self) -> Option<Edition> {
        edition::detect(&self.root)
            .ok()
            .map(|detected| detected.edition)
    }

    /// The words that the reader suggests instead of the placeholder.
    fn said(&self, edition: Edition, code: codes::Code) -> Vec<String> {
        let found = self.with(edition, STAND_IN).into_iter();
        let mut words = found
            .filter(|found| found.code == code)
            .map(|found| found.words);
        let words = words.find(|words| !words.is_empty());
        words.map_or_else(Vec::new, |words| words.to_vec())
    }

    /// Whether the reader accepts a word instead of the placeholder.
    fn takes(&self, edition: Edition, word: &str) -> bool {
        let refuses = [codes::UNKNOWN_VALUE, codes::OTHER_EDITIONS_NAME];
        let said = self.with(edition, word);
        said.iter().all(|found| !refuses.contains(&found.code))
    }

    /// The reader's findings about a word instead of the placeholder.
    fn with(&self, edition: Edition, word: &str) -> Vec<Diagnostic> {
        let (mut all, pointer) = self.read(edition, word);
        all.retain(|found| found.pointer == pointer);
        all
    }

    /// The reader's findings with a word instead of the placeholder, and the pointer to that word.
    fn read(&self, edition: Edition, word: &str) -> (Vec<Diagnostic>, String) {
        let steps: Vec<&str> = self.pointer.split('/').skip(1).collect();
        let (way, pointer) = way(&self.root, &steps);
        let resources = MapResources::default();
        let document = way.to_string().replace(STAND_IN, word);
        let reading = read_as(
            edition,
            document.as_bytes(),
            &resources,
            &Options::default(),
        );
        let all = reading.map(|Reading { diagnostics, .. }| diagnostics.into_vec());
        (all.unwrap_or_default(), pointer)
    }
}

/// The pointer to the placeholder, whether it is a value or a property's name.
fn find(node: &Node, found: &mut Option<String>) {
    if node.as_str() == Some(STAND_IN) {
        *found = Some(node.pointer().to_owned());
    }
    for item in node.items().unwrap_or_default() {
        find(item, found);
    }
    for member in node.members().unwrap_or_default() {
        if member.key() == STAND_IN {
            *found = Some(member.value().pointer().to_owned());
        }
        find(member.value(), found);
    }
}

/// Reduces a document to the path to a location and the siblings of the location. It keeps scalars elsewhere, because
/// they determine the types of the surrounding objects. Also returns the pointer to the location in the result, in
/// which lists have one item.
fn way(node: &Node, steps: &[&str]) -> (Data, String) {
    let Some((step, rest)) = steps.split_first() else {
        return (node.to_data(), String::new());
    };
    if let Some(items) = node.items() {
        let item = step
            .parse::<usize>()
            .ok()
            .and_then(|index| items.get(index));
        let (item, below) = item.map_or((Data::NULL, String::new()), |item| way(item, rest));
        return (Data::array(vec![item]), format!("/0{below}"));
    }
    let mut object = Data::object();
    let mut pointer = String::new();
    let own = step.replace("~1", "/").replace("~0", "~");
    for member in node.members().unwrap_or_default() {
        let value = member.value();
        if member.key() == own {
            let (data, below) = way(value, rest);
            object.set(member.key(), data);
            pointer = format!("/{step}{below}");
        } else if rest.is_empty() || (value.items().is_none() && value.members().is_none()) {
            object.set(member.key(), value.to_data());
        } else if let "for" | "listen" = member.key() {
            // A task of this kind may also have a 'while' or a 'foreach'.
            object.set(member.key(), value.to_data());
        } else if member.key() == "try" {
            object.set("try", Data::array(Vec::new()));
        }
    }
    (object, pointer)
}

fn with_line(text: &Text, line: usize, new: &str) -> String {
    let start = text.offset(line + 1, 1);
    let end = start + text.line(line).len();
    let whole = text.as_str();
    let mut document = String::with_capacity(whole.len() + new.len());
    document.push_str(&whole[..start]);
    document.push_str(new);
    document.push_str(&whole[end..]);
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_keys() {
        for (before, is_value, word) in [
            ("  transition: ", true, ""),
            ("  - {name: A, type: in", true, "in"),
            ("  - functionRef: \"f", true, "f"),
            ("  eventRefs: [a, b", false, "b"),
            ("  eventRefs: [a", true, "a"),
            ("  - {name: A, ty", false, "ty"),
            ("  - na", false, "na"),
            ("    \"tr", false, "tr"),
            ("  tr", false, "tr"),
            ("", false, ""),
        ] {
            let text = Text::new(before.to_owned());
            let typed = Typed::at(&text, text.end());
            assert_eq!(typed.is_value, is_value, "{before}");
            assert_eq!(&before[typed.start..typed.end], word, "{before}");
        }
    }
}
