//! Details in the calls of some function types (section "FunctionRef Definition").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::Template;

use crate::build::advice::FLAG;
use crate::build::ctx::{Ctx, Obj};
use crate::build::expression::VisibleVars;
use crate::graphql;
use crate::template::{self, Delimiters};

impl Ctx<'_> {
    pub fn invoke_async(&mut self, obj: Obj<'_>) -> bool {
        self.word(obj, "invoke", &["sync", "async"]) == Some("async")
    }

    /// `selectionSet`. One without expressions is checked immediately. `None` after a finding.
    pub fn selection_set(&mut self, node: &Node, sight: VisibleVars<'_>) -> Option<Template> {
        self.string(node, "'selectionSet'")?;
        let template = self.template(node, sight)?;
        if let Template::Literal(text) = &template
            && let Some(text) = text.as_str()
            && let Err(reason) = graphql::selection_set(text)
        {
            self.error(
                node,
                codes::BAD_SELECTION_SET,
                format!("this is not a valid GraphQL selection set: {reason}"),
                "write '{ field, other { field } }'".to_owned(),
            );
            return None;
        }
        Some(template)
    }

    /// Checks against the language's OData schema, with `orderby` as in the specification.
    pub fn odata_arguments(&mut self, obj: Obj<'_>) {
        let what = "'arguments' of an odata function";
        let arguments = obj.get("arguments").or(obj.get("parameters"));
        let arguments = arguments.filter(|node| node.members().is_some());
        let known = &["key", "queryOptions"];
        let Some(arguments) = arguments.and_then(|node| self.object(node, what, known)) else {
            return;
        };
        if let Some(options) = arguments.get("queryOptions")
            && options.members().is_some()
        {
            let known: Vec<&str> = ODATA_OPTIONS.iter().map(|(name, _)| *name).collect();
            self.object(options, "'queryOptions'", &known);
            for member in options.members().unwrap_or_default() {
                let found = ODATA_OPTIONS.iter().find(|(name, _)| *name == member.key());
                if let Some((name, wanted)) = found {
                    self.odata_option(member.value(), name, *wanted);
                }
            }
        }
    }

    /// The value of an expression is checked when the call is made. Null counts as absent.
    fn odata_option(&mut self, node: &Node, name: &str, wanted: Wanted) {
        let text = node.as_str();
        let is_open = text.is_some_and(|text| text.contains("${")) || node.to_data().is_null();
        let (fits, word) = match wanted {
            Wanted::Text => (
                text.is_some_and(|text| !text.is_empty()),
                "a string that isn't empty",
            ),
            Wanted::Flag => (node.as_bool().is_some(), FLAG),
            Wanted::Count => {
                let fits = node.is_number() && node.raw().parse::<u64>().is_ok();
                (fits, "a whole number, 0 or more")
            }
        };
        if !is_open && !fits {
            self.wrong_type(node, &format!("the query option '{name}'"), word);
        }
    }
}

/// The type of a query option.
#[derive(Clone, Copy)]
enum Wanted {
    Text,
    Flag,
    Count,
}

const ODATA_OPTIONS: &[(&str, Wanted)] = &[
    ("compute", Wanted::Text),
    ("count", Wanted::Flag),
    ("expand", Wanted::Text),
    ("filter", Wanted::Text),
    ("format", Wanted::Text),
    ("index", Wanted::Text),
    ("orderBy", Wanted::Text),
    ("orderby", Wanted::Text),
    ("schemaVersion", Wanted::Text),
    ("search", Wanted::Text),
    ("select", Wanted::Text),
    ("skip", Wanted::Count),
    ("top", Wanted::Count),
];

impl Ctx<'_> {
    /// `arguments`, with that name or the name in earlier editions. `None` after a finding.
    pub(super) fn arguments(
        &mut self,
        obj: Obj<'_>,
        sight: VisibleVars<'_>,
    ) -> Option<Option<Template>> {
        if let Some(node) = obj.get("parameters") {
            match obj.has("arguments") {
                true => self.exclusive(obj, "a functionRef", &["arguments", "parameters"]),
                false => self.other_name(node, "parameters", "arguments"),
            }
        }
        let Some(node) = obj.get("arguments").or(obj.get("parameters")) else {
            return Some(None);
        };
        if node.members().is_none() {
            let delimiters = self.dialect.delimiters;
            let text = node.as_str().map(str::trim);
            if text.is_some_and(|text| text.starts_with(delimiters.open())) {
                let message = "'arguments' is one expression instead of an object".to_owned();
                let hint = "write an object with an expression for each argument".to_owned();
                self.loose(node, message, hint);
                let id = self.expression(node, "'arguments'", sight)?;
                return Some(Some(Template::Expression(id)));
            }
            let pair = delimiters.pair();
            let looks = text.filter(|text| looks_like_an_expression(text) || *text == ".");
            let hint = looks.map(|text| {
                format!(
                    "put it into '{pair}' if it is an expression: '{}'",
                    pair.replace(' ', &format!(" {text} ")).replace("  ", " ")
                )
            });
            let message = format!("'arguments' must be an object, but is {}", node.kind_word());
            self.error(node, codes::WRONG_TYPE, message, hint);
            return None;
        }
        self.warn_unmarked(node);
        self.template(node, sight).map(Some)
    }

    /// Texts that look like expressions are sent unchanged, with a warning (docs/language.md#decision-96).
    pub(super) fn warn_unmarked(&mut self, node: &Node) {
        if let Some(text) = node.as_str()
            && (looks_like_an_expression(text) || self.begins_with_a_variable(text))
            && self.compiles(&with_our_secrets(text.trim()))
        {
            let pair = self.dialect.delimiters.pair();
            let message = format!("'{text}' looks like an expression, but is sent as this string");
            let hint = format!("put it into '{pair}' if it is one");
            self.warn(node, codes::EXPRESSION_NOT_MARKED, message, hint);
        }
        self.warn_other_marks(node);
        for item in node.items().unwrap_or_default() {
            self.warn_unmarked(item);
        }
        for member in node.members().unwrap_or_default() {
            self.warn_unmarked(member.value());
        }
    }

    /// `$item`, `$SECRETS`: the name says that the variable is meant, whatever follows it.
    fn begins_with_a_variable(&self, text: &str) -> bool {
        let Some(name) = text.trim().strip_prefix('$') else {
            return false;
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name = &name[..name.find(|c| !is_name(c)).unwrap_or(name.len())];
        self.params.iter().any(|param| **param == *name)
            || self.dialect.variables.contains(&name)
            || name == SECRETS_OF_SONATAFLOW
    }

    /// A text with expressions in the notation of another edition.
    fn warn_other_marks(&mut self, node: &Node) {
        let (pair, other) = match self.dialect.delimiters {
            Delimiters::Dollar => ("${ .name }", Delimiters::Braces),
            Delimiters::Braces => ("{{ $.name }}", Delimiters::Dollar),
        };
        let text = node.as_str().map(str::trim).unwrap_or_default();
        // Marks inside an expression's own texts don't count.
        let own = template::expressions(text, self.dialect.delimiters, self.language);
        let marked = template::expressions(text, other, self.language)
            .into_iter()
            .filter(|place| own.iter().all(|own| !own.contains(&place.start)))
            .find(|place| text[place.clone()].trim_start().starts_with(['.', '$']));
        if let Some(place) = marked {
            let part = place.start - other.open().len()..place.end + other.close().len();
            let message = format!(
                "'{}' is marked as in another edition, but is sent as this string",
                &text[part]
            );
            let hint = format!("expressions are written as '{pair}' here");
            self.warn(node, codes::EXPRESSION_NOT_MARKED, message, hint);
        }
    }
}

/// SonataFlow's name of the secrets.
const SECRETS_OF_SONATAFLOW: &str = "SECRET";

/// An expression of SonataFlow with our name of the secrets.
fn with_our_secrets(text: &str) -> String {
    let mut out = text.to_owned();
    for place in template::variables(text).into_iter().rev() {
        if text[place.start + 1..place.end] == *SECRETS_OF_SONATAFLOW {
            out.insert(place.end, 'S');
        }
    }
    out
}

/// `.number`, `$.x`, `.items[0].id`, `$WORKFLOW.id`, `.greeting+.name`, `"Hello " + .name`, `"Hello \(.name)"`,
/// `($item.name | tostring)`, `[.a, .b]`, `{a: .b}`, `map(.x)`. Compiling it decides whether it really is one.
fn looks_like_an_expression(text: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphabetic() || c == '_';
    let text = text.trim_start_matches(['(', '[', ' ', '\n']).trim_end();
    if text.starts_with('"') {
        let parts = text.split('"').skip(2).step_by(2);
        let mut outside = parts.filter(|part| part.contains('+'));
        return outside.any(|part| part.contains(['.', '$'])) || text.contains("\\(");
    }
    if let Some(path) = text.strip_prefix('.') {
        return path.starts_with(|c| is_name(c) || c == '[') || path.starts_with(" |");
    }
    if let Some(name) = text.strip_prefix('$') {
        let path = name.trim_start_matches(|c: char| is_name(c) || c.is_ascii_digit());
        return match path.strip_prefix('.') {
            Some(path) => path.starts_with(is_name),
            None => path.starts_with('['),
        };
    }
    if text.starts_with('{') {
        return [": .", ": $", ":.", ":$"]
            .iter()
            .any(|value| text.contains(value));
    }
    let is_call = text
        .trim_start_matches(is_name)
        .strip_prefix('(')
        .is_some_and(|inside| inside.contains('.'));
    is_call && text.starts_with(is_name) || text.starts_with("if ") && text.contains(" then ")
}

#[cfg(test)]
mod tests {
    use crate::build::parts::testing::{findings, read_with, show};

    fn body(functions: &str, reference: &str) -> String {
        format!(
            "functions: [{functions}]\nstates: [{{name: A, type: operation, actions: [{{functionRef: {reference}}}], end: true}}]\n"
        )
    }

    #[test]
    fn selection_sets_are_checked_where_they_are_known() {
        let call = |selection: &str| {
            let function = "{name: f, type: graphql, operation: 'http://x#query#pet'}";
            findings(&body(
                function,
                &format!("{{refName: f, arguments: {{}}, selectionSet: {selection:?}}}"),
            ))
        };
        for right in ["{ id, name }", "{ }", "{ id(a: ${ .x }) }", "${ .any }"] {
            assert_eq!(call(right), "", "{right}");
        }
        let wrong = "error bad-selection-set /states/0/actions/0/functionRef/selectionSet 5";
        for selection in ["id", "{ id", "{ id(a: $x) }"] {
            assert_eq!(call(selection), wrong, "{selection}");
        }
    }

    #[test]
    fn unmarked_expressions_are_warned_about() {
        let call = |text: &str| {
            let function = "{name: f, operation: 'a.json#f'}";
            findings(&body(
                function,
                &format!("{{refName: f, arguments: {{a: {text:?}}}}}"),
            ))
        };
        let warned = "warning expression-not-marked /states/0/actions/0/functionRef/arguments/a 5";
        for text in [
            ".name",
            ".[0]",
            ". | tostring",
            "(.at)",
            "($WORKFLOW.input | tostring)",
            "(\"to \" + .name)",
            "[.a, .b]",
            "{a: .b}",
            "map(.x)",
            "if .a then 1 else 2 end",
            "$WORKFLOW",
            "$SECRET",
            "$SECRET.\"my-key\"",
            "$SECRET[\"my-key\"] | tostring",
            "Hello {{ .name }}, you are {{ .age }}",
            "{{ $.name }}",
        ] {
            assert_eq!(call(text), warned, "{text}");
        }
        for text in [
            "(see below)",
            "[1, 2]",
            "{name}",
            "{\"a\": 1}",
            "...",
            ".5",
            "$100",
            "$item.name",
            "a.b (c.d)",
            "if so, then 1.5",
            "$SECRET of them",
            "\"$SECRET\"",
            "Hello {{name}}",
            "${ \"Hello {{ .name }}\" }",
            "{{ .name",
        ] {
            assert_eq!(call(text), "", "{text}");
        }
    }

    #[test]
    fn unmarked_parameters_are_warned_about() {
        let call = |text: &str| {
            findings(&format!(
                "functions: [{{name: f, operation: 'a.json#f'}}]\nstates: [{{name: A, type: foreach, inputCollection: .l, iterationParam: number, actions: [{{functionRef: {{refName: f, arguments: {{a: {text:?}}}}}}}], end: true}}]\n"
            ))
        };
        let warned = "warning expression-not-marked /states/0/actions/0/functionRef/arguments/a 5";
        for text in ["$number", "$number.x", "$number | tostring", ".number"] {
            assert_eq!(call(text), warned, "{text}");
        }
        for text in ["$numbers", "$100", "$item", "$number of them"] {
            assert_eq!(call(text), "", "{text}");
        }
    }

    #[test]
    fn unmarked_expressions_in_events_and_credentials_are_warned_about() {
        let text = "
id: w
version: 1.0.0
specVersion: '0.8'
secrets: [pin]
auth:
- {name: a, scheme: basic, properties: {username: $SECRETS.pin, password: .hidden}}
functions: [{name: f, operation: 'a.json#f', authRef: a}]
events:
- {name: p, type: pt, kind: produced}
- {name: c, type: ct, correlation: [{contextAttributeName: k, contextAttributeValue: .id}]}
states:
- name: A
  type: operation
  actions:
  - {functionRef: f}
  - {eventRef: {produceEventRef: p, consumeEventRef: c, data: {x: .y}, contextAttributes: {q: .r}}}
  end: {continueAs: {workflowId: w, data: {m: [.n]}}}
";
        let reading = crate::reader::read(
            text.as_bytes(),
            &crate::resource::MapResources::default(),
            &crate::options::Options::default(),
        );
        let findings = reading.diagnostics.iter();
        let unmarked = findings.filter(|found| found.code.as_str() == "expression-not-marked");
        let pointers: Vec<&str> = unmarked.map(|found| found.pointer.as_str()).collect();
        assert_eq!(
            pointers,
            [
                "/auth/0/properties/username",
                "/events/1/correlation/0/contextAttributeValue",
                "/states/0/actions/1/eventRef/data/x",
                "/states/0/actions/1/eventRef/contextAttributes/q",
                "/states/0/end/continueAs/data/m/0",
            ]
        );
    }

    #[test]
    fn odata_has_a_schema() {
        let function = "{name: f, type: odata, operation: 'http://x#Persons'}";
        let at = "/states/0/actions/0/functionRef/arguments";
        for (arguments, expected) in [
            (
                "{key: 1, queryOptions: {orderby: a, top: 5}}",
                String::new(),
            ),
            ("{queryOptions: '${ .options }'}", String::new()),
            (
                "{queryOptions: {top: '${ .n }', count: true, skip: null}}",
                String::new(),
            ),
            (
                "{queryOptions: {top: five}}",
                format!("error wrong-type {at}/queryOptions/top 5"),
            ),
            (
                "{queryOptions: {count: 1, skip: -1, filter: 2}}",
                format!(
                    "error wrong-type {at}/queryOptions/count 5\nerror wrong-type {at}/queryOptions/skip 5\nerror wrong-type {at}/queryOptions/filter 5"
                ),
            ),
            (
                "{filter: a}",
                format!("error unknown-property {at}/filter 5"),
            ),
            (
                "{queryOptions: {fliter: a}}",
                format!("error unknown-property {at}/queryOptions/fliter 5"),
            ),
        ] {
            let body = body(function, &format!("{{refName: f, arguments: {arguments}}}"));
            assert_eq!(findings(&body), expected, "{arguments}");
            // A scenario's own function accepts any arguments.
            assert_eq!(show(&read_with(&body, &[], &["f"])), "", "{arguments}");
        }
    }
}
