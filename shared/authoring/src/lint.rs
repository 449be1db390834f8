//! The rules of `swirl lint`: they find parts of a definition that are valid but probably not intended.
//!
//! A rule checks definitions that the reader accepts. It reports only certain findings, because users switch off rules
//! with false alarms. Each rule has a page in `docs/lint/`, and can be switched off by its name on the command line, or
//! with `metadata: {lintAllow: NAME}` in any object that contains the location.

mod calls;
mod conditions;
mod correlation;
mod errors;
mod places;
mod retries;
mod unused;
mod waits;

use swirl_documents::diagnostic::SourceLocation;
use swirl_documents::source::Node;
use swirl_documents::suggest;
use swirl_model::workflow::Workflow;

use places::Places;

/// A row in the table of rules.
#[derive(Debug)]
pub struct Rule {
    /// A stable word.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// The page, in Markdown.
    pub page: &'static str,
}

macro_rules! rules {
    ($($name:ident = $word:literal: $summary:literal;)*) => {
        $(#[doc = $summary] pub static $name: Rule = Rule {
            name: $word,
            summary: $summary,
            page: include_str!(concat!("../../../docs/lint/", $word, ".md")),
        };)*

        /// All rules, in alphabetical order.
        pub static RULES: &[&Rule] = &[$(&$name),*];
    };
}

rules! {
    CONSTANT_CONDITION = "constant-condition": "A condition that is always the same, or that an earlier one makes superfluous.";
    CORRELATION_WITHOUT_VALUE = "correlation-without-value": "A wait that takes the first event from any sender.";
    OTHER_ERROR_TYPE = "other-error-type": "An expression that compares an error's type with a name that no error has here.";
    REPEATED_CALL = "repeated-call": "A call that changes something at a service that doesn't document how it recognises repeats.";
    RETRY_WITHOUT_DELAY = "retry-without-delay": "Retries that follow each other at once.";
    UNKNOWN_RULE = "unknown-rule": "A rule is allowed that doesn't exist.";
    UNUSED_DEFINITION = "unused-definition": "A definition that nothing refers to.";
    WAIT_WITHOUT_TIMEOUT = "wait-without-timeout": "A wait that may never end.";
}

/// A finding of a rule.
#[derive(Debug)]
pub struct Finding {
    pub rule: &'static Rule,
    pub place: SourceLocation,
    /// A sentence without its full stop.
    pub message: String,
    /// How to fix it.
    pub hint: String,
}

/// A definition in the form that rules check.
pub(crate) struct Subject<'s> {
    pub workflow: &'s Workflow,
    pub root: &'s Node,
    pub places: Places<'s>,
    /// The documents of functions, by URI.
    pub documents: &'s [(String, String)],
    findings: Vec<Finding>,
}

impl<'s> Subject<'s> {
    pub fn found(
        &mut self,
        rule: &'static Rule,
        node: &Node,
        message: String,
        hint: impl Into<String>,
    ) {
        self.findings.push(Finding {
            rule,
            place: node.place(),
            message,
            hint: hint.into(),
        });
    }
}

/// Returns the findings of all rules for a definition that was read from the document `root`, in document order.
/// `documents` are the available documents of its functions, by URI.
pub fn lint(workflow: &Workflow, root: &Node, documents: &[(String, String)]) -> Vec<Finding> {
    let mut subject = Subject {
        workflow,
        root,
        places: Places::of(root),
        documents,
        findings: Vec::new(),
    };
    for check in [
        calls::check,
        conditions::check,
        correlation::check,
        errors::check,
        retries::check,
        unused::check,
        waits::check,
    ] {
        check(&mut subject);
    }
    let mut findings = subject.findings;
    findings.retain(|finding| !is_allowed(root, finding));
    unknown_rules(root, &mut findings);
    findings.sort_by_key(|finding| (finding.place.line, finding.place.column));
    findings
}

const ALLOW: &str = "lintAllow";

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
}

fn allowed(node: &Node) -> Option<&Node> {
    node.get("metadata")?.get(ALLOW)
}

/// Whether the object at this location, or an enclosing one, allows the finding.
fn is_allowed(root: &Node, finding: &Finding) -> bool {
    let mut pointer = finding.place.pointer.as_str();
    loop {
        let list = root.at(pointer).and_then(allowed).and_then(Node::as_str);
        if list.is_some_and(|list| words(list).any(|word| word == finding.rule.name)) {
            return true;
        }
        match pointer.rfind('/') {
            Some(end) => pointer = &pointer[..end],
            None => return false,
        }
    }
}

fn unknown_rules(node: &Node, findings: &mut Vec<Finding>) {
    if let Some(list) = allowed(node) {
        let text = list.as_str().unwrap_or_default();
        for word in words(text) {
            if let Err(hint) = known(word) {
                findings.push(Finding {
                    rule: &UNKNOWN_RULE,
                    place: list.place(),
                    message: format!("there is no rule '{word}'"),
                    hint,
                });
            }
        }
    }
    for item in node.items().unwrap_or_default() {
        unknown_rules(item, findings);
    }
    for member in node.members().unwrap_or_default() {
        unknown_rules(member.value(), findings);
    }
}

/// The rule with this name.
///
/// # Errors
/// There is no such rule; the error suggests a name.
pub fn known(name: &str) -> Result<&'static Rule, String> {
    let rule = RULES.iter().find(|rule| rule.name == name);
    rule.copied().ok_or_else(|| {
        let names = RULES.iter().map(|rule| rule.name);
        match suggest::did_you_mean(name, names.clone()) {
            Some(best) => format!("did you mean '{best}'?"),
            None => format!("the rules are {}", names.collect::<Vec<_>>().join(", ")),
        }
    })
}

#[cfg(test)]
mod tests;
