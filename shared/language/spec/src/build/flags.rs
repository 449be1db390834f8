//! Booleans of states that are written as texts (`end: "true"`). Several readers decide by them before they read them,
//! such as the checks of compensation, so they are replaced first (docs/language.md#decision-105).

use swirl_documents::codes;
use swirl_documents::source::Node;

use super::advice;
use super::ctx::Ctx;

const FLAGS: [&str; 3] = ["end", "start", "usedForCompensation"];

/// The lists of parts that may have such booleans.
const LISTS: [&str; 11] = [
    "states",
    "tasks",
    "branches",
    "choices",
    "dataConditions",
    "eventConditions",
    "events",
    "eventsActions",
    "onEvents",
    "onError",
    "onErrors",
];

/// The parts that aren't in lists.
const PARTS: [&str; 2] = ["default", "defaultCondition"];

impl Ctx<'_> {
    /// Replaces them in all states of a document or a branch.
    pub fn read_flags(&mut self, holder: &mut Node) {
        for list in LISTS {
            let items = holder.get_mut(list).and_then(Node::items_mut);
            for item in items.into_iter().flatten() {
                self.flags_of_part(item);
                self.read_flags(item);
            }
        }
        for part in PARTS {
            if let Some(part) = holder.get_mut(part) {
                self.flags_of_part(part);
            }
        }
    }

    fn flags_of_part(&mut self, part: &mut Node) {
        for name in FLAGS {
            let Some(node) = part.get_mut(name) else {
                continue;
            };
            let text = node.as_str().unwrap_or_default();
            let Some(flag) = advice::flag(text) else {
                continue;
            };
            let message = format!("'{name}' is the string \"{text}\" instead of {flag}");
            let location = self.location(node);
            let hint = format!("write {flag} without quotes");
            self.warn_as_is(&location, codes::LOOSE_FORM, message, hint);
            *node = node.flag_here(flag);
        }
    }
}
