//! `metadata.swirl.search`: the values by which a workflow's instances can be found. This is our own extension, in the
//! part of a document that every edition leaves to its users.

use std::sync::Arc;

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::attribute::{ATTRIBUTES_MAX, AttributeKind};
use swirl_model::workflow::{ExprId, SearchAttribute};

use super::ctx::{Ctx, Obj};
use super::expression::VisibleVars;

/// The longest name, in bytes.
const NAME_BYTES_MAX: usize = 64;

impl Ctx<'_> {
    pub fn search_attributes(&mut self, node: &Node) {
        let Some(members) = node.members() else {
            self.wrong_type(
                node,
                "'metadata.swirl.search'",
                "an object: a value and its type under the name of each attribute",
            );
            return;
        };
        if members.len() > ATTRIBUTES_MAX {
            let message = format!(
                "the workflow declares {} search attributes; at most {ATTRIBUTES_MAX} are allowed",
                members.len()
            );
            let hint = "declare those that people search by".to_owned();
            self.error(node, codes::BAD_SEARCH_ATTRIBUTE, message, hint);
        }
        for member in members {
            let name = member.key();
            if !is_name(name) {
                let location = self.place(member.key_place());
                let message = format!("'{name}' cannot be the name of a search attribute");
                let hint = format!(
                    "begin with a letter, go on with letters, digits, '_', '-' and '.', up to {NAME_BYTES_MAX}"
                );
                self.error_at(&location, codes::BAD_SEARCH_ATTRIBUTE, message, hint);
            }
            if let Some((value, kind)) = self.declaration(member.value(), name) {
                self.workflow.search.push(SearchAttribute {
                    name: Arc::from(name),
                    value,
                    kind,
                });
            }
        }
    }

    fn declaration(&mut self, node: &Node, name: &str) -> Option<(ExprId, AttributeKind)> {
        let what = format!("the search attribute '{name}'");
        let obj = self.object(node, &what, &["value", "type"])?;
        for needed in ["value", "type"] {
            if !obj.has(needed) {
                self.missing(obj, &what, &[needed]);
            }
        }
        let kind = self
            .word(obj, "type", &AttributeKind::ALL.map(AttributeKind::as_str))
            .and_then(AttributeKind::of_word);
        let value = self.search_value(obj);
        Some((value?, kind?))
    }

    /// An expression over the state data, with or without delimiters.
    fn search_value(&mut self, obj: Obj<'_>) -> Option<ExprId> {
        let node = obj.get("value")?;
        let text = self.expression_text(node, "'value'")?;
        let location = self.location(node);
        let text = self.resolve(&location, &text)?;
        if text.contains("$SECRETS") {
            self.error(
                node,
                codes::SECRET_NOT_ALLOWED,
                "'$SECRETS' cannot be used in a search attribute: its value is kept and shown",
                "take the value from the state data or a constant".to_owned(),
            );
            return None;
        }
        self.compile(&location, &text, VisibleVars::PLAIN)
    }
}

/// Whether it can be written in a query after '@'.
fn is_name(name: &str) -> bool {
    name.len() <= NAME_BYTES_MAX
        && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name
            .chars()
            .all(|char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use swirl_model::attribute::AttributeKind;

    use swirl_model::workflow::Language;

    use crate::build::parts::testing::{STATES, findings, show, workflow};
    use crate::edition::Edition;
    use crate::options::Options;
    use crate::reader::read_as;
    use crate::resource::MapResources;

    fn document(search: &str) -> String {
        format!("metadata: {{team: a, swirl: {{search: {search}}}}}\nsecrets: [S]\n{STATES}")
    }

    #[test]
    fn attributes_are_declared() {
        let workflow = workflow(&document(
            "{orderId: {value: '${ .order.id }', type: string}, total: {value: .total, type: number}}",
        ));
        let found: Vec<_> = workflow
            .search
            .iter()
            .map(|one| (&*one.name, one.kind, &*workflow[one.value].text))
            .collect();
        assert_eq!(
            found,
            [
                ("orderId", AttributeKind::Text, ".order.id"),
                ("total", AttributeKind::Number, ".total"),
            ]
        );
        assert_eq!(workflow.metadata.to_string(), r#"{"team":"a"}"#);
    }

    /// A small document in each edition.
    fn of_edition(edition: Edition) -> String {
        let id = match edition {
            Edition::V0_9 | Edition::V1_0 => "",
            _ => "id: test\n",
        };
        let kinds = "start: {kind: default}, end: {kind: default}";
        let inject = "{name: a, type: inject, data: {}, end: true}";
        let rest = match edition {
            Edition::V0_1Early => "states: [{name: A, type: DELAY, time-delay: 5, start: true, next-state: B}, {name: B, type: END}]".to_owned(),
            Edition::V0_1 => "starts-at: A\nschema-version: '0.1'\nstates: [{name: A, type: DELAY, time-delay: PT1S, end: true}]".to_owned(),
            Edition::V0_1Release => "states: [{name: A, type: RELAY, inject: {data: {}}, start: {kind: DEFAULT}, end: {kind: DEFAULT}}]".to_owned(),
            Edition::Tasks => format!("tasks: [{{name: A, type: delay, timeDelay: PT1S, {kinds}}}]"),
            Edition::V0_5 => format!("schemaVersion: '0.5'\nstates: [{{name: A, type: inject, data: {{}}, {kinds}}}]"),
            Edition::V0_6 => format!("schemaVersion: '0.6'\nstart: a\nstates: [{inject}]"),
            Edition::V1_0 => return "document: {dsl: 1.0.3, namespace: a, name: test, version: 1.0.0}\ndo: [{a: {set: {x: 1}}}]\n".to_owned(),
            Edition::V0_7 | Edition::V0_8 | Edition::V0_9 => format!("specVersion: '{edition}'\nstart: a\nstates: [{inject}]"),
        };
        format!("name: test\n{id}version: 1.0.0\n{rest}\n")
    }

    #[test]
    fn each_edition_has_them() {
        // Documents of DSL 1.0 have no search attributes yet.
        let older = Edition::ALL.into_iter().filter(|it| *it != Edition::V1_0);
        for edition in older {
            let language = crate::vocabulary::language(edition).unwrap();
            let marked = crate::vocabulary::delimiters(edition).unwrap();
            let path = match language {
                Language::JsonPath => "$.order.id",
                _ => ".order.id",
            };
            let value = marked.pair().replace(' ', &format!(" {path} "));
            for value in [path, &value] {
                let own = format!(
                    "metadata: {{swirl: {{search: {{orderId: {{value: '{value}', type: string}}}}}}}}\n"
                );
                let document = of_edition(edition) + &own;
                let resources = MapResources::default();
                let options = Options::default();
                let reading = read_as(edition, document.as_bytes(), &resources, &options).unwrap();
                let shown = show(&reading);
                let workflow = reading
                    .workflow
                    .unwrap_or_else(|| panic!("{edition}: {shown}"));
                assert!(!shown.contains("metadata"), "{edition}: {shown}");
                let [found] = workflow.search.as_slice() else {
                    panic!("{edition}: {shown}");
                };
                let source = &workflow[found.value];
                assert_eq!(
                    (&*source.text, source.language),
                    (path, language),
                    "{edition}"
                );
            }
        }
    }

    #[test]
    fn invalid_declarations_are_rejected_at_their_location() {
        let many: Vec<String> = (0..17)
            .map(|n| format!("a{n}: {{value: .a, type: string}}"))
            .collect();
        let many = format!("{{{}}}", many.join(", "));
        let at = "/metadata/swirl/search";
        for (search, expected) in [
            ("{a: {value: .a, type: string}}", String::new()),
            ("[a]", format!("error wrong-type {at}")),
            (&many, format!("error bad-search-attribute {at}")),
            (
                "{'a b': {value: .a, type: string}}",
                format!("error bad-search-attribute {at}/a b"),
            ),
            ("{a: .a}", format!("error wrong-type {at}/a")),
            ("{a: {value: .a}}", format!("error missing-property {at}/a")),
            (
                "{a: {type: string}}",
                format!("error missing-property {at}/a"),
            ),
            (
                "{a: {value: .a, type: text}}",
                format!("error unknown-value {at}/a/type"),
            ),
            (
                "{a: {value: .a, type: string, of: 1}}",
                format!("error unknown-property {at}/a/of"),
            ),
            (
                "{a: {value: '${ .a + }', type: string}}",
                format!("error bad-expression {at}/a/value"),
            ),
            (
                "{a: {value: '${ $SECRETS.S }', type: string}}",
                format!("error secret-not-allowed {at}/a/value"),
            ),
        ] {
            let found = findings(&document(search));
            let found = found.trim_end_matches(|c: char| c.is_ascii_digit()).trim();
            assert_eq!(found, expected, "{search}");
        }
    }

    #[test]
    fn other_metadata_belongs_to_its_author() {
        let text = |metadata: &str| format!("metadata: {metadata}\n{STATES}");
        assert_eq!(findings(&text("{swirl: yes please}")), "");
        assert_eq!(
            workflow(&text("{swirl: mine}")).metadata.to_string(),
            r#"{"swirl":"mine"}"#
        );
        let wrong = findings(&text("{swirl: {serach: {}}}"));
        assert!(
            wrong.starts_with("error unknown-property /metadata/swirl/serach"),
            "{wrong}"
        );
    }
}
