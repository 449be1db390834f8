//! Services that answer without a network, for simulations in virtual time.
//!
//! Everything above the connection is real: what a simulation is asked is what would be sent.

use std::sync::Arc;

use futures::future::BoxFuture;
use reqwest::Request;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use url::Url;

/// A request as it would be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// In capitals.
    pub method: String,
    pub url: Url,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// It isn't the call's own: it is for a token, or for the address of a token endpoint.
    pub for_token: bool,
}

impl Asked {
    pub(crate) fn of(request: &Request, for_token: bool) -> Asked {
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = request.headers().iter();
        let body = request.body().and_then(|body| body.as_bytes());
        Asked {
            method: request.method().to_string(),
            url: request.url().clone(),
            headers: headers
                .map(|(name, value)| (name.to_string(), text(value)))
                .collect(),
            body: body.unwrap_or_default().to_vec(),
            for_token,
        }
    }
}

/// An answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Given {
    /// Headers that can't be sent are left out.
    pub(crate) fn header_map(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let name = HeaderName::from_bytes(name.as_bytes());
            if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
                headers.append(name, value);
            }
        }
        headers
    }
}

/// The services of a simulation as one call sees them, and its time.
pub trait Simulation: Send + Sync {
    /// `None` ends the call: there is no answer, and the simulation knows why.
    fn answer(&self, asked: Asked) -> BoxFuture<'_, Option<Given>>;

    /// In milliseconds since 1970.
    fn now_ms(&self) -> i64;
}

tokio::task_local! {
    /// That of the call under way. Calls share their client, and with it the tokens that they got.
    static OF_CALL: Arc<dyn Simulation>;
}

/// Lets a call see this simulation.
pub(crate) async fn within<T>(simulation: Arc<dyn Simulation>, call: impl Future<Output = T>) -> T {
    OF_CALL.scope(simulation, call).await
}

/// The simulation of the call under way.
pub(crate) fn of_call() -> Option<Arc<dyn Simulation>> {
    OF_CALL.try_with(Arc::clone).ok()
}
