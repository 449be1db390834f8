//! Retries: an action is repeated while its result or error matches `match`, and the workflow continues at another
//! state when no retries are left (section "Retry Definition", docs/language.md#decision-20, #decision-22 and
//! #decision-55).

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::time::IsoDuration;
use swirl_model::workflow::{ActionHandler, ErrorSet, Next, Retry, Then};

use super::Reader;
use crate::build::ctx::Obj;
use crate::time::interval;

const PROPERTIES: &[&str] = &["match", "retry-interval", "max-retry", "next-state"];

impl Reader<'_, '_> {
    pub fn retry(&mut self, action: Obj<'_>) -> Vec<ActionHandler> {
        let Some(node) = action.get("retry") else {
            return Vec::new();
        };
        self.retry_object(node).into_iter().collect()
    }

    fn retry_object(&mut self, node: &Node) -> Option<ActionHandler> {
        let obj = self.ctx.object(node, "'retry'", PROPERTIES)?;
        let max = obj.get("max-retry").map(|node| self.count(node));
        let interval = match obj.get("retry-interval") {
            Some(node) => self.interval(node),
            None => Some((None, None)),
        };
        let (next, text) = (self.retry_next(obj), self.retry_match(obj));
        let (count, delay) = interval?;
        // If both are given, the smaller one applies (docs/language.md#decision-22); without any count the schema's
        // default is 0.
        let max = match (max, count) {
            (Some(max), None) => max?,
            (Some(max), Some(count)) => max?.min(count.unwrap_or(u32::MAX)),
            (None, Some(count)) => count.unwrap_or(u32::MAX),
            (None, None) => 0,
        };
        if let (0, Some(node)) = (max, obj.get("retry-interval")) {
            let why = "'max-retry' allows no retry";
            self.ctx.ignored(node, "retry-interval", why);
        }
        Some(ActionHandler {
            errors: ErrorSet::Text(text?),
            results: true,
            retry: Some(Retry {
                delay: delay.map(Into::into),
                retries_max: Some(max).filter(|max| *max != u32::MAX),
                ..Retry::default()
            }),
            data: None,
            then: Then::Next(next?),
        })
    }

    fn retry_next(&mut self, obj: Obj<'_>) -> Option<Next> {
        let Some(node) = obj.get("next-state") else {
            self.ctx.missing(obj, "'retry'", &["next-state"]);
            return None;
        };
        self.transition(node, "'next-state'")
    }

    fn retry_match(&mut self, obj: Obj<'_>) -> Option<String> {
        let Some(node) = obj.get("match") else {
            self.ctx.missing(obj, "'retry'", &["match"]);
            return None;
        };
        match node.as_bool() {
            Some(flag) => Some(flag.to_string()),
            None => self.ctx.text(node, "'match'"),
        }
    }

    /// The interval and the number of repetitions, if stated: `R5/PT15M` means five times, `R/PT15M` forever.
    #[allow(clippy::type_complexity)]
    fn interval(&mut self, node: &Node) -> Option<(Option<Option<u32>>, Option<IsoDuration>)> {
        let what = "'retry-interval'";
        if !node.as_str().is_some_and(|text| text.contains('/')) {
            return Some((None, Some(self.length(node, what)?)));
        }
        let text = self.ctx.interval_text(node, what)?;
        match interval::parse_retry(&text) {
            Ok((count, length)) => Some((Some(count), Some(length))),
            Err(error) => {
                let message = format!("{what} is not an ISO 8601 interval: {error}");
                let hint = "write for example 'R5/PT15M' (5 times, 15 minutes apart)".to_owned();
                self.ctx.error(node, codes::BAD_INTERVAL, message, hint);
                None
            }
        }
    }

    fn count(&mut self, node: &Node) -> Option<u32> {
        let text = match node.is_number() {
            true => node.raw(),
            false => node.as_str().unwrap_or_default(),
        };
        let count = crate::build::expression::whole(text.trim());
        if count.is_none() {
            let message = "'max-retry' must be a whole number of 0 or more";
            self.ctx.error(node, codes::BAD_NUMBER, message, None);
        }
        count
    }
}
