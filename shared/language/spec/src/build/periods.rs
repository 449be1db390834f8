//! Durations, and the timeouts that consist of one.

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::Period;

use super::ctx::{Ctx, Obj};
use super::expression::VisibleVars;
use crate::time;

impl Ctx<'_> {
    /// The text of an interval, with durations as they are meant (docs/language.md#decision-105).
    pub fn interval_text(&mut self, node: &Node, what: &str) -> Option<String> {
        let text = self.constant_text(node, what)?;
        let text = text.trim();
        let Some(meant) = time::interval::misplaced(text) else {
            return Some(text.to_owned());
        };
        let message = format!("{what} is '{text}': days and weeks come before the 'T'");
        self.loose(node, message, format!("write '{meant}'"));
        Some(meant)
    }

    pub fn duration(&mut self, node: &Node, what: &str) -> Option<Period> {
        let text = match node.as_str() {
            Some(text) if self.dialect.parts.period_expressions && text.contains("${") => {
                let params = self.params.clone();
                let sight = VisibleVars {
                    params: &params,
                    ..VisibleVars::PLAIN
                };
                return self
                    .text_expression(node, what, sight)
                    .map(Period::Expression);
            }
            Some(text) => text,
            None => {
                self.wrong_type(node, what, "an ISO 8601 duration such as 'PT15M'");
                return None;
            }
        };
        match time::duration::parse(text.trim()) {
            Ok(duration) => Some(duration.into()),
            Err(_) if let Some((meant, duration)) = time::duration::misplaced(text) => {
                let message = format!("{what} is '{text}': days and weeks come before the 'T'");
                self.loose(node, message, format!("write '{meant}'"));
                Some(Period::Fixed(duration))
            }
            Err(error) => {
                let message = format!("{what} is not an ISO 8601 duration: {error}");
                let open = self.dialect.delimiters.open();
                let hint = match time::duration::suggestion(text) {
                    _ if text.contains(open) => {
                        "write the duration itself: in this edition it cannot be an expression"
                            .to_owned()
                    }
                    Some(best) => format!("write '{best}'"),
                    None => "write for example 'PT15M' (15 minutes) or 'P2DT3H' (2 days, 3 hours)"
                        .to_owned(),
                };
                self.error(node, codes::BAD_DURATION, message, hint);
                None
            }
        }
    }

    pub fn opt_duration(&mut self, obj: Obj<'_>, name: &str) -> Option<Period> {
        let node = obj.get(name)?;
        self.duration(node, &format!("'{name}'"))
    }

    /// A duration greater than zero, as all timeouts must be.
    pub fn timeout(&mut self, obj: Obj<'_>, name: &str) -> Option<Period> {
        let node = obj.get(name)?;
        self.positive(node, &format!("'{name}'"))
    }

    pub fn positive(&mut self, node: &Node, what: &str) -> Option<Period> {
        let duration = self.duration(node, what)?;
        self.not_zero(node, what, duration)
    }

    /// Refuses a timeout of zero.
    pub fn not_zero(&mut self, node: &Node, what: &str, duration: Period) -> Option<Period> {
        if duration.fixed().is_some_and(|duration| duration.is_zero()) {
            let message = format!("{what} is zero: a timeout must be longer than that");
            self.error(
                node,
                codes::ZERO_TIMEOUT,
                message,
                "give a longer one, or leave it out for no timeout".to_owned(),
            );
            return None;
        }
        Some(duration)
    }
}
