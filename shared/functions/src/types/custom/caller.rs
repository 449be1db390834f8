//! Calling connectors.

use std::time::Duration;

use reqwest::Method;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap};
use swirl_model::Data;
use swirl_ports::CallRequest;
use tokio::sync::Semaphore;
use url::Url;

use super::connectors::Subject;
use super::exec::{self, Finished};
use super::wire::{self, Given, Hidden};
use crate::auth::{Auth, Authorization, Tokens};
use crate::http::{Answer, Http, shown};
use crate::types::rest::answer;
use crate::types::service::TRACEPARENT;
use crate::types::{Clients, Context, asyncapi};
use crate::watch::{self, Content, Sending};
use crate::{CallError, CallErrorKind};

/// The header by which a receiver recognises repeated calls.
const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

/// The maximum number of commands that run at once. Further calls queue, which counts towards their time limit.
const COMMANDS_MAX: usize = 64;

/// Calls connectors.
#[derive(Debug)]
pub(crate) struct CustomCaller {
    http: Http,
    tokens: Tokens,
    places: Semaphore,
    /// The variables that commands get in addition to the usual ones.
    environment: Vec<String>,
}

impl CustomCaller {
    pub(crate) fn new(http: Http, environment: Vec<String>) -> CustomCaller {
        CustomCaller {
            environment,
            tokens: Tokens::new(http.clone()),
            http,
            places: Semaphore::new(COMMANDS_MAX),
        }
    }

    /// Calls a service. Dropping the future ends the call.
    pub(super) async fn post(
        &self,
        name: &str,
        url: &Url,
        request: &CallRequest,
        auth: Option<&Auth>,
        timeout: Duration,
    ) -> Result<Data, CallError> {
        let what = format!("connector `{name}`: POST {}", shown(url));
        let call = self.call(request, &what)?;
        let exchange = async {
            let Some(auth) = auth else {
                let answer = self.send(url, &call, request, None, &what).await?;
                return result(&answer, &what, Hidden::secrets(request.secrets.expose()));
            };
            let mut authorization = Authorization::of(auth, &self.tokens, None).await?;
            let mut answer = self
                .send(url, &call, request, Some(&authorization), &what)
                .await?;
            if answer.status == 401 && authorization.can_renew() {
                authorization = Authorization::of(auth, &self.tokens, Some(&authorization)).await?;
                answer = self
                    .send(url, &call, request, Some(&authorization), &what)
                    .await?;
            }
            let hidden = Hidden {
                credentials: &authorization.secrets,
                secrets: request.secrets.expose(),
            };
            result(&answer, &what, hidden)
        };
        in_time(timeout, &what, exchange).await
    }

    async fn send(
        &self,
        url: &Url,
        call: &[u8],
        request: &CallRequest,
        authorization: Option<&Authorization>,
        what: &str,
    ) -> Result<Answer, CallError> {
        let mut headers = HeaderMap::new();
        if let Some(authorization) = authorization {
            headers.insert(AUTHORIZATION, authorization.header()?);
        }
        let make = |url| {
            let mut out = self
                .http
                .request(Method::POST, url)
                .header(CONTENT_TYPE, "application/json")
                .header(ACCEPT, "application/json")
                .header(IDEMPOTENCY_KEY, &request.key)
                .headers(headers.clone());
            if let Some(trace) = request.trace {
                out = out.header(TRACEPARENT, trace.to_string());
            }
            Ok(out.body(call.to_vec()))
        };
        self.http.send_on(&Method::POST, url, what, make).await
    }

    /// Sends a request to the service that replies on a subject.
    pub(super) async fn ask(
        &self,
        name: &str,
        to: &Subject,
        clients: &Clients,
        request: &CallRequest,
        context: &Context<'_>,
    ) -> Result<Data, CallError> {
        let what = format!("connector `{name}`: request to `{}`", to.subject);
        let call = self.call(request, &what)?;
        let ask = asyncapi::Asking {
            server: &to.server,
            subject: &to.subject,
            payload: call,
            headers: request
                .trace
                .map(|trace| (TRACEPARENT.to_owned(), trace.to_string()))
                .into_iter()
                .collect(),
            key: &request.key,
            what: &what,
        };
        let exchange = async {
            let tokens = clients.services.tokens();
            let gate = clients.services.http().gate();
            let data = clients.brokers.ask(ask, context.auth, tokens, gate).await?;
            match Given::of(&data) {
                None => Ok(data),
                Some(given) => {
                    let error = CallError::new(CallErrorKind::Failed, format!("{what}: it failed"));
                    Err(given.apply(error, &what, Hidden::secrets(request.secrets.expose())))
                }
            }
        };
        in_time(context.timeout, &what, exchange).await
    }

    /// Runs a command. Dropping the future kills it.
    pub(super) async fn run(
        &self,
        name: &str,
        words: &[String],
        request: &CallRequest,
        timeout: Duration,
    ) -> Result<Data, CallError> {
        let program = words.first().map_or("", String::as_str);
        let what = format!("connector `{name}`: command `{program}`");
        let call = self.call(request, &what)?;
        let limit = self.http.config().response_bytes_max;
        let run = async {
            // The semaphore is never closed, and if it were, continuing would do no harm.
            let _place = self.places.acquire().await.ok();
            watch::sending(|| Sending {
                protocol: "exec",
                target: words.join(" "),
                headers: Vec::new(),
                body: Content::Bytes(call.clone()),
            })
            .await;
            let finished = exec::run(words, &self.environment, &call, limit, &what).await?;
            finished_result(&finished, &what, Hidden::secrets(request.secrets.expose()))
        };
        in_time(timeout, &what, run).await
    }

    /// Runs a module. Dropping the future ends it.
    #[cfg(feature = "wasm")]
    pub(super) async fn compute(
        &self,
        name: &str,
        module: &super::connectors::Module,
        request: &CallRequest,
        timeout: Duration,
    ) -> Result<Data, CallError> {
        let what = format!("connector `{name}`: module `{}`", module.0.path());
        let call = self.call(request, &what)?;
        let limit = self.http.config().response_bytes_max;
        let run = async {
            watch::sending(|| Sending {
                protocol: "wasm",
                target: module.0.path().to_string(),
                headers: Vec::new(),
                body: Content::Bytes(call.clone()),
            })
            .await;
            let answer = module.0.run(call, limit, &what).await?;
            if answer.is_empty() {
                return Ok(Data::NULL);
            }
            let data = Data::parse(&answer).map_err(|error| {
                let message = format!("{what}: its answer is not valid JSON: {error}");
                CallError::new(CallErrorKind::Response, message)
            })?;
            match Given::of(&data) {
                None => Ok(data),
                Some(given) => {
                    let error = CallError::new(CallErrorKind::Failed, format!("{what}: it failed"));
                    Err(given.apply(error, &what, Hidden::secrets(request.secrets.expose())))
                }
            }
        };
        in_time(timeout, &what, run).await
    }

    fn call(&self, request: &CallRequest, what: &str) -> Result<Vec<u8>, CallError> {
        let call = wire::call(request);
        let limit = self.http.config().request_bytes_max;
        if call.len() > limit {
            let message = format!(
                "{what}: the call has {} bytes; at most {limit} are sent",
                call.len()
            );
            return Err(CallError::new(CallErrorKind::Limit, message));
        }
        Ok(call)
    }
}

async fn in_time(
    timeout: Duration,
    what: &str,
    call: impl Future<Output = Result<Data, CallError>>,
) -> Result<Data, CallError> {
    match tokio::time::timeout(timeout, call).await {
        Ok(result) => result,
        Err(_) => {
            let message = format!("{what}: no answer within {} s", timeout.as_secs_f64());
            Err(CallError::new(CallErrorKind::Timeout, message))
        }
    }
}

/// Reads the result from a service's answer. An error may come with any status.
fn result(answer: &Answer, what: &str, hidden: Hidden<'_>) -> Result<Data, CallError> {
    if let Some(exact) = wire::exact(answer, hidden) {
        let mut error = CallError::new(CallErrorKind::Failed, format!("{what}: {exact}"));
        error.exact = Some(Box::new(exact));
        error.retry_after = answer.retry_after();
        return Err(error);
    }
    match answer::data(answer, what, &hidden.all(), "") {
        Ok(data) => match Given::of(&data) {
            None => Ok(data),
            Some(given) => {
                let mut error = CallError::new(CallErrorKind::Failed, format!("{what}: it failed"));
                error.retry_after = answer.retry_after();
                Err(given.apply(error, what, hidden))
            }
        },
        Err(error) => Err(match Given::of(&Data::from(answer.json())) {
            Some(given) => given.apply(error, what, hidden),
            None => error,
        }),
    }
}

fn finished_result(finished: &Finished, what: &str, hidden: Hidden<'_>) -> Result<Data, CallError> {
    let answer = if finished.stdout.trim_ascii().is_empty() {
        Ok(Data::NULL)
    } else {
        Data::parse(&finished.stdout)
    };
    let given = answer.as_ref().ok().and_then(Given::of);
    let said = match finished.stderr.as_str() {
        "" => String::new(),
        stderr => format!(": {stderr}"),
    };
    if !finished.status.success() {
        // The text is `exit status: 3`, or `signal: 9 (SIGKILL)`.
        let message = format!("{what}: {}{said}", finished.status);
        let error = CallError::new(CallErrorKind::Exit(finished.status.code()), message);
        return Err(match given {
            Some(given) => given.apply(error, what, hidden),
            None => error,
        });
    }
    if let Some(given) = given {
        let error = CallError::new(CallErrorKind::Failed, format!("{what}: it failed{said}"));
        return Err(given.apply(error, what, hidden));
    }
    answer.map_err(|error| {
        let message = format!("{what}: its standard output is not valid JSON: {error}");
        CallError::new(CallErrorKind::Response, message)
    })
}
