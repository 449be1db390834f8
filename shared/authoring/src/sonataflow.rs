//! Rewrites the forms of SonataFlow (Kogito) that are refused here, or that mean something else: `swirl migrate --from
//! sonataflow`.
//!
//! The text is changed in place, so comments and layout stay. In YAML each change gets a comment above its line. A form
//! is rewritten only if its meaning is certain, mostly because the reader has a finding there; the rest is left to the
//! findings of `swirl validate`. The result is read again, and changes that don't come out as they should are left out.

mod edit;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use swirl_documents::codes;
use swirl_documents::diagnostic::{Code, Diagnostic};
use swirl_documents::source::{self, Limits, Node};
use swirl_expr::Program;
use swirl_model::Data;
use swirl_model::workflow::Language;
use swirl_spec::edition::Edition;
use swirl_spec::resource::{MapResources, classpath, plain_name};
use swirl_spec::template::{self, Delimiters};
use swirl_spec::{Options, Reading};

use edit::{Edit, Source, Tracked};

/// How often a document is read again after it was rewritten. One form may hide another.
const ROUNDS_MAX: usize = 5;

/// The parts of a definition that are for readers, and never evaluated.
const PROSE: [&str; 3] = ["metadata", "description", "annotations"];

const MARKED: &str = "an expression is marked with '${ }'";
const SECRETS: &str = "secrets are '$SECRETS' here";
const SECRETS_ARE_LISTED: &str = "the secrets that the definition uses are listed";
const RELATIVE: &str = "a file is named relative to the definition";

/// A rewritten document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    pub text: String,
    /// In the order of the original document.
    pub changes: Vec<Change>,
}

/// A change at a place of the original document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    pub line: usize,
    pub column: usize,
    pub message: String,
}

/// Rewrites a document. `changes` is empty if it has no such form.
///
/// # Errors
/// The document is neither YAML nor JSON.
pub fn rewrite(text: &str) -> Result<Rewritten, Diagnostic> {
    let mut tracked = Tracked::new(text.strip_prefix('\u{feff}').unwrap_or(text));
    let original = tracked.text.clone();
    let original = Source::new(&original);
    let mut secrets = BTreeSet::new();
    let mut changes = Vec::new();
    for _ in 0..ROUNDS_MAX {
        let root = source::parse(tracked.text.as_bytes(), &Limits::default())?;
        let reading = swirl_spec::read(
            tracked.text.as_bytes(),
            &MapResources::default(),
            &Options::default(),
        );
        if !is_of_sonataflow(&reading) {
            break;
        }
        let source = Source::new(&tracked.text);
        let mut edits = edits(&source, &root, &reading, &mut secrets);
        if edits.is_empty() {
            edits.extend(missing_secrets(&source, &root, &secrets));
        }
        let (next, applied) = edit::apply(&tracked, &root, edits);
        if applied.is_empty() {
            break;
        }
        for edit in applied {
            let (line, column) = original.position(tracked.origin(edit.from));
            let message = edit.message;
            changes.push(Change {
                line,
                column,
                message,
            });
        }
        tracked = next;
    }
    changes.sort();
    changes.dedup();
    Ok(Rewritten {
        text: tracked.text,
        changes,
    })
}

/// SonataFlow runs edition 0.8, and documents for it often state 0.7 or nothing.
fn is_of_sonataflow(reading: &Reading) -> bool {
    let edition = reading.edition.as_ref().map(|detected| detected.edition);
    edition.is_some_and(|edition| (Edition::V0_6..=Edition::V0_8).contains(&edition))
}

fn edits(
    source: &Source<'_>,
    root: &Node,
    reading: &Reading,
    secrets: &mut BTreeSet<String>,
) -> Vec<Edit> {
    let mut found: BTreeMap<&str, Vec<Code>> = BTreeMap::new();
    for finding in reading.diagnostics.iter() {
        let codes = found.entry(finding.pointer.as_str()).or_default();
        codes.push(finding.code);
    }
    let language = match root.get("expressionLang").and_then(Node::as_str) {
        Some("jsonpath") => Language::JsonPath,
        _ => Language::Jq,
    };
    let mut edits = Vec::new();
    scalars(root, &mut |node, scalar| {
        let codes = found.get(node.pointer()).map_or(&[][..], Vec::as_slice);
        edits.extend(of_text(source, node, scalar, codes, language, secrets));
    });
    for state in root.get("states").and_then(Node::items).unwrap_or_default() {
        of_state(source, state, &mut edits);
    }
    edits
}

/// The findings at a text say in which way it is read: a text without any is sent or kept as it is.
fn of_text(
    source: &Source<'_>,
    node: &Node,
    text: &str,
    codes: &[Code],
    language: Language,
    secrets: &mut BTreeSet<String>,
) -> Option<Edit> {
    if codes.contains(&codes::LOOSE_FORM) && classpath(text).is_some() {
        return source.text(node, RELATIVE, |text| {
            Some(plain_name(text).trim_start_matches('/').to_owned())
        });
    }
    let has_braces = !in_braces(text, language).is_empty();
    let of_arguments = node.pointer().ends_with("/arguments");
    let is_unmarked = codes.contains(&codes::EXPRESSION_NOT_MARKED)
        || of_arguments && codes.contains(&codes::WRONG_TYPE);
    let whole = whole_in_braces(text, language);
    // Marks of another edition where an expression needs none are a syntax error.
    let is_marked_otherwise =
        has_braces && (is_unmarked && !is_jq(text) || whole && !codes.is_empty());
    let is_expression = !codes.is_empty();
    let (renamed, names) = match language {
        Language::Jq => of_secrets(text, is_expression),
        _ => (text.to_owned(), BTreeSet::new()),
    };
    let is_renamed = renamed != text;
    let message = match (is_unmarked || is_marked_otherwise, is_renamed) {
        (false, false) => return None,
        (true, false) => MARKED.to_owned(),
        (false, true) if is_prose(node.pointer()) => return None,
        (false, true) => SECRETS.to_owned(),
        (true, true) => format!("{MARKED}; {SECRETS}"),
    };
    let edit = source.text(node, &message, |text| {
        let text = match language {
            Language::Jq => of_secrets(text, is_expression).0,
            _ => text.to_owned(),
        };
        match (is_marked_otherwise, is_unmarked) {
            (true, _) => in_our_marks(&text, language),
            (false, true) => marked(&text, language),
            (false, false) => Some(text),
        }
    })?;
    secrets.extend(names);
    Some(edit)
}

/// Whether a text is an expression as a whole, so that braces in it belong to its strings.
fn is_jq(text: &str) -> bool {
    let vars = ["SECRET", "SECRETS", "WORKFLOW", "CONST"];
    Program::jq(text, &vars).is_ok()
}

fn is_prose(pointer: &str) -> bool {
    pointer.split('/').any(|key| PROSE.contains(&key))
}

fn whole_in_braces(text: &str, language: Language) -> bool {
    let text = text.trim();
    let places = in_braces(text, language);
    matches!(places.as_slice(), [one] if one.start == 2 && one.end + 2 == text.len())
}

/// The text with `$SECRETS` for `$SECRET`, and the names of the secrets. If it isn't an expression as a whole, only its
/// marked expressions change.
fn of_secrets(text: &str, is_expression: bool) -> (String, BTreeSet<String>) {
    let mut expressions = template::expressions(text, Delimiters::Dollar, Language::Jq);
    expressions.extend(in_braces(text, Language::Jq));
    if expressions.is_empty() && is_expression {
        expressions.push(0..text.len());
    }
    let mut ends = Vec::new();
    let mut names = BTreeSet::new();
    for place in expressions {
        for variable in template::variables(&text[place.clone()]) {
            let (start, end) = (place.start + variable.start, place.start + variable.end);
            if text[start..end] == *"$SECRET" {
                ends.push(end);
                names.extend(name_behind(&text[end..]));
            }
        }
    }
    ends.sort_unstable();
    ends.dedup();
    let mut renamed = text.to_owned();
    for end in ends.into_iter().rev() {
        renamed.insert(end, 'S');
    }
    (renamed, names)
}

/// The key in `.key`, `."key"` and `["key"]`.
fn name_behind(text: &str) -> Option<String> {
    let quoted = |text: &str| {
        let text = text.trim_start().strip_prefix('"')?;
        let name = &text[..text.find('"')?];
        // An escape or a part that is computed.
        (!name.contains('\\')).then(|| name.to_owned())
    };
    if let Some(key) = text.strip_prefix('.') {
        let end = key.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let name = &key[..end.unwrap_or(key.len())];
        return match name.is_empty() {
            true => quoted(key),
            false => Some(name.to_owned()),
        };
    }
    text.strip_prefix('[').and_then(quoted)
}

/// The expressions in `{{ }}`, without braces in the texts of expressions in `${ }`.
fn in_braces(text: &str, language: Language) -> Vec<Range<usize>> {
    let own = template::expressions(text, Delimiters::Dollar, language);
    let is_apart = |place: &Range<usize>| own.iter().all(|own| !own.contains(&place.start));
    let mut found = template::expressions(text, Delimiters::Braces, language);
    found.retain(is_apart);
    found
}

/// The text with `${ }` for `{{ }}`.
fn in_our_marks(text: &str, language: Language) -> Option<String> {
    let mut out = String::new();
    let mut at = 0;
    for place in in_braces(text, language) {
        out.push_str(&text[at..place.start - 2]);
        out.push_str(&marked(&text[place.clone()], language)?);
        at = place.end + 2;
    }
    out.push_str(&text[at..]);
    Some(out)
}

/// An expression with its marks. `None` if its meaning isn't certain.
fn marked(text: &str, language: Language) -> Option<String> {
    let inner = text.trim();
    if language != Language::Jq {
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

fn of_state(source: &Source<'_>, state: &Node, edits: &mut Vec<Edit>) {
    let kind = state.get("type").and_then(Node::as_str);
    if let Some(node) = state.get("defaultCondition")
        && let Some(name) = node.as_str()
        && let Some(word) = source.within_braces(node)
    {
        let new = match source.is_json {
            true => format!("{{\"transition\": {word}}}"),
            false => format!("{{transition: {word}}}"),
        };
        let mut value = Data::object();
        value.set("transition", Data::string(name));
        let message = "'defaultCondition' is an object with a transition";
        edits.extend(source.value(node, &new, value, message));
    }
    if kind == Some("parallel")
        && let Some(member) = state.member("numCompleted")
        && (member.value().as_i64() == Some(0) || member.value().as_str() == Some("0"))
    {
        let word = state.get("completionType").and_then(Node::as_str);
        if word == Some("atLeast") {
            let message = "'numCompleted' is 1 or more: the state goes on after the first branch";
            edits.extend(source.value(member.value(), "1", Data::int(1), message));
        } else {
            let message = "'numCompleted' belongs to 'completionType: atLeast'";
            edits.extend(source.without(state, member, message));
        }
    }
    if kind == Some("operation")
        && state.get("actions").is_none()
        && let Some(member) = state.member("type")
    {
        let message = "an operation without actions has an empty list";
        let new = ("actions", "[]", Data::array(Vec::new()));
        edits.extend(source.before(member, new, message));
    }
}

/// The names of secrets whose expressions were rewritten, and that `secrets` doesn't list.
fn missing_secrets(source: &Source<'_>, root: &Node, names: &BTreeSet<String>) -> Option<Edit> {
    let list = root.get("secrets");
    let known = list.map(|list| list.items().unwrap_or_default());
    let is_known = |name: &str| {
        let mut known = known.unwrap_or_default().iter();
        known.any(|item| item.as_str() == Some(name))
    };
    let missing: Vec<String> = names
        .iter()
        .filter(|name| !is_known(name))
        .cloned()
        .collect();
    if missing.is_empty() {
        return None;
    }
    match list {
        // The name of a file stays.
        Some(list) => source.items(list, missing, SECRETS_ARE_LISTED),
        None => {
            let states = root.member("states")?;
            let value = missing.iter().map(|name| Data::string(name.as_str()));
            let value = Data::array(value.collect());
            let new = ("secrets", &*source.list(&missing), value);
            source.before(states, new, SECRETS_ARE_LISTED)
        }
    }
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

#[cfg(test)]
mod tests;
