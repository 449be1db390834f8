//! Path filters of events, states and actions (section "Filter Mechanism", docs/language.md#decision-55).
//!
//! The drafts mention three paths but have no schema for them. In documents they are in an object `filter`, or next to
//! the other properties, in each of the spellings that were in use.

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{ExprId, PathId};

use super::Reader;
use crate::build::ctx::{Obj, words};
use crate::build::expression::VisibleVars;

const INPUT: [&str; 3] = ["inputPath", "InputPath", "input-path"];
const RESULT: [&str; 3] = ["resultPath", "ResultPath", "result-path"];
const OUTPUT: [&str; 3] = ["outputPath", "OutputPath", "output-path"];
const OBJECT: [&str; 2] = ["filter", "Filter"];

/// All names that a filter may have at its location.
pub(super) const PROPERTIES: [&str; 11] = [
    OBJECT[0], OBJECT[1], INPUT[0], INPUT[1], INPUT[2], RESULT[0], RESULT[1], RESULT[2], OUTPUT[0],
    OUTPUT[1], OUTPUT[2],
];

/// A path and its location. `$`, which selects everything, is omitted.
pub(super) type FilterPath<'n> = (Obj<'n>, &'static str);

#[derive(Default, Clone, Copy)]
pub(super) struct Filter<'n> {
    /// Selects the incoming data.
    pub input: Option<FilterPath<'n>>,
    /// The target of the result in the data.
    pub result: Option<FilterPath<'n>>,
    /// Selects the data that is passed on.
    pub output: Option<FilterPath<'n>>,
}

impl Reader<'_, '_> {
    pub fn filter<'n>(&mut self, obj: Obj<'n>, what: &str) -> Filter<'n> {
        let mut holders = vec![obj];
        for name in OBJECT {
            let Some(node) = obj.get(name) else { continue };
            let known: Vec<&str> = [INPUT, RESULT, OUTPUT].concat();
            let what = format!("the filter of {what}");
            holders.extend(self.ctx.object(node, &what, &known));
        }
        Filter {
            input: self.place(&holders, &INPUT),
            result: self.place(&holders, &RESULT),
            output: self.place(&holders, &OUTPUT),
        }
    }

    fn place<'n>(&mut self, holders: &[Obj<'n>], names: &[&'static str]) -> Option<FilterPath<'n>> {
        let mut found: Option<FilterPath<'n>> = None;
        for holder in holders {
            for name in names.iter().filter(|name| holder.has(name)) {
                if found.is_some() {
                    let message = format!("the filter has {} more than once", words(names));
                    let hint = "keep one of them".to_owned();
                    let code = codes::EXCLUSIVE_PROPERTIES;
                    self.ctx.error(holder.node, code, message, hint);
                }
                found = Some((*holder, name));
            }
        }
        found.filter(|(holder, name)| {
            let text = holder.get(name).and_then(Node::as_str);
            !matches!(text.map(str::trim), Some("$" | "$."))
        })
    }

    /// A path that selects.
    pub fn selection(&mut self, place: Option<FilterPath<'_>>) -> Option<ExprId> {
        let (obj, name) = place?;
        self.ctx.opt_expression(obj, name, VisibleVars::PLAIN)
    }

    /// A path that denotes a target.
    pub fn target(&mut self, place: Option<FilterPath<'_>>) -> Option<PathId> {
        let (obj, name) = place?;
        self.ctx.path(obj, name, VisibleVars::PLAIN)
    }

    /// A path that has no effect at its location.
    pub fn no_effect(&mut self, place: Option<FilterPath<'_>>, why: &str) {
        if let Some((obj, name)) = place
            && let Some(node) = obj.get(name)
        {
            self.ctx.ignored(node, name, why);
        }
    }
}
