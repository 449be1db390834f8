//! Answers calls with recorded answers, and records which answer each call used.
//!
//! In virtual time, calls may begin in a different order than in real time, because branches take no time between two
//! calls. So an answer is chosen by the call itself: by its arguments, its instance and its scope.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use swirl_model::Data;
use swirl_ports::CallRequest;
use swirl_scenario::mock::{Caller, is_sysout};
use swirl_virtual_time::Mock;

use super::facts::{Outcome, RecordedCall};

pub struct Answering {
    calls: Vec<RecordedCall>,
    taken: Mutex<Taken>,
}

/// The recorded calls that a run has used.
#[derive(Debug, Clone, Default)]
pub struct Taken {
    /// Recorded calls, in the order in which the run needed them.
    pub order: Vec<usize>,
    /// The recorded instance that corresponds to an instance of the run, by the latter's id.
    pub instances: BTreeMap<String, usize>,
    /// Calls without a recorded answer.
    pub unknown: Vec<(String, Data)>,
}

impl Answering {
    pub fn new(calls: Vec<RecordedCall>) -> Arc<Answering> {
        Arc::new(Answering {
            calls,
            taken: Mutex::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn taken(&self) -> Taken {
        self.lock().clone()
    }

    pub fn caller(self: &Arc<Answering>) -> Caller {
        let answering = self.clone();
        Box::new(move |request| {
            if is_sysout(&request.function) {
                return Mock::Silent;
            }
            answering.answer(request)
        })
    }

    fn answer(&self, request: &CallRequest) -> Mock {
        let mut taken = self.lock();
        let instance = request.scope.instance.as_str();
        let Some(index) = self.choose(request, &taken) else {
            let function = request.function.name.to_string();
            taken.unknown.push((function, request.arguments.clone()));
            // There is no record of how it continues.
            return Mock::Never;
        };
        let call = &self.calls[index];
        taken.order.push(index);
        if !taken.instances.contains_key(instance) {
            taken.instances.insert(instance.to_owned(), call.instance);
        }
        let result = match &call.outcome {
            Outcome::Return(data) => Ok(data.clone()),
            Outcome::Error(error) => Err(error.clone()),
            Outcome::Never => return Mock::Never,
        };
        Mock::Answer {
            after_ms: call.took_ms,
            result,
        }
    }

    /// The best matching recorded call; if several match equally, the earliest.
    fn choose(&self, request: &CallRequest, taken: &Taken) -> Option<usize> {
        let name = &*request.function.name;
        let instance = request.scope.instance.as_str();
        let mapped = taken.instances.get(instance);
        let mut best: Option<(u8, usize)> = None;
        for (index, call) in self.calls.iter().enumerate() {
            if call.function != name || taken.order.contains(&index) {
                continue;
            }
            let same_arguments = call
                .arguments
                .as_ref()
                .is_none_or(|all| *all == request.arguments);
            let same_instance = match mapped {
                Some(mapped) => *mapped == call.instance,
                None => !taken
                    .instances
                    .values()
                    .any(|known| *known == call.instance),
            };
            let same_scope = call.scope == request.scope.scope;
            let fits =
                u8::from(same_arguments) * 4 + u8::from(same_instance) * 2 + u8::from(same_scope);
            if best.is_none_or(|(known, _)| fits > known) {
                best = Some((fits, index));
            }
        }
        best.map(|(_, index)| index)
    }
}
