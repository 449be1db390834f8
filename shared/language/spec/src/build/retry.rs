//! Retry definitions, and which of them applies to an action (section "Retry Definition", docs/language.md#decision-20,
//! #decision-21, #decision-22 and #decision-23).

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::time::IsoDuration;
use swirl_model::workflow::{ErrorSet, Jitter, Retry, RetryErrors, RetryRule};

use super::ctx::{Ctx, Obj};
use super::expression::whole;

const PROPERTIES: &[&str] = &[
    "name",
    "delay",
    "maxAttempts",
    "maxDelay",
    "increment",
    "multiplier",
    "jitter",
];

/// The policy for `autoRetries` if an action names none: 1 s, doubled each time, at most 5 min, without a limit on
/// attempts.
fn default_policy() -> Retry {
    Retry {
        delay: Some(IsoDuration::from_secs(1).into()),
        multiplier: Some(2.0),
        max_delay: Some(IsoDuration::from_secs(300).into()),
        ..Retry::default()
    }
}

impl Ctx<'_> {
    pub fn retry_definitions(&mut self, node: &Node) {
        let read = self.each(node, "retries", |ctx, item| ctx.retry_definition(item));
        self.retries.unread |= !read;
    }

    fn retry_definition(&mut self, node: &Node) {
        let Some(obj) = self.object(node, "a retry definition", PROPERTIES) else {
            self.retries.unread = true;
            return;
        };
        let retry = self.retry_policy(obj);
        let Some(name) = self.need_string(obj, "a retry definition", "name") else {
            self.retries.unread = true;
            return;
        };
        if self.retries.get(&name).is_some() {
            self.duplicate(obj.get("name").unwrap_or(node), "retry definition", &name);
        }
        self.retries.add(name, retry);
    }

    /// A retry definition that is written where it is used. Its name identifies nothing.
    pub fn inline_retry(&mut self, node: &Node) -> Option<Retry> {
        let obj = self.object(node, "a retry definition", PROPERTIES)?;
        self.opt_name(obj, "name");
        Some(self.retry_policy(obj))
    }

    fn retry_policy(&mut self, obj: Obj<'_>) -> Retry {
        Retry {
            delay: self.opt_duration(obj, "delay"),
            increment: self.opt_duration(obj, "increment"),
            multiplier: obj.get("multiplier").and_then(|node| self.multiplier(node)),
            max_delay: self.opt_duration(obj, "maxDelay"),
            jitter: obj
                .get("jitter")
                .map_or(Jitter::None, |node| self.jitter(node)),
            retries_max: Some(self.attempts(obj)),
        }
    }

    /// `maxAttempts` counts the retries. From 0.8 on, 1 means none, as 0 does (docs/language.md#decision-20).
    fn attempts(&mut self, obj: Obj<'_>) -> u32 {
        let Some(node) = obj.get("maxAttempts") else {
            if !self.dialect.one_attempt_retries {
                self.missing(obj, "a retry definition", &["maxAttempts"]);
                return 0;
            }
            self.warn(
                obj.node,
                codes::MISSING_PROPERTY,
                "the retry definition has no 'maxAttempts': there is one retry",
                "add 'maxAttempts'".to_owned(),
            );
            return 1;
        };
        let text = match node.as_str() {
            Some(text) => text.trim(),
            None if node.is_number() => node.raw(),
            None => "",
        };
        match whole(text) {
            Some(1) if !self.dialect.one_attempt_retries => 0,
            Some(count) => count,
            None => {
                let message = "'maxAttempts' must be a whole number of 0 or more";
                let hint = "4 means up to four retries, 0 means none".to_owned();
                self.error(node, codes::BAD_NUMBER, message, hint);
                0
            }
        }
    }

    fn multiplier(&mut self, node: &Node) -> Option<f64> {
        let number = number(node).filter(|number| *number > 0.0);
        if number.is_none() {
            let message = "'multiplier' must be a number greater than 0";
            self.error(
                node,
                codes::BAD_NUMBER,
                message,
                "2 doubles the delay each time".to_owned(),
            );
        }
        number
    }

    fn jitter(&mut self, node: &Node) -> Jitter {
        match number(node) {
            Some(fraction) if (0.0..=1.0).contains(&fraction) => {
                if let Some(text) = node.as_str() {
                    let message = format!(
                        "'jitter' is the string '{text}': it is read as a number, a part of the delay"
                    );
                    let hint = format!("write {} without quotes", text.trim());
                    self.loose(node, message, hint);
                }
                Jitter::Fraction(fraction)
            }
            None if node.as_str().is_some() => self
                .duration(node, "'jitter'")
                .map_or(Jitter::None, Jitter::Absolute),
            _ => {
                let message = "'jitter' must be a number from 0.0 to 1.0, or a duration";
                self.error(
                    node,
                    codes::BAD_NUMBER,
                    message,
                    "0.3 is 30% of the delay".to_owned(),
                );
                Jitter::None
            }
        }
    }

    /// The retries of an action. `plain`: it isn't retried without a `retryRef`.
    pub fn retry_rule(&mut self, obj: Obj<'_>, detached: bool, plain: bool) -> Option<RetryRule> {
        let only = obj.get("retryableErrors");
        let except = obj.get("nonRetryableErrors");
        let only_ids = only.map(|node| self.error_list(node, "retryableErrors"));
        let except_ids = except.map(|node| self.error_list(node, "nonRetryableErrors"));
        let named = obj.get("retryRef").map(|node| self.retry_ref(node));
        if detached {
            let why = "an action that nothing waits for is not retried";
            for name in ["retryRef", "retryableErrors", "nonRetryableErrors"] {
                if let Some(node) = obj.get(name) {
                    self.ignored(node, name, why);
                }
            }
            return None;
        }
        if self.auto_retries {
            if let Some(node) = only {
                self.ignored(
                    node,
                    "retryableErrors",
                    "'autoRetries' is true, so all errors are retried but the 'nonRetryableErrors'",
                );
            }
            let policy = match named {
                Some(policy) => policy?,
                None if plain => return None,
                None => default_policy(),
            };
            let errors = match except_ids {
                Some(ErrorSet::Any) => return None,
                Some(ErrorSet::These(ids)) if !ids.is_empty() => RetryErrors::Except(ids),
                _ => RetryErrors::All,
            };
            return rule(policy, errors);
        }
        if let Some(node) = except {
            self.ignored(
                node,
                "nonRetryableErrors",
                "it is used only when 'autoRetries' is true",
            );
        }
        let Some(policy) = named else {
            if let Some(node) = only {
                self.ignored(
                    node,
                    "retryableErrors",
                    "the action has no 'retryRef', so it is not retried",
                );
            }
            return None;
        };
        let errors = match only_ids {
            Some(ErrorSet::These(ids)) => RetryErrors::Only(ids),
            _ => RetryErrors::All,
        };
        rule(policy?, errors)
    }

    pub fn retry_ref(&mut self, node: &Node) -> Option<Retry> {
        let name = self.string(node, "'retryRef'")?;
        let found = self.retries.get(&name).cloned();
        if found.is_none() {
            self.unknown_retry(node, &name);
        }
        found
    }
}

fn rule(policy: Retry, errors: RetryErrors) -> Option<RetryRule> {
    (policy.retries_max != Some(0)).then_some(RetryRule { policy, errors })
}

/// A number, which may be written as text.
fn number(node: &Node) -> Option<f64> {
    let text = match node.as_str() {
        Some(text) => text.trim(),
        None if node.is_number() => node.raw(),
        None => return None,
    };
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::parts::testing::{STATES, findings, in_actions, workflow};

    #[test]
    fn ranges() {
        for (retry, expected) in [
            ("{name: r, maxAttempts: '3'}", ""),
            ("{name: r}", "error missing-property /retries/0 4"),
            (
                "{name: r, maxAttempts: -1}",
                "error bad-number /retries/0/maxAttempts 4",
            ),
            (
                "{name: r, maxAttempts: 2.5}",
                "error bad-number /retries/0/maxAttempts 4",
            ),
            ("{maxAttempts: 1}", "error missing-property /retries/0 4"),
            (
                "{name: r, maxAttempts: 1, multiplier: 0}",
                "error bad-number /retries/0/multiplier 4",
            ),
            (
                "{name: r, maxAttempts: 1, jitter: 1.5}",
                "error bad-number /retries/0/jitter 4",
            ),
            ("{name: r, maxAttempts: 1, jitter: PT1S}", ""),
            ("{name: r, maxAttempts: 1, jitter: 0.5}", ""),
            (
                "{name: r, maxAttempts: 1, jitter: '0.5'}",
                "warning loose-form /retries/0/jitter 4",
            ),
            (
                "{name: r, maxAttempts: 1, jitter: soon}",
                "error bad-duration /retries/0/jitter 4",
            ),
            (
                "{name: r, maxAttempts: 1, delay: 1s}",
                "error bad-duration /retries/0/delay 4",
            ),
            (
                "{name: r, maxAttempts: 1}, {name: r, maxAttempts: 2}",
                "error duplicate-name /retries/1/name 4",
            ),
        ] {
            assert_eq!(
                findings(&format!("retries: [{retry}]\n{STATES}")),
                expected,
                "{retry}"
            );
        }
    }

    fn rule(top: &str, action: &str) -> Option<RetryRule> {
        let body = format!(
            "{top}errors: [{{name: x}}, {{name: all, code: '*'}}]\nretries: [{{name: once, maxAttempts: 1}}, {{name: four, delay: PT1S, maxAttempts: 4}}]\n{}",
            in_actions(&format!("{{functionRef: f, {action}}}"))
        );
        workflow(&body).actions.remove(0).retry
    }

    #[test]
    fn which_policy_applies() {
        assert!(rule("", "name: a").is_none());
        assert!(rule("", "retryRef: once").is_none());
        let four = rule("", "retryRef: four").unwrap();
        assert_eq!(
            (four.policy.retries_max, four.errors),
            (Some(4), RetryErrors::All)
        );
        let only = rule("", "retryRef: four, retryableErrors: [x]").unwrap();
        assert_eq!(
            only.errors,
            RetryErrors::Only(vec![swirl_model::workflow::ErrorId(0)])
        );
        let auto = "autoRetries: true\n";
        let default = rule(auto, "name: a").unwrap();
        assert_eq!(
            (default.policy.retries_max, default.policy.multiplier),
            (None, Some(2.0))
        );
        assert!(rule(auto, "retryRef: once").is_none());
        let except = rule(auto, "nonRetryableErrors: [x]").unwrap();
        assert_eq!(
            except.errors,
            RetryErrors::Except(vec![swirl_model::workflow::ErrorId(0)])
        );
        assert!(rule(auto, "nonRetryableErrors: [all]").is_none());
    }
}
