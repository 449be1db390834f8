//! Calls an operation.

use std::time::Duration;

use reqwest::Method;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::multipart;
use swirl_model::Data;
use url::Url;

use super::answer;
use super::body::{Body, FormPart};
use super::operation::{Operation, Scheme};
use super::request::{self, Request};
use super::security::{self, Carrier};
use crate::auth::{Auth, Hints, OAuth2, Secret, Tokens, digest_answer};
use crate::http::{Answer, Http, shown};
use crate::watch;
use crate::{CallError, CallErrorKind};

/// The header by which a receiver recognises repeated calls.
const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

/// Calls operations over a shared client, and caches OAuth2 tokens.
#[derive(Debug)]
pub struct RestCaller {
    http: Http,
    tokens: Tokens,
}

/// The parts of a call other than its arguments.
#[derive(Debug, Clone, Copy)]
pub struct CallContext<'a> {
    /// Sent as `Idempotency-Key`. Each repeat of the call has the same key.
    pub idempotency_key: &'a str,
    /// The limit for the whole call; [`HttpConfig::timeout`](crate::http::HttpConfig) if `None`.
    pub timeout: Option<Duration>,
    pub auth: Option<&'a Auth>,
    /// Additional headers, such as `traceparent`. Headers of the operation take precedence.
    pub headers: &'a [(&'a str, &'a str)],
    /// These are removed from the service's answers, in addition to the credentials of `auth`.
    pub secrets: &'a [String],
}

/// A request that was answered.
pub(crate) struct Exchanged {
    pub(crate) request: Request,
    pub(crate) answer: Answer,
    /// Its name in errors.
    what: String,
    /// What a refusal may be due to.
    hint: String,
}

impl RestCaller {
    pub fn new(http: Http) -> RestCaller {
        RestCaller {
            tokens: Tokens::new(http.clone()),
            http,
        }
    }

    /// Calls an operation with an object of arguments, or null. Dropping the future cancels the call.
    ///
    /// # Errors
    /// [`CallError`]. Its kind is `Arguments` if nothing was sent.
    pub async fn call(
        &self,
        operation: &Operation,
        arguments: &Data,
        context: &CallContext<'_>,
    ) -> Result<Data, CallError> {
        let done = self.ask(operation, arguments, context, true).await?;
        answer::data(&done.answer, &done.what, &done.request.secrets, &done.hint)
    }

    /// Sends the request and gives the answer, whatever its status.
    pub(crate) async fn ask(
        &self,
        operation: &Operation,
        arguments: &Data,
        context: &CallContext<'_>,
        follows: bool,
    ) -> Result<Exchanged, CallError> {
        let mut request = self.prepare(operation, arguments, context)?;
        request.follows = follows;
        let what = format!("{} {}", request.method, shown(&request.url));
        let timeout = context.timeout.unwrap_or(self.http.config().timeout);
        match tokio::time::timeout(timeout, self.exchange(operation, request, context, &what)).await
        {
            Ok(result) => {
                let (request, answer, hint) = result?;
                Ok(Exchanged {
                    request,
                    answer,
                    what,
                    hint,
                })
            }
            Err(_) => {
                let message = format!("{what}: no answer within {} s", timeout.as_secs_f64());
                Err(CallError::new(CallErrorKind::Timeout, message))
            }
        }
    }

    /// The request without credentials.
    fn prepare(
        &self,
        operation: &Operation,
        arguments: &Data,
        context: &CallContext<'_>,
    ) -> Result<Request, CallError> {
        let mut request = request::build(operation, arguments)?;
        request.secrets.extend_from_slice(context.secrets);
        let (size, limit) = (request.body.len(), self.http.config().request_bytes_max);
        if size > limit {
            let message = format!(
                "operation `{}`: the request body has {size} bytes; at most {limit} are sent",
                operation.id
            );
            return Err(CallError::new(CallErrorKind::Limit, message));
        }
        let key = (IDEMPOTENCY_KEY, context.idempotency_key);
        for (name, value) in context.headers.iter().copied().chain([key]) {
            if request.headers.contains_key(name) {
                continue;
            }
            request
                .set_header(name, value, false)
                .map_err(CallError::arguments)?;
        }
        Ok(request)
    }

    async fn exchange(
        &self,
        operation: &Operation,
        request: Request,
        context: &CallContext<'_>,
        what: &str,
    ) -> Result<(Request, Answer, String), CallError> {
        let Some(auth) = context.auth else {
            let answer = self.send(&request, what).await?;
            let wanted = security::wanted(operation);
            let is_asked = !wanted.is_empty() && request.keys_given.is_empty();
            let hint = if is_asked {
                format!("the operation asks for {wanted}, and the function has no auth")
            } else {
                String::new()
            };
            return Ok((request, answer, hint));
        };
        let carrier = security::carrier(operation, &request, auth)?;
        let (request, answer) = match auth {
            Auth::Basic { username, password } => {
                self.send_with(request, &carrier, Some(username), password, what)
                    .await?
            }
            Auth::Digest { username, password } => {
                self.send_with_digest(request, (username, password), what)
                    .await?
            }
            Auth::Bearer { token } => self.send_with(request, &carrier, None, token, what).await?,
            Auth::OAuth2(oauth2) => {
                self.send_with_token(operation, request, &carrier, oauth2, what)
                    .await?
            }
        };
        Ok((request, answer, String::new()))
    }

    /// Sends the request with a token, and again with a fresh one if the service answers 401.
    async fn send_with_token(
        &self,
        operation: &Operation,
        request: Request,
        carrier: &Carrier,
        oauth2: &OAuth2,
        what: &str,
    ) -> Result<(Request, Answer), CallError> {
        let hints = hints(operation);
        let token = self.tokens.token(oauth2, &hints, None).await?;
        let (sent, answer) = self
            .send_with(request.clone(), carrier, None, &token, what)
            .await?;
        if answer.status != 401 {
            return Ok((sent, answer));
        }
        let fresh = self.tokens.token(oauth2, &hints, Some(&token)).await?;
        self.send_with(request, carrier, None, &fresh, what).await
    }

    /// Sends the request, and again with an answer to the service's challenge.
    async fn send_with_digest(
        &self,
        mut request: Request,
        (username, password): (&str, &Secret),
        what: &str,
    ) -> Result<(Request, Answer), CallError> {
        request.secrets.push(password.expose().to_owned());
        let first = self.send(&request, what).await?;
        if first.status != 401 {
            return Ok((request, first));
        }
        let body = match &request.body {
            Body::Bytes { bytes, .. } => Some(bytes.as_slice()),
            _ => None,
        };
        // It is made for an address, and a redirect leads to another one.
        let answer = |url: &Url| {
            let sent = (request.method.as_str(), url, body);
            digest_answer(&first.headers, (username, password), sent)
        };
        if answer(&request.url)?.is_none() {
            return Ok((request, first));
        }
        let second = self.send_answering(&request, what, answer).await?;
        Ok((request, second))
    }

    async fn send_with(
        &self,
        mut request: Request,
        carrier: &Carrier,
        user: Option<&str>,
        secret: &Secret,
        what: &str,
    ) -> Result<(Request, Answer), CallError> {
        security::place(&mut request, carrier, user, secret.expose())?;
        let answer = self.send(&request, what).await?;
        Ok((request, answer))
    }

    async fn send(&self, request: &Request, what: &str) -> Result<Answer, CallError> {
        self.send_answering(request, what, |_| Ok(None)).await
    }

    async fn send_answering(
        &self,
        request: &Request,
        what: &str,
        authorization: impl Fn(&Url) -> Result<Option<HeaderValue>, CallError>,
    ) -> Result<Answer, CallError> {
        let method = Method::from_bytes(request.method.as_bytes()).map_err(|_| {
            CallError::arguments(format!("`{}` is not a valid HTTP method", request.method))
        })?;
        let headers = request.all_headers()?;
        let has_type = headers.contains_key(CONTENT_TYPE);
        if let Body::Multipart(parts) = &request.body {
            watch::next_parts(|| described(parts));
        }
        let make = |url| {
            let mut headers = headers.clone();
            if let Some(authorization) = authorization(&url)? {
                headers.insert(AUTHORIZATION, authorization);
            }
            let mut out = self.http.request(method.clone(), url).headers(headers);
            match &request.body {
                Body::Empty => {}
                Body::Bytes {
                    content_type,
                    bytes,
                } => {
                    if !has_type {
                        out = out.header(CONTENT_TYPE, content_type);
                    }
                    out = out.body(bytes.clone());
                }
                Body::Multipart(parts) => out = out.multipart(form(parts)?),
            }
            Ok(out)
        };
        match request.follows {
            true => self.http.send_on(&method, &request.url, what, make).await,
            false => self.http.send_as_is(&request.url, what, make).await,
        }
    }
}

/// The parts of a body, one per line, for a watched call. Texts are shown, the contents of files aren't.
fn described(parts: &[FormPart]) -> String {
    let line = |part: &FormPart| {
        let kind = part.content_type.as_deref().unwrap_or("no content type");
        let size = part.bytes.len();
        let name = &part.name;
        match (&part.file_name, std::str::from_utf8(&part.bytes)) {
            (None, Ok(text)) => format!("{name} ({kind}): {text}"),
            (None, Err(_)) => format!("{name} ({kind}): {size} bytes"),
            (Some(file), _) => format!("{name} ({kind}): the file {file}, {size} bytes"),
        }
    };
    let lines: Vec<String> = parts.iter().map(line).collect();
    lines.join("\n")
}

fn form(parts: &[FormPart]) -> Result<multipart::Form, CallError> {
    let mut form = multipart::Form::new();
    for part in parts {
        let mut made = multipart::Part::bytes(part.bytes.clone());
        if let Some(content_type) = &part.content_type {
            made = made.mime_str(content_type).map_err(|_| {
                CallError::arguments(format!("`{content_type}` is not a valid media type"))
            })?;
        }
        if let Some(file_name) = &part.file_name {
            made = made.file_name(file_name.clone());
        }
        form = form.part(part.name.clone(), made);
    }
    Ok(form)
}

fn hints(operation: &Operation) -> Hints {
    let mut hints = Hints::default();
    for scheme in operation.security.iter().flatten() {
        if let Scheme::Bearer {
            token_url,
            discovery_url,
        } = scheme
        {
            hints.token_url = hints.token_url.or_else(|| token_url.clone());
            hints.discovery_url = hints.discovery_url.or_else(|| discovery_url.clone());
        }
    }
    hints
}
