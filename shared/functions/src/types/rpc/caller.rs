//! Calls a method.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::FutureExt as _;
use http::uri::PathAndQuery;
use prost_reflect::MethodDescriptor;
use swirl_model::Data;
use swirl_model::trace::TraceContext;
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};

use super::channels::Channels;
use super::codec::Raw;
use super::{Server, message, status};
use crate::auth::{Auth, Authorization, Tokens};
use crate::breaker::{self, Breakers};
use crate::egress::Gate;
use crate::exchange;
use crate::http::Http;
use crate::types::service::TRACEPARENT;
use crate::watch::{self, Content, Sending};
use crate::{CallError, CallErrorKind};

/// The metadata key by which a receiver recognises repeated calls.
const IDEMPOTENCY_KEY: &str = "idempotency-key";
const AUTHORIZATION: &str = "authorization";

/// The longest deadline that is sent to a server, because the header has only eight digits.
const DEADLINE_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// If a server gives up within this time before our own limit, the limit is reported as the reason.
const DEADLINE_SLACK: Duration = Duration::from_millis(100);

/// The overhead of each message in a stream, because even empty messages take memory.
const MESSAGE_COST: usize = 64;

/// A method and its server.
#[derive(Debug, Clone)]
pub(super) struct Method {
    pub(super) descriptor: MethodDescriptor,
    pub(super) path: PathAndQuery,
    pub(super) server: Server,
}

/// The parts of a call other than its arguments.
pub(super) struct CallContext<'a> {
    pub(super) idempotency_key: &'a str,
    pub(super) trace: Option<TraceContext>,
    /// The limit for the whole call, including connection and token.
    pub(super) timeout: Duration,
    pub(super) auth: Option<&'a Auth>,
    /// These are removed from the server's answers, in addition to the credentials of `auth`.
    pub(super) secrets: &'a [String],
}

/// Calls methods over shared connections, and caches OAuth2 tokens.
#[derive(Debug)]
pub(crate) struct RpcCaller {
    channels: Channels,
    breakers: Option<Arc<Breakers>>,
    tokens: Tokens,
    gate: Gate,
    request_bytes_max: usize,
    response_bytes_max: usize,
}

/// A call that is ready to be sent.
struct Outgoing<'a> {
    method: &'a Method,
    messages: Vec<Bytes>,
    key: MetadataValue<Ascii>,
    trace: Option<MetadataValue<Ascii>>,
    until: Instant,
    secrets: &'a [String],
    /// Its name in errors: `gRPC /shop.Users/Get`.
    what: String,
}

impl RpcCaller {
    /// Uses the limits of the HTTP client, which also fetches the tokens.
    pub(crate) fn new(http: Http) -> RpcCaller {
        let config = http.config();
        RpcCaller {
            channels: Channels::new(config.connect_timeout, http.gate().clone()),
            gate: http.gate().clone(),
            request_bytes_max: config.request_bytes_max,
            response_bytes_max: config.response_bytes_max,
            breakers: http.breakers().cloned(),
            tokens: Tokens::new(http),
        }
    }

    /// Makes a call. Dropping the future cancels the call on the server.
    pub(super) async fn call(
        &self,
        method: &Method,
        arguments: &Data,
        context: &CallContext<'_>,
    ) -> Result<Data, CallError> {
        let what = format!("gRPC {}", method.path);
        let messages = message::requests(&method.descriptor, arguments)
            .map_err(|reason| CallError::arguments(format!("{what}: {reason}")))?;
        let size: usize = messages.iter().map(Bytes::len).sum();
        if size > self.request_bytes_max {
            let message = format!(
                "{what}: the request has {size} bytes; at most {} are sent",
                self.request_bytes_max
            );
            return Err(CallError::new(CallErrorKind::Limit, message));
        }
        let key = MetadataValue::try_from(context.idempotency_key)
            .map_err(|_| CallError::arguments("the idempotency key cannot be sent"))?;
        let timeout = context.timeout.min(DEADLINE_MAX);
        let outgoing = Outgoing {
            secrets: context.secrets,
            method,
            messages,
            key,
            trace: context
                .trace
                .and_then(|trace| trace.to_string().try_into().ok()),
            until: Instant::now() + timeout,
            what,
        };
        // The library panics on some malformed answers, and an answer must not end this process.
        let exchange = AssertUnwindSafe(self.exchange(&outgoing, context.auth)).catch_unwind();
        let late = || {
            let message = format!(
                "{}: no answer within {} s",
                outgoing.what,
                timeout.as_secs_f64()
            );
            CallError::new(CallErrorKind::Timeout, message)
        };
        match tokio::time::timeout(timeout, exchange).await {
            Ok(Ok(Err(error))) if outgoing.is_deadline(&error) => Err(late()),
            Ok(Ok(result)) => result,
            Ok(Err(_)) => {
                let message = format!("{}: the answer is malformed", outgoing.what);
                Err(CallError::new(CallErrorKind::Response, message))
            }
            Err(_) => Err(late()),
        }
    }

    async fn exchange(
        &self,
        outgoing: &Outgoing<'_>,
        auth: Option<&Auth>,
    ) -> Result<Data, CallError> {
        let Some(auth) = auth else {
            return self.attempt(outgoing, None).await;
        };
        let first = Authorization::of(auth, &self.tokens, None).await?;
        match self.attempt(outgoing, Some(&first)).await {
            Err(error)
                if first.can_renew() && error.kind == CallErrorKind::Rpc(Code::Unauthenticated) =>
            {
                let fresh = Authorization::of(auth, &self.tokens, Some(&first)).await?;
                self.attempt(outgoing, Some(&fresh)).await
            }
            result => result,
        }
    }

    async fn attempt(
        &self,
        outgoing: &Outgoing<'_>,
        authorization: Option<&Authorization>,
    ) -> Result<Data, CallError> {
        let Some(breakers) = &self.breakers else {
            return self.send(outgoing, authorization).await;
        };
        let host = outgoing.method.server.to_string();
        let pass = breakers
            .enter(&host)
            .map_err(|wait| breaker::refusal(&outgoing.what, &host, wait))?;
        let result = self.send(outgoing, authorization).await;
        let is_failure = |error: &CallError| {
            use CallErrorKind::{Connection, Rpc, Timeout};
            matches!(
                error.kind,
                Connection | Timeout | Rpc(Code::Unavailable | Code::DeadlineExceeded)
            )
        };
        match &result {
            // Nothing was sent.
            Err(error) if matches!(error.kind, CallErrorKind::Arguments | CallErrorKind::Auth) => {
                drop(pass);
            }
            result => pass.over(result.as_ref().is_err_and(is_failure)),
        }
        result
    }

    /// Sends a call. If a kept connection breaks before any part of an answer comes, the call is sent once more, on a
    /// new connection. After a call without an answer in time, the next one makes a new connection.
    async fn send(
        &self,
        outgoing: &Outgoing<'_>,
        authorization: Option<&Authorization>,
    ) -> Result<Data, CallError> {
        let server = &outgoing.method.server;
        let got = self.channels.get(server)?;
        let mut awaited = self.channels.awaited(server);
        let result = match self.send_on(got.channel, outgoing, authorization).await {
            Err(Unsent::Unprocessed(_)) if got.is_kept => {
                self.channels.forget(server);
                let channel = self.channels.get(server)?.channel;
                self.send_on(channel, outgoing, authorization).await
            }
            result => result,
        }
        .map_err(Unsent::error);
        awaited.is_answered =
            !matches!(&result, Err(error) if error.kind == CallErrorKind::Timeout);
        result
    }

    async fn send_on(
        &self,
        channel: Channel,
        outgoing: &Outgoing<'_>,
        authorization: Option<&Authorization>,
    ) -> Result<Data, Unsent> {
        let method = outgoing.method;
        let (host, port) = (method.server.host(), method.server.port());
        watch::sending(|| sending_of(outgoing, authorization)).await;
        let refused = self.gate.check(host, port).await.err();
        if let Some(refused) = refused {
            let message = format!("{}: {refused}", outgoing.what);
            return Err(CallError::arguments(message).into());
        }
        let mut request = Request::new(futures::stream::iter(outgoing.messages.clone()));
        request.set_timeout(outgoing.until.saturating_duration_since(Instant::now()));
        let metadata = request.metadata_mut();
        metadata.insert(IDEMPOTENCY_KEY, outgoing.key.clone());
        if let Some(trace) = &outgoing.trace {
            metadata.insert(TRACEPARENT, trace.clone());
        }
        let own = authorization.map_or(&[][..], |authorization| &authorization.secrets);
        let secrets = [own, outgoing.secrets].concat();
        if let Some(authorization) = authorization {
            metadata.insert(AUTHORIZATION, header(authorization)?);
            exchange::note_credentials(authorization.value.expose());
        }
        let noted = |code: Option<Code>| {
            exchange::note_grpc(host, port, method.path.as_str(), code.map(i32::from));
        };
        noted(None);
        let failed = |error: &Status| {
            noted(Some(error.code()));
            let server = method.server.to_string();
            status::error(error, &outgoing.what, &server, &secrets)
        };
        let mut grpc = Grpc::new(channel).max_decoding_message_size(self.response_bytes_max);
        grpc.ready().await.map_err(|error| {
            let error = Status::from_error(Box::new(error));
            failed(&error)
        })?;
        let answer = grpc
            .streaming(request, method.path.clone(), Raw)
            .await
            .map_err(|error| match status::is_broken(&error) {
                true => Unsent::Unprocessed(failed(&error)),
                false => Unsent::Other(failed(&error)),
            })?;
        let answers = self.read(answer.into_inner(), outgoing, &failed).await?;
        noted(Some(Code::Ok));
        let result = outgoing.result(answers)?;
        Ok(result)
    }

    /// Reads all messages of the answer, within the limit.
    async fn read(
        &self,
        mut stream: Streaming<Bytes>,
        outgoing: &Outgoing<'_>,
        failed: &(dyn Fn(&Status) -> CallError + Sync),
    ) -> Result<Vec<Data>, CallError> {
        let output = outgoing.method.descriptor.output();
        let (mut answers, mut size) = (Vec::new(), 0usize);
        while let Some(bytes) = stream.message().await.map_err(|error| failed(&error))? {
            size = size.saturating_add(bytes.len() + MESSAGE_COST);
            if size > self.response_bytes_max {
                let message = format!(
                    "{}: the answer is larger than {} bytes",
                    outgoing.what, self.response_bytes_max
                );
                return Err(CallError::new(CallErrorKind::Limit, message));
            }
            let answer = message::answer(&output, bytes).map_err(|reason| {
                let message = format!("{}: the answer cannot be read: {reason}", outgoing.what);
                CallError::new(CallErrorKind::Response, message)
            })?;
            answers.push(answer);
        }
        Ok(answers)
    }
}

/// A call that failed.
enum Unsent {
    /// The connection broke before any part of an answer came.
    Unprocessed(CallError),
    Other(CallError),
}

impl Unsent {
    fn error(self) -> CallError {
        match self {
            Unsent::Unprocessed(error) | Unsent::Other(error) => error,
        }
    }
}

impl From<CallError> for Unsent {
    fn from(error: CallError) -> Unsent {
        Unsent::Other(error)
    }
}

impl Outgoing<'_> {
    /// The list of messages for a method that streams its answer, otherwise the single message.
    fn result(&self, mut answers: Vec<Data>) -> Result<Data, CallError> {
        if self.method.descriptor.is_server_streaming() {
            return Ok(Data::array(answers));
        }
        match (answers.pop(), answers.is_empty()) {
            (Some(answer), true) => Ok(answer),
            (answer, _) => {
                let count = if answer.is_none() {
                    "no message"
                } else {
                    "more than one message"
                };
                let message = format!("{}: the answer has {count}", self.what);
                Err(CallError::new(CallErrorKind::Response, message))
            }
        }
    }

    /// Whether an error only says that the time is over, which the server knows as well.
    fn is_deadline(&self, error: &CallError) -> bool {
        let is_late = matches!(
            error.kind,
            CallErrorKind::Timeout | CallErrorKind::Rpc(Code::DeadlineExceeded | Code::Cancelled)
        );
        is_late && Instant::now() + DEADLINE_SLACK >= self.until
    }
}

/// The call as it is sent, with its messages as JSON.
fn sending_of(outgoing: &Outgoing<'_>, authorization: Option<&Authorization>) -> Sending {
    let method = outgoing.method;
    let input = method.descriptor.input();
    let messages = outgoing.messages.iter().map(|bytes| {
        let message = message::answer(&input, bytes.clone());
        message.map_or_else(|reason| format!("({reason})"), |data| data.to_string())
    });
    let messages: Vec<String> = messages.collect();
    let text = |value: &MetadataValue<Ascii>| value.to_str().unwrap_or_default().to_owned();
    let mut headers = vec![(IDEMPOTENCY_KEY.to_owned(), text(&outgoing.key))];
    headers.extend(
        outgoing
            .trace
            .iter()
            .map(|trace| (TRACEPARENT.to_owned(), text(trace))),
    );
    headers.extend(
        authorization.map(|given| (AUTHORIZATION.to_owned(), given.value.expose().to_owned())),
    );
    Sending {
        protocol: "grpc",
        target: format!("{}{}", method.server, method.path),
        headers,
        body: Content::Bytes(messages.join("\n").into_bytes()),
    }
}

fn header(authorization: &Authorization) -> Result<MetadataValue<Ascii>, CallError> {
    let header = MetadataValue::try_from(authorization.value.expose());
    let mut header = header.map_err(|_| {
        let message = "the credentials have characters that cannot be sent";
        CallError::new(CallErrorKind::Auth, message)
    })?;
    header.set_sensitive(true);
    Ok(header)
}
