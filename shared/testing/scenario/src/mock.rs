//! Answers calls in virtual time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    let Some(key) = answers.key_of(function.mock_keys(), None) else {
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
    let mocks = Mocks {
        answers,
        requests,
        checks,
        subscriptions: Messages::default(),
    };
    Box::new(move |request| {
        mocks.answer(request).unwrap_or_else(|error| {
            let mut trouble = trouble.lock().unwrap_or_else(PoisonError::into_inner);
            trouble.get_or_insert(error);
            Mock::Never
        })
    })
}

struct Mocks {
    answers: Arc<Answers>,
    requests: Option<Requests>,
    checks: BTreeMap<DefinitionId, Checks>,
    subscriptions: Messages,
}

impl Mocks {
    fn answer(&self, request: &CallRequest) -> Result<Mock, AnswerError> {
        if let (Some(rule), Some(subscription)) = (&request.consumes, subscription(request)) {
            let mut open = self.open_subscriptions();
            if let Some(messages) = open.get_mut(&subscription) {
                return Ok(Mock::Next(next_message(&**rule, messages, 0)));
            }
        }
        // Functions that log are executed and never mocked (docs/language.md#decision-99).
        if is_sysout(&request.function) {
            return Ok(Mock::Silent);
        }
        let requests = self.requests.as_ref();
        if let Some(requests) = requests.filter(|requests| requests.makes(request)) {
            return requests.answer(request);
        }
        if request.function.kind == FunctionKind::Process {
            return process_answer(&self.answers, request);
        }
        let called = &*request.function;
        let function = match called.place.is_empty() {
            true => &*called.name,
            false => self
                .answers
                .key_of(called.mock_keys(), None)
                .unwrap_or(&*called.name),
        };
        self.check_arguments(request, function)?;
        let arguments = shown_arguments(called, &request.arguments, &request.key);
        let now = request.at;
        let Some(answered) = self.answers.next(function, &arguments, now.0).transpose()? else {
            return Ok(Mock::Unknown);
        };
        let function = function.to_owned();
        Ok(match answered {
            Answered::Never => Mock::Never,
            Answered::Return { data, after } => {
                let after_ms = after.millis_from(now);
                match &request.consumes {
                    Some(rule) => self.messages(request, &**rule, function, &data, after_ms)?,
                    None => self.returned(request, function, data, after_ms)?,
                }
            }
            Answered::Respond { .. } => return Err(AnswerError::Respond(function)),
            Answered::Exit { .. } => return Err(AnswerError::Exit(function)),
            Answered::Error { error, after } => Mock::Answer {
                after_ms: after.millis_from(now),
                result: Err(typed_error(Some(called), error)),
            },
        })
    }

    fn open_subscriptions(&self) -> MutexGuard<'_, BTreeMap<(ScopeRef, u32), VecDeque<Data>>> {
        let open = self.subscriptions.lock();
        open.unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the call fits the document that describes the function. Only calls that get an answer are checked.
    fn check_arguments(&self, request: &CallRequest, function: &str) -> Result<(), AnswerError> {
        let Some(checks) = self.checks.get(&request.definition) else {
            return Ok(());
        };
        let problems = checks.call(&request.function, &request.arguments);
        if problems.is_empty() || !self.answers.has(function) {
            return Ok(());
        }
        Err(AnswerError::Call {
            function: function.to_owned(),
            problems: problems.join("; "),
        })
    }

    /// The answer of a function that is called once.
    fn returned(
        &self,
        request: &CallRequest,
        function: String,
        data: Data,
        after_ms: u64,
    ) -> Result<Mock, AnswerError> {
        let checks = self.checks.get(&request.definition);
        let problems = checks.map(|checks| checks.answer(&request.function, &data));
        if let Some(problems) = problems.filter(|problems| !problems.is_empty()) {
            let problems = problems.join("; ");
            return Err(AnswerError::Return { function, problems });
        }
        Ok(Mock::Answer {
            after_ms,
            result: Ok(data),
        })
    }

    /// The answer of a function that messages are taken from: `data` is the list of them.
    fn messages(
        &self,
        request: &CallRequest,
        rule: &dyn Consumes,
        function: String,
        data: &Data,
        after_ms: u64,
    ) -> Result<Mock, AnswerError> {
        let Some(messages) = data.as_array() else {
            return Err(AnswerError::Messages(function));
        };
        let messages: Vec<Data> = messages.iter().cloned().map(Data).collect();
        let payloads: Option<Vec<Data>> = messages
            .iter()
            .map(|message| message.get("payload"))
            .collect();
        let Some(payloads) = payloads else {
            return Err(AnswerError::Messages(function));
        };
        if let Some(checks) = self.checks.get(&request.definition) {
            let mut problems = payloads
                .iter()
                .flat_map(|payload| checks.answer(&request.function, payload));
            if let Some(problems) = problems.next() {
                return Err(AnswerError::Return { function, problems });
            }
        }
        let Some(subscription) = subscription(request) else {
            return Ok(taken(rule, messages, after_ms));
        };
        let mut messages = VecDeque::from(messages);
        let first = next_message(rule, &mut messages, after_ms);
        self.open_subscriptions().insert(subscription, messages);
        Ok(match first {
            Some(NextMessage { after_ms, result }) => Mock::Answer { after_ms, result },
            None => Mock::Never,
        })
    }
}

/// The subscription of a call that gets one message after another.
fn subscription(request: &CallRequest) -> Option<(ScopeRef, u32)> {
    let number = request.consumes.as_ref()?.subscription()?;
    Some((request.scope.clone(), number))
}
