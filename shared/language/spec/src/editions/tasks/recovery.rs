//! A state's reactions to errors: `retry` and `onError` (section "Workflow Error Handling",
//! docs/language.md#decision-20, #decision-21 and #decision-22).

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{ErrorDef, ErrorId, ErrorSet, Handler, Retry, StateRetryRule, Then};

use super::Reader;
use crate::build::ctx::Obj;
use crate::build::earlier::older::as_there;
use crate::build::expression::whole;
use crate::time::interval;

impl Reader<'_, '_> {
    /// `retry`: the first entry that matches an error applies. Entries that refer only to data also check the results
    /// of actions.
    pub fn retries(&mut self, obj: Obj<'_>) -> Vec<StateRetryRule> {
        let Some(node) = obj.get("retry") else {
            return Vec::new();
        };
        let items = self.one_or_list(node, "'retry'");
        items.iter().filter_map(|item| self.retry(item)).collect()
    }

    fn retry(&mut self, node: &Node) -> Option<StateRetryRule> {
        let known = &["expression", "interval", "multiplier", "maxAttempts"];
        let obj = self.object(node, "a retry", known)?;
        let expression = self.expression_of(obj, "a retry");
        let attempts = obj.get("maxAttempts").map(|node| self.attempts(node));
        let (count, delay) = self.retry_interval(obj);
        let mut policy = Retry {
            delay,
            ..Retry::default()
        };
        if let Some(node) = obj.get("multiplier") {
            if node.is_number() {
                policy.multiplier = node.raw().parse().ok().filter(|number| *number > 0.0);
                if policy.multiplier.is_none() {
                    let message = "'multiplier' must be a duration, or a number greater than 0";
                    let hint = "PT3S makes each delay three seconds longer".to_owned();
                    self.error(node, codes::BAD_NUMBER, message, hint);
                }
            } else {
                policy.increment = self.opt_duration(obj, "multiplier");
            }
        }
        // The smaller of two limits applies (docs/language.md#decision-22); without any, the limit is 1
        // (docs/language.md#decision-20).
        policy.retries_max = Some(match (count, attempts) {
            (Some(count), Some(attempts)) => count.min(attempts?),
            (Some(count), None) => count,
            (None, Some(attempts)) => attempts?,
            (None, None) => 1,
        });
        let expression = expression?;
        Some(StateRetryRule {
            errors: ErrorSet::When(expression.id),
            results: expression.is_over_data,
            policy,
        })
    }

    fn attempts(&mut self, node: &Node) -> Option<u32> {
        let text = match node.as_str() {
            Some(text) => text.trim(),
            None if node.is_number() => node.raw(),
            None => "",
        };
        let attempts = whole(text);
        if attempts.is_none() {
            let message = "'maxAttempts' must be a whole number of 0 or more";
            let hint = "3 means up to three retries; 0 means none".to_owned();
            self.error(node, codes::BAD_NUMBER, message, hint);
        }
        attempts
    }

    fn retry_interval(
        &mut self,
        obj: Obj<'_>,
    ) -> (Option<u32>, Option<swirl_model::workflow::Period>) {
        let interval = obj.get("interval");
        let Some(text) = interval.and_then(|node| self.interval_text(node, "'interval'")) else {
            return (None, None);
        };
        match interval::parse_retry(text.trim()) {
            Ok((count, duration)) => (count, Some(duration.into())),
            Err(error) => {
                let message = format!("'interval' is not a retry interval: {error}");
                let hint = "write 'PT15M', or 'R5/PT15M' for five times".to_owned();
                if let Some(node) = obj.get("interval") {
                    self.error(node, codes::BAD_INTERVAL, message, hint);
                }
                (None, None)
            }
        }
    }

    /// `onError`: the first entry that matches handles the error.
    pub fn handlers(&mut self, obj: Obj<'_>) -> Vec<Handler> {
        let Some(node) = self.named(obj, "onError", &["onErrors"]) else {
            return Vec::new();
        };
        let items = self.one_or_list(node, "'onError'");
        items
            .iter()
            .filter_map(|item| self.on_error(item))
            .collect()
    }

    fn on_error(&mut self, node: &Node) -> Option<Handler> {
        const WHAT: &str = "an error definition";
        let known = &[
            "expression",
            "condition",
            "errorDataFilter",
            "transition",
            "end",
            "error",
            "code",
        ];
        let obj = self.object(node, WHAT, known)?;
        let errors = match obj.get("error") {
            Some(error) if !obj.has("expression") && !obj.has("condition") => {
                self.named_error(obj, error)
            }
            other => {
                if other.is_some() {
                    self.exclusive(obj, WHAT, &["expression", "error"]);
                }
                let condition = self.expression_of(obj, WHAT);
                condition.map(|condition| ErrorSet::When(condition.id))
            }
        };
        let data = self.error_filter(obj);
        let next = self.way(obj, WHAT);
        Some(Handler {
            errors: errors?,
            retry: None,
            data,
            then: Then::Next(next?),
        })
    }

    /// `error` and `code`, by which the handlers of the next editions choose errors.
    fn named_error(&mut self, obj: Obj<'_>, error: &Node) -> Option<ErrorSet> {
        as_there(self, obj.node, &["error", "code"]);
        let code = obj.get("code").and_then(|node| self.text(node, "'code'"));
        let name = self.string(error, "'error'")?;
        if name == "*" {
            return Some(ErrorSet::Any);
        }
        let id = self.error_id(ErrorDef {
            name,
            code,
            ..ErrorDef::default()
        });
        Some(ErrorSet::These(vec![id]))
    }

    fn expression_of(&mut self, obj: Obj<'_>, what: &str) -> Option<super::expression::Condition> {
        let Some(node) = self.named(obj, "expression", &["condition"]) else {
            self.missing(obj, what, &["expression"]);
            return None;
        };
        self.error_condition(node)
    }

    /// A list. A single definition counts as a list with one entry.
    fn one_or_list<'n>(&mut self, node: &'n Node, what: &str) -> &'n [Node] {
        if node.members().is_some() {
            let message = format!("{what} is a list; this object is read as its only entry");
            let hint = "put it into a list".to_owned();
            self.warn(node, codes::WRONG_TYPE, message, hint);
            return std::slice::from_ref(node);
        }
        self.list(node, what).unwrap_or_default()
    }

    /// Ignores errors with this name, as if they had not occurred.
    pub fn passed_over(&mut self, name: &str) -> Handler {
        let id = self.error_id(ErrorDef {
            name: name.to_owned(),
            ..ErrorDef::default()
        });
        Handler {
            errors: ErrorSet::These(vec![id]),
            retry: None,
            data: None,
            then: Then::Continue,
        }
    }

    /// The definition of an error. Handlers of the same one share it.
    fn error_id(&mut self, error: ErrorDef) -> ErrorId {
        let mut known = self.workflow.errors.iter();
        let same = |known: &ErrorDef| known.name == error.name && known.code == error.code;
        if let Some(index) = known.position(same) {
            return ErrorId(index as u32);
        }
        self.workflow.errors.push(error);
        ErrorId(self.workflow.errors.len() as u32 - 1)
    }
}

#[cfg(test)]
mod tests {
    use swirl_model::workflow::{ErrorSet, Period, State, Then};

    use crate::editions::tasks::testing::workflow;

    fn state(body: &str) -> State {
        let text = format!(
            "functions: [{{name: f, resource: f}}]\ntasks:\n- name: A\n  type: operation\n  start: {{kind: default}}\n  actions: [{{functionRef: {{refName: f}}, timeout: PT1S}}]\n  {body}\n  end: {{kind: default}}\n- {{name: B, type: inject, end: {{kind: default}}}}\n"
        );
        workflow(&text).states.swap_remove(0)
    }

    fn seconds(period: Option<Period>) -> u64 {
        match period {
            Some(Period::Fixed(duration)) => duration.millis / 1_000,
            _ => 0,
        }
    }

    #[test]
    fn retry_counts_and_delays() {
        for (retry, retries, delay, increment) in [
            ("", 1, 0, 0),
            (", maxAttempts: 0", 0, 0, 0),
            (", maxAttempts: 4", 4, 0, 0),
            (", maxAttempts: '2', interval: PT5S", 2, 5, 0),
            (", interval: R5/PT5S", 5, 5, 0),
            (", interval: R5/PT5S, maxAttempts: 3", 3, 5, 0),
            (", interval: R2/PT5S, maxAttempts: 3", 2, 5, 0),
            (", interval: R/PT5S", 1, 5, 0),
            (", interval: PT1M, multiplier: PT2M", 1, 60, 120),
        ] {
            let state = state(&format!("retry: [{{expression: name eq 'x'{retry}}}]"));
            let policy = &state.retries[0].policy;
            let found = (
                policy.retries_max,
                seconds(policy.delay),
                seconds(policy.increment),
            );
            assert_eq!(found, (Some(retries), delay, increment), "{retry}");
        }
    }

    #[test]
    fn conditions_over_data_also_check_results() {
        let results = |text: &str| {
            let state = state(&format!("retry: [{{expression: \"{text}\"}}]"));
            state.retries[0].results
        };
        assert!(results("$.status eq 'PENDING'"));
        assert!(!results("$.error.name eq 'x'"));
        assert!(!results("name eq 'x'"));
    }

    #[test]
    fn action_timeouts_are_ignored_without_handlers() {
        let plain = state("metadata: {}");
        let [handler] = plain.on_errors.as_slice() else {
            panic!("{:?}", plain.on_errors);
        };
        assert!(matches!(handler.then, Then::Continue));
        assert!(matches!(&handler.errors, ErrorSet::These(errors) if errors.len() == 1));
        let handled = state("onError: [{expression: name eq 'x', transition: {nextTask: B}}]");
        assert!(matches!(handled.on_errors[0].then, Then::Next(_)));
        assert_eq!(handled.on_errors.len(), 1);
        let retried = state("retry: [{expression: name eq 'x'}]");
        assert!(retried.on_errors.is_empty());
    }
}
