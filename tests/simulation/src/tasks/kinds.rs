//! The kinds of tasks.

use serde_json::Value;
use swirl_model::Data;

use super::clock::Boxed;
use super::flow::{Here, Listed, Scope, Task, Way};
use super::problem::{Problem, Stop};
use super::values::{address, condition, expression, millis};
use super::world;
use crate::functions::{self, Answer};

type Done<T> = std::result::Result<T, Stop>;

impl Task {
    /// The raw output, and the way.
    pub async fn work(&self) -> Done<(Data, Way)> {
        let own = Way::of(self.node.get("then"));
        let output = match self.kind() {
            "call" => self.call().await?,
            "do" => {
                let here = self.here.inside("do");
                here.list(self.node["do"].clone(), self.input.clone())
                    .await?
                    .data
            }
            "emit" => self.emit()?,
            "for" => self.each().await?,
            "fork" => self.fork().await?,
            "listen" => self.listen().await?,
            "raise" => return Err(self.raised()?.into()),
            "run" => self.sub_workflow().await?,
            "set" => self.template(&self.node["set"])?,
            "switch" => return Ok((self.input.clone(), self.chosen(own)?)),
            "try" => return self.attempts(own).await,
            _ => {
                let clock = self.here.clock();
                clock
                    .sleep_until(clock.now() + millis(&self.node["wait"]))
                    .await;
                self.input.clone()
            }
        };
        Ok((output, own))
    }

    fn chosen(&self, own: Way) -> Done<Way> {
        let cases = self.node["switch"].as_array().cloned().unwrap_or_default();
        let cases = cases
            .iter()
            .filter_map(|case| case.as_object()?.values().next());
        let mut default = own;
        for case in cases {
            match case.get("when") {
                Some(when) if condition(when, &self.input, &self.vars(None, None))? => {
                    return Ok(Way::of(case.get("then")));
                }
                Some(_) => {}
                None => default = Way::of(case.get("then")),
            }
        }
        Ok(default)
    }

    async fn each(&self) -> Done<Data> {
        let each = &self.node["for"];
        let items = match each["in"].is_array() {
            true => self.template(&each["in"])?,
            false => expression(&each["in"], &self.input, &self.vars(None, None))?,
        };
        let items = items.as_array().ok_or_else(Problem::expression)?;
        let name =
            |key: &str, default: &'static str| each[key].as_str().unwrap_or(default).to_owned();
        let (item_name, index_name) = (name("each", "item"), name("at", "index"));
        let mut data = self.input.clone();
        for (index, item) in items.iter().enumerate() {
            let here = self.here.inside("do").with(vec![
                (&item_name, Data(item.clone())),
                (&index_name, Data::int(index as i64)),
            ]);
            if let Some(test) = self.node.get("while") {
                let mut vars = self.vars(None, None);
                vars.extend(here.vars[self.here.vars.len()..].iter().cloned());
                if !condition(test, &data, &vars)? {
                    break;
                }
            }
            data = here.list(self.node["do"].clone(), data).await?.data;
        }
        Ok(data)
    }

    async fn fork(&self) -> Done<Data> {
        let fork = &self.node["fork"];
        let race = fork["compete"] == true;
        let before = self.here.scope.context.borrow().clone();
        let mut scopes = Vec::new();
        let mut branches: Vec<Boxed<Done<Data>>> = Vec::new();
        for (index, item) in fork["branches"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
        {
            let Some((name, node)) = item.as_object().and_then(|it| it.iter().next()) else {
                continue;
            };
            let scope = Scope::new(self.here.scope.instance.clone(), before.clone());
            scopes.push(scope.clone());
            let mut here = self.here.inside(&format!("fork/branches/{index}/{name}"));
            here.scope = scope.clone();
            let (name, node, input) = (name.clone(), node.clone(), self.input.clone());
            branches.push(Box::pin(async move {
                match here.task(name, node, input).await? {
                    (data, Way::End) => Err(Stop::End(data, scope.context.borrow().clone())),
                    (data, _) => Ok(data),
                }
            }));
        }
        let clock = self.here.clock();
        let (winner, outcome) = clock
            .beside(branches, |done| match race {
                true => first_winner(done),
                false => all_outputs(done),
            })
            .await;
        let output = outcome?;
        let contexts = scopes.iter().map(|scope| scope.context.borrow().clone());
        let contexts: Vec<Data> = contexts.collect();
        *self.here.scope.context.borrow_mut() = match winner {
            Some(winner) => contexts[winner].clone(),
            None => joined(&before, contexts),
        };
        Ok(output)
    }

    async fn call(&self) -> Done<Data> {
        let name = self.node["call"].as_str().unwrap_or_default();
        if name == "http" {
            return self.http().await;
        }
        let input = match self.node.get("with") {
            Some(with) => self.template(with)?,
            None => self.input.clone(),
        };
        let here = Here {
            vars: Vec::new(),
            path: format!("/use/functions/{name}"),
            of: Some(self.here.place()),
            inner: true,
            ..self.here.clone()
        };
        let function = self.here.scope.instance.document["use"]["functions"][name].clone();
        let scope = here.scope.clone();
        match here.task(name.to_owned(), function, input).await? {
            (data, Way::End) => Err(Stop::End(data, scope.context.borrow().clone())),
            (data, _) => Ok(data),
        }
    }

    async fn http(&self) -> Done<Data> {
        let with = &self.node["with"];
        let endpoint = with["endpoint"].get("uri").unwrap_or(&with["endpoint"]);
        let uri = match endpoint.as_str() {
            Some(text) if !text.contains("${") => address(text, &self.input)?,
            _ => self.template(endpoint)?.to_text(),
        };
        let body = match with.get("body") {
            Some(body) => self.template(body)?,
            None => Data::NULL,
        };
        let (function, asked) = functions::asked_at(&uri, &body);
        let clock = self.here.clock();
        let attempt = {
            let mut likes = self.here.scope.likes.borrow_mut();
            let count = likes.entry((function.clone(), asked.clone())).or_default();
            *count += 1;
            *count
        };
        let Answer { after_ms, result } = functions::answer(
            &function,
            functions::weight_of(&asked),
            attempt,
            clock.now(),
        );
        clock.acts();
        clock.sleep_until(clock.now() + after_ms as i64).await;
        result.map_err(|_| {
            Problem {
                title: Some(functions::REASON.to_owned()),
                detail: Some(functions::BODY.to_owned()),
                ..Problem::own("communication", functions::STATUS.into())
            }
            .into()
        })
    }

    async fn sub_workflow(&self) -> Done<Data> {
        let run = &self.node["run"];
        let sub = &run["workflow"];
        let text = |name: &str| sub[name].as_str().unwrap_or_default();
        let name = format!("{}.{}", text("namespace"), text("name"));
        let input = match sub.get("input") {
            Some(input) => self.template(input)?,
            None => Data::object(),
        };
        let instance = &self.here.scope.instance;
        let clock = self.here.clock();
        clock.acts();
        let child = world::run_instance(instance.world.clone(), name, input);
        if run["await"] == false {
            clock.spawn(Box::pin(async move { drop(child.await) }));
            return Ok(self.input.clone());
        }
        match child.await {
            Ok(_) if run["return"] == "none" => Ok(Data::NULL),
            Ok(output) => Ok(output),
            Err(problem) => Err(Problem {
                instance: None,
                ..problem
            }
            .into()),
        }
    }

    fn raised(&self) -> Done<Problem> {
        let error = self.here.reused("errors", &self.node["raise"]["error"]);
        let text = |name: &str| match error.get(name) {
            Some(node) => self.template(node).map(|it| Some(it.to_text())),
            None => Ok(None),
        };
        let status = text("status")?.unwrap_or_default();
        Ok(Problem {
            kind: text("type")?.unwrap_or_default(),
            status: status.parse().map_err(|_| Problem::expression())?,
            title: text("title")?,
            detail: text("detail")?,
            instance: text("instance")?,
        })
    }

    /// `try` with its retries and its handler.
    async fn attempts(&self, own: Way) -> Done<(Data, Way)> {
        let catch = &self.node["catch"];
        let clock = self.here.clock();
        let since = clock.now();
        let variable = catch["as"].as_str().unwrap_or("error");
        let retry = catch.get("retry").map(|it| self.here.reused("retries", it));
        let mut retries = 0i64;
        loop {
            let bound = retry
                .as_ref()
                .and_then(|it| it["limit"]["attempt"].get("duration"));
            let deadline = bound.map(|it| clock.now() + millis(it));
            let list = self.here.inside("try");
            let list = list.list(self.node["try"].clone(), self.input.clone());
            let problem = match clock.within(deadline, list).await {
                Some(Ok(Listed { data, .. })) => return Ok((data, own)),
                Some(Err(Stop::Fail(problem))) => problem,
                Some(Err(end)) => return Err(end),
                None => Problem::timeout().at(&self.here.place()),
            };
            let caught =
                problem.fits(&catch["errors"]["with"]) && self.holds(catch, variable, &problem)?;
            if !caught {
                return Err(problem.into());
            }
            if let Some(retry) = &retry
                && self.holds(retry, variable, &problem)?
                && let Some(delay) = delay(retry, retries, clock.now() - since)
            {
                retries += 1;
                clock.sleep_until(clock.now() + delay).await;
                continue;
            }
            let way = catch.get("then").map_or(own, |then| Way::of(Some(then)));
            return match catch.get("do") {
                Some(handler) => {
                    let here = self.here.inside("catch/do");
                    let here = here.with(vec![(variable, problem.to_data())]);
                    let listed = here.list(handler.clone(), self.input.clone()).await?;
                    Ok((listed.data, way))
                }
                None if retry.is_some() && catch.get("then").is_none() => Err(problem.into()),
                None => Ok((self.input.clone(), way)),
            };
        }
    }

    /// `when` and `exceptWhen`, over the error.
    fn holds(&self, node: &Value, variable: &str, problem: &Problem) -> Done<bool> {
        let error = problem.to_data();
        let mut vars = self.vars(None, None);
        vars.push((variable.to_owned(), error.clone()));
        let test = |name: &str| match node.get(name) {
            Some(test) => condition(test, &error, &vars).map(Some),
            None => Ok(None),
        };
        Ok(test("when")?.unwrap_or(true) && !test("exceptWhen")?.unwrap_or(false))
    }
}

/// The delay before the next retry, if there may be one.
fn delay(retry: &Value, retries: i64, elapsed: i64) -> Option<i64> {
    let limit = &retry["limit"];
    let count = limit["attempt"].get("count").and_then(Value::as_i64);
    let within = limit.get("duration").map(millis);
    if count.is_some_and(|count| retries >= count) {
        return None;
    }
    let backoff = &retry["backoff"];
    let factor = if backoff.get("linear").is_some() {
        retries + 1
    } else if backoff.get("exponential").is_some() {
        1 << retries
    } else {
        1
    };
    let mut delay = retry.get("delay").map_or(0, millis) * factor;
    // Generated jitters leave no choice.
    delay += retry
        .get("jitter")
        .map_or(0, |jitter| millis(&jitter["from"]));
    if retry.get("delay").is_none() && count.is_none() && within.is_none() {
        delay = delay.max(100);
    }
    match within {
        Some(within) if elapsed + delay > within => None,
        _ => Some(delay),
    }
}

/// The branch that has won, if one has; the outcome; and whether it cuts the other branches.
type Decided = Option<((Option<usize>, Done<Data>), bool)>;

/// The list of the outputs, or the first error.
fn all_outputs(done: &mut [Option<(i64, Done<Data>)>]) -> Decided {
    let stopped = done.iter_mut().find_map(|one| match one {
        Some((_, Err(stop))) => Some(stop.clone()),
        _ => None,
    });
    if let Some(stop) = stopped {
        return Some(((None, Err(stop)), true));
    }
    let outputs = done.iter().map(|one| match one {
        Some((_, Ok(data))) => Some(data.clone()),
        _ => None,
    });
    let outputs: Vec<Data> = outputs.collect::<Option<_>>()?;
    Some(((None, Ok(Data::array(outputs))), false))
}

/// The first branch that completes. If all fail, the first error in time.
fn first_winner(done: &mut [Option<(i64, Done<Data>)>]) -> Decided {
    let mut failed: Option<(i64, &Stop)> = None;
    let mut missing = false;
    for (index, one) in done.iter().enumerate() {
        match one {
            Some((_, Ok(data))) => return Some(((Some(index), Ok(data.clone())), true)),
            Some((_, Err(end @ Stop::End(..)))) => {
                return Some(((None, Err(end.clone())), true));
            }
            Some((at, Err(stop))) if failed.is_none_or(|(first, _)| *at < first) => {
                failed = Some((*at, stop));
            }
            Some(_) => {}
            None => missing = true,
        }
    }
    match failed {
        Some((_, stop)) if !missing => Some(((None, Err(stop.clone())), true)),
        _ => None,
    }
}

/// The context with the members that branches have changed, in their order.
fn joined(before: &Data, contexts: Vec<Data>) -> Data {
    let mut after = before.clone();
    for context in contexts {
        let (Some(had), Some(has)) = (before.as_object(), context.as_object()) else {
            if context != *before {
                after = context;
            }
            continue;
        };
        for (key, value) in has.iter() {
            let (key, value) = (Data(key.clone()).to_text(), Data(value.clone()));
            if before.get(&key).as_ref() != Some(&value) {
                after.set(&key, value);
            }
        }
        for (key, _) in had.iter().filter(|(key, _)| !has.contains_key(*key)) {
            after.remove(&Data(key.clone()).to_text());
        }
    }
    after
}
