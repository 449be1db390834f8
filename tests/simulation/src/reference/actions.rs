//! Actions: condition, sleeps, attempts and retries, results.

use swirl_model::Data;
use swirl_model::workflow::{
    Action, ActionId, ActionKind, ErrorSet, ExprId, OnParentEnd, PathId, Period, Retry,
    RetryErrors, Then, Under, UnderWhen,
};

use super::data::{Params, condition, eval, merge_to, merged, set_path, template};
use super::errors::{Fail, thrown};
use super::flow::{Instance, Path, after};
use super::world::NEVER;
use crate::functions::{answer, weight};

/// A result that will be merged into the data of the forking path.
#[derive(Debug, Clone)]
pub struct Put {
    to: Option<PathId>,
    value: Data,
    replaces: bool,
    output: Option<ExprId>,
}

/// The number of retries, and the last delay.
#[derive(Default, Clone, Copy)]
pub struct Waited {
    retries: u32,
    ms: f64,
}

impl Waited {
    /// The time of the next attempt, if the policy permits one (docs/language.md#decision-20 and #decision-21).
    pub fn next(&mut self, policy: &Retry, at: i64) -> Option<i64> {
        if policy.retries_max.is_some_and(|max| self.retries >= max) {
            return None;
        }
        let ms =
            |period: &Option<Period>| period.map_or(0.0, |period| (after(at, &period) - at) as f64);
        self.ms = match self.retries {
            0 => ms(&policy.delay),
            _ => (self.ms + ms(&policy.increment)) * policy.multiplier.unwrap_or(1.0),
        };
        if policy.max_delay.is_some() {
            self.ms = self.ms.min(ms(&policy.max_delay));
        }
        self.retries += 1;
        Some(at + self.ms as i64)
    }
}

impl Instance<'_> {
    /// An action with all of its repetitions.
    pub fn action(&mut self, id: ActionId, path: &mut Path, at: i64) -> Result<i64, Fail> {
        let wf = self.wf;
        let Some(repeat) = &wf[id].repeat else {
            return self.once(id, path, at);
        };
        let goes_on = |path: &Path, now: i64| match repeat.test {
            Some(test) => condition(wf, test, &path.data, &path.params).map_err(|f| f.at(now)),
            None => Ok(true),
        };
        let (mut now, mut times) = (at, 0);
        loop {
            if repeat.before && !goes_on(path, now)? {
                return Ok(now);
            }
            now = match self.once(id, path, now) {
                Ok(then) => then,
                Err(fail) if repeat.past_errors && fail.left_by.is_none() => fail.at,
                Err(fail) => return Err(fail),
            };
            times += 1;
            if repeat.max.is_some_and(|max| times >= max) {
                return Ok(now);
            }
            if !repeat.before && !goes_on(path, now)? {
                return Ok(now);
            }
        }
    }

    fn once(&mut self, id: ActionId, path: &mut Path, at: i64) -> Result<i64, Fail> {
        let wf = self.wf;
        let action = &wf[id];
        if let Some(test) = action.condition {
            let holds = condition(wf, test, &path.data, &path.params);
            if !holds.map_err(|fail| fail.at(at))? {
                return Ok(at);
            }
        }
        let before = action.sleep_before.as_ref();
        let begun = path.in_time(before.map_or(at, |sleep| after(at, sleep)))?;
        let (mut now, went_on) = self.attempts(id, path, begun)?;
        if let (Some(sleep), false) = (&action.sleep_after, went_on) {
            now = after(now, sleep);
        }
        path.in_time(now)
    }

    /// Makes attempts until a result was accepted, or until a handler continues without a result (then the second value
    /// is true).
    fn attempts(&mut self, id: ActionId, path: &mut Path, at: i64) -> Result<(i64, bool), Fail> {
        let action = &self.wf[id];
        let mut now = at;
        let mut by_rule = Waited::default();
        let mut by_handler = vec![Waited::default(); action.on_errors.len()];
        loop {
            let (fail, handler) = match self.attempt(action, path, now) {
                Ok((then, result)) => {
                    let then = path.in_time(then)?;
                    let Some(result) = result else {
                        return Ok((then, false));
                    };
                    let matched = self.matched(action, &result);
                    if let Some(index) = matched
                        && let Some(due) = self.again(action, index, &mut by_handler, then)
                    {
                        now = path.in_time(due)?;
                        continue;
                    }
                    match (self.take_result(action, path, result), matched) {
                        (Ok(()), None) => return Ok((then, false)),
                        (Ok(()), Some(index)) => {
                            return self.handled(id, index, Fail::named("ResultMatched").at(then));
                        }
                        (Err(fail), _) => (fail.at(then), None),
                    }
                }
                Err(fail) => (fail, None::<usize>),
            };
            path.in_time(fail.at)?;
            if let Some(rule) = &action.retry {
                let fits = match &rule.errors {
                    RetryErrors::All => true,
                    RetryErrors::Only(list) => list.iter().any(|id| self.is(*id, &fail)),
                    RetryErrors::Except(list) => !list.iter().any(|id| self.is(*id, &fail)),
                    RetryErrors::When(test) => self.fits(&ErrorSet::When(*test), &fail, path)?,
                };
                if fits && let Some(due) = by_rule.next(&rule.policy, fail.at) {
                    now = path.in_time(due)?;
                    continue;
                }
            }
            let sets = action.on_errors.iter().map(|handler| &handler.errors);
            let index = match handler {
                Some(index) => Some(index),
                None => self.first_fit(sets, &fail, path)?,
            };
            let Some(index) = index else {
                return Err(fail);
            };
            if let Some(due) = self.again(action, index, &mut by_handler, fail.at) {
                now = path.in_time(due)?;
                continue;
            }
            return self.handled(id, index, fail);
        }
    }

    fn again(&self, action: &Action, index: usize, waited: &mut [Waited], at: i64) -> Option<i64> {
        let policy = action.on_errors[index].retry.as_ref()?;
        waited[index].next(policy, at)
    }

    /// The target of an action's handler.
    fn handled(&self, id: ActionId, index: usize, fail: Fail) -> Result<(i64, bool), Fail> {
        match &self.wf[id].on_errors[index].then {
            Then::Continue => Ok((fail.at, true)),
            Then::Next(_) => Err(Fail {
                left_by: Some((id, index)),
                ..fail
            }),
            Then::Rethrow => Err(fail),
            Then::Throw(throw) => Err(thrown(throw, fail)),
        }
    }

    /// The handler that treats a result as a failure.
    fn matched(&self, action: &Action, result: &Data) -> Option<usize> {
        action.on_errors.iter().position(|handler| {
            let text = match &handler.errors {
                ErrorSet::Text(text) => text,
                _ => return false,
            };
            handler.results && result.to_text() == *text
        })
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
                    code: error.code,
                    message: error.message.into(),
                    ..Fail::named(&error.name)
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
                    self.world.start(&sub.workflow, data, at, Vec::new());
                }
                Ok((at, None))
            }
            ActionKind::Subflow(sub) => {
                let Some(ended) = self.world.start(&sub.workflow, data, at, Vec::new()) else {
                    return Err(Fail::named("SubflowNotFound").at(at));
                };
                bounded(ended.at, ended.result.map(Some))
            }
        }
    }

    /// docs/language.md#decision-11, #decision-33 and #decision-58.
    fn take_result(&mut self, action: &Action, path: &mut Path, result: Data) -> Result<(), Fail> {
        let rule = &action.results;
        if rule.ignore {
            return Ok(());
        }
        let value = self.selected(
            (rule.results, rule.under.as_ref(), rule.to),
            result,
            &path.params,
        )?;
        let put = Put {
            to: rule.to,
            replaces: rule.replace && !value.is_null(),
            output: rule.output,
            value,
        };
        let is_result_alone =
            path.in_iteration && put.to.is_none() && !put.replaces && !put.value.is_object();
        if is_result_alone && !path.iteration && !put.value.is_null() {
            path.plain = Some((put.value.clone(), path.data.clone()));
        }
        if path.iteration && !put.value.is_null() {
            path.result = Some(match path.result.take() {
                Some(before) => merged(&before, &put.value),
                None => put.value.clone(),
            });
        }
        if is_result_alone || put.value.is_null() && put.output.is_none() {
            return Ok(());
        }
        self.put(&put, path)?;
        path.merges.push(put);
        Ok(())
    }

    /// The part of a result or payload that is merged.
    pub fn selected(
        &self,
        (filter, under, to): (Option<ExprId>, Option<&Under>, Option<PathId>),
        value: Data,
        params: &Params,
    ) -> Result<Data, Fail> {
        let found = match filter {
            Some(filter) => eval(self.wf, filter, &value, params)?,
            None => value.clone(),
        };
        let Some(under) = under else {
            return Ok(found);
        };
        let found = match under.when {
            UnderWhen::NotObject if to.is_some() || found.is_object() => return Ok(found),
            UnderWhen::Always if found.is_null() && !value.is_object() => value,
            _ => found,
        };
        if found.is_null() {
            return Ok(found);
        }
        let mut named = Data::object();
        named.set(&under.key, found);
        Ok(named)
    }

    /// Merges a result, and filters the data afterwards.
    pub fn put(&self, put: &Put, path: &mut Path) -> Result<(), Fail> {
        match (put.replaces, put.to) {
            (true, to) => {
                let mut data = path.data.clone();
                let is_merged =
                    put.value.is_object() && merge_to(self.wf, &mut data, to, &put.value).is_ok();
                match to {
                    _ if is_merged => path.data = data,
                    None => path.data = put.value.clone(),
                    Some(to) => set_path(self.wf, to, &mut path.data, put.value.clone()),
                }
            }
            (false, _) if put.value.is_null() => {}
            (false, to) => merge_to(self.wf, &mut path.data, to, &put.value)?,
        }
        self.cut(put.output, path)
    }

    /// Replaces the data with the filter's selection, if it selects anything.
    pub fn cut(&self, filter: Option<ExprId>, path: &mut Path) -> Result<(), Fail> {
        if let Some(filter) = filter {
            let found = eval(self.wf, filter, &path.data, &path.params)?;
            if !found.is_null() {
                path.data = found;
            }
        }
        Ok(())
    }
}
