//! Answers calls in virtual time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use swirl_functions::types::Checks;
use swirl_model::ids::DefinitionId;
use swirl_model::workflow::{Function, FunctionKind};
use swirl_world::Mock;

use super::answer::{AnswerError, Answered, Answers};

/// Whether the function has type `custom` and logs.
pub fn is_sysout(function: &Function) -> bool {
    matches!(&function.kind, FunctionKind::Custom(word) if word == "custom")
        && swirl_functions::types::custom::is_sysout(&function.operation)
}

/// Answers a call.
pub type Caller = Box<dyn Fn(&swirl_ports::CallRequest) -> Mock + Send + Sync>;

/// Answers as the scenario specifies. Problems that prevent an answer are recorded.
pub fn mock(
    answers: Answers,
    checks: BTreeMap<DefinitionId, Checks>,
    trouble: Arc<Mutex<Option<AnswerError>>>,
) -> Caller {
    let fail = move |error: AnswerError| {
        let mut trouble = trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.get_or_insert(error);
        Mock::Never
    };
    Box::new(move |request| {
        let now = request.at;
        // Functions that log are executed and never mocked (docs/language.md#decision-99).
        if is_sysout(&request.function) {
            return Mock::Silent;
        }
        let function = &*request.function.name;
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
        match answers.next(function, &request.arguments, now.0) {
            None => Mock::Unknown,
            Some(Ok(Answered::Never)) => Mock::Never,
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
            Some(Ok(Answered::Error { error, after })) => Mock::Answer {
                after_ms: after.millis_from(now),
                result: Err(error),
            },
            Some(Err(error)) => fail(error),
        }
    })
}
