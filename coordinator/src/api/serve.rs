//! Routes with types: a request is read as its route says, and what the handler returns is written.

use axum::Json;
use axum::extract::{FromRequest, FromRequestParts, Path, Request, State};
use axum::handler::Handler;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use serde::Serialize;
use serde::de::DeserializeOwned;
use swirl_api::{Endpoint, Method, Reason};
use swirl_service::{Audited, Operator};

use super::Api;
use super::noted::audited;
use super::problem::{Problem, bounded};
use super::request::{self, Parameters, Unread};
use crate::access::Caller;

/// A route with its handler.
pub(super) struct Route {
    pub rules: &'static swirl_api::Route,
    pub handler: MethodRouter<Api>,
    /// The pages of an instance share its responses.
    pub shared: bool,
}

impl Route {
    pub fn shared(mut self) -> Route {
        self.shared = true;
        self
    }
}

/// A request that was read.
pub(super) struct Asked<P, Q, B> {
    pub path: P,
    pub query: Q,
    pub body: B,
    pub key: Option<String>,
    pub headers: HeaderMap,
    /// Unless the server is open to everybody.
    pub caller: Option<Caller>,
}

impl<P, B> Asked<P, Reason, B> {
    /// The operator of an action, and the reason.
    pub fn operator(&self) -> Result<Operator, Problem> {
        Ok(Operator {
            name: self.caller.as_ref().map(|caller| caller.name.clone()),
            reason: request::reason(self.query.reason.clone())?,
            batch: None,
        })
    }
}

/// The result of a request.
pub(super) struct Done<A> {
    answer: Result<A, Problem>,
    status: Option<StatusCode>,
    location: Option<String>,
    audited: Vec<Audited>,
}

impl<A> From<A> for Done<A> {
    fn from(answer: A) -> Done<A> {
        Done::new(Ok(answer))
    }
}

impl<A> Done<A> {
    /// A request that failed may have carried out an action before.
    pub fn new(answer: Result<A, Problem>) -> Done<A> {
        Done {
            answer,
            status: None,
            location: None,
            audited: Vec::new(),
        }
    }

    /// In another form.
    pub fn map<F>(self, form: impl FnOnce(A) -> F) -> Done<F> {
        Done {
            answer: self.answer.map(form),
            status: self.status,
            location: self.location,
            audited: self.audited,
        }
    }

    /// With another status than the route's first one.
    pub fn with_status(mut self, status: StatusCode) -> Done<A> {
        self.status = Some(status);
        self
    }

    /// The answer is about what is at this path.
    pub fn located(mut self, path: String) -> Done<A> {
        self.location = Some(path);
        self
    }

    /// This action was carried out before the others.
    pub fn audited_before(mut self, action: Audited) -> Done<A> {
        self.audited.insert(0, action);
        self
    }

    /// This action was carried out.
    pub fn audited(mut self, action: Audited) -> Done<A> {
        self.audited.push(action);
        self
    }
}

impl<A: Serialize> IntoResponse for Done<A> {
    fn into_response(self) -> Response {
        self.written(200)
    }
}

impl<A: Serialize> Done<A> {
    /// `status`: unless the handler has set another one.
    fn written(self, status: u16) -> Response {
        let status = self.status.or(StatusCode::from_u16(status).ok());
        let answer = self.answer.map(|answer| Json(answer).into_response());
        let mut response = answer.unwrap_or_else(IntoResponse::into_response);
        if let Some(status) = status.filter(|_| response.status().is_success()) {
            *response.status_mut() = status;
        }
        if let Some(Ok(location)) = self.location.map(|path| path.parse()) {
            response.headers_mut().insert(header::LOCATION, location);
        }
        self.audited.into_iter().fold(response, audited)
    }
}

/// The route with its handler.
pub(super) fn serve<P, Q, B, A, D, F, R>(
    endpoint: &'static Endpoint<P, Q, B, A>,
    handler: F,
) -> Route
where
    P: DeserializeOwned + Send + 'static,
    Q: DeserializeOwned + Send + 'static,
    B: DeserializeOwned + Send + 'static,
    A: Serialize + 'static,
    D: Into<Done<A>>,
    F: Fn(Api, Asked<P, Q, B>) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Result<D, Problem>> + Send,
{
    let handler = async move |State(api): State<Api>, request: Request| {
        let asked = match read(endpoint, request).await {
            Ok(asked) => asked,
            Err(problem) => return problem.into_response(),
        };
        match handler(api, asked).await {
            Ok(done) => done.into().written(endpoint.status()),
            Err(problem) => problem.into_response(),
        }
    };
    by_itself(endpoint, handler)
}

/// The route with a handler that reads and writes by itself, since it does so in other forms than JSON.
pub(super) fn by_itself<P, Q, B, A, T: 'static>(
    endpoint: &'static Endpoint<P, Q, B, A>,
    handler: impl Handler<T, Api>,
) -> Route {
    let filter = match endpoint.method {
        Method::Delete => MethodFilter::DELETE,
        Method::Get => MethodFilter::GET,
        Method::Post => MethodFilter::POST,
    };
    Route {
        rules: &endpoint.route,
        handler: on(filter, handler),
        shared: false,
    }
}

async fn read<P, Q, B, A>(
    endpoint: &Endpoint<P, Q, B, A>,
    request: Request,
) -> Result<Asked<P, Q, B>, Problem>
where
    P: DeserializeOwned + Send,
    Q: DeserializeOwned,
    B: DeserializeOwned,
{
    let (mut parts, body) = request.into_parts();
    let Path(path) = Path::from_request_parts(&mut parts, &())
        .await
        .map_err(|error| Problem::bad_request("invalid-path", error.body_text()))?;
    let Parameters(query) = Parameters::from_request_parts(&mut parts, &()).await?;
    let key = match endpoint.is_keyed() {
        true => request::key(&parts.headers)?,
        false => None,
    };
    let caller = parts.extensions.get().cloned();
    let headers = parts.headers.clone();
    let body = match &endpoint.takes {
        // No members.
        None => parsed(b"{}", "{}")?,
        Some(takes) => {
            let Ok(unread) = Unread::from_request(Request::from_parts(parts, body), &()).await;
            let bytes = request::text(unread, takes.bytes_max).await?;
            match bytes.is_empty() && !takes.required {
                true => parsed(takes.absent.as_bytes(), takes.example)?,
                false => parsed(&bytes, takes.example)?,
            }
        }
    };
    Ok(Asked {
        path,
        query,
        body,
        key,
        headers,
        caller,
    })
}

fn parsed<B: DeserializeOwned>(bytes: &[u8], example: &str) -> Result<B, Problem> {
    serde_json::from_slice(bytes).map_err(|error| {
        let error = bounded(&error.to_string());
        Problem::bad_request(
            "invalid-json",
            format!("the body must be {example}: {error}"),
        )
    })
}
