//! Answers the requests of tasks in virtual time, and keeps them.

use std::collections::{HashMap, VecDeque};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use futures::future::BoxFuture;
use swirl_functions::simulated::{Asked, Given, Simulation};
use swirl_functions::simulator::Simulator;
use swirl_functions::types::a2a;
use swirl_model::error::{Description, OWN_TYPES};
use swirl_model::ids::DefinitionId;
use swirl_model::time::Timestamp;
use swirl_model::workflow::{AuthScheme, Function, FunctionKind, Workflow};
use swirl_model::{Data, WorkflowError};
use swirl_ports::{CallRequest, Clock as _};
use swirl_virtual_time::{Mock, Play, VirtualClock};
use url::Url;

use super::answer::{AnswerError, Answered, Answers};
use super::observed::SeenRequest;

/// Whether the function is a request over HTTP that a task describes.
pub fn is_request(function: &Function) -> bool {
    let kinds = [FunctionKind::HttpCall, FunctionKind::Rest];
    !function.place.is_empty() && kinds.contains(&function.kind)
}

/// Whether a definition makes requests for which a scenario has answers.
pub fn makes_requests(workflow: &Workflow) -> bool {
    let mut auth = workflow.auth.iter();
    workflow.functions.iter().any(is_request)
        || workflow.tasks.is_some() && auth.any(|auth| auth.scheme == AuthScheme::OAuth2)
}

/// The arguments of a call as scenarios show them, and as expressions in answers see them: of agents and of MCP they are
/// the parameters of the method.
pub fn shown_arguments(function: &Function, arguments: &Data, key: &str) -> Data {
    let parameters = || arguments.get("parameters").unwrap_or_default();
    match function.kind {
        FunctionKind::A2a => a2a::parameters(&function.operation, &parameters(), key),
        FunctionKind::Mcp => parameters(),
        _ => arguments.clone(),
    }
}

/// The error of an answer that states no type: that of the kind of call.
pub fn typed_error(function: Option<&Function>, mut error: WorkflowError) -> WorkflowError {
    let agents = [FunctionKind::A2a, FunctionKind::Mcp];
    let is_agent = function.is_some_and(|function| agents.contains(&function.kind));
    if let Some(problem) = error
        .problem
        .as_mut()
        .filter(|problem| problem.kind.is_empty())
    {
        let word = if is_agent { "runtime" } else { "communication" };
        problem.kind = format!("{OWN_TYPES}{word}");
        error.name = word.to_owned();
    }
    if error.problem.is_none() && is_agent {
        error.problem = Some(Box::new(Description {
            kind: format!("{OWN_TYPES}runtime"),
            title: Some("Runtime".to_owned()),
            instance: None,
            detail: Some(error.message.clone()),
        }));
        error.status = error.status.or(Some(500));
    }
    error
}

/// The error of a task that got no token, whatever the reason.
fn without_token(error: WorkflowError) -> WorkflowError {
    WorkflowError {
        status: Some(401),
        problem: Some(Box::new(Description {
            kind: format!("{OWN_TYPES}authentication"),
            title: Some("Authentication".to_owned()),
            instance: None,
            detail: Some(error.message.clone()),
        })),
        ..WorkflowError::new("authentication", error.message)
    }
}

/// A request of a call.
#[derive(Debug, Clone)]
pub struct SentRequest {
    /// From the beginning of the call.
    pub after_ms: u64,
    /// It is the task's own; the others are for tokens.
    pub of_task: bool,
    pub request: SeenRequest,
}

/// The requests of all calls, by the calls' keys and times.
#[derive(Debug, Clone, Default)]
pub struct SentRequests(Arc<Mutex<HashMap<(String, Timestamp), Calls>>>);

/// The requests of calls with one key, at one time.
type Calls = VecDeque<OfCall>;

/// The requests of a call so far.
type OfCall = Arc<Mutex<Vec<SentRequest>>>;

impl SentRequests {
    fn begin(&self, request: &CallRequest) -> OfCall {
        let sent = OfCall::default();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = all.entry((request.key.clone(), request.at)).or_default();
        calls.push_back(sent.clone());
        sent
    }

    /// The requests of a call, once. `None`: the call is answered without requests.
    pub fn take(&self, key: &str, at: Timestamp) -> Option<Vec<SentRequest>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = all.get_mut(&(key.to_owned(), at))?.pop_front()?;
        let sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
        Some(sent.clone())
    }
}

/// Makes the requests of tasks, and answers them.
pub struct Requests {
    answers: Arc<Answers>,
    simulator: Arc<Simulator>,
    sent: SentRequests,
    waiting: Arc<AtomicUsize>,
}

/// A call under way, with the services of the scenario as it sees them.
struct Playing {
    answers: Arc<Answers>,
    clock: Arc<VirtualClock>,
    request: CallRequest,
    sent: OfCall,
    ended: Mutex<Option<Ended>>,
    /// The requests of all calls that wait for their answers.
    waiting: Arc<AtomicUsize>,
}

/// Why a call has no further answer.
enum Ended {
    Unknown,
    Error(WorkflowError),
    Trouble(AnswerError),
}

impl Requests {
    /// `None`: this machine can't make requests.
    pub fn new(answers: Arc<Answers>, sent: SentRequests) -> Option<Requests> {
        Some(Requests {
            answers,
            simulator: Arc::new(Simulator::new()?),
            sent,
            waiting: Arc::default(),
        })
    }

    /// `resources`: the documents that describe the services.
    pub fn prepare(
        &self,
        definition: &DefinitionId,
        workflow: &Workflow,
        resources: &[(String, String)],
    ) {
        self.simulator.prepare(definition, workflow, resources);
    }

    /// Whether the request can be made: the document that describes it is there.
    pub fn makes(&self, request: &CallRequest) -> bool {
        is_request(&request.function) && self.simulator.has(&request.definition, &request.function)
    }

    /// Each of the call's requests is made, and answered, when its time has come. `fail`: the scenario can't answer.
    pub fn play(
        &self,
        request: &CallRequest,
        fail: impl FnOnce(AnswerError) -> Mock + Send + 'static,
    ) -> Mock {
        let request = request.clone();
        let sent = self.sent.begin(&request);
        let (answers, simulator) = (self.answers.clone(), self.simulator.clone());
        let waiting = self.waiting.clone();
        Mock::Play(Play(Box::new(move |clock| {
            let playing = Arc::new(Playing {
                answers,
                clock,
                request,
                sent,
                ended: Mutex::default(),
                waiting,
            });
            Box::pin(async move { playing.play(&simulator).await.unwrap_or_else(fail) })
        })))
    }
}

impl Playing {
    /// # Errors
    /// The scenario cannot answer.
    async fn play(self: Arc<Self>, simulator: &Simulator) -> Result<Mock, AnswerError> {
        let mut call = pin!(simulator.call(self.request.clone(), self.clone()));
        let result = std::future::poll_fn(|context| match call.as_mut().poll(context) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            // Nothing will ever wake it.
            Poll::Pending if self.waiting.load(Ordering::Relaxed) == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        });
        let result = result.await;
        let ended = self.ended().take();
        let name = || self.request.function.name.to_string();
        let result = match ended {
            None => result.ok_or_else(|| AnswerError::Waits(name()))?,
            Some(Ended::Error(error)) => Err(error),
            Some(Ended::Unknown) => return Ok(Mock::Unknown),
            Some(Ended::Trouble(error)) => return Err(error),
        };
        Ok(Mock::Answer {
            after_ms: 0,
            result,
        })
    }

    fn ended(&self) -> MutexGuard<'_, Option<Ended>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answered(&self, asked: &Asked) -> Result<Given, Ended> {
        let (request, now) = (&self.request, self.clock.now());
        let function = &request.function;
        let sent = SentRequest {
            after_ms: u64::try_from(now.0 - request.at.0).unwrap_or(0),
            of_task: !asked.for_token,
            request: seen(asked, Some(function), &request.arguments),
        };
        self.sent
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(sent);
        let answering = answering(
            &self.answers,
            Some(function),
            Some(&request.definition),
            &request.arguments,
            asked,
            now,
        );
        match answering.map_err(Ended::Trouble)? {
            Answering::Never => std::future::pending().await,
            Answering::Unknown => Err(Ended::Unknown),
            Answering::Given { given, after_ms } => {
                self.wait(now, after_ms).await;
                Ok(given)
            }
            Answering::Error { error, after_ms } => {
                self.wait(now, after_ms).await;
                Err(Ended::Error(error))
            }
        }
    }

    async fn wait(&self, now: Timestamp, after_ms: u64) {
        let at = Timestamp(now.0.saturating_add_unsigned(after_ms));
        self.clock.sleep_until(at).await;
    }
}

/// A request that waits for its answer. The call may be given up meanwhile.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn begin(count: &'a AtomicUsize) -> Waiting<'a> {
        count.fetch_add(1, Ordering::Relaxed);
        Waiting(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A scenario's answer to a request.
#[derive(Debug)]
pub enum Answering {
    Given {
        given: Given,
        after_ms: u64,
    },
    /// An error that no answer over HTTP describes.
    Error {
        error: WorkflowError,
        after_ms: u64,
    },
    Never,
    Unknown,
}

/// Answers a request. `function` is that of the call, and `None` if no call is known that makes the request; `of` is the
/// call's workflow.
///
/// # Errors
/// The scenario cannot answer.
pub fn answering(
    answers: &Answers,
    function: Option<&Function>,
    of: Option<&DefinitionId>,
    arguments: &Data,
    asked: &Asked,
    now: Timestamp,
) -> Result<Answering, AnswerError> {
    let uri = without_query(&asked.url);
    let wanted = Some((asked.method.as_str(), uri.as_str(), asked.url.as_str()));
    let own = function.filter(|_| !asked.for_token);
    let key = match own {
        Some(function) => answers.key_of(function, of, wanted),
        None => answers.key_of_request(wanted),
    };
    let Some(key) = key else {
        return match own {
            Some(_) => Ok(Answering::Unknown),
            None => Err(AnswerError::Token(format!("{} {uri}", asked.method))),
        };
    };
    let over = match own {
        None => body(asked),
        Some(function) if function.kind == FunctionKind::HttpCall => {
            arguments.get("body").unwrap_or_default()
        }
        Some(_) => arguments.clone(),
    };
    let Some(answered) = answers.next(key, &over, now.0).transpose()? else {
        return Ok(Answering::Unknown);
    };
    let (given, after) = match answered {
        Answered::Never => return Ok(Answering::Never),
        Answered::Return { data, after } => (given(200, Vec::new(), Some(&data), true), after),
        Answered::Respond {
            status,
            headers,
            body,
            after,
        } => (given(status, headers, body.as_ref(), false), after),
        Answered::Exit { .. } => {
            let name = function.map_or(key, |function| &*function.name);
            return Err(AnswerError::Exit(name.to_owned()));
        }
        Answered::Error { error, after } => match (error.status, &error.problem) {
            (Some(status), None) => {
                let pause = error.retry_after_ms.map(|ms| ms.div_ceil(1_000));
                let pause = pause.map(|seconds| ("Retry-After".to_owned(), seconds.to_string()));
                let headers = pause.into_iter().collect();
                (given(status, headers, None, false), after)
            }
            _ => {
                let after_ms = after.millis_from(now);
                let error = match asked.for_token {
                    true => without_token(error),
                    false => typed_error(function, error),
                };
                return Ok(Answering::Error { error, after_ms });
            }
        },
    };
    let after_ms = after.millis_from(now);
    Ok(Answering::Given { given, after_ms })
}

impl Simulation for Playing {
    fn answer(&self, asked: Asked) -> BoxFuture<'_, Option<Given>> {
        Box::pin(async move {
            let _waiting = Waiting::begin(&self.waiting);
            match self.answered(&asked).await {
                Ok(given) => Some(given),
                Err(ended) => {
                    self.ended().get_or_insert(ended);
                    None
                }
            }
        })
    }

    fn now_ms(&self) -> i64 {
        self.clock.now().0
    }
}

/// `as_json`: a text is sent as JSON too.
fn given(
    status: u16,
    mut headers: Vec<(String, String)>,
    body: Option<&Data>,
    as_json: bool,
) -> Given {
    let text = body.and_then(Data::as_str).filter(|_| !as_json);
    let mut typed = headers.iter();
    let is_typed = typed.any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    if body.is_some() && text.is_none() && !is_typed {
        let media = "application/json".to_owned();
        headers.push(("Content-Type".to_owned(), media));
    }
    let body = match text {
        Some(text) => text.as_bytes().to_vec(),
        None => body.map_or_else(Vec::new, |body| body.to_string().into_bytes()),
    };
    Given {
        status,
        headers,
        body,
    }
}

fn without_query(url: &Url) -> String {
    let mut bare = url.clone();
    bare.set_query(None);
    bare.set_fragment(None);
    bare.to_string()
}

fn media(asked: &Asked) -> &str {
    let mut headers = asked.headers.iter();
    let media = headers.find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    media.map_or("", |(_, media)| media.as_str())
}

fn is_form(asked: &Asked) -> bool {
    media(asked).starts_with("application/x-www-form-urlencoded")
}

/// The body of a request: a form as an object of texts.
pub fn body(asked: &Asked) -> Data {
    let media = media(asked);
    if asked.body.is_empty() {
        return Data::NULL;
    }
    if media.contains("json")
        && let Ok(data) = Data::parse(&asked.body)
    {
        return data;
    }
    if is_form(asked) {
        return texts(url::form_urlencoded::parse(&asked.body));
    }
    Data::string(&*String::from_utf8_lossy(&asked.body))
}

/// Names that repeat have a list.
fn texts<'a>(
    pairs: impl Iterator<Item = (std::borrow::Cow<'a, str>, std::borrow::Cow<'a, str>)>,
) -> Data {
    let mut all = Data::object();
    for (name, value) in pairs {
        let value = Data::string(&*value);
        let value = match all.get(&name) {
            None => value,
            Some(known) => {
                let items = known.as_array();
                let items = items.map(|items| items.iter().cloned().map(Data).collect());
                let mut items: Vec<Data> = items.unwrap_or_else(|| vec![known.clone()]);
                items.push(value);
                Data::array(items)
            }
        };
        all.set(&name, value);
    }
    all
}

/// The request as scenarios show it.
pub fn seen(asked: &Asked, function: Option<&Function>, arguments: &Data) -> SeenRequest {
    let is_described = function.is_some_and(|it| it.kind == FunctionKind::HttpCall);
    let own = is_described && !asked.for_token && !is_form(asked);
    SeenRequest {
        method: asked.method.clone(),
        uri: without_query(&asked.url),
        query: texts(asked.url.query_pairs()),
        headers: asked.headers.clone(),
        body: match own {
            true => arguments.get("body").unwrap_or_default(),
            false => body(asked),
        },
    }
}
