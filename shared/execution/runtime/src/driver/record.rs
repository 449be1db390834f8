//! The arguments and answers of calls, the contents of events and the data of states, kept with the history as
//! configured. Secrets are removed, and long values are truncated.

use swirl_engine::{Env, Request, pending_request};
use swirl_model::Data;
use swirl_model::event::{Command, Event, Input};
use swirl_model::redact::{CUT, Redactor};
use swirl_model::scope::{RecentCall, Scope, StartEvent};
use swirl_model::time::Timestamp;
use swirl_model::workflow::AuthScheme;
pub use swirl_model::workflow::Recording;

use super::Run;

/// The default limit on a recorded value, in bytes of its JSON.
pub const RECORDED_BYTES_MAX: usize = 16 << 10;

/// The default number of last calls that a scope keeps.
pub const RECENT_CALLS_MAX: usize = 3;

/// The limit on each value of such a call, in bytes of its JSON: each commit of the scope writes them again.
const RECENT_BYTES_MAX: usize = 1 << 10;

/// A call in flight, as the history may record it.
#[derive(Clone)]
pub(super) struct RecordedCall {
    call: u32,
    arguments: Option<Data>,
    /// The answer may contain a token that was fetched for the call and that this process doesn't know.
    hides_result: bool,
}

impl RecordedCall {
    /// `arguments`: in the form in which they may be recorded.
    pub fn new(call: u32, arguments: Option<Data>, request: &Request) -> RecordedCall {
        let scheme = request.auth.as_ref().map(|auth| auth.scheme);
        RecordedCall {
            call,
            arguments,
            hides_result: scheme == Some(AuthScheme::OAuth2),
        }
    }
}

/// The values of an input that the entries about it may record.
#[derive(Default)]
pub(super) struct RecordedInput {
    arguments: Option<Data>,
    result: Option<Data>,
    event: Option<Data>,
    /// Events that created the instance and aren't consumed yet, by source and id.
    starts: Vec<(String, String, Data)>,
}

impl RecordedInput {
    fn event(&mut self, source: &str, id: &str) -> Option<Data> {
        let is_meant = |start: &(String, String, Data)| start.0 == source && start.1 == id;
        let start = self.starts.iter().position(is_meant);
        start
            .map(|index| self.starts.remove(index).2)
            .or_else(|| self.event.take())
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Recorder {
    pub recording: Recording,
    pub bytes_max: usize,
    /// How long values are kept; `None` keeps them as long as their entries.
    pub keep_ms: Option<u64>,
    /// How many of its last calls a scope keeps, if the history has only those that failed.
    pub recent_max: usize,
}

impl Recorder {
    pub const OFF: Recorder = Recorder {
        recording: Recording::None,
        bytes_max: 0,
        keep_ms: None,
        recent_max: 0,
    };

    pub fn is_on(self) -> bool {
        self.recording != Recording::None
    }

    pub fn all(self) -> bool {
        self.recording == Recording::All
    }

    fn keeps_recent(self) -> bool {
        self.recording == Recording::Errors && self.recent_max > 0
    }

    /// When values that are recorded now are removed. The time is rounded up to a sixteenth of the retention, so that
    /// the values of an instance are removed in few steps.
    pub fn until(self, now: Timestamp) -> Option<Timestamp> {
        let keep = i64::try_from(self.keep_ms?).ok()?;
        let step = (keep / 16).max(1);
        let due = now.0.saturating_add(keep);
        let over = due.rem_euclid(step);
        Some(Timestamp(match over {
            0 => due,
            _ => due.saturating_add(step - over),
        }))
    }

    /// The value in the form in which it may be recorded.
    pub fn kept(self, data: Data, redactor: &Redactor) -> Data {
        self.cut(redactor.data(data))
    }

    /// The value, or its beginning if it is too long.
    fn cut(self, data: Data) -> Data {
        if !data.exceeds(self.bytes_max) {
            return data;
        }
        let text = data.to_string();
        let bytes = i64::try_from(text.len()).unwrap_or(i64::MAX);
        self.beginning(&text, Data::int(bytes))
    }

    fn beginning(self, text: &str, bytes: Data) -> Data {
        let mut cut = Data::object();
        let end = text.floor_char_boundary(self.bytes_max);
        cut.set("cut", Data::string(&text[..end]));
        cut.set("bytes", bytes);
        cut
    }

    /// Like `cut`, of a value that may have been cut to a greater length.
    fn cut_again(self, data: Data) -> Data {
        let before = data.get("cut").zip(data.get("bytes"));
        match before
            .as_ref()
            .and_then(|(cut, bytes)| cut.as_str().zip(Some(bytes)))
        {
            Some((text, bytes)) if text.len() > self.bytes_max => {
                self.beginning(text, bytes.clone())
            }
            _ => self.cut(data),
        }
    }

    /// The recordable values of an input. `pending`: the call in flight.
    pub fn input(
        self,
        input: &Input,
        pending: &mut Option<RecordedCall>,
        redactor: &Redactor,
    ) -> RecordedInput {
        let mut recorded = RecordedInput::default();
        if !self.is_on() {
            return recorded;
        }
        match input {
            Input::CallDone { call, result } => {
                // Without `pending` nothing is known about the call.
                if let Some(pending) = pending.take_if(|pending| pending.call == *call) {
                    recorded.arguments = pending.arguments;
                    recorded.result = result.as_ref().ok().cloned();
                    recorded.result.take_if(|_| pending.hides_result);
                }
            }
            Input::SubflowDone { result, .. } => recorded.result = result.as_ref().ok().cloned(),
            Input::Event { event, .. } if self.all() => recorded.event = Some(event.to_data()),
            _ => {}
        }
        recorded.result = recorded
            .result
            .filter(|_| self.all() || self.keeps_recent())
            .map(|result| match self.keeps_recent() {
                true => self.short().kept(result, redactor),
                false => self.kept(result, redactor),
            });
        recorded.event = recorded.event.map(|event| self.kept(event, redactor));
        recorded
    }

    /// For values that are kept with the scope.
    fn short(self) -> Recorder {
        Recorder {
            bytes_max: self.bytes_max.min(RECENT_BYTES_MAX),
            ..self
        }
    }

    /// Keeps a call that was answered with its scope, if its entry doesn't have its values.
    pub fn recent(
        self,
        event: &Event,
        at: Timestamp,
        recorded: &mut RecordedInput,
        scope: &mut Scope,
    ) {
        if !self.keeps_recent() || scope.ended() {
            scope.recent.clear();
            return;
        }
        let Event::ActionCompleted {
            action, attempt, ..
        } = event
        else {
            return;
        };
        let mut data = Data::object();
        let arguments = recorded.arguments.take();
        let arguments = arguments.map(|arguments| self.short().cut_again(arguments));
        for (name, value) in [("arguments", arguments), ("result", recorded.result.take())] {
            if let Some(value) = value {
                data.set(name, value);
            }
        }
        if data.as_object().is_none_or(|members| members.is_empty()) {
            return;
        }
        let call = RecentCall {
            at,
            action: action.clone(),
            attempt: *attempt,
            data,
            data_until: self.until(at),
        };
        scope.keep_recent(call, self.recent_max);
    }

    /// Adds the events that created the instance.
    pub fn starts(self, recorded: &mut RecordedInput, starts: &[StartEvent], redactor: &Redactor) {
        if !self.all() {
            return;
        }
        let starts = starts.iter().map(|start| {
            let event = &start.event;
            let kept = self.kept(event.to_data(), redactor);
            (event.source.clone(), event.id.clone(), kept)
        });
        recorded.starts.extend(starts);
    }

    /// The values to record with the entry about this event. `state_data`: the scope's data when it happened, if all is
    /// recorded.
    pub fn entry(
        self,
        event: &Event,
        state_data: Option<&Data>,
        recorded: &mut RecordedInput,
        commands: &[Command],
        redactor: &Redactor,
    ) -> Option<Data> {
        if !self.is_on() {
            return None;
        }
        let mut data = Data::object();
        let mut set = |name: &str, value: Option<Data>| {
            if let Some(value) = value {
                data.set(name, value);
            }
        };
        match event {
            Event::StateEntered { .. } if self.all() => {
                set(
                    "state_data",
                    state_data.map(|data| self.kept(data.clone(), redactor)),
                );
            }
            Event::ActionCompleted { .. } if self.all() => {
                set("arguments", recorded.arguments.take());
                set("result", recorded.result.take());
            }
            Event::ActionFailed { .. } => {
                set("arguments", recorded.arguments.take());
                // An answer arrived but could not be merged.
                set("result", recorded.result.take().filter(|_| self.all()));
            }
            Event::EventConsumed { source, id, .. } => set("event", recorded.event(source, id)),
            Event::EventProduced { id, .. } if self.all() => {
                let published = commands.iter().find_map(|command| match command {
                    Command::Publish(event) if event.id == *id => Some(event.to_data()),
                    _ => None,
                });
                set("event", published.map(|event| self.kept(event, redactor)));
            }
            _ => {}
        }
        data.as_object()
            .is_some_and(|members| !members.is_empty())
            .then_some(data)
    }
}

/// The same secrets with other values.
fn masked(secrets: &Data) -> Data {
    let Some(members) = secrets.as_object() else {
        return Data::string(CUT);
    };
    let mut all = Data::object();
    for (name, value) in members.iter() {
        if let Some(name) = Data(name.clone()).as_str() {
            all.set(name, masked(&Data(value.clone())));
        }
    }
    all
}

/// The arguments without secrets. If there are secrets, the arguments are evaluated again with masked ones, since a
/// secret that an expression has changed isn't always recognised. `None` if they cannot be evaluated without secrets.
pub(super) fn shown_arguments(run: &Run, request: &Request, env: &Env) -> Option<Data> {
    if run.secrets.is_null() {
        return Some(request.arguments.clone());
    }
    let env = Env {
        now: env.now,
        secrets: masked(&run.secrets),
        ..Env::default()
    };
    let request = pending_request(&run.def, &run.header, &run.scope, &env)?;
    request.ok().map(|request| request.arguments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use swirl_model::WorkflowError;
    use swirl_model::ids::ScopeId;
    use swirl_model::scope::{Cursor, Role};

    fn recorder(recording: Recording) -> Recorder {
        Recorder {
            recording,
            bytes_max: 40,
            keep_ms: None,
            recent_max: 0,
        }
    }

    fn data(text: &str) -> Data {
        Data::parse(text.as_bytes()).unwrap()
    }

    fn recorded(recording: Recording, result: Result<Data, WorkflowError>) -> Option<Data> {
        recorded_of(recording, result, false)
    }

    fn recorded_of(
        recording: Recording,
        result: Result<Data, WorkflowError>,
        hides_result: bool,
    ) -> Option<Data> {
        let recorder = recorder(recording);
        let redactor = Redactor::new(["s3cret"]);
        let event = match &result {
            Ok(_) => Event::ActionCompleted {
                action: "pay".to_owned(),
                attempt: 1,
                in_state: None,
            },
            Err(error) => Event::ActionFailed {
                action: "pay".to_owned(),
                attempt: 1,
                error: error.clone(),
                retry_ms: None,
                in_state: None,
            },
        };
        let arguments = recorder.kept(data(r#"{"key": "s3cret"}"#), &redactor);
        let input = Input::CallDone { call: 3, result };
        let mut recorded_call = Some(RecordedCall {
            call: 3,
            arguments: Some(arguments),
            hides_result,
        });
        let mut recorded = recorder.input(&input, &mut recorded_call, &redactor);
        let first = recorder.entry(&event, None, &mut recorded, &[], &redactor);
        let second = recorder.entry(&event, None, &mut recorded, &[], &redactor);
        assert_eq!(second, None, "it is recorded once");
        first
    }

    #[test]
    fn records_as_configured_without_secrets() {
        let failed = || Err(WorkflowError::new("FunctionError", "no"));
        let arguments = data(r#"{"arguments": {"key": "***"}}"#);
        assert_eq!(recorded(Recording::None, failed()), None);
        assert_eq!(recorded(Recording::Errors, failed()), Some(arguments));
        assert_eq!(recorded(Recording::Errors, Ok(data("1"))), None);
        let both = data(r#"{"arguments": {"key": "***"}, "result": "a ***"}"#);
        let answer: Result<Data, WorkflowError> = Ok(data(r#""a s3cret""#));
        assert_eq!(recorded(Recording::All, answer.clone()), Some(both));
        let arguments = data(r#"{"arguments": {"key": "***"}}"#);
        let hidden = recorded_of(Recording::All, answer, true);
        assert_eq!(hidden, Some(arguments), "a token may be in the answer");
    }

    #[test]
    fn an_answer_that_could_not_be_merged_is_recorded() {
        let recorder = recorder(Recording::All);
        let redactor = Redactor::default();
        let mut recorded_call = Some(RecordedCall {
            call: 3,
            arguments: Some(Data::int(1)),
            hides_result: false,
        });
        let result = Ok(data("[2]"));
        let input = Input::CallDone { call: 3, result };
        let mut recorded = recorder.input(&input, &mut recorded_call, &redactor);
        let failed = Event::ActionFailed {
            action: "pay".to_owned(),
            attempt: 1,
            error: WorkflowError::new("ExpressionError", "no"),
            retry_ms: None,
            in_state: None,
        };
        let kept = recorder.entry(&failed, None, &mut recorded, &[], &redactor);
        assert_eq!(kept, Some(data(r#"{"arguments": 1, "result": [2]}"#)));
    }

    #[test]
    fn the_last_calls_are_kept_with_the_scope() {
        let redactor = Redactor::new(["s3cret"]);
        let kept = |recording, arguments: Data| {
            let recorder = Recorder {
                recent_max: 2,
                bytes_max: 60,
                ..recorder(recording)
            };
            let mut scope = Scope::new(ScopeId::root(), Role::Root, Data::NULL);
            for number in 1..=3 {
                let arguments = recorder.kept(arguments.clone(), &redactor);
                let mut call = Some(RecordedCall {
                    call: number,
                    arguments: Some(arguments),
                    hides_result: false,
                });
                let result = Ok(data(r#""s3cret""#));
                let input = Input::CallDone {
                    call: number,
                    result,
                };
                let mut recorded = recorder.input(&input, &mut call, &redactor);
                let event = Event::ActionCompleted {
                    action: format!("pay {number}"),
                    attempt: 1,
                    in_state: None,
                };
                let entry = recorder.entry(&event, None, &mut recorded, &[], &redactor);
                assert_eq!(entry.is_some(), recording == Recording::All);
                recorder.recent(&event, Timestamp(5), &mut recorded, &mut scope);
            }
            scope
        };
        let scope = kept(Recording::Errors, data("[7]"));
        let names: Vec<&str> = scope.recent.iter().map(|one| &*one.action).collect();
        assert_eq!(names, ["pay 2", "pay 3"]);
        let both = data(r#"{"arguments": [7], "result": "***"}"#);
        assert_eq!(scope.recent[1].data, both);
        for other in [Recording::None, Recording::All] {
            assert_eq!(kept(other, data("[7]")).recent, []);
        }
        let mut ended = scope;
        ended.cursor = Cursor::Ended;
        let recorder = Recorder {
            recent_max: 2,
            ..recorder(Recording::Errors)
        };
        let event = Event::ActionCompleted {
            action: "pay".to_owned(),
            attempt: 1,
            in_state: None,
        };
        recorder.recent(
            &event,
            Timestamp(6),
            &mut RecordedInput::default(),
            &mut ended,
        );
        assert_eq!(ended.recent, []);
    }

    #[test]
    fn a_value_that_was_cut_keeps_its_size() {
        let redactor = Redactor::default();
        let long = |bytes_max| Recorder {
            bytes_max,
            ..recorder(Recording::Errors)
        };
        let once = long(40).kept(Data::string("x".repeat(100)), &redactor);
        let twice = long(10).cut_again(once);
        assert_eq!(twice, data(r#"{"cut": "\"xxxxxxxxx", "bytes": 102}"#));
    }

    #[test]
    fn a_state_begins_with_its_data() {
        let entered = Event::StateEntered {
            state: swirl_model::workflow::StateId(0),
            name: "Pay".into(),
            purpose: swirl_model::scope::Purpose::Main,
        };
        let redactor = Redactor::new(["s3cret"]);
        let state_data = data(r#"{"key": "s3cret"}"#);
        let kept = |recording| {
            let mut recorded = RecordedInput::default();
            recorder(recording).entry(&entered, Some(&state_data), &mut recorded, &[], &redactor)
        };
        let shown = data(r#"{"state_data": {"key": "***"}}"#);
        assert_eq!(kept(Recording::All), Some(shown));
        assert_eq!(kept(Recording::Errors), None);
    }

    #[test]
    fn values_expire_in_few_steps() {
        let keeping = |keep_ms| Recorder {
            keep_ms,
            ..recorder(Recording::All)
        };
        assert_eq!(keeping(None).until(Timestamp(5)), None);
        let hour = keeping(Some(1_600));
        for (now, until) in [(0, 1_600), (1, 1_700), (100, 1_700), (101, 1_800)] {
            assert_eq!(hour.until(Timestamp(now)), Some(Timestamp(until)));
        }
    }

    #[test]
    fn secrets_are_masked() {
        let secrets = data(r#"{"a": "x", "b": {"c": 7, "d": ["y"]}}"#);
        let masks = data(r#"{"a": "***", "b": {"c": "***", "d": "***"}}"#);
        assert_eq!(masked(&secrets), masks);
    }

    #[test]
    fn long_values_are_truncated() {
        let long = Data::string("ä".repeat(50));
        let kept = recorder(Recording::All).kept(long, &Redactor::default());
        assert_eq!(kept.get("bytes"), Some(Data::int(102)));
        let cut = kept.get("cut").unwrap();
        assert_eq!(cut.as_str().unwrap(), format!("\"{}", "ä".repeat(19)));
    }
}
