//! Answers calls in virtual time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use swirl_functions::types::Checks;
use swirl_functions::types::process;
use swirl_model::Data;
use swirl_model::ids::{DefinitionId, ScopeRef};
use swirl_model::messages::Consumes;
use swirl_model::workflow::{Function, FunctionKind};
use swirl_ports::CallRequest;
use swirl_virtual_time::{Mock, NextMessage};

use super::answer::{AnswerError, Answered, Answers};
use super::requests::{Requests, shown_arguments, typed_error};

/// Whether the function has type `custom` and logs.
pub fn is_sysout(function: &Function) -> bool {
    matches!(&function.kind, FunctionKind::Custom(word) if word == "custom")
        && swirl_functions::types::custom::is_sysout(&function.operation)
}

/// The answer to a task that runs a process.
fn process_answer(answers: &Answers, request: &CallRequest) -> Result<Mock, AnswerError> {
    let function = &request.function;
    let Some(key) = answers.key_of(function, Some(&request.definition), None) else {
        return Ok(Mock::Unknown);
    };
    let answered = answers.next(key, &request.arguments, request.at.0);
    let Some(answered) = answered.transpose()? else {
        return Ok(Mock::Unknown);
    };
    let (after, result) = match answered {
        Answered::Never => return Ok(Mock::Never),
        Answered::Respond { .. } => return Err(AnswerError::Respond(function.name.to_string())),
        Answered::Return { data, after } => (after, Ok(data)),
        Answered::Error { error, after } => (after, Err(typed_error(Some(function), error))),
        Answered::Exit {
            code,
            stdout,
            stderr,
            after,
        } => {
            let result = process::simulated(&request.arguments, code, &stdout, &stderr);
            (after, result)
        }
    };
    Ok(Mock::Answer {
        after_ms: after.millis_from(request.at),
        result,
    })
}

/// The messages that a subscription takes. They come all at once.
fn taken(rule: &dyn Consumes, messages: Vec<Data>, after_ms: u64) -> Mock {
    let answer = |after_ms, result| Mock::Answer { after_ms, result };
    let span = rule
        .span()
        .map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
    let mut taken = Vec::new();
    match rule.is_enough(&taken) {
        Ok(true) => return answer(0, Ok(Data::array(taken))),
        Ok(false) => {}
        Err(error) => return answer(0, Err(error)),
    }
    let in_time = span.is_none_or(|span| after_ms <= span);
    for message in messages.into_iter().filter(|_| in_time) {
        if !rule.takes(&message) {
            continue;
        }
        taken.push(message);
        match rule.is_enough(&taken) {
            Ok(true) => return answer(after_ms, Ok(Data::array(taken))),
            Ok(false) => {}
            Err(error) => return answer(after_ms, Err(error)),
        }
    }
    match span {
        Some(span) => answer(span, Ok(Data::array(taken))),
        None => Mock::Never,
    }
}

/// The messages of subscriptions that give one after another, by scope and number: those that haven't been taken.
type Messages = Mutex<BTreeMap<(ScopeRef, u32), VecDeque<Data>>>;

/// The next message of a subscription. The first call for it brings all messages.
fn next_message(
    rule: &dyn Consumes,
    messages: &mut VecDeque<Data>,
    after_ms: u64,
) -> Option<NextMessage> {
    let span = rule.span();
    let span = span.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
    let answer = |after_ms, list| NextMessage {
        after_ms,
        result: Ok(Data::array(list)),
    };
    if span.is_some_and(|span| after_ms > span) {
        messages.clear();
    }
    while let Some(message) = messages.pop_front() {
        if rule.takes(&message) {
            return Some(answer(after_ms, vec![message]));
        }
    }
    span.map(|span| answer(span, Vec::new()))
}

/// Answers a call.
pub type Caller = Box<dyn Fn(&swirl_ports::CallRequest) -> Mock + Send + Sync>;

/// Answers as the scenario specifies. Problems that prevent an answer are recorded.
pub fn mock(
    answers: Arc<Answers>,
    requests: Option<Requests>,
    checks: BTreeMap<DefinitionId, Checks>,
    trouble: Arc<Mutex<Option<AnswerError>>>,
) -> Caller {
    let fail = move |error: AnswerError| {
        let mut trouble = trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.get_or_insert(error);
        Mock::Never
    };
    let subscriptions = Messages::default();
    Box::new(move |request| {
        let now = request.at;
        let number = request
            .consumes
            .as_ref()
            .and_then(|rule| rule.subscription());
        let subscription = number.map(|number| (request.scope.clone(), number));
        if let (Some(subscription), Some(rule)) = (&subscription, &request.consumes) {
            let mut open = subscriptions.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(messages) = open.get_mut(subscription) {
                return Mock::Next(next_message(&**rule, messages, 0));
            }
        }
        // Functions that log are executed and never mocked (docs/language.md#decision-99).
        if is_sysout(&request.function) {
            return Mock::Silent;
        }
        if let Some(requests) = requests.as_ref().filter(|requests| requests.makes(request)) {
            return requests.play(request, fail.clone());
        }
        if request.function.kind == FunctionKind::Process {
            return process_answer(&answers, request).unwrap_or_else(&fail);
        }
        let name = &*request.function.name;
        let function = match request.function.place.is_empty() {
            true => name,
            false => answers
                .key_of(&request.function, Some(&request.definition), None)
                .unwrap_or(name),
        };
        let checks = checks.get(&request.definition);
        let found = checks.map(|checks| checks.call(&request.function, &request.arguments));
        if let Some(problems) = found.filter(|found| !found.is_empty())
            && answers.has(function)
        {
            return fail(AnswerError::Call {
                function: function.to_owned(),
                problems: problems.join("; "),
            });
        }
        let called = &*request.function;
        let arguments = shown_arguments(called, &request.arguments, &request.key);
        match answers.next(function, &arguments, now.0) {
            None => Mock::Unknown,
            Some(Ok(Answered::Never)) => Mock::Never,
            Some(Ok(Answered::Return { data, after })) if request.consumes.is_some() => {
                let Some(messages) = data.as_array() else {
                    return fail(AnswerError::Messages(function.to_owned()));
                };
                let messages: Vec<Data> = messages.iter().cloned().map(Data).collect();
                if !messages.iter().all(Data::is_object) {
                    return fail(AnswerError::Messages(function.to_owned()));
                }
                let problem = checks.and_then(|checks| {
                    let payloads = messages.iter().filter_map(|message| message.get("payload"));
                    let mut problems =
                        payloads.flat_map(|payload| checks.answer(&request.function, &payload));
                    problems.next()
                });
                if let Some(problems) = problem {
                    let function = function.to_owned();
                    return fail(AnswerError::Return { function, problems });
                }
                let after_ms = after.millis_from(now);
                match (&request.consumes, subscription) {
                    (Some(rule), None) => taken(&**rule, messages, after_ms),
                    (Some(rule), Some(subscription)) => {
                        let mut messages = VecDeque::from(messages);
                        let first = next_message(&**rule, &mut messages, after_ms);
                        let mut open = subscriptions.lock().unwrap_or_else(PoisonError::into_inner);
                        open.insert(subscription, messages);
                        match first {
                            Some(NextMessage { after_ms, result }) => {
                                Mock::Answer { after_ms, result }
                            }
                            None => Mock::Never,
                        }
                    }
                    (None, _) => Mock::Unknown,
                }
            }
            Some(Ok(Answered::Return { data, after })) => {
                let found = checks.map(|checks| checks.answer(&request.function, &data));
                if let Some(problems) = found.filter(|found| !found.is_empty()) {
                    return fail(AnswerError::Return {
                        function: function.to_owned(),
                        problems: problems.join("; "),
                    });
                }
                Mock::Answer {
                    after_ms: after.millis_from(now),
                    result: Ok(data),
                }
            }
            Some(Ok(Answered::Respond { .. })) => fail(AnswerError::Respond(function.to_owned())),
            Some(Ok(Answered::Exit { .. })) => fail(AnswerError::Exit(function.to_owned())),
            Some(Ok(Answered::Error { error, after })) => Mock::Answer {
                after_ms: after.millis_from(now),
                result: Err(typed_error(Some(called), error)),
            },
            Some(Err(error)) => fail(error),
        }
    })
}
