//! Errors and their handlers: names and codes become types, statuses and titles.

use swirl_model::Data;
use swirl_model::error::{OWN_TYPES, names};
use swirl_model::workflow::{
    ActionKind, ErrorFilter, ErrorId, ErrorSet, Handler, Next, State, Then, Throw,
};

use super::jq_text::{filter, grouped, one};
use super::merge::{Taking, with_definitions};
use super::writer::{Tasks, Writer, list, marked, object};

/// The word in the type of an error of a call.
pub const COMMUNICATION: &str = "communication";

/// The word in the type that an error of ours has in DSL 1.0, by its name.
#[must_use]
pub fn own_type_of(name: &str) -> Option<&'static str> {
    Some(match name {
        names::FUNCTION_ERROR => COMMUNICATION,
        names::ACTION_TIMEOUT
        | names::BRANCH_TIMEOUT
        | names::EVENT_TIMEOUT
        | names::STATE_TIMEOUT => "timeout",
        names::COLLECTION_NOT_ARRAY
        | names::CONDITION_NOT_BOOLEAN
        | names::EXPRESSION_ERROR
        | names::INVALID_VALUE
        | names::MERGE_TYPE_MISMATCH => "expression",
        names::INPUT_VALIDATION | names::OUTPUT_VALIDATION => "validation",
        names::LIMIT_EXCEEDED => "runtime",
        names::SECRET_NOT_FOUND => "authorization",
        names::SUBFLOW_NOT_FOUND => "configuration",
        _ => return None,
    })
}

/// Where the types of the language's own errors begin in 0.9.
const TYPES_0_9: &str = "https://serverlessworkflow.io/spec/errors/";

/// How an error is known.
enum ErrorKey {
    Status(u16),
    /// A word of the language's own types.
    Own(String),
    Type(String),
    Title(String),
}

impl Writer<'_> {
    fn known(&mut self, id: ErrorId) -> Vec<ErrorKey> {
        if !self.named_errors.contains(&id) {
            self.named_errors.push(id);
        }
        let def = &self.workflow[id];
        if let Some(problem) = &def.problem {
            let mut all = Vec::new();
            if problem.instance.is_some() {
                self.cannot(
                    "an error is known by its place in the document, which is another one in DSL 1.0",
                );
            }
            if let Some(kind) = &problem.kind {
                all.push(match kind.strip_prefix(TYPES_0_9) {
                    Some(word) => ErrorKey::Own(word.to_owned()),
                    None => ErrorKey::Type(kind.clone()),
                });
            }
            all.extend(problem.status.map(ErrorKey::Status));
            return all;
        }
        let known = match &def.code {
            Some(code) if code == "timeout" => ErrorKey::Own("timeout".to_owned()),
            Some(code) => match code.parse::<u16>() {
                Ok(status) if (100..600).contains(&status) => ErrorKey::Status(status),
                _ => ErrorKey::Type(code.clone()),
            },
            None => match own_type_of(&def.name) {
                Some(word) => {
                    if word == "timeout" {
                        self.check_timeouts(&def.name);
                    }
                    self.note(format!("'{}' is any error of the type '{word}'", def.name));
                    ErrorKey::Own(word.to_owned())
                }
                None => ErrorKey::Title(def.name.clone()),
            },
        };
        if matches!(known, ErrorKey::Type(_) | ErrorKey::Title(_)) {
            self.note(format!(
                "the error '{}' is known by its {}: what fails with it must give that",
                def.name,
                match known {
                    ErrorKey::Type(_) => "code as the type",
                    _ => "name as the title",
                }
            ));
        }
        vec![known]
    }

    /// Timeouts are told apart by their names, which they don't have in DSL 1.0.
    fn check_timeouts(&mut self, name: &str) {
        let Some(id) = self.at else {
            return;
        };
        let workflow = self.workflow;
        let state = &workflow[id];
        let mut kinds = Vec::new();
        if state.timeout.is_some() {
            kinds.push(names::STATE_TIMEOUT);
        }
        if super::super::ways::branches(state)
            .iter()
            .any(|branch| branch.timeout.is_some())
        {
            kinds.push(names::BRANCH_TIMEOUT);
        }
        for action in super::super::ways::actions(workflow, state) {
            let action = &workflow[action];
            if action.timeout.is_some() {
                kinds.push(names::ACTION_TIMEOUT);
            }
            match &action.kind {
                ActionKind::Event(event) if event.timeout.is_some() => {
                    kinds.push(names::EVENT_TIMEOUT);
                }
                // A sub-workflow may have timeouts of its own.
                ActionKind::Subflow(_) => kinds.push(names::SUBFLOW_FAILED),
                _ => {}
            }
        }
        self.cannot_if(
            kinds.iter().any(|kind| *kind != name),
            "a handler takes one kind of timeouts and not others; in DSL 1.0 they have one type",
        );
    }

    /// Whether `.` is the error, as an expression.
    pub fn test(&mut self, id: ErrorId) -> String {
        let known = self.known(id);
        let tests: Vec<String> = known
            .iter()
            .map(|known| match known {
                ErrorKey::Status(status) => format!(".status == {status}"),
                ErrorKey::Own(word) => format!(".type == \"{OWN_TYPES}{word}\""),
                ErrorKey::Type(kind) => match swirl_model::error::own_type(kind) {
                    Some(word) => format!(".type == \"{OWN_TYPES}{word}\""),
                    None => format!(".type == {}", Data::string(kind.as_str())),
                },
                ErrorKey::Title(title) => format!(".title == {}", Data::string(title.as_str())),
            })
            .collect();
        match tests.as_slice() {
            [] => "true".to_owned(),
            [one] => one.clone(),
            all => format!("({})", all.join(" and ")),
        }
    }

    /// `catch` for one of these errors.
    pub fn these(&mut self, ids: &[ErrorId]) -> Data {
        if let [id] = ids {
            let mut with = Data::object();
            for known in self.known(*id) {
                match known {
                    ErrorKey::Status(status) => with.set("status", Data::int(status.into())),
                    ErrorKey::Own(word) => {
                        with.set("type", Data::string(format!("{OWN_TYPES}{word}")));
                    }
                    ErrorKey::Type(kind) => with.set("type", Data::string(kind)),
                    ErrorKey::Title(title) => with.set("title", Data::string(title)),
                }
            }
            return object([("errors", object([("with", with)]))]);
        }
        let tests: Vec<String> = ids.iter().map(|id| self.test(*id)).collect();
        object([("when", marked(&tests.join(" or ")))])
    }

    /// `catch` for a set of errors, if that can be said.
    pub fn catch_of(&mut self, set: &ErrorSet) -> Option<Data> {
        Some(match set {
            ErrorSet::Any => Data::object(),
            ErrorSet::Except(ids) if ids.is_empty() => Data::object(),
            ErrorSet::These(ids) => self.these(ids),
            set => object([("when", marked(&self.test_of(set)?))]),
        })
    }

    /// Whether `.` is one of the errors.
    fn test_of(&mut self, set: &ErrorSet) -> Option<String> {
        let any_of = |writer: &mut Self, ids: &[ErrorId]| {
            let tests: Vec<String> = ids.iter().map(|id| writer.test(*id)).collect();
            match tests.is_empty() {
                true => "false".to_owned(),
                false => format!("({})", tests.join(" or ")),
            }
        };
        Some(match set {
            ErrorSet::Any => "true".to_owned(),
            ErrorSet::These(ids) => any_of(self, ids),
            ErrorSet::Except(ids) => format!("({} | not)", any_of(self, ids)),
            ErrorSet::TheseExcept(ids, except) => {
                let ids = any_of(self, ids);
                format!("({ids} and ({} | not))", any_of(self, except))
            }
            ErrorSet::Text(text) => {
                let text = Data::string(text.as_str());
                format!("(.title == {text} or .type == {text} or (.status | tostring) == {text})")
            }
            ErrorSet::When(_) => {
                self.cannot("a handler of errors chooses them by an expression");
                return None;
            }
        })
    }

    /// An error in the state data, which is `.`.
    pub fn error_data(&mut self, error: &ErrorFilter) -> String {
        let shown = "($error | {name: .title, code: .type, status, message: .detail})";
        let part = match error.data {
            Some(id) => {
                let text = self.expr(id, ".");
                format!("({shown} | {})", grouped(&one(&text)))
            }
            None => shown.to_owned(),
        };
        self.note("the data of an error in the state data are those of DSL 1.0");
        let taking = Taking {
            to: error.to,
            ..Taking::default()
        };
        let merged = self.merged(taking, "$new");
        with_definitions(format!("{part} as $new | {merged}"))
    }

    /// A task that raises another error.
    pub fn thrown(&mut self, throw: &Throw) -> Data {
        let mut error = Data::object();
        let own = format!("{OWN_TYPES}runtime");
        let kind = match &throw.kind {
            Some(template) => self.value(template, "."),
            None => Data::string(own),
        };
        error.set("type", kind);
        let status = match &throw.status {
            Some(template) => self.value(template, "."),
            None => Data::int(500),
        };
        let status = match status.as_str().and_then(|text| text.parse::<u16>().ok()) {
            Some(number) => Data::int(number.into()),
            None => status,
        };
        error.set("status", status);
        match (&throw.title, &throw.name) {
            (Some(template), _) => {
                let title = self.value(template, ".");
                error.set("title", title);
            }
            (None, Some(name)) => error.set("title", Data::string(name.as_str())),
            (None, None) => {}
        }
        if let Some(template) = &throw.detail {
            let detail = self.value(template, ".");
            error.set("detail", detail);
        }
        object([("raise", object([("error", error)]))])
    }

    /// Puts the handlers of a state around the task that does its work. Further tasks go into `behind`.
    pub fn with_state_handlers(
        &mut self,
        state: &State,
        name: &str,
        task: Data,
        behind: &mut Tasks,
    ) -> Data {
        let handlers: Vec<&Handler> = state.on_errors.iter().collect();
        if handlers.is_empty() {
            return task;
        }
        let body = match task.get("do") {
            Some(inner) if task.as_object().is_some_and(|members| members.len() == 1) => inner,
            _ => list(vec![("work".to_owned(), task)]),
        };
        let mut all = object([("try", body)]);
        let mut handle: Tasks = Vec::new();
        let data = self.data_after(state);
        if self.keeps_error || handlers.len() > 1 || data.is_some() {
            let mut keep = object([("set", marked(data.as_deref().unwrap_or(".")))]);
            if self.keeps_error || handlers.len() > 1 {
                let shown = match self.keeps_error {
                    true => shown_error(&state.name),
                    false => "$error".to_owned(),
                };
                let context = format!("$context + {{error: {shown}}}");
                keep.set("export", object([("as", marked(&context))]));
            }
            handle.push(("keep".to_owned(), keep));
        }
        if let [handler] = handlers.as_slice() {
            if let Some(catch) = self.only_handler(state, handler, handle, behind) {
                all.set("catch", catch);
            }
            return all;
        }
        let mut catch = Data::object();
        let mut tests = Vec::new();
        let mut cases = Vec::new();
        let mut last = None;
        let router = self.new_name(&format!("{name}-error"));
        for (place, handler) in handlers.iter().enumerate() {
            let is_plain = handler.retry.is_none() && handler.data.is_none();
            let (true, Some(test)) = (is_plain, self.test_of(&handler.errors)) else {
                self.cannot("one of several handlers of errors retries, or puts the error into the state data");
                continue;
            };
            let then = match &handler.then {
                Then::Next(next) => self.then(next, behind),
                Then::Continue => match &state.next {
                    Some(next) => self.then(next, behind),
                    None => "end".to_owned(),
                },
                Then::Rethrow | Then::Throw(_) => {
                    self.cannot("one of several handlers of errors throws an error");
                    continue;
                }
            };
            if handler.errors == ErrorSet::Any {
                last.get_or_insert(then);
                continue;
            }
            tests.push(test.clone());
            let when = format!("$context.error | {test}");
            let case = object([("when", marked(&when)), ("then", Data::string(then))]);
            cases.push((format!("handler-{}", place + 1), case));
        }
        match last {
            Some(then) => {
                let case = object([("then", Data::string(then))]);
                cases.push(("others".to_owned(), case));
            }
            None => catch.set("when", marked(&tests.join(" or "))),
        }
        catch.set("do", list(handle));
        catch.set("then", Data::string(router.as_str()));
        behind.push((router, object([("switch", list(cases))])));
        all.set("catch", catch);
        all
    }

    fn only_handler(
        &mut self,
        state: &State,
        handler: &Handler,
        mut handle: Tasks,
        behind: &mut Tasks,
    ) -> Option<Data> {
        let mut catch = self.catch_of(&handler.errors)?;
        if let Some(retry) = &handler.retry {
            self.cannot_if(
                self.tracks,
                "a state of several actions is retried: DSL 1.0 begins again with the data that it began with",
            );
            let policy = self.retry(&retry.policy, ".")?;
            catch.set("retry", policy);
        }
        if let Some(data) = &handler.data {
            let merged = self.error_data(data);
            let task = object([("set", marked(&merged))]);
            handle.push(("error".to_owned(), task));
        }
        match &handler.then {
            Then::Next(next) => {
                let then = self.then(next, behind);
                if handler.retry.is_some() && handle.is_empty() {
                    handle.push(("keep".to_owned(), object([("set", marked("."))])));
                }
                if !handle.is_empty() {
                    catch.set("do", list(handle));
                }
                catch.set("then", Data::string(then));
            }
            Then::Continue => {
                if handle.is_empty() {
                    handle.push(("keep".to_owned(), object([("set", marked("."))])));
                }
                catch.set("do", list(handle));
            }
            Then::Rethrow => {
                if handler.retry.is_none() {
                    self.cannot("a handler of errors only passes them on");
                }
            }
            Then::Throw(throw) => {
                let raise = self.thrown(throw);
                catch.set("do", list(vec![("throw".to_owned(), raise)]));
            }
        }
        let _ = state;
        Some(catch)
    }

    /// The state data as a failed state left it, if it isn't the data with which it began.
    fn data_after(&mut self, state: &State) -> Option<String> {
        let at_start = self.at.and_then(|id| self.data_at_start(id));
        if self.tracks {
            let begun = |data| format!("$context.data // {}", grouped(data));
            let data = at_start.as_deref().map(begun);
            return Some(data.unwrap_or_else(|| "$context.data".to_owned()));
        }
        if at_start.is_some() {
            return at_start;
        }
        let input = state.input?;
        let text = self.expr(input, ".");
        let text = grouped(&filter(&text));
        Some(format!("first({text}?, .)"))
    }

    /// A way into the tasks behind, if it isn't one task.
    pub fn then(&mut self, next: &Next, behind: &mut Tasks) -> String {
        self.way(next, ".", behind)
    }
}

/// The members that expressions of the older editions read, and those of DSL 1.0.
fn shown_error(state: &str) -> String {
    let names = [
        (COMMUNICATION, names::FUNCTION_ERROR),
        ("timeout", names::STATE_TIMEOUT),
        ("expression", names::EXPRESSION_ERROR),
    ];
    let names = names.map(|(word, name)| format!("{word}: \"{name}\""));
    let names = names.join(", ");
    let state = Data::string(state);
    format!(
        "($error + ($error.type | split(\"/\")[-1] as $word | {{name: ({{{names}}}[$word] // $error.title), code: (if $word == \"timeout\" then $word elif $word == \"{COMMUNICATION}\" then ($error.status | tostring) elif ($error.type | test(\"[/:]\")) then null else $error.type end), message: $error.detail, state: {state}}}))"
    )
}
