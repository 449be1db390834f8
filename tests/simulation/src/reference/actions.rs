//! Actions: condition, sleeps, attempts and retries, results.

use swirl_model::Data;
use swirl_model::workflow::{Action, ActionKind, OnParentEnd, RetryErrors};

use super::data::{condition, eval, merge_to, merged, template};
use super::flow::{Fail, Instance, Path, after};
use super::world::NEVER;
use crate::functions::{answer, weight};

impl Instance<'_> {
    pub fn action(&mut self, action: &Action, path: &mut Path, at: i64) -> Result<i64, Fail> {
        let wf = self.wf;
        if let Some(test) = action.condition {
            let holds = condition(wf, test, &path.data, &path.params);
            if !holds.map_err(|fail| fail.at(at))? {
                return Ok(at);
            }
        }
        let before = action.sleep_before.as_ref();
        let begun = path.in_time(before.map_or(at, |sleep| after(at, sleep)))?;
        let mut now = self.attempts(action, path, begun)?;
        if let Some(sleep) = &action.sleep_after {
            now = after(now, sleep);
        }
        path.in_time(now)
    }

    /// Attempt after attempt (decisions 20, 21 and 23), until a result has been taken.
    fn attempts(&mut self, action: &Action, path: &mut Path, at: i64) -> Result<i64, Fail> {
        let (mut now, mut retries, mut waited) = (at, 0, 0.0);
        loop {
            let fail = match self.attempt(action, path, now) {
                Ok((then, result)) => {
                    let then = path.in_time(then)?;
                    let Some(result) = result else {
                        return Ok(then);
                    };
                    match self.take_result(action, path, result) {
                        Ok(()) => return Ok(then),
                        Err(fail) => fail.at(then),
                    }
                }
                Err(fail) => fail,
            };
            path.in_time(fail.at)?;
            let Some(rule) = &action.retry else {
                return Err(fail);
            };
            let fits = match &rule.errors {
                RetryErrors::All => true,
                RetryErrors::Only(list) => list.iter().any(|id| self.is(*id, &fail)),
                RetryErrors::Except(list) => !list.iter().any(|id| self.is(*id, &fail)),
                RetryErrors::When(_) => false,
            };
            if !fits || rule.policy.retries_max.is_some_and(|max| retries >= max) {
                return Err(fail);
            }
            let ms = |duration: &Option<swirl_model::workflow::Period>| {
                duration.map_or(0.0, |duration| (after(now, &duration) - now) as f64)
            };
            waited = match retries {
                0 => ms(&rule.policy.delay),
                _ => (waited + ms(&rule.policy.increment)) * rule.policy.multiplier.unwrap_or(1.0),
            };
            if rule.policy.max_delay.is_some() {
                waited = waited.min(ms(&rule.policy.max_delay));
            }
            retries += 1;
            now = path.in_time(fail.at + waited as i64)?;
        }
    }

    fn attempt(
        &mut self,
        action: &Action,
        path: &mut Path,
        at: i64,
    ) -> Result<(i64, Option<Data>), Fail> {
        let wf = self.wf;
        let data = match action.from {
            Some(filter) => {
                eval(wf, filter, &path.data, &path.params).map_err(|fail| fail.at(at))?
            }
            None => path.data.clone(),
        };
        let until = action.timeout.map(|timeout| after(at, &timeout));
        let bounded = |then: i64, result: Result<Option<Data>, Fail>| match until {
            Some(until) if then >= until => Err(Fail::timeout("ActionTimeout", until)),
            _ => result.map(|result| (then, result)),
        };
        match &action.kind {
            ActionKind::Expression { expression, .. } => {
                let result = eval(wf, *expression, &data, &path.params);
                Ok((at, Some(result.map_err(|fail| fail.at(at))?)))
            }
            ActionKind::Call(call) => {
                let arguments = match &call.arguments {
                    Some(arguments) => {
                        template(wf, arguments, &data, &path.params).map_err(|fail| fail.at(at))?
                    }
                    None => data,
                };
                let name = wf[call.function].name.to_string();
                let like = (name.clone(), arguments.to_string());
                let attempt = path.likes.entry(like).or_default();
                *attempt += 1;
                let answer = answer(&name, weight(&arguments), *attempt, at);
                let then = at + answer.after_ms as i64;
                let result = answer.result.map(Some).map_err(|error| Fail {
                    at: then,
                    name: error.name,
                    code: error.code,
                });
                bounded(then, result)
            }
            ActionKind::Event(event) => {
                if let Some(produce) = &event.produce {
                    self.produce(produce, &data, at)?;
                }
                let Some(answer) = event.consume.filter(|_| !event.detached) else {
                    return Ok((at, None));
                };
                let found = self.world.arrival(wf, answer, &path.data, at, &self.had)?;
                let Some((came, event)) = found else {
                    return Err(Fail::timeout("EventTimeout", NEVER));
                };
                self.had.push(event.id.clone());
                bounded(came, Ok(Some(event.data.unwrap_or_default())))
            }
            ActionKind::Subflow(sub) if sub.detached => {
                if sub.on_parent_end == OnParentEnd::Terminate {
                    self.with_parent.push(sub.workflow.clone());
                } else {
                    self.world.start(&sub.workflow, data, at, None);
                }
                Ok((at, None))
            }
            ActionKind::Subflow(sub) => {
                let Some(ended) = self.world.start(&sub.workflow, data, at, None) else {
                    return Err(Fail::named("SubflowNotFound").at(at));
                };
                bounded(ended.at, ended.result.map(Some))
            }
        }
    }

    /// Decisions 11, 33 and 58.
    fn take_result(&mut self, action: &Action, path: &mut Path, result: Data) -> Result<(), Fail> {
        let rule = &action.results;
        if rule.ignore {
            return Ok(());
        }
        let value = match rule.results {
            Some(filter) => eval(self.wf, filter, &result, &path.params)?,
            None => result,
        };
        if value.is_null() {
            return Ok(());
        }
        let is_result_alone = path.iteration && rule.to.is_none() && !value.is_object();
        if !is_result_alone {
            merge_to(self.wf, &mut path.data, rule.to, &value)?;
            path.merges.push((rule.to, value.clone()));
        }
        if path.iteration {
            path.result = Some(match path.result.take() {
                Some(before) => merged(&before, &value),
                None => value,
            });
        }
        Ok(())
    }
}
