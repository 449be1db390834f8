//! The answers of mocked functions.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use swirl_expr::{Env, Limits, Program};
use swirl_model::error::{Description, names};
use swirl_model::ids::DefinitionId;
use swirl_model::time::IsoDuration;
use swirl_model::workflow::{Function, Language};
use swirl_model::{Data, WorkflowError};
use swirl_spec::template::{self, Delimiters, Piece};
use swirl_virtual_time::EXPRESSION_TIME;

/// One entry of a function's list of answers.
#[derive(Debug, Clone)]
pub struct Answer {
    pub reply: Reply,
    /// The duration of the call; zero with [`Reply::Never`].
    pub after: IsoDuration,
}

#[derive(Debug, Clone)]
pub enum Reply {
    Return(Return),
    Error(Failure),
    /// An HTTP answer.
    Respond(Respond),
    /// The end of a process.
    Exit(Exit),
    Never,
}

/// `respond`, of a task that makes a request.
#[derive(Debug, Clone)]
pub struct Respond {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Option<Data>,
}

/// `exit`, of a task that runs a process.
#[derive(Debug, Clone)]
pub struct Exit {
    pub code: i32,
    pub stdout: Return,
    pub stderr: Return,
}

/// `return`: a value that may contain `${ jq }` over the call's arguments, in compiled form.
#[derive(Clone)]
pub enum Return {
    Literal(Data),
    /// Only `${ ... }`: the value keeps its type.
    Expression(Program),
    /// `${ ... }` as part of a longer text.
    Text(Vec<AnswerText>),
    Array(Vec<Return>),
    Object(Vec<(String, Return)>),
}

#[derive(Clone)]
pub enum AnswerText {
    Text(String),
    Expression(Program),
}

/// `error` of an answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Failure {
    pub name: Option<String>,
    pub code: Option<String>,
    pub status: Option<u16>,
    pub message: Option<String>,
    /// `Retry-After`.
    pub retry_after: Option<IsoDuration>,
    /// As DSL 1.0 describes errors.
    pub kind: Option<String>,
    pub title: Option<String>,
    pub detail: Option<String>,
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Answered {
    Return {
        data: Data,
        after: IsoDuration,
    },
    Error {
        error: WorkflowError,
        after: IsoDuration,
    },
    Respond {
        status: u16,
        headers: Vec<(String, String)>,
        body: Option<Data>,
        after: IsoDuration,
    },
    Exit {
        code: i32,
        stdout: String,
        stderr: String,
        after: IsoDuration,
    },
    /// The call never ends by itself.
    Never,
}

/// A mocked function cannot answer, so the scenario fails.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AnswerError {
    #[error(
        "the answer of '{function}' cannot be evaluated over the arguments {arguments}: {message}"
    )]
    Expression {
        function: String,
        arguments: String,
        message: String,
    },
    #[error("'{0}' isn't a task that makes an HTTP request, so it has no 'respond'")]
    Respond(String),
    #[error("'functions' has no answer to the request for a token: '{0}'")]
    Token(String),
    #[error("the call of '{0}' waits for something that a scenario doesn't have")]
    Waits(String),
    #[error("'{0}' isn't a task that runs a process, so it has no 'exit'")]
    Exit(String),
    #[error(
        "'{0}' takes messages, so its 'return' is a list of objects, which may have 'payload', 'headers' and \
         'correlationId'"
    )]
    Messages(String),
    #[error(
        "a call of '{function}' doesn't fit the document that describes it: {problems} (if the document \
         is wrong, say 'checkArguments: false' in the function's metadata)"
    )]
    Call { function: String, problems: String },
    #[error(
        "the answer of '{function}' doesn't fit the document that describes it: {problems} (if the \
         document is wrong, say 'checkArguments: false' in the function's metadata)"
    )]
    Return { function: String, problems: String },
}

/// A malformed `return`.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ReturnError {
    #[error("a '${{' is never closed")]
    Unclosed,
    #[error("'{expression}': {message}")]
    Expression { expression: String, message: String },
}

/// The answers of all functions in a scenario, and the number of calls that each has had.
#[derive(Debug)]
pub struct Answers {
    functions: BTreeMap<String, (Vec<Answer>, AtomicUsize)>,
    /// The workflow under test, whose tasks places are of.
    tested: Option<DefinitionId>,
}

impl Answers {
    pub fn new(functions: &BTreeMap<String, Vec<Answer>>) -> Answers {
        let functions = functions
            .iter()
            .map(|(name, answers)| (name.clone(), (answers.clone(), AtomicUsize::new(0))))
            .collect();
        Answers {
            functions,
            tested: None,
        }
    }

    /// Keys that are places are of tasks of this workflow.
    #[must_use]
    pub fn testing(mut self, workflow: Option<DefinitionId>) -> Answers {
        self.tested = workflow;
        self
    }

    /// The first key that answers a call of a task: its place, its name, a function around it, or its request. `of`: the
    /// workflow that the task belongs to, if it is known.
    pub fn key_of(
        &self,
        function: &Function,
        of: Option<&DefinitionId>,
        request: Option<(&str, &str, &str)>,
    ) -> Option<&str> {
        let is_other = of.is_some_and(|of| self.tested.as_ref().is_some_and(|tested| tested != of));
        let mut own = function.mock_keys().skip(usize::from(is_other));
        let keys = || self.functions.keys().map(String::as_str);
        own.find_map(|name| keys().find(|key| *key == name))
            .or_else(|| self.key_of_request(request))
    }

    /// The first key that answers a request: its method, its address without the query and with it.
    pub fn key_of_request(&self, request: Option<(&str, &str, &str)>) -> Option<&str> {
        let (method, uri, whole) = request?;
        let mut keys = self.functions.keys().map(String::as_str);
        keys.find(|key| is_request(key, method, uri, whole))
    }

    /// Whether the scenario lists the function.
    pub fn has(&self, function: &str) -> bool {
        self.functions.contains_key(function)
    }

    /// The next answer of a function. Answers are used in turn, and the last one repeats. `now_ms` is virtual unix
    /// time.
    ///
    /// # Returns
    /// `None` if the scenario doesn't list the function.
    pub fn next(
        &self,
        function: &str,
        arguments: &Data,
        now_ms: i64,
    ) -> Option<Result<Answered, AnswerError>> {
        let (answers, calls) = self.functions.get(function)?;
        let last = answers.len().checked_sub(1)?;
        let answer = &answers[calls.fetch_add(1, Ordering::Relaxed).min(last)];
        Some(
            answer
                .give(arguments, now_ms)
                .map_err(|message| AnswerError::Expression {
                    function: function.to_owned(),
                    arguments: arguments.to_string(),
                    message,
                }),
        )
    }
}

/// Whether a key is `METHOD URI` and fits a request. `whole` is the address with its query.
fn is_request(key: &str, method: &str, uri: &str, whole: &str) -> bool {
    let Some((word, pattern)) = key.split_once(' ') else {
        return false;
    };
    let target = if pattern.contains('?') { whole } else { uri };
    let fits = |target: &str| fits(pattern.trim().as_bytes(), target.as_bytes());
    word == method && (fits(target) || without_path(target).is_some_and(|target| fits(&target)))
}

/// `https://host` for `https://host/`: an address without a path has two forms.
pub fn without_path(uri: &str) -> Option<String> {
    let (scheme, rest) = uri.split_once("://")?;
    let (host, behind) = rest.split_once('/')?;
    let is_root = behind.is_empty() || behind.starts_with('?');
    is_root.then(|| format!("{scheme}://{host}{behind}"))
}

/// Whether a key is one for requests.
pub fn is_for_requests(key: &str) -> bool {
    let method = key.split_once(' ').map(|(method, _)| method);
    method
        .is_some_and(|method| !method.is_empty() && method.bytes().all(|b| b.is_ascii_uppercase()))
}

/// `*` fits a segment or a part of one, `**` any rest.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [b'*', b'*', rest @ ..] => (0..=text.len()).any(|at| fits(rest, &text[at..])),
        [b'*', rest @ ..] => {
            let end = text.iter().position(|byte| *byte == b'/');
            let end = end.unwrap_or(text.len());
            (0..=end).any(|at| fits(rest, &text[at..]))
        }
        [first, rest @ ..] => text.first() == Some(first) && fits(rest, &text[1..]),
    }
}

impl Answer {
    fn give(&self, arguments: &Data, now_ms: i64) -> Result<Answered, String> {
        let after = self.after;
        let env = Env {
            now_ms,
            limits: Limits {
                time: EXPRESSION_TIME,
                ..Limits::default()
            },
        };
        Ok(match &self.reply {
            Reply::Return(value) => Answered::Return {
                data: value.evaluate(arguments, &env)?,
                after,
            },
            Reply::Respond(respond) => Answered::Respond {
                status: respond.status,
                headers: respond.headers.clone(),
                body: respond.body.clone(),
                after,
            },
            Reply::Exit(exit) => Answered::Exit {
                code: exit.code,
                stdout: exit.stdout.evaluate(arguments, &env)?.to_text(),
                stderr: exit.stderr.evaluate(arguments, &env)?.to_text(),
                after,
            },
            Reply::Error(failure) => Answered::Error {
                error: failure.error(),
                after,
            },
            Reply::Never => Answered::Never,
        })
    }
}

impl Failure {
    /// The error as a caller of a real function would report it: the code of an HTTP failure is its status.
    pub fn error(&self) -> WorkflowError {
        let status = self.status.map(|status| status.to_string());
        let name = self.name.as_deref().unwrap_or(names::FUNCTION_ERROR);
        match &self.kind {
            Some(kind) => return self.problem(kind),
            None if self.title.is_some() || self.detail.is_some() => return self.problem(""),
            None => {}
        }
        let message = self.message.clone().unwrap_or_else(|| match self.status {
            Some(status) => format!("the function answered with status {status}"),
            None => "the function failed".to_owned(),
        });
        WorkflowError {
            code: self.code.clone().or(status),
            status: self.status,
            retry_after_ms: self
                .retry_after
                .map(|pause| pause.millis.try_into().unwrap_or(u32::MAX)),
            ..WorkflowError::new(name, message)
        }
    }
}

impl Failure {
    /// An error as DSL 1.0 describes it. An empty type is that of the kind of call.
    fn problem(&self, kind: &str) -> WorkflowError {
        let message = self.detail.clone().or_else(|| self.title.clone());
        let name = kind.rsplit('/').next().unwrap_or_default();
        let usual = match name {
            "configuration" | "expression" | "validation" => 400,
            "authentication" => 401,
            "authorization" => 403,
            "timeout" => 408,
            _ => 500,
        };
        WorkflowError {
            status: Some(self.status.unwrap_or(usual)),
            problem: Some(Box::new(Description {
                kind: kind.to_owned(),
                title: self.title.clone(),
                instance: None,
                detail: self.detail.clone(),
            })),
            ..WorkflowError::new(name, message.unwrap_or_else(|| kind.to_owned()))
        }
    }
}

impl Return {
    /// A text that may contain expressions.
    ///
    /// # Errors
    /// An expression isn't closed, or is not valid jq.
    pub fn text(text: &str) -> Result<Return, ReturnError> {
        let compile = |source: &str| {
            Program::jq(source, &[]).map_err(|error| ReturnError::Expression {
                expression: source.trim().to_owned(),
                message: error.to_string(),
            })
        };
        let pieces = template::pieces(text, Delimiters::Dollar, Language::Jq)
            .map_err(|_| ReturnError::Unclosed)?;
        if let Some(source) = template::alone(&pieces) {
            return compile(source).map(Return::Expression);
        }
        let parts = pieces
            .into_iter()
            .map(|piece| match piece {
                Piece::Text(text) => Ok(AnswerText::Text(text)),
                Piece::Expression(source) => compile(&source).map(AnswerText::Expression),
            })
            .collect::<Result<Vec<AnswerText>, ReturnError>>()?;
        Ok(match &parts[..] {
            [] => Return::Literal(Data::string("")),
            [AnswerText::Text(text)] => Return::Literal(Data::string(text.as_str())),
            _ => Return::Text(parts),
        })
    }

    pub fn array(items: Vec<Return>) -> Return {
        match items
            .iter()
            .map(Return::literal)
            .collect::<Option<Vec<Data>>>()
        {
            Some(items) => Return::Literal(Data::array(items)),
            None => Return::Array(items),
        }
    }

    pub fn object(members: Vec<(String, Return)>) -> Return {
        if members.iter().any(|(_, value)| value.literal().is_none()) {
            return Return::Object(members);
        }
        let mut object = Data::object();
        for (name, value) in members {
            object.set(&name, value.literal().unwrap_or_default());
        }
        Return::Literal(object)
    }

    fn literal(&self) -> Option<Data> {
        match self {
            Return::Literal(data) => Some(data.clone()),
            _ => None,
        }
    }

    fn evaluate(&self, arguments: &Data, env: &Env) -> Result<Data, String> {
        Ok(match self {
            Return::Literal(data) => data.clone(),
            Return::Expression(program) => one(program, arguments, env)?,
            Return::Text(parts) => {
                let mut text = String::new();
                for part in parts {
                    match part {
                        AnswerText::Text(plain) => text.push_str(plain),
                        AnswerText::Expression(program) => {
                            text.push_str(&one(program, arguments, env)?.to_text());
                        }
                    }
                }
                Data::string(text)
            }
            Return::Array(items) => Data::array(
                items
                    .iter()
                    .map(|item| item.evaluate(arguments, env))
                    .collect::<Result<Vec<Data>, String>>()?,
            ),
            Return::Object(members) => {
                let mut object = Data::object();
                for (name, value) in members {
                    object.set(name, value.evaluate(arguments, env)?);
                }
                object
            }
        })
    }
}

/// No output counts as null (docs/language.md#decision-60).
fn one(program: &Program, arguments: &Data, env: &Env) -> Result<Data, String> {
    match program.one(arguments, &[], env) {
        Ok(data) => Ok(data.unwrap_or_default()),
        Err(error) => Err(error.to_string()),
    }
}

impl std::fmt::Debug for Return {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Return::Literal(data) => write!(f, "{data}"),
            Return::Expression(_) => f.write_str("${..}"),
            Return::Text(parts) => write!(f, "a text of {} parts", parts.len()),
            Return::Array(items) => f.debug_list().entries(items).finish(),
            Return::Object(members) => f
                .debug_map()
                .entries(members.iter().map(|(name, value)| (name, value)))
                .finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use swirl_model::data;

    fn returns(value: Return) -> Answer {
        Answer {
            reply: Reply::Return(value),
            after: IsoDuration::default(),
        }
    }

    fn give(text: &str, arguments: Data) -> Result<Answered, String> {
        returns(Return::text(text).unwrap()).give(&arguments, 0)
    }

    fn data(answered: Result<Answered, String>) -> Data {
        match answered {
            Ok(Answered::Return { data, .. }) => data,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn expressions_over_the_arguments() {
        let arguments = data!({"name": "Ada", "n": 2});
        for (text, wanted) in [
            ("plain", data!("plain")),
            ("", data!("")),
            ("${ .n + 1 }", data!(3)),
            (
                "  ${ {greeting: (\"Hello \" + .name)} } ",
                data!({"greeting": "Hello Ada"}),
            ),
            (
                "Hello ${ .name }, ${ {n} }!",
                data!("Hello Ada, {\"n\":2}!"),
            ),
            ("$${ .n }", data!("${ .n }")),
            ("${ empty }", data!(null)),
            ("${ . }", arguments.clone()),
        ] {
            assert_eq!(data(give(text, arguments.clone())), wanted, "{text}");
        }
    }

    #[test]
    fn expressions_inside_objects_and_lists() {
        let value = Return::object(vec![
            (
                "a".to_owned(),
                Return::array(vec![Return::text("${ .n }").unwrap()]),
            ),
            ("b".to_owned(), Return::text("b").unwrap()),
        ]);
        assert_eq!(
            data(returns(value).give(&data!({"n": 2}), 0)),
            data!({"a": [2], "b": "b"})
        );
    }

    #[test]
    fn bad_expressions() {
        assert_eq!(Return::text("${ .a").err(), Some(ReturnError::Unclosed));
        assert!(matches!(
            Return::text("${ .a | }"),
            Err(ReturnError::Expression { .. })
        ));
        assert!(
            give("${ error(\"no\") }", data!({}))
                .unwrap_err()
                .contains("no")
        );
    }

    #[test]
    fn answers_are_used_in_turn_and_the_last_repeats() {
        let seconds = |n: u64| IsoDuration {
            months: 0,
            millis: n * 1000,
        };
        let failure = Failure {
            status: Some(503),
            ..Failure::default()
        };
        let answers = Answers::new(&BTreeMap::from([(
            "f".to_owned(),
            vec![
                Answer {
                    reply: Reply::Error(failure),
                    after: seconds(1),
                },
                Answer {
                    reply: Reply::Return(Return::Literal(data!(1))),
                    after: seconds(2),
                },
                Answer {
                    reply: Reply::Never,
                    after: seconds(0),
                },
            ],
        )]));
        let next = || answers.next("f", &data!({}), 0).unwrap().unwrap();
        match next() {
            Answered::Error { error, after } => {
                assert_eq!(after, seconds(1));
                assert_eq!(error.code.as_deref(), Some("503"));
                assert_eq!(
                    (error.name.as_str(), error.status),
                    ("FunctionError", Some(503))
                );
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(
            next(),
            Answered::Return {
                data: data!(1),
                after: seconds(2)
            }
        );
        assert_eq!(next(), Answered::Never);
        assert_eq!(next(), Answered::Never);
        assert_eq!(answers.next("g", &data!({}), 0), None);
    }
}
