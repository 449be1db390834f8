//! Completions inside expressions: variables, functions, names.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use swirl_documents::source::Node;
use swirl_model::workflow::Language;
use swirl_spec::edition::Edition;
use swirl_spec::template::Delimiters;
use swirl_spec::vocabulary;

use super::flow::Flow;
use super::names::{NameKind, Names};
use super::shape::{Shape, Step, is_of_key};
use super::task_flow::TaskFlow;
use super::text::{Position, Text};
use super::{around, jq, keys};

/// Properties that are expressions even without delimiters.
const EXPRESSIONS: [&str; 12] = [
    "condition",
    "dataInputPath",
    "dataOutputPath",
    "dataResultsPath",
    "fromStateData",
    "input",
    "inputCollection",
    "output",
    "outputCollection",
    "results",
    "toStateData",
    "useData",
];

/// The same in DSL 1.0. `as` in a `catch` is a name, but has nothing to complete.
const EXPRESSIONS_1_0: [&str; 10] = [
    "as",
    "exceptWhen",
    "expect",
    "filter",
    "from",
    "if",
    "in",
    "until",
    "when",
    "while",
];

/// The variables of DSL 1.0, with their members.
const VARIABLES_1_0: [(&str, &str, &[&str]); 8] = [
    (
        "$authorization",
        "what the call of the task sends",
        &["scheme", "parameter"],
    ),
    ("$context", "the data that tasks have exported", &[]),
    ("$input", "the task's transformed input", &[]),
    ("$output", "the task's transformed output", &[]),
    ("$runtime", "the runtime", &["name", "version", "metadata"]),
    ("$secrets", "secrets that the document lists", &[]),
    (
        "$task",
        "the task",
        &[
            "name",
            "reference",
            "definition",
            "input",
            "output",
            "startedAt",
        ],
    ),
    (
        "$workflow",
        "the workflow and this instance of it",
        &["id", "definition", "input", "startedAt"],
    ),
];

/// Everything that the expressions of a document may refer to, except declared names.
#[derive(Debug, Default)]
pub struct VisibleVars {
    language: Option<Language>,
    delimiters: Option<Delimiters>,
    params: Vec<String>,
    functions: Vec<String>,
    /// The members of `$WORKFLOW`.
    of_workflow: Vec<&'static str>,
    has_tasks: bool,
}

impl VisibleVars {
    pub fn of(root: &Node, edition: Option<Edition>) -> VisibleVars {
        let mut sight = VisibleVars {
            language: edition.and_then(vocabulary::language),
            delimiters: edition.and_then(vocabulary::delimiters),
            of_workflow: edition.map_or_else(Vec::new, vocabulary::members_of_workflow),
            has_tasks: edition == Some(Edition::V1_0),
            ..VisibleVars::default()
        };
        match root.get("expressionLang").and_then(Node::as_str) {
            Some("jq") => sight.language = Some(Language::Jq),
            Some("jsonpath") => sight.language = Some(Language::JsonPath),
            _ => {}
        }
        let functions = root.get("functions").and_then(Node::items);
        for function in functions.unwrap_or_default() {
            let word = |key| function.get(key).and_then(Node::as_str);
            if let (Some("expression"), Some(name)) = (word("type"), word("name")) {
                sight.functions.push(name.to_owned());
            }
        }
        sight.collect_params(root);
        sight
    }

    fn collect_params(&mut self, node: &Node) {
        for item in node.items().unwrap_or_default() {
            self.collect_params(item);
        }
        for member in node.members().unwrap_or_default() {
            let value = member.value();
            match (member.key(), value.as_str()) {
                ("iterationParam", Some(name)) => self.params.push(name.to_owned()),
                // Variables of DSL 1.0 have names even if the document gives none.
                ("for", None) if self.has_tasks => self.param(value, &["each", "at"]),
                ("catch", None) if self.has_tasks => {
                    self.param(value, &["as"]);
                    self.collect_params(value);
                }
                ("foreach", None) if self.has_tasks => {
                    self.param(value, &["item", "at"]);
                    self.collect_params(value);
                }
                _ => self.collect_params(value),
            }
        }
    }

    fn param(&mut self, node: &Node, properties: &[&str]) {
        for property in properties {
            let usual = match *property {
                "as" => "error",
                "at" => "index",
                _ => "item",
            };
            let name = node.get(property).and_then(Node::as_str);
            self.params.push(name.unwrap_or(usual).to_owned());
        }
    }

    fn open(&self) -> &'static str {
        self.delimiters.unwrap_or(Delimiters::Dollar).open()
    }

    /// Whether a position is inside an expression.
    pub fn holds(&self, text: &Text, at: Position) -> bool {
        self.typed(text, at).is_some()
    }

    /// The completions at a position, if it is inside an expression.
    pub fn complete(
        &self,
        text: &Text,
        at: Position,
        names: &Names,
        known: &KnownData<'_>,
    ) -> Option<Value> {
        let inner = self.typed(text, at)?;
        let part = |c: char| c.is_alphanumeric() || "_$.:@".contains(c);
        let start = inner.rfind(|c| !part(c)).map_or(0, |at| {
            at + inner[at..].chars().next().map_or(1, char::len_utf8)
        });
        let word = &inner[start..];
        let here = Here {
            text,
            at,
            inner: &inner,
        };
        let (typed, all) = self.offered(word, &here, names, known);
        let length = typed.chars().map(char::len_utf16).sum::<usize>();
        let begin = Position {
            line: at.line,
            character: at.character.saturating_sub(length),
        };
        let range = json!({"start": begin, "end": at});
        let items = all.into_iter().map(|one| {
            json!({
                "label": one.label,
                "kind": one.kind,
                "detail": one.detail,
                "documentation": one.about,
                "textEdit": {"range": range, "newText": one.label},
            })
        });
        Some(items.collect())
    }

    /// The completions for a word, and the part of the word that they replace.
    fn offered<'w>(
        &self,
        word: &'w str,
        here: &Here<'w>,
        names: &Names,
        known: &KnownData<'_>,
    ) -> (&'w str, Vec<Offer>) {
        let is_path = word.starts_with('$') && self.language == Some(Language::JsonPath);
        if let Some((variable, rest)) = word.split_once('.')
            && variable.starts_with('$')
            && !(is_path && variable == "$")
        {
            let none = (rest, Vec::new());
            return match (variable, rest.contains('.')) {
                ("$SECRETS" | "$secrets", false) => {
                    (rest, fields(names.declared(NameKind::Secret)))
                }
                ("$WORKFLOW", false) => (rest, fields(self.of_workflow.iter().copied())),
                _ => {
                    let after = &word[variable.len()..];
                    let Some((path, typed)) = keys::after_variable(after) else {
                        return none;
                    };
                    let members = VARIABLES_1_0.iter().filter(|(name, ..)| {
                        self.has_tasks && path.is_empty() && *name == variable
                    });
                    let members = members.flat_map(|(.., members)| members.iter().copied());
                    let data = known.variable(variable, &path, here).unwrap_or_default();
                    let data = data
                        .keys()
                        .filter(|key| members.clone().all(|it| it != *key));
                    (typed, fields(members.clone().chain(data)))
                }
            };
        }
        if let Some(name) = word.strip_prefix("fn:") {
            const FUNCTION: u8 = 3;
            let all = self.functions.iter();
            return (
                name,
                all.map(|name| Offer::new(name, FUNCTION, None)).collect(),
            );
        }
        if word.starts_with('.') || is_path {
            let data = known.data(here);
            let found = data.and_then(|data| keys::offered(here.inner, &data));
            return found.map_or((word, Vec::new()), |(keys, typed)| {
                (typed, fields(keys.iter().map(String::as_str)))
            });
        }
        let mut all = self.variables(here.inner);
        if !word.starts_with('$') && self.language == Some(Language::Jq) {
            all.extend(functions());
        }
        (word, all)
    }

    fn variables(&self, inner: &str) -> Vec<Offer> {
        const VARIABLE: u8 = 6;
        let of_tasks = VARIABLES_1_0.map(|(name, about, _)| (name, about));
        let of_states = [
            ("$CONST", "the definition's constants"),
            ("$SECRETS", "secrets that the definition lists"),
            ("$WORKFLOW", "the workflow and this instance of it"),
        ];
        let known: &[_] = if self.has_tasks {
            &of_tasks
        } else {
            &of_states
        };
        let known = known.iter();
        let mut all: Vec<Offer> = known
            .map(|(name, about)| Offer::new(name, VARIABLE, Some(about)))
            .collect();
        let mut own: Vec<String> = self.params.iter().map(|name| format!("${name}")).collect();
        // Variables that the expression itself has bound.
        for (at, _) in inner.match_indices("as $") {
            let name = inner[at + 4..].split(|c: char| !c.is_alphanumeric() && c != '_');
            own.extend(name.take(1).map(|name| format!("${name}")));
        }
        own.sort();
        own.dedup();
        all.extend(own.iter().map(|name| Offer::new(name, VARIABLE, None)));
        all
    }

    /// The function at the cursor, with its description.
    pub fn hover(&self, text: &Text, at: Position) -> Option<String> {
        let (line, here) = text.around(at, |c| c.is_ascii_alphanumeric() || c == '_');
        let is_function = !line[..here.start].ends_with(['.', '$', '@']);
        if self.language != Some(Language::Jq) || !is_function {
            return None;
        }
        let word = &line[here.clone()];
        self.typed(text, text.range(at.line, here.start, here.end).end)?;
        let about = jq::about(word)?;
        let signatures = signatures();
        let arities = signatures.get(word)?;
        let all: Vec<String> = arities
            .iter()
            .map(|arity| signature(word, *arity))
            .collect();
        Some(format!("`{}`: {about}", all.join("`, `")))
    }

    /// The text of an expression before a position, if the position is inside one.
    fn typed(&self, text: &Text, at: Position) -> Option<String> {
        let (key, value) = value_before(text, at)?;
        if let Some(begin) = value.rfind(self.open()) {
            let inner = &value[begin + self.open().len()..];
            return is_open(inner).then(|| inner.to_owned());
        }
        let is_operation = || key == "operation" && is_of_expression(text, at.line);
        let is_expression = match self.has_tasks {
            true => EXPRESSIONS_1_0.contains(&key.as_str()),
            false => EXPRESSIONS.contains(&key.as_str()) || is_operation(),
        };
        is_expression.then_some(value)
    }
}

/// The known data of a definition.
pub struct KnownData<'a> {
    pub flow: &'a Flow,
    /// Of a document of DSL 1.0.
    pub tasks: Option<&'a TaskFlow>,
    /// The input schema of the last definition without errors.
    pub schema: Option<&'a Value>,
}

/// The position of the cursor in an expression.
struct Here<'h> {
    text: &'h Text,
    at: Position,
    /// The part of the expression before the cursor.
    inner: &'h str,
}

impl KnownData<'_> {
    /// The data that an expression sees.
    fn data(&self, here: &Here<'_>) -> Option<Shape> {
        let around = around::keys(here.text, here.at);
        let place = here.text.place(here.at);
        if let Some(tasks) = self.tasks {
            return tasks.seen(place, &around, self.schema);
        }
        self.flow
            .seen(place, &around, &self.flow.input(self.schema))
    }

    /// The shape at a path inside a variable.
    fn variable(&self, name: &str, path: &[Step], here: &Here<'_>) -> Option<Shape> {
        if let Some(tasks) = self.tasks {
            let place = here.text.place(here.at);
            let whole = tasks.variable(name.strip_prefix('$')?, place, self.schema)?;
            return whole.at(path).cloned();
        }
        let input = || self.flow.input(self.schema);
        let whole = match name {
            "$CONST" => self.flow.constants().clone(),
            "$WORKFLOW" => Shape::with("input", input()),
            _ => {
                let place = here.text.place(here.at);
                self.flow.item(name.strip_prefix('$')?, place, &input())?
            }
        };
        whole.at(path).cloned()
    }
}

/// The names of fields, except those that would need quotes.
fn fields<'f>(names: impl IntoIterator<Item = &'f str>) -> Vec<Offer> {
    const FIELD: u8 = 5;
    let names = names.into_iter();
    let plain = names.filter(|name| name.chars().all(is_of_key));
    plain.map(|name| Offer::new(name, FIELD, None)).collect()
}

struct Offer {
    label: String,
    kind: u8,
    detail: Option<String>,
    about: Option<&'static str>,
}

impl Offer {
    fn new(label: &str, kind: u8, about: Option<&'static str>) -> Offer {
        Offer {
            label: label.to_owned(),
            kind,
            detail: None,
            about,
        }
    }
}

/// The names of jq's functions, with their numbers of arguments.
fn signatures() -> BTreeMap<&'static str, Vec<usize>> {
    let mut all: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (name, arity) in swirl_expr::signatures() {
        let arities = all.entry(name).or_default();
        if !arities.contains(&arity) {
            arities.push(arity);
            arities.sort_unstable();
        }
    }
    all
}

fn signature(name: &str, arity: usize) -> String {
    match arity {
        0 => name.to_owned(),
        _ => format!("{name}({})", ["f"; 8][..arity.min(8)].join("; ")),
    }
}

fn functions() -> Vec<Offer> {
    const FUNCTION: u8 = 3;
    const KEYWORD: u8 = 14;
    let functions = signatures().into_iter().map(|(name, arities)| {
        let all = arities.iter().map(|arity| signature(name, *arity));
        let mut offer = Offer::new(name, FUNCTION, jq::about(name));
        offer.detail = Some(all.collect::<Vec<_>>().join(", "));
        offer
    });
    let keywords = jq::KEYWORDS.map(|word| Offer::new(word, KEYWORD, None));
    functions.chain(keywords).collect()
}

/// Whether a brace after the opening delimiter is still open. Braces in strings don't count.
fn is_open(inner: &str) -> bool {
    let mut depth = 1;
    let mut is_text = false;
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' if is_text => drop(chars.next()),
            '"' => is_text = !is_text,
            '{' if !is_text => depth += 1,
            '}' if !is_text => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return false;
        }
    }
    true
}

/// The property whose value contains a position, and the part of the value before it. In a block, this includes the
/// lines above.
fn value_before(text: &Text, at: Position) -> Option<(String, String)> {
    let before = text.before(at);
    if let Some((key, value)) = key_and_value(before) {
        return Some((
            key.to_owned(),
            value.trim_start_matches(['"', '\'']).to_owned(),
        ));
    }
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let own = indent(text.line(at.line));
    let mut lines = vec![before.trim_start()];
    // A block's header is above it, with less indentation.
    for line in (0..at.line).rev().take(100) {
        let line = text.line(line);
        if line.trim().is_empty() || indent(line) >= own {
            lines.push(line.trim_start());
            continue;
        }
        let (key, value) = key_and_value(line)?;
        if !value.starts_with(['|', '>']) {
            return None;
        }
        lines.reverse();
        return Some((key.to_owned(), lines.join("\n")));
    }
    None
}

/// The last property in a line, and its value. Commas and braces in quoted strings don't count.
pub fn key_and_value(line: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    let mut start = line.len() - line.trim_start_matches([' ', '-']).len();
    let mut colon = None;
    let mut last = ' ';
    // Commas separate properties only inside braces.
    let mut is_flow = false;
    for (at, c) in line.char_indices().skip(start) {
        match (quote, c) {
            (Some(open), c) if c == open && last != '\\' => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') if matches!(last, ' ' | '{' | '[' | ',' | ':') => quote = Some(c),
            // Without quotes, an expression cannot be distinguished from an object in braces.
            (None, '{') if last == '$' => return colon.map(|colon| split(line, start, colon)),
            (None, '{') => {
                let begin = colon.map_or(start, |colon| colon + 1);
                if is_flow || line[begin..at].trim_matches([' ', '-', '[']).is_empty() {
                    (start, colon, is_flow) = (at + 1, None, true);
                }
            }
            (None, ',') if is_flow => (start, colon) = (at + 1, None),
            (None, ':') if colon.is_none() => colon = Some(at),
            _ => {}
        }
        last = c;
    }
    colon.map(|colon| split(line, start, colon))
}

fn split(line: &str, start: usize, colon: usize) -> (&str, &str) {
    let key = line[start..colon].trim().trim_matches(['"', '\'']);
    (key, line[colon + 1..].trim_start())
}

/// Whether the operation in a line belongs to an expression function, whose type is written near it.
fn is_of_expression(text: &Text, line: usize) -> bool {
    let near = line.saturating_sub(3)..=line + 3;
    near.map(|line| text.line(line)).any(|line| {
        let line = line.replace(['"', '\''], "");
        line.contains("type: expression")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(line: &str) -> Vec<String> {
        offered_in(Edition::V0_8, line)
    }

    fn offered_in(edition: Edition, line: &str) -> Vec<String> {
        let document = format!(
            "specVersion: '{edition}'\nsecrets: [KEY]\nconstants: {{limit: 1}}\nfunctions:\n- {{name: e, type: expression, operation: .a}}\nstates:\n- {{name: A, type: foreach, iterationParam: order}}\nx:\n{line}\n"
        );
        let (before, after) = document.split_once('\u{a6}').unwrap();
        let root = swirl_documents::source::read(document.as_bytes(), &Default::default()).root;
        let root = root.unwrap();
        let sight = VisibleVars::of(&root, Some(edition));
        let text = Text::new(format!("{before}{after}"));
        let at = text.position(before.len());
        let flow = Flow::of(&root);
        let known = KnownData {
            flow: &flow,
            tasks: None,
            schema: None,
        };
        let Some(items) = sight.complete(&text, at, &Names::of_states(&root), &known) else {
            return vec!["-".to_owned()];
        };
        let items = items.as_array().unwrap().iter();
        items
            .map(|item| item["label"].as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn variables_functions_and_names() {
        assert_eq!(offered("  a: '${ $CONST.¦ }'"), ["limit"]);
        assert_eq!(offered("  a: \"x ${ $SECRETS.K¦\""), ["KEY"]);
        assert_eq!(offered("  condition: $WORKFLOW.in¦").len(), 8);
        let key = "key".to_owned();
        assert!(offered_in(Edition::V0_9, "  condition: $WORKFLOW.¦").contains(&key));
        assert!(!offered("  condition: $WORKFLOW.¦").contains(&key));
        assert_eq!(offered("  b: {c: d, condition: 'fn:¦'}"), ["e"]);
        assert!(offered("  condition: '.a | .b as $row | $¦'").contains(&"$row".to_owned()));
        let all = offered("  condition: |\n    .a\n    | ma¦");
        for name in ["map", "$order", "select", "if"] {
            assert!(all.contains(&name.to_owned()), "{name}: {all:?}");
        }
        assert!(offered("  condition: .a¦").is_empty());
        assert_eq!(offered("  a: '${ .b }¦'"), ["-"]);
        assert_eq!(offered("  transition: ¦"), ["-"]);
        assert_eq!(offered("  condition: .a, $CONST.¦"), ["limit"]);
        assert_eq!(offered("  a: {b: '${ {c: $CONST.¦ }'}"), ["limit"]);
    }
}
