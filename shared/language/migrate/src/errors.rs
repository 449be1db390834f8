//! Errors, their handlers, and retries.

use swirl_model::Data;
use swirl_model::workflow::{
    Action, ActionKind, ErrorId, ErrorSet, Handler, Jitter, Retry, RetryErrors, Then,
};

use super::writer::{SetIf, Writer};

/// The policy for `autoRetries`, for actions that name none.
fn is_default(policy: &Retry) -> bool {
    let fixed = |period: Option<swirl_model::workflow::Period>| {
        period
            .and_then(|period| period.fixed())
            .map(|duration| (duration.months, duration.millis))
    };
    policy.retries_max.is_none()
        && fixed(policy.delay) == Some((0, 1000))
        && fixed(policy.max_delay) == Some((0, 300_000))
        && policy.multiplier == Some(2.0)
        && policy.increment.is_none()
        && policy.jitter == Jitter::None
}

impl Writer<'_> {
    pub fn error_definitions(&mut self) -> Vec<Data> {
        // Errors that cannot be written are reported where they are used.
        let errors = self
            .workflow
            .errors
            .iter()
            .filter(|error| error.problem.is_none());
        errors
            .map(|error| {
                let mut data = Data::object();
                data.set("name", Data::string(error.name.as_str()));
                data.set_if("code", error.code.as_deref().map(Data::string));
                data
            })
            .collect()
    }

    fn error_names(&mut self, ids: &[ErrorId]) -> Vec<Data> {
        self.cannot_if(
            ids.iter().any(|id| self.workflow[*id].problem.is_some()),
            "an error is known by its type, status or origin; 0.8 has names and codes",
        );
        let names = ids.iter().map(|id| self.workflow[*id].name.as_str());
        names.map(Data::string).collect()
    }

    pub fn handlers(&mut self, handlers: &[Handler]) -> Vec<Data> {
        handlers
            .iter()
            .map(|handler| self.handler(handler))
            .collect()
    }

    fn handler(&mut self, handler: &Handler) -> Data {
        let mut data = Data::object();
        match &handler.errors {
            ErrorSet::Any => data.set("errorRef", Data::string("*")),
            ErrorSet::These(ids) => {
                let names = self.error_names(ids);
                match <[Data; 1]>::try_from(names) {
                    Ok([name]) => data.set("errorRef", name),
                    Err(names) => data.set("errorRefs", Data::array(names)),
                }
            }
            ErrorSet::Except(_) => {
                self.cannot("a handler of errors takes all errors but some");
            }
            ErrorSet::TheseExcept(..) => {
                self.cannot("a handler of errors takes some errors, but not all that fit");
            }
            ErrorSet::When(_) | ErrorSet::Text(_) => {
                self.cannot(
                    "a handler of errors chooses them by an expression or a string; 0.8 by name",
                );
            }
        }
        self.cannot_if(
            handler.retry.is_some(),
            "a handler of errors retries; in 0.8 only actions are retried",
        );
        self.cannot_if(
            handler.data.is_some(),
            "a handler of errors puts the error into the state data",
        );
        match &handler.then {
            Then::Next(next) => self.next(next, &mut data),
            Then::Continue => {
                self.cannot("after a handled error the state continues as if there had been none")
            }
            Then::Rethrow | Then::Throw(_) => self.cannot("a handler of errors throws an error"),
        }
        data
    }

    /// How an action is retried.
    pub fn retry(&mut self, action: &Action, detached: bool, data: &mut Data) {
        if detached {
            self.cannot_if(
                action.retry.is_some(),
                "an action that nothing waits for is retried",
            );
            return;
        }
        let is_plain = matches!(action.kind, ActionKind::Expression { .. });
        let Some(rule) = &action.retry else {
            if self.auto_retries && !is_plain {
                data.set("nonRetryableErrors", Data::array(vec![Data::string("*")]));
            }
            return;
        };
        if rule.policy.retries_max == Some(1) {
            self.cannot("an action is retried once; in 0.8 'maxAttempts: 1' means no retry");
            return;
        }
        let by_default = self.auto_retries && !is_plain && is_default(&rule.policy);
        if rule.policy.retries_max.is_none() && !by_default {
            self.cannot("an action is retried without an end, by its own policy");
            return;
        }
        if !by_default {
            let name = self.retry_name(&rule.policy);
            data.set("retryRef", Data::string(name));
        }
        match (&rule.errors, self.auto_retries) {
            (RetryErrors::All, _) => {}
            (RetryErrors::Only(ids), false) => {
                let names = self.error_names(ids);
                data.set("retryableErrors", Data::array(names));
            }
            (RetryErrors::Except(ids), true) => {
                let names = self.error_names(ids);
                data.set("nonRetryableErrors", Data::array(names));
            }
            (RetryErrors::Only(_) | RetryErrors::Except(_), _) => self.cannot(
                "some actions are retried for the errors that they name, others for all but those",
            ),
            (RetryErrors::When(_), _) => {
                self.cannot("an expression says for which errors an action is retried");
            }
        }
    }

    fn retry_name(&mut self, policy: &Retry) -> String {
        let known = self.retries.iter().position(|known| known == policy);
        let at = known.unwrap_or_else(|| {
            self.retries.push(policy.clone());
            self.retries.len() - 1
        });
        format!("retry-{}", at + 1)
    }

    pub fn retry_definitions(&mut self) -> Vec<Data> {
        let policies = std::mem::take(&mut self.retries);
        let policies = policies.iter().enumerate();
        policies
            .map(|(at, policy)| self.policy(at + 1, policy))
            .collect()
    }

    fn policy(&mut self, number: usize, policy: &Retry) -> Data {
        let mut data = Data::object();
        data.set("name", Data::string(format!("retry-{number}")));
        data.set_if("delay", policy.delay.map(|period| self.period(period)));
        data.set_if(
            "maxDelay",
            policy.max_delay.map(|period| self.period(period)),
        );
        data.set_if(
            "increment",
            policy.increment.map(|period| self.period(period)),
        );
        data.set_if("multiplier", policy.multiplier.map(number_of));
        match policy.jitter {
            Jitter::None => {}
            Jitter::Fraction(fraction) => data.set("jitter", number_of(fraction)),
            Jitter::Absolute(period) => {
                let period = self.period(period);
                data.set("jitter", period);
            }
        }
        let max = policy.retries_max.unwrap_or_default();
        data.set("maxAttempts", Data::int(max.into()));
        data
    }
}

fn number_of(number: f64) -> Data {
    Data::parse(number.to_string().as_bytes()).unwrap_or_default()
}
