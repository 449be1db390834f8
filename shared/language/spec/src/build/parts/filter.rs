//! Data filters (sections "State Data Filters", "Action Data Filters", "Event Data Filters").

use swirl_model::workflow::{EventFilter, ExprId, ResultRule, Under};

use crate::build::ctx::{Ctx, Obj};
use crate::build::expression::VisibleVars;
use crate::build::paths::{names_part_of_event, under};

impl Ctx<'_> {
    /// `stateDataFilter`: input and output.
    pub fn state_filter(&mut self, obj: Obj<'_>) -> (Option<ExprId>, Option<ExprId>) {
        let Some(node) = obj.get("stateDataFilter") else {
            return (None, None);
        };
        let Some(obj) = self.object(node, "'stateDataFilter'", &["input", "output"]) else {
            return (None, None);
        };
        (
            self.opt_expression(obj, "input", VisibleVars::PLAIN),
            self.opt_expression(obj, "output", VisibleVars::PLAIN),
        )
    }

    /// `actionDataFilter`: the input that the action sees, and the use of its result.
    pub fn action_filter(
        &mut self,
        obj: Obj<'_>,
        sight: VisibleVars<'_>,
        detached: bool,
    ) -> (Option<ExprId>, ResultRule) {
        let nothing = ResultRule {
            ignore: detached,
            ..ResultRule::default()
        };
        let Some(node) = obj.get("actionDataFilter") else {
            return (None, nothing);
        };
        let known = &["fromStateData", "useResults", "results", "toStateData"];
        let Some(obj) = self.object(node, "'actionDataFilter'", known) else {
            return (None, nothing);
        };
        let ignore = !self.boolean(obj, "useResults", true);
        let rule = ResultRule {
            ignore: ignore || detached,
            results: self.opt_expression(obj, "results", sight),
            to: self.path(obj, "toStateData", sight),
            under: self.under(obj, "results"),
            ..ResultRule::default()
        };
        let why = match (ignore, detached) {
            (_, true) => "an action that nothing waits for has no results",
            (true, _) => "'useResults' is false",
            _ => "",
        };
        self.unused(obj, &["results", "toStateData"], why);
        (self.opt_expression(obj, "fromStateData", sight), rule)
    }

    pub fn event_filter(&mut self, obj: Obj<'_>) -> EventFilter {
        let Some(node) = obj.get("eventDataFilter") else {
            return EventFilter::default();
        };
        let known = &["useData", "data", "toStateData"];
        let Some(obj) = self.object(node, "'eventDataFilter'", known) else {
            return EventFilter::default();
        };
        let ignore = !self.boolean(obj, "useData", true);
        let filter = EventFilter {
            ignore,
            data: self.opt_expression(obj, "data", VisibleVars::PLAIN),
            to: self.path(obj, "toStateData", VisibleVars::PLAIN),
            under: self.under(obj, "data"),
            or_whole: self.dialect.parts.paths
                && obj
                    .get("data")
                    .is_some_and(|node| names_part_of_event(self, node)),
            ..EventFilter::default()
        };
        self.unused(
            obj,
            &["data", "toStateData"],
            if ignore { "'useData' is false" } else { "" },
        );
        filter
    }

    /// The name that a path gives to its value, if nothing states the value's target.
    fn under(&self, obj: Obj<'_>, name: &str) -> Option<Under> {
        let is_named = self.dialect.parts.paths && !obj.has("toStateData");
        is_named.then(|| under(obj.get(name))).flatten()
    }

    fn unused(&mut self, obj: Obj<'_>, names: &[&str], why: &str) {
        if why.is_empty() {
            return;
        }
        for name in names {
            if let Some(node) = obj.get(name) {
                self.ignored(node, name, why);
            }
        }
    }
}
