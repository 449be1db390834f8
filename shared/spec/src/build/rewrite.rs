//! Editions as tables of differences: rules that turn a document of one edition into one that the reader of another
//! edition understands, before it is read.
//!
//! A rule states where it applies and what it changes there. Locations are kept (see `source::Node`), so findings refer
//! to the document as it was written. With [`super::dialect::Dialect::own_names`] they also use its own property names.
//! Anything without a rule stays unchanged.
//!
//! ```text
//! const RULES: &[Rule] = &[
//!     Rule::at("/states/*/onErrors/*").rename("error", "errorRef"),
//!     Rule::at("/states/*").word("type", "delay", "sleep"),
//!     Rule::at("/states/*[type=sleep]").rename("timeDelay", "duration"),
//!     Rule::at("/states/*[type=subflow]").with(subflow_state),
//! ];
//!
//! pub(super) fn read(ctx: &mut Ctx<'_>, root: &Node) {
//!     super::v0_8::read_rewritten(ctx, root, RULES);
//! }
//! ```

use super::ctx::{Ctx, did_you_mean};
use crate::codes;
use crate::source::Node;

/// The locations where a rule applies. Steps are separated by `/`: a property's name, `*` for each item of a list (or
/// each member of an object), `**` for the location itself and everything below it. A step may end in a condition:
/// `*[type=event]` are the items whose `type` is `event` (in any case), `*[type]` those with a `type`, `*[!type]` those
/// without. The empty text is the document itself.
pub(crate) type Selector = &'static str;

/// A difference between two editions.
#[derive(Clone, Copy)]
pub(crate) struct Rule {
    at: Selector,
    change: Change,
    /// Properties that a function in [`Place::with`] understands.
    known: &'static [&'static str],
}

#[derive(Clone, Copy)]
enum Change {
    Rename {
        from: &'static str,
        to: &'static str,
        quiet: bool,
    },
    Word {
        property: &'static str,
        from: &'static str,
        to: &'static str,
    },
    Default {
        property: &'static str,
        value: &'static str,
    },
    Unknown(&'static [&'static str]),
    With(fn(&mut Ctx<'_>, &mut Node)),
}

/// The beginning of a rule. Its effect follows.
#[derive(Clone, Copy)]
pub(crate) struct Place(Selector);

impl Rule {
    pub const fn at(at: Selector) -> Place {
        Place(at)
    }
}

impl Place {
    /// Renames the property `from` of the document's edition to the reader's `to`. A document with `to` is accepted
    /// with a warning; one with both is refused.
    pub const fn rename(self, from: &'static str, to: &'static str) -> Rule {
        let change = Change::Rename {
            from,
            to,
            quiet: false,
        };
        self.does(change)
    }

    /// As [`Place::rename`], for an edition that has both names.
    pub const fn also(self, from: &'static str, to: &'static str) -> Rule {
        let change = Change::Rename {
            from,
            to,
            quiet: true,
        };
        self.does(change)
    }

    /// Replaces the word `from` of a property with the reader's `to`, in any case.
    pub const fn word(self, property: &'static str, from: &'static str, to: &'static str) -> Rule {
        self.does(Change::Word { property, from, to })
    }

    /// The default for an absent property, if it differs from the reader's default.
    pub const fn default(self, property: &'static str, value: &'static str) -> Rule {
        self.does(Change::Default { property, value })
    }

    /// Properties that the reader knows but the document's edition doesn't have (docs/language.md#decision-1).
    pub const fn unknown(self, properties: &'static [&'static str]) -> Rule {
        self.does(Change::Unknown(properties))
    }

    /// Any other change: a function that changes the value at this location.
    pub const fn with(self, change: fn(&mut Ctx<'_>, &mut Node)) -> Rule {
        self.does(Change::With(change))
    }

    const fn does(self, change: Change) -> Rule {
        Rule {
            at: self.0,
            change,
            known: &[],
        }
    }
}

impl Rule {
    /// Properties that the function in [`Place::with`] understands and the reader doesn't know.
    pub const fn knowing(self, known: &'static [&'static str]) -> Rule {
        Rule { known, ..self }
    }

    /// The property names that the rule knows.
    pub fn names(&self) -> Vec<&'static str> {
        match self.change {
            Change::Rename { from, to, .. } => vec![from, to],
            Change::Word { property, .. } | Change::Default { property, .. } => vec![property],
            Change::Unknown(names) => names.to_vec(),
            Change::With(_) => self.known.to_vec(),
        }
    }

    /// The words of a property that the rule knows.
    pub fn words(&self) -> Vec<&'static str> {
        match self.change {
            Change::Word { from, to, .. } => vec![from, to],
            _ => Vec::new(),
        }
    }
}

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

    fn rename(&mut self, node: &mut Node, from: &'static str, to: &'static str, quiet: bool) {
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
                    format!("'{to}' is another edition's name for '{from}'; it is taken as that");
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

    fn unknown_here(&mut self, node: &mut Node, name: &str) {
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
    use crate::source::{Limits, parse};

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
