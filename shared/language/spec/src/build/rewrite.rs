//! Applies the rules of an edition ([`Rule`]) to a document, before it is read.

use swirl_documents::codes;
use swirl_documents::source::Node;

use super::ctx::{Ctx, did_you_mean};
use super::rule::{Change, Rule};

impl Ctx<'_> {
    /// Applies the rules to a document in sequence, and keeps them for the documents that it refers to.
    pub fn rewrite(&mut self, root: &mut Node, rules: &'static [Rule]) {
        self.rules = rules;
        self.written.note(root, &self.base, self.dialect.own_names);
        for rule in rules {
            self.walk(root, rule.at, rule.change);
        }
    }

    /// Applies the rules to a document that contains a property of the definition.
    pub fn rewrite_resource(&mut self, content: Node, name: &str) -> Node {
        if self.rules.is_empty() {
            return content;
        }
        let mut holder = content.object_here([(name, content.clone())]);
        for rule in self.rules {
            let first = rule.at.split(['/', '[']).nth(1);
            if rule.at.starts_with('/') && (first == Some(name) || first == Some("**")) {
                self.walk(&mut holder, rule.at, rule.change);
            }
        }
        holder.take(name).unwrap_or(content)
    }

    fn walk(&mut self, node: &mut Node, at: &'static str, change: Change) {
        let Some(rest) = at.strip_prefix('/') else {
            return self.change(node, change);
        };
        let (step, rest) = match rest.find('/') {
            Some(end) => rest.split_at(end),
            None => (rest, ""),
        };
        let (name, condition) = match step.split_once('[') {
            Some((name, condition)) => (name, condition.trim_end_matches(']')),
            None => (step, ""),
        };
        match name {
            "**" => {
                for child in children(node) {
                    self.walk(child, at, change);
                }
                if holds(node, condition) {
                    self.walk(node, rest, change);
                }
            }
            "*" => {
                for child in children(node) {
                    if holds(child, condition) {
                        self.walk(child, rest, change);
                    }
                }
            }
            name => {
                if let Some(child) = node.get_mut(name)
                    && holds(child, condition)
                {
                    self.walk(child, rest, change);
                }
            }
        }
    }

    fn change(&mut self, node: &mut Node, change: Change) {
        match change {
            Change::Rename { from, to, quiet } => self.rename(node, from, to, quiet),
            Change::Word { property, from, to } => {
                let Some(word) = node.get_mut(property) else {
                    return;
                };
                if word
                    .as_str()
                    .is_some_and(|text| text.eq_ignore_ascii_case(from))
                {
                    *word = word.text_here(to);
                }
            }
            Change::Default { property, value } => {
                if node.members().is_some() && node.get(property).is_none() {
                    node.put(property, node.text_here(value));
                }
            }
            Change::Unknown(properties) => {
                for name in properties {
                    self.unknown_here(node, name);
                }
            }
            Change::With(change) => change(self, node),
        }
    }

    /// As [`super::rule::RuleStart::rename`], or as `also` if it is quiet.
    pub fn rename(&mut self, node: &mut Node, from: &'static str, to: &'static str, quiet: bool) {
        match (node.get(from), node.get(to)) {
            (Some(_), None) => drop(node.rename(from, to)),
            (Some(_), Some(_)) => {
                let message =
                    format!("'{from}' and '{to}' mean the same: only one of them may be given");
                let location = self.location(node);
                self.error_as_is(
                    &location,
                    codes::EXCLUSIVE_PROPERTIES,
                    message,
                    format!("write '{from}'"),
                );
                node.take(from);
            }
            (None, Some(other)) if !quiet => {
                let message =
                    format!("'{to}' is another edition's name for '{from}'; it is read as that");
                let location = self.location(other);
                self.warn_as_is(
                    &location,
                    codes::OTHER_EDITIONS_NAME,
                    message,
                    format!("write '{from}'"),
                );
            }
            _ => {}
        }
    }

    /// As [`super::rule::RuleStart::unknown`].
    pub fn unknown_here(&mut self, node: &mut Node, name: &str) {
        let Some(member) = node.member(name) else {
            return;
        };
        let location = self.place(member.key_place());
        let edition = self.workflow.edition;
        let message = format!("edition {edition} has no property '{name}' here");
        let others = node.members().unwrap_or_default().iter();
        let others = others.map(|member| member.key()).filter(|key| *key != name);
        let hint = did_you_mean(name, others).unwrap_or_else(|| {
            format!("remove '{name}', or write the document in an edition that has it")
        });
        self.error_as_is(&location, codes::UNKNOWN_PROPERTY, message, hint);
        node.take(name);
    }
}

fn children(node: &mut Node) -> Vec<&mut Node> {
    if node.items().is_some() {
        return node.items_mut().into_iter().flatten().collect();
    }
    node.values_mut().collect()
}

fn holds(node: &Node, condition: &str) -> bool {
    match (condition.split_once('='), condition.strip_prefix('!')) {
        _ if condition.is_empty() => true,
        (Some((property, word)), _) => {
            let value = node.get(property).and_then(Node::as_str);
            value.is_some_and(|value| value.eq_ignore_ascii_case(word))
        }
        (None, Some(property)) => node.get(property).is_none(),
        (None, None) => node.get(condition).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::dialect::Dialect;
    use crate::options::Options;
    use crate::resource::MapResources;
    use swirl_documents::source::{Limits, parse};

    const RULES: &[Rule] = &[
        Rule::at("/states/*/onErrors/*").rename("error", "errorRef"),
        Rule::at("/states/*").word("type", "delay", "sleep"),
        Rule::at("/states/*[type=sleep]").rename("timeDelay", "duration"),
        Rule::at("/functions/*").default("type", "rest"),
        Rule::at("/**/functionRef").rename("parameters", "arguments"),
        Rule::at("").unknown(&["auth"]),
        Rule::at("/states/*[!name]").with(|_, node| {
            let name = node.text_here("unnamed");
            node.put("name", name);
        }),
    ];

    fn rewritten(text: &str) -> (String, String) {
        let mut root = parse(text.as_bytes(), &Limits::default()).unwrap();
        let resources = MapResources::default();
        let options = Options::default();
        let mut ctx = Ctx::new(Dialect::JQ, "", &resources, &options);
        ctx.rewrite(&mut root, RULES);
        let findings = ctx.diagnostics.iter();
        let findings = findings.map(|d| format!("{} {} {}", d.code, d.pointer, d.line));
        let findings: Vec<String> = findings.collect();
        (root.to_data().to_string(), findings.join("\n"))
    }

    #[test]
    fn rules_apply_at_their_locations() {
        let text = "functions: [{name: f}, {name: g, type: rpc}]
states:
- {name: a, type: Delay, timeDelay: PT1S, onErrors: [{error: x}]}
- {type: operation, timeDelay: PT1S, actions: [{functionRef: {parameters: {}}}]}
";
        let (tree, findings) = rewritten(text);
        assert_eq!(
            tree,
            r#"{"functions":[{"name":"f","type":"rest"},{"name":"g","type":"rpc"}],"states":[{"name":"a","type":"sleep","duration":"PT1S","onErrors":[{"errorRef":"x"}]},{"type":"operation","timeDelay":"PT1S","actions":[{"functionRef":{"arguments":{}}}],"name":"unnamed"}]}"#
        );
        assert_eq!(findings, "");
    }

    #[test]
    fn other_names_are_found() {
        let text = "auth: []
states:
- {name: a, onErrors: [{errorRef: x}]}
- {name: b, onErrors: [{error: x, errorRef: y}]}
";
        let (tree, findings) = rewritten(text);
        assert!(!tree.contains("auth"), "{tree}");
        assert_eq!(
            findings,
            "unknown-property /auth 1\nother-editions-name /states/0/onErrors/0/errorRef 3\nexclusive-properties /states/1/onErrors/0 4"
        );
    }
}
