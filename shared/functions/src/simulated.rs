//! Services that answer without a network, for simulations in virtual time.
//!
//! Everything above the connection is real: what a simulation is asked is what would be sent.

use std::fmt;
use std::sync::Arc;

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

/// The services of a simulation, and its time.
pub trait Simulation: Send + Sync {
    /// `None` ends the call: there is no answer, and the simulation knows why.
    fn answer(&self, asked: &Asked) -> Option<Given>;

    /// In milliseconds since 1970.
    fn now_ms(&self) -> i64;
}

/// A simulation in place of a network.
#[derive(Clone)]
pub(crate) struct Simulated(pub(crate) Arc<dyn Simulation>);

impl fmt::Debug for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a simulation")
    }
}
