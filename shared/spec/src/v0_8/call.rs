//! What the calls of some function types have of their own (section "FunctionRef Definition").

use swirl_model::workflow::Template;

use super::ctx::{Ctx, Obj};
use super::expression::Sight;
use crate::codes;
use crate::graphql;
use crate::source::Node;

impl Ctx<'_> {
    /// `selectionSet`; one without expressions is checked at once. `None` after a finding.
    pub fn selection_set(&mut self, node: &Node, sight: Sight<'_>) -> Option<Template> {
        self.string(node, "'selectionSet'")?;
        let template = self.template(node, sight)?;
        if let Template::Literal(text) = &template
            && let Some(text) = text.as_str()
            && let Err(reason) = graphql::selection_set(text)
        {
            self.error(
                node,
                codes::BAD_SELECTION_SET,
                format!("this is no selection set of GraphQL: {reason}"),
                "write '{ field, other { field } }'".to_owned(),
            );
            return None;
        }
        Some(template)
    }

    /// By the language's OData schema, and `orderby` as its text has it.
    pub fn odata_arguments(&mut self, obj: Obj<'_>) {
        const OPTIONS: &[&str] = &[
            "compute",
            "count",
            "expand",
            "filter",
            "format",
            "index",
            "orderBy",
            "orderby",
            "schemaVersion",
            "search",
            "select",
            "skip",
            "top",
        ];
        let what = "the arguments of an odata function";
        let arguments = obj.get("arguments").or(obj.get("parameters"));
        let arguments = arguments.filter(|node| node.members().is_some());
        let known = &["key", "queryOptions"];
        let Some(arguments) = arguments.and_then(|node| self.object(node, what, known)) else {
            return;
        };
        if let Some(options) = arguments.get("queryOptions")
            && options.members().is_some()
        {
            self.object(options, "'queryOptions'", OPTIONS);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::v0_8::testing::{findings, read_with, show};

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
            // A scenario's own function takes what it likes.
            assert_eq!(show(&read_with(&body, &[], &["f"])), "", "{arguments}");
        }
    }
}
