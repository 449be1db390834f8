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
//! ```
//!
//! The table of editions has them, and `reader.rs` applies them.

use swirl_documents::source::Node;

use super::ctx::Ctx;

/// The locations where a rule applies. Steps are separated by `/`: a property's name, `*` for each item of a list (or
/// each member of an object), `**` for the location itself and everything below it. A step may end in a condition:
/// `*[type=event]` are the items whose `type` is `event` (in any case), `*[type]` those with a `type`, `*[!type]` those
/// without. The empty text is the document itself.
pub(crate) type Selector = &'static str;

/// A difference between two editions.
#[derive(Clone, Copy)]
pub(crate) struct Rule {
    pub at: Selector,
    pub change: Change,
    /// Properties that a function in [`RuleStart::with`] understands.
    known: &'static [&'static str],
}

#[derive(Clone, Copy)]
pub(crate) enum Change {
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
pub(crate) struct RuleStart(Selector);

impl Rule {
    pub const fn at(at: Selector) -> RuleStart {
        RuleStart(at)
    }
}

impl RuleStart {
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

    /// As [`RuleStart::rename`], for an edition that has both names.
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
    /// Properties that the function in [`RuleStart::with`] understands and the reader doesn't know.
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

    /// Whether it changes states themselves, not something in them.
    pub fn is_of_states(&self) -> bool {
        let rest = self.at.strip_prefix("/states/*");
        rest.is_some_and(|rest| !rest.contains('/'))
    }

    /// The words of a property that the rule knows.
    pub fn words(&self) -> Vec<&'static str> {
        match self.change {
            Change::Word { from, to, .. } => vec![from, to],
            _ => Vec::new(),
        }
    }
}
