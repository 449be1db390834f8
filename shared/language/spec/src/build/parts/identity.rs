//! The name of a workflow, and its expression language.

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{Language, Template, Version};

use crate::build::ctx::{Ctx, Obj, did_you_mean};
use crate::build::expression::VisibleVars;

impl Ctx<'_> {
    /// `id` or `key`: one of them (docs/language.md#decision-2).
    pub fn identity(&mut self, root: Obj<'_>) {
        // If it names instances, it is read together with the constants that its evaluation needs.
        let instance_key = self.dialect.parts.instance_key;
        let constants: &[&str] = match instance_key {
            true => &["id"],
            false => &["id", "key"],
        };
        let open = self.dialect.delimiters.open();
        for name in constants {
            if let Some(node) = root.get(name)
                && node.as_str().is_some_and(|text| text.contains(open))
            {
                let message = format!("'{name}' must be a constant, but has an expression in it");
                self.error(
                    node,
                    codes::ID_NOT_CONSTANT,
                    message,
                    "write a fixed name; 'version' may be an expression".to_owned(),
                );
            }
        }
        for name in ["id", "key", "name"] {
            if let Some(node) = root.get(name)
                && let Some(text) = node.as_str().filter(|text| !text.is_empty())
            {
                self.check_id(node, &format!("'{name}'"), text);
            }
        }
        let id = self.opt_name(root, "id");
        let key = match instance_key {
            true => {
                let key = root
                    .get("key")
                    .filter(|node| self.text(node, "'key'").is_some())
                    .map(|node| self.instance_key(node));
                self.workflow.instance_key = key.flatten();
                None
            }
            false => self.opt_name(root, "key"),
        };
        if !instance_key && root.has("id") && root.has("key") {
            self.exclusive(root, "a workflow definition", &["id", "key"]);
        }
        if !root.has("id") && (instance_key || !root.has("key")) {
            self.missing(root, "a workflow definition", &["id", "key"]);
        }
        self.workflow.id = id.or_else(|| key.clone()).unwrap_or_default();
        self.workflow.key = key;
        self.workflow.name = self.opt_name(root, "name");
        self.workflow.description = self.description(root);
        let edition = self.workflow.edition;
        if let Some(node) = root.get("specVersion") {
            self.text(node, "'specVersion'");
        } else if !self
            .diagnostics
            .iter()
            .any(|d| d.code == codes::AMBIGUOUS_EDITION)
        {
            self.warn(
                root.node,
                codes::MISSING_PROPERTY,
                format!(
                    "the workflow definition has no 'specVersion'; by its shape it is read as edition {edition}"
                ),
                format!("add 'specVersion: \"{edition}\"'"),
            );
        }
    }

    /// An expression, which may be bare, or a text.
    fn instance_key(&mut self, node: &Node) -> Option<Template> {
        let is_bare =
            |text: &str| text.trim_start().starts_with(['.', '$']) && !text.contains("${");
        if node.as_str().is_some_and(is_bare) {
            let key = self.expression(node, "'key'", VisibleVars::PLAIN);
            return key.map(Template::Expression);
        }
        self.template(node, VisibleVars::PLAIN)
    }

    pub fn version(&mut self, root: Obj<'_>) {
        let Some(node) = root.get("version") else {
            self.warn(
                root.node,
                codes::VERSION_MISSING,
                "the workflow has no 'version'",
                "add one, such as 'version: 1.0.0'".to_owned(),
            );
            return;
        };
        if node.as_str().is_some_and(|text| text.trim().is_empty()) {
            let message = "'version' is empty: it is read as having none".to_owned();
            self.loose(
                node,
                message,
                "add one, such as 'version: 1.0.0'".to_owned(),
            );
            return;
        }
        let Some(text) = self.text(node, "'version'") else {
            return;
        };
        let open = self.dialect.delimiters.open();
        let has_parts = self.language == Language::Jq && text.contains(open);
        if has_parts && !text.contains("$${") || text.trim_start().starts_with(open) {
            if text.contains("$SECRETS") {
                self.error(
                    node,
                    codes::SECRET_NOT_ALLOWED,
                    "'$SECRETS' cannot be used in the version: everyone can see it",
                    "compute the version from the input or a constant".to_owned(),
                );
                return;
            }
            if let Some(id) = self.text_expression(node, "'version'", VisibleVars::PLAIN) {
                self.workflow.version = Version::Expression(id);
            }
            return;
        }
        self.check_id(node, "'version'", &text);
        if semver::Version::parse(&text).is_err() {
            self.warn(
                node,
                codes::VERSION_NOT_SEMVER,
                format!("the version '{text}' is not a semantic version"),
                "write major.minor.patch, such as '1.0.0'".to_owned(),
            );
        }
        self.workflow.version = Version::Literal(text);
    }

    /// `workflowId` of a reference.
    pub fn workflow_reference(&mut self, obj: Obj<'_>, what: &str) -> Option<String> {
        match obj.get("workflowId") {
            Some(node) => self.reference(node, "'workflowId'"),
            None => {
                self.missing(obj, what, &["workflowId"]);
                None
            }
        }
    }

    /// A reference to a workflow. Nothing in it is evaluated.
    pub fn reference(&mut self, node: &Node, what: &str) -> Option<String> {
        self.warn_reference(node, what);
        self.string(node, what)
    }

    pub fn version_reference(&mut self, node: &Node) -> Option<String> {
        self.warn_reference(node, "'version'");
        if node.is_number() {
            let message = format!(
                "'version' is the number {}, but versions are strings",
                node.raw()
            );
            let hint = "write the version as it is deployed, in quotes".to_owned();
            self.warn(node, codes::VERSION_NOT_SEMVER, message, hint);
        }
        self.text(node, "'version'")
    }

    fn warn_reference(&mut self, node: &Node, what: &str) {
        if node.as_str().is_some_and(|text| text.contains("${")) {
            let message = format!("{what} is plain text: the '${{' here is not evaluated");
            let hint = "name a fixed workflow; a switch state can choose among several".to_owned();
            self.warn(node, codes::EXPRESSION_NOT_EVALUATED, message, hint);
        }
    }

    pub fn language(&mut self, root: Obj<'_>) {
        let Some(node) = root.get("expressionLang") else {
            return;
        };
        let Some(text) = self.string(node, "'expressionLang'") else {
            return;
        };
        match text.as_str() {
            "jq" => {}
            "jsonpath" => self.language = Language::JsonPath,
            other => {
                let hint = did_you_mean(other, ["jq", "jsonpath"])
                    .unwrap_or_else(|| "use jq, which is the default, or jsonpath".to_owned());
                let message = format!("there is no expression language '{other}' here");
                self.error(node, codes::EXPRESSION_LANGUAGE, message, hint);
            }
        }
    }

    pub fn annotations(&mut self, root: Obj<'_>) {
        let Some(node) = root.get("annotations") else {
            return;
        };
        let items = self.list(node, "'annotations'").unwrap_or_default();
        let texts: Vec<Option<String>> = items
            .iter()
            .map(|item| self.string(item, "an annotation"))
            .collect();
        self.workflow.annotations = texts.into_iter().flatten().collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::parts::testing::{STATES, show, workflow};
    use crate::options::Options;
    use crate::reader;
    use crate::resource::MapResources;

    fn whole(text: &str) -> String {
        show(&reader::read(
            text.as_bytes(),
            &MapResources::default(),
            &Options::default(),
        ))
    }

    #[test]
    fn identity_and_version() {
        let states = STATES.trim_end();
        for (head, expected) in [
            ("id: a\nversion: 1.0.0\nspecVersion: '0.8'", ""),
            ("key: a\nversion: 1.0.0\nspecVersion: '0.8'", ""),
            (
                "id: a\nkey: b\nversion: 1.0.0\nspecVersion: '0.8'",
                "error exclusive-properties  1",
            ),
            (
                "version: 1.0.0\nspecVersion: '0.8'",
                "error missing-property  1",
            ),
            (
                "id: '${ .x }'\nversion: 1.0.0\nspecVersion: '0.8'",
                "error id-not-constant /id 1",
            ),
            ("id: a\nspecVersion: '0.8'", "warning version-missing  1"),
            (
                "id: a\nversion: 1.0\nspecVersion: '0.8'",
                "warning version-not-semver /version 2",
            ),
            ("id: a\nversion: '${ .v }'\nspecVersion: '0.8'", ""),
            ("id: a\nversion: 1.0.0", "warning ambiguous-edition  1"),
            (
                "id: a\nversion: 1.0.0\nautoRetries: true\ndataOutputSchema: {schema: {}}",
                "warning missing-property  1",
            ),
            (
                "id: a\nversion: 1.0.0\nspecVersion: '8'",
                "warning misleading-edition /specVersion 3",
            ),
        ] {
            assert_eq!(whole(&format!("{head}\n{states}\n")), expected, "{head}");
        }
        assert_eq!(whole("- 1"), "error wrong-type  1");
        let raw = workflow(&format!("{STATES}x: 1\n"));
        assert_eq!(raw.version, Version::Literal("1.0.0".to_owned()));
        assert_eq!(raw.edition, "0.8");
    }
}
