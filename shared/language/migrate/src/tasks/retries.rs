//! Retries.

use swirl_model::Data;
use swirl_model::time::IsoDuration;
use swirl_model::workflow::{Action, Jitter, Period, Retry, RetryErrors};

use super::writer::{Writer, do_list, list, marked, object};

impl Writer<'_> {
    /// A task that is retried as its action is.
    pub fn with_retry(&mut self, action: &Action, name: &str, task: Data) -> Data {
        let Some(rule) = &action.retry else {
            return task;
        };
        if rule.policy.retries_max == Some(0) || action.kind.is_detached() {
            return task;
        }
        let mut catch = match &rule.errors {
            RetryErrors::All => Data::object(),
            RetryErrors::Only(ids) => self.these(ids),
            RetryErrors::Except(ids) => {
                let tests: Vec<String> = ids.iter().map(|id| self.test(*id)).collect();
                let mut catch = Data::object();
                if !tests.is_empty() {
                    catch.set("exceptWhen", marked(&tests.join(" or ")));
                }
                catch
            }
            RetryErrors::When(_) => {
                self.cannot("an expression says for which errors an action is retried");
                return task;
            }
        };
        let body = list(vec![(name.to_owned(), task.clone())]);
        match self.policy(&rule.policy, ".") {
            Ok(retry) => {
                catch.set("retry", retry);
                object([("try", body), ("catch", catch)])
            }
            Err(why) => match delays(&rule.policy) {
                Some((delays, endless)) => counted(body, catch, &delays, endless),
                None => {
                    self.cannot(why);
                    task
                }
            },
        }
    }

    /// A retry policy, if DSL 1.0 has one like it.
    pub fn retry(&mut self, policy: &Retry, data: &str) -> Option<Data> {
        match self.policy(policy, data) {
            Ok(retry) => Some(retry),
            Err(why) => {
                self.cannot(why);
                None
            }
        }
    }

    fn policy(&mut self, policy: &Retry, data: &str) -> Result<Data, &'static str> {
        let mut retry = Data::object();
        let delay = policy.delay;
        let fixed = |period: Option<Period>| match period {
            None => Some(IsoDuration::from_millis(0)),
            Some(period) => period.fixed(),
        };
        let plain = |period: Option<Period>| {
            fixed(period)
                .filter(|duration| duration.months == 0)
                .map(|duration| duration.millis)
        };
        let (first, step, cap) = (
            plain(delay),
            plain(policy.increment),
            policy.max_delay.map(|cap| plain(Some(cap))),
        );
        let factor = policy.multiplier.unwrap_or(1.0);
        let grows = step != Some(0) || factor != 1.0;
        let backoff = match (first, step) {
            _ if !grows => "constant",
            (Some(0), Some(0)) => "constant",
            _ if policy.retries_max == Some(1) => "constant",
            (Some(first), Some(step)) if factor == 1.0 && first == step => "linear",
            (Some(_), Some(0)) if factor == 2.0 => "exponential",
            _ => "",
        };
        if backoff.is_empty() {
            return Err(
                "the delays of a retry grow in a way of their own; in DSL 1.0 they are constant, linear or doubled",
            );
        }
        if let Some(cap) = cap {
            let last = match (first, backoff, policy.retries_max) {
                (Some(first), "constant", _) => Some(first),
                (Some(first), "linear", Some(max)) => first.checked_mul(max.into()),
                (Some(first), "exponential", Some(max)) => 2u64
                    .checked_pow(max.saturating_sub(1))
                    .and_then(|factor| first.checked_mul(factor)),
                _ => None,
            };
            let reached = match (last, cap) {
                (Some(last), Some(cap)) => last > cap,
                _ => true,
            };
            if reached {
                return Err("the delays of a retry have a maximum ('maxDelay') that is reached");
            }
        }
        let (delay, jitter) = match &policy.jitter {
            Jitter::None => (delay, None),
            _ if backoff != "constant" => {
                return Err("the delays of a retry grow and have a jitter around them");
            }
            jitter => {
                let (Some(first), Some(spread)) = (first, spread(jitter, first)) else {
                    return Err("the jitter of a retry isn't known before it runs");
                };
                let spread = spread.min(first);
                self.note("the jitter of retries is added to their shortest delay");
                let shortest = IsoDuration::from_millis(first - spread);
                let width = IsoDuration::from_millis(spread.saturating_mul(2));
                (Some(Period::Fixed(shortest)), Some(width))
            }
        };
        if let Some(delay) = delay {
            let delay = self.period(delay, data);
            retry.set("delay", delay);
        }
        if backoff != "constant" {
            retry.set("backoff", object([(backoff, Data::object())]));
        }
        if let Some(width) = jitter {
            let zero = Data::string("PT0S");
            let width = Data::string(width.to_string());
            retry.set("jitter", object([("from", zero), ("to", width)]));
        }
        if let Some(max) = policy.retries_max {
            let count = object([("count", Data::int(max.into()))]);
            retry.set("limit", object([("attempt", count)]));
        }
        Ok(retry)
    }
}

/// The most delays that are written one by one.
const DELAYS_MAX: usize = 50;

/// The delays before the retries, in order, if they are known; and whether the last one repeats without end.
fn delays(policy: &Retry) -> Option<(Vec<u64>, bool)> {
    if policy.jitter != Jitter::None {
        return None;
    }
    let known = |period: Option<Period>| match period {
        None => Some(0),
        Some(period) => period
            .fixed()
            .filter(|duration| duration.months == 0)
            .map(|duration| duration.millis),
    };
    let step = known(policy.increment)?;
    let factor = policy.multiplier.unwrap_or(1.0);
    let cap = match policy.max_delay {
        None => u64::MAX,
        max => known(max)?,
    };
    let max = policy.retries_max.map_or(DELAYS_MAX, |max| max as usize);
    if max > DELAYS_MAX {
        return None;
    }
    let mut delays = vec![known(policy.delay)?.min(cap)];
    while delays.len() < max {
        let last = delays.last().copied()?;
        let next = ((last.saturating_add(step)) as f64 * factor).round();
        let next = (next as u64).min(cap);
        if policy.retries_max.is_none() && next == last {
            return Some((delays, true));
        }
        delays.push(next);
    }
    policy.retries_max.is_some().then_some((delays, false))
}

/// Retries that are counted in `$context`, with a delay of its own before each.
fn counted(body: Data, mut catch: Data, delays: &[u64], endless: bool) -> Data {
    let count = |number: &str| {
        let context = marked(&format!("$context + {{retry: {number}}}"));
        object([("set", marked(".")), ("export", object([("as", context)]))])
    };
    if !endless {
        let more = format!("$context.retry < {}", delays.len());
        let when = match catch
            .get("when")
            .and_then(|when| when.as_str().map(str::to_owned))
        {
            Some(when) => {
                let when = when.trim_start_matches("${").trim_end_matches('}').trim();
                format!("{more} and ({when})")
            }
            None => more,
        };
        catch.set("when", marked(&when));
    }
    catch.set(
        "do",
        list(vec![("count".to_owned(), count("($context.retry + 1)"))]),
    );
    catch.set("then", Data::string("pause"));
    let attempt = object([
        ("try", body),
        ("catch", catch),
        ("then", Data::string("exit")),
    ]);
    let words: Vec<String> = delays
        .iter()
        .map(|millis| format!("\"{}\"", IsoDuration::from_millis(*millis)))
        .collect();
    let mut delay = format!("[{}][$context.retry - 1]", words.join(", "));
    if let (true, Some(last)) = (endless, words.last()) {
        delay = format!("{delay} // {last}");
    }
    let pause = object([("wait", marked(&delay)), ("then", Data::string("attempt"))]);
    do_list(vec![
        ("begin".to_owned(), count("0")),
        ("attempt".to_owned(), attempt),
        ("pause".to_owned(), pause),
    ])
}

/// Half of the width of the jitter, in milliseconds.
fn spread(jitter: &Jitter, delay: Option<u64>) -> Option<u64> {
    match jitter {
        Jitter::None => Some(0),
        Jitter::Absolute(period) => period
            .fixed()
            .filter(|duration| duration.months == 0)
            .map(|duration| duration.millis),
        Jitter::Fraction(fraction) => {
            let delay = delay? as f64;
            Some((delay * fraction).round() as u64)
        }
    }
}
