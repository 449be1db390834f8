//! Rewrites the forms of SonataFlow (Kogito) that are refused here, or that mean something else: `swirl migrate --from
//! sonataflow`.
//!
//! The text is changed in place, so comments and layout stay. In YAML each change gets a comment above its line. A form
//! is rewritten only if its meaning is certain; the rest is left to the findings of `swirl validate`.

use std::collections::BTreeSet;

use swirl_documents::codes;
use swirl_documents::diagnostic::Diagnostic;
use swirl_documents::source::{self, Limits, Node};
use swirl_spec::edition::Edition;
use swirl_spec::resource::{MapResources, classpath, plain_name};
use swirl_spec::{Options, Reading};

/// How often a document is read again after it was rewritten. One form may hide another.
const ROUNDS_MAX: usize = 5;

/// A rewritten document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    pub text: String,
    /// In the order of the original document.
    pub changes: Vec<Change>,
}

/// A place that was rewritten, in the original document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    pub line: usize,
    pub message: String,
}

/// A replacement in the text.
struct Edit {
    /// The byte range.
    begin: usize,
    end: usize,
    new: String,
    message: String,
    /// The line, from 0, above which the comment goes.
    line: usize,
}

/// Rewrites a document. `changes` is empty if it has no such form.
///
/// # Errors
/// The document is neither YAML nor JSON.
pub fn rewrite(text: &str) -> Result<Rewritten, Diagnostic> {
    let mut rewritten = Rewritten {
        text: text.to_owned(),
        changes: Vec::new(),
    };
    for _ in 0..ROUNDS_MAX {
        let root = source::parse(rewritten.text.as_bytes(), &Limits::default())?;
        let reading = swirl_spec::read(
            rewritten.text.as_bytes(),
            &MapResources::default(),
            &Options::default(),
        );
        if !is_of_sonataflow(&reading) {
            break;
        }
        let mut edits = edits(&rewritten.text, &root, &reading);
        // Only names that the rewriting itself has made.
        if edits.is_empty() && !rewritten.changes.is_empty() {
            edits.extend(missing_secrets(&Source::new(&rewritten.text), &root));
        }
        if edits.is_empty() {
            break;
        }
        apply(&mut rewritten, edits);
    }
    rewritten.changes.sort();
    rewritten.changes.dedup();
    Ok(rewritten)
}

/// SonataFlow runs edition 0.8, and documents for it often state 0.7 or nothing.
fn is_of_sonataflow(reading: &Reading) -> bool {
    let edition = reading.edition.as_ref().map(|detected| detected.edition);
    edition.is_some_and(|edition| (Edition::V0_6..=Edition::V0_8).contains(&edition))
}

fn edits(text: &str, root: &Node, reading: &Reading) -> Vec<Edit> {
    let source = Source::new(text);
    let mut edits = Vec::new();
    let is_jq = root.get("expressionLang").and_then(Node::as_str) != Some("jsonpath");
    for finding in reading.diagnostics.iter() {
        let Some(node) = root.at(&finding.pointer) else {
            continue;
        };
        let Some(scalar) = node.as_str() else {
            continue;
        };
        let of_arguments = finding.pointer.ends_with("/arguments");
        let unmarked = finding.code == codes::EXPRESSION_NOT_MARKED
            || of_arguments && finding.code == codes::WRONG_TYPE;
        if unmarked && !scalar.contains("$SECRET.") {
            let new = marked(scalar, is_jq);
            let message = "an expression is marked with '${ }'";
            edits.extend(new.and_then(|new| source.scalar(node, &new, message)));
        }
    }
    scalars(root, &mut |node, scalar| {
        if scalar.contains("$SECRET.") {
            let new = scalar.replace("$SECRET.", "$SECRETS.");
            edits.extend(source.within(
                node,
                "$SECRET.",
                "$SECRETS.",
                &new,
                "secrets are '$SECRETS' here",
            ));
        } else if scalar.trim_start().starts_with("{{") && scalar.trim_end().ends_with("}}") {
            if let Some(new) = marked(scalar, is_jq) {
                edits.extend(source.scalar(node, &new, "an expression is marked with '${ }'"));
            }
        } else if classpath(scalar).is_some() {
            let new = plain_name(scalar).trim_start_matches('/').to_owned();
            edits.extend(source.scalar(node, &new, "a file is named relative to the definition"));
        }
    });
    for state in root.get("states").and_then(Node::items).unwrap_or_default() {
        of_state(&source, state, &mut edits);
    }
    edits.sort_by_key(|edit| edit.begin);
    let mut end = 0;
    edits.retain(|edit| {
        let is_free = edit.begin >= end;
        if is_free {
            end = edit.end;
        }
        is_free
    });
    edits
}

fn of_state(source: &Source<'_>, state: &Node, edits: &mut Vec<Edit>) {
    let kind = state.get("type").and_then(Node::as_str);
    if let Some(node) = state.get("defaultCondition")
        && let Some(name) = node.as_str()
    {
        let new = match source.is_json {
            true => format!("{{\"transition\": {}}}", serde_json::Value::from(name)),
            false => format!("{{transition: {name}}}"),
        };
        edits.extend(source.raw(
            node,
            &new,
            "'defaultCondition' is an object with a transition",
        ));
    }
    if kind == Some("parallel")
        && let Some(node) = state.get("numCompleted")
        && (node.as_i64() == Some(0) || node.as_str() == Some("0"))
    {
        let word = state.get("completionType").and_then(Node::as_str);
        if word == Some("atLeast") {
            let message = "'numCompleted' is 1 or more: the state goes on after the first branch";
            edits.extend(source.raw(node, "1", message));
        } else if let Some(member) = state.member("numCompleted") {
            let message = "'numCompleted' belongs to 'completionType: atLeast'";
            edits.extend(source.without(
                state,
                member.key_line(),
                member.key_column(),
                node,
                message,
            ));
        }
    }
    if kind == Some("operation")
        && state.get("actions").is_none()
        && let Some(member) = state.member("type")
    {
        let message = "an operation without actions has an empty list";
        let (key, list) = match source.is_json {
            true => ("\"actions\": ", "[]"),
            false => ("actions: ", "[]"),
        };
        edits.extend(source.before(
            member.key_line(),
            member.key_column(),
            &format!("{key}{list}"),
            message,
        ));
    }
}

/// The names of secrets that expressions use and `secrets` doesn't list.
fn missing_secrets(source: &Source<'_>, root: &Node) -> Option<Edit> {
    if root.get("secrets").is_some() {
        return None;
    }
    let names: BTreeSet<&str> = source
        .text
        .split("$SECRETS.")
        .skip(1)
        .map(|rest| {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            &rest[..end.unwrap_or(rest.len())]
        })
        .filter(|name| !name.is_empty())
        .collect();
    if names.is_empty() {
        return None;
    }
    let states = root.member("states")?;
    let message = "the secrets that the definition uses are listed";
    let new = match source.is_json {
        true => format!("\"secrets\": {}", serde_json::json!(names)),
        false => format!(
            "secrets: [{}]",
            names.into_iter().collect::<Vec<_>>().join(", ")
        ),
    };
    source.before(states.key_line(), states.key_column(), &new, message)
}

/// The text as a marked expression. `None` if its meaning isn't certain.
fn marked(text: &str, is_jq: bool) -> Option<String> {
    let text = text.trim();
    let inner = text
        .strip_prefix("{{")
        .and_then(|rest| rest.strip_suffix("}}"));
    let inner = inner.unwrap_or(text).trim();
    if !is_jq {
        // `$.[?(...)]` is no path: the dot belongs before a name.
        return Some(format!("${{ {} }}", inner.replace("$.[", "$[")));
    }
    let path = match inner.strip_prefix('$') {
        Some(rest)
            if rest.starts_with('.') && !rest.contains(['?', '@', '*']) && !rest.contains("..") =>
        {
            rest
        }
        Some(_) if inner.starts_with("$.") => return None,
        _ => inner,
    };
    Some(format!("${{ {path} }}"))
}

fn scalars<'n>(node: &'n Node, visit: &mut impl FnMut(&'n Node, &'n str)) {
    if let Some(text) = node.as_str() {
        visit(node, text);
    }
    for item in node.items().unwrap_or_default() {
        scalars(item, visit);
    }
    for member in node.members().unwrap_or_default() {
        scalars(member.value(), visit);
    }
}

/// The text of a document, by line.
struct Source<'t> {
    text: &'t str,
    lines: Vec<usize>,
    is_json: bool,
}

impl<'t> Source<'t> {
    fn new(text: &'t str) -> Source<'t> {
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        Source {
            text,
            lines: std::iter::once(0).chain(starts).collect(),
            is_json: text.trim_start().starts_with('{'),
        }
    }

    /// The byte at a line and a column, from 1.
    fn at(&self, line: usize, column: usize) -> Option<usize> {
        let start = *self.lines.get(line.checked_sub(1)?)?;
        let rest = self.text.get(start..)?;
        let rest = rest.split('\n').next().unwrap_or(rest);
        let mut columns = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
        Some(start + columns.nth(column.checked_sub(1)?)?)
    }

    /// The range of a scalar on one line, with its quotes.
    fn range(&self, node: &Node) -> Option<(usize, usize)> {
        let begin = self.at(node.line(), node.column())?;
        let rest = self.text[begin..].split('\n').next()?;
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let length = match quote {
            None => rest.starts_with(node.raw()).then(|| node.raw().len())?,
            Some(quote) => {
                let mut escaped = false;
                let mut chars = rest.char_indices().skip(1).peekable();
                loop {
                    let (at, c) = chars.next()?;
                    let doubled = c == '\'' && chars.peek().is_some_and(|(_, next)| *next == '\'');
                    if escaped {
                        escaped = false;
                    } else if quote == '\'' && doubled {
                        chars.next();
                    } else if quote == '"' && c == '\\' {
                        escaped = true;
                    } else if c == quote {
                        break at + 1;
                    }
                }
            }
        };
        Some((begin, begin + length))
    }

    /// Replaces a text by another one, in double quotes.
    fn scalar(&self, node: &Node, new: &str, message: &str) -> Option<Edit> {
        self.raw(node, &serde_json::Value::from(new).to_string(), message)
    }

    /// Replaces a scalar by text as it stands.
    fn raw(&self, node: &Node, new: &str, message: &str) -> Option<Edit> {
        let (begin, end) = self.range(node)?;
        Some(Edit {
            begin,
            end,
            new: new.to_owned(),
            message: message.to_owned(),
            line: node.line() - 1,
        })
    }

    /// Replaces a part of a text. A text of several lines keeps its form.
    fn within(&self, node: &Node, old: &str, part: &str, whole: &str, message: &str) -> Vec<Edit> {
        if self.range(node).is_some() {
            return self.scalar(node, whole, message).into_iter().collect();
        }
        let Some(begin) = self.at(node.line(), node.column()) else {
            return Vec::new();
        };
        let count = node.as_str().map_or(0, |text| text.matches(old).count());
        let found = self.text[begin..].match_indices(old).take(count);
        let edit = |(at, _)| Edit {
            begin: begin + at,
            end: begin + at + old.len(),
            new: part.to_owned(),
            message: message.to_owned(),
            // A comment inside the text would become a part of it.
            line: node.line() - 1,
        };
        found.map(edit).collect()
    }

    /// Inserts a member before the key at a line and a column.
    fn before(&self, line: usize, column: usize, member: &str, message: &str) -> Option<Edit> {
        let begin = self.at(line, column)?;
        let start = self.lines[line - 1];
        let indent = &self.text[start..begin];
        // A key that begins its line, also behind the dashes of a list.
        let is_block = !self.is_json && indent.chars().all(|c| matches!(c, ' ' | '-'));
        let separator = match is_block {
            true => format!("\n{}", " ".repeat(indent.chars().count())),
            false => ", ".to_owned(),
        };
        Some(Edit {
            begin,
            end: begin,
            new: format!("{member}{separator}"),
            message: message.to_owned(),
            line: line - 1,
        })
    }

    /// Removes a member that has a scalar.
    fn without(
        &self,
        holder: &Node,
        line: usize,
        column: usize,
        node: &Node,
        message: &str,
    ) -> Option<Edit> {
        let mut begin = self.at(line, column)?;
        let (_, mut end) = self.range(node)?;
        let start = self.lines[line - 1];
        let rest = &self.text[end..];
        let is_block = !self.is_json && self.text[start..begin].trim().is_empty();
        if is_block {
            begin = start;
            end += rest.find('\n').map_or(rest.len(), |at| at + 1);
        } else if let Some(after) = rest.trim_start().strip_prefix(',') {
            end += rest.len() - after.trim_start_matches(' ').len();
        } else if holder.members().is_some_and(|all| all.len() > 1) {
            begin = self.text[..begin].rfind(',')?;
        }
        Some(Edit {
            begin,
            end,
            new: String::new(),
            message: message.to_owned(),
            line: line - 1,
        })
    }
}

/// Applies the edits, which are in order and don't overlap.
fn apply(rewritten: &mut Rewritten, edits: Vec<Edit>) {
    let source = Source::new(&rewritten.text);
    let mut text = rewritten.text.clone();
    let comments: BTreeSet<(usize, &str)> = edits
        .iter()
        .map(|edit| (edit.line, edit.message.as_str()))
        .collect();
    let mut inserts: Vec<(usize, usize, String)> = Vec::new();
    if !source.is_json {
        for (line, message) in &comments {
            let start = source.lines[*line];
            let rest = &source.text[start..];
            let indent: String = rest.chars().take_while(|c| *c == ' ').collect();
            inserts.push((
                start,
                start,
                format!("{indent}# swirl migrate: {message}\n"),
            ));
        }
    }
    for edit in &edits {
        inserts.push((edit.begin, edit.end, edit.new.clone()));
    }
    // From the end, so that the positions before stay. At one position the comment comes first in the text, because it
    // is inserted last.
    inserts.sort_by_key(|(begin, end, _)| (*begin, *end));
    for (begin, end, new) in inserts.iter().rev() {
        text.replace_range(*begin..*end, new);
    }
    // Lines of the original document: comments that earlier rounds added are not counted.
    let added = |line: usize| {
        let before = source.text.split('\n').take(line);
        before
            .filter(|line| line.trim_start().starts_with("# swirl migrate: "))
            .count()
    };
    for (line, message) in comments {
        rewritten.changes.push(Change {
            line: line + 1 - added(line),
            message: message.to_owned(),
        });
    }
    rewritten.text = text;
}

#[cfg(test)]
mod tests;
