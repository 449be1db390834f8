//! Asking the API: over HTTP, or within the process that serves it.

use std::future::Future;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::endpoint::{Endpoint, Method, Nothing};
use crate::problem::Problem;

/// The number of rows of a listing that are asked for at a time: the server's maximum.
const ROWS: u32 = 1000;

/// A request in the form in which it is sent.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: Method,
    /// The segments of the path below `/api/v1`, not encoded; or a path outside the API, which begins with a slash.
    pub path: Vec<String>,
    pub query: Vec<(String, String)>,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    /// Sending it again changes nothing.
    pub repeatable: bool,
}

/// The response of a server.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub body: Vec<u8>,
}

/// An answer that is a text, and not JSON.
#[derive(Debug, Clone, Copy)]
pub enum Text {}

/// A request to a route.
#[derive(Debug, Clone)]
pub struct Call<Q, B, A> {
    request: Request,
    query: Q,
    /// The media type of the body.
    media: &'static str,
    types: PhantomData<fn(&B) -> A>,
}

impl<Q: Default, B, A> Endpoint<Nothing, Q, B, A> {
    /// A request to a route whose path has no parameters.
    pub fn ask(&self) -> Call<Q, B, A> {
        self.at(&Nothing {})
    }
}

impl<P: Serialize, Q: Default, B, A> Endpoint<P, Q, B, A> {
    /// A request with these parameters of the path.
    pub fn at(&self, path: &P) -> Call<Q, B, A> {
        let parts = pairs(path);
        let segment = |part: &str| {
            let name = part
                .strip_prefix('{')
                .and_then(|name| name.strip_suffix('}'));
            let found = name.and_then(|name| parts.iter().find(|(known, _)| known == name));
            found.map_or_else(|| part.to_owned(), |(_, value)| value.clone())
        };
        let path = match self.path.strip_prefix("/api/v1/") {
            Some(path) => path.split('/').map(segment).collect(),
            None => vec![self.path.to_owned()],
        };
        Call {
            request: Request {
                method: self.method,
                path,
                query: Vec::new(),
                headers: Vec::new(),
                body: Vec::new(),
                repeatable: self.repeatable,
            },
            query: Q::default(),
            media: self.takes.map_or("", |takes| takes.bodies[0].0),
            types: PhantomData,
        }
    }
}

impl<Q, B, A> Call<Q, B, A> {
    #[must_use]
    pub fn query(mut self, query: Q) -> Self {
        self.query = query;
        self
    }

    /// With the same key, the request is carried out once.
    #[must_use]
    pub fn key(mut self, key: &str) -> Self {
        self.request
            .headers
            .push(("idempotency-key", key.to_owned()));
        self.request.repeatable = true;
        self
    }

    /// With a body that somebody else has written.
    #[must_use]
    pub fn sending(mut self, media: &str, body: Vec<u8>) -> Self {
        self.request.body = body;
        self.request
            .headers
            .push(("content-type", media.to_owned()));
        self
    }
}

impl<Q, B: Serialize, A> Call<Q, B, A> {
    #[must_use]
    pub fn body(self, body: &B) -> Self {
        // The types of bodies have nothing that JSON cannot hold.
        let media = self.media;
        self.sending(media, serde_json::to_vec(body).unwrap_or_default())
    }
}

impl<Q: Serialize, B, A> Call<Q, B, A> {
    pub fn request(&self) -> Request {
        let mut request = self.request.clone();
        request.query = pairs(&self.query);
        request
    }
}

/// The members of a value as texts, without those that are absent.
fn pairs(value: &impl Serialize) -> Vec<(String, String)> {
    let members = match serde_json::to_value(value) {
        Ok(Value::Object(members)) => members,
        _ => return Vec::new(),
    };
    let text = |value: Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    };
    let members = members.into_iter();
    members
        .filter_map(|(name, value)| Some((name, text(value)?)))
        .collect()
}

/// A page of a listing.
pub trait Page: Sized {
    /// The query that asks for it.
    type Query;

    /// The place of the next page, for [`Page::turn`].
    fn next(&self) -> Option<String>;

    /// Asks for the page at this place.
    fn turn(query: &mut Self::Query, after: String);

    /// Asks for this many rows.
    fn limit(query: &mut Self::Query, rows: u32);

    /// Adds the page that follows.
    fn append(&mut self, next: Self);
}

/// Implements [`Page`] for a listing with the member `next`, whose query has `after` and `limit`.
macro_rules! pages {
    ($page:ident . $rows:ident, $query:ident) => {
        impl crate::client::Page for $page {
            type Query = $query;

            fn next(&self) -> Option<String> {
                self.next.clone()
            }

            fn turn(query: &mut $query, after: String) {
                query.after = Some(after);
            }

            fn limit(query: &mut $query, rows: u32) {
                query.limit = Some(rows);
            }

            fn append(&mut self, next: Self) {
                let rows = std::mem::take(&mut self.$rows);
                *self = next;
                self.$rows.splice(0..0, rows);
            }
        }
    };
}

pub(crate) use pages;

/// An answer of the API: a refusal is an answer, too.
pub type Answer<A> = Result<A, Problem>;

/// A way to the API.
pub trait Client: Sync {
    /// There is no answer.
    type Error: Send;

    fn send(&self, request: Request) -> impl Future<Output = Result<Reply, Self::Error>> + Send;

    /// The error for an answer that isn't one of the API.
    fn unreadable(status: u16, error: &serde_json::Error) -> Self::Error;

    fn ask<Q, B, A>(
        &self,
        call: Call<Q, B, A>,
    ) -> impl Future<Output = Result<Answer<A>, Self::Error>> + Send
    where
        Q: Serialize + Send + Sync,
        A: DeserializeOwned,
    {
        async move { read::<Self, A>(self.send(call.request()).await?) }
    }

    /// Asks for a listing with its first `pages` pages.
    fn ask_pages<B, A>(
        &self,
        mut call: Call<A::Query, B, A>,
        pages: usize,
    ) -> impl Future<Output = Result<Answer<A>, Self::Error>> + Send
    where
        A: Page + DeserializeOwned + Send,
        A::Query: Serialize + Send + Sync,
    {
        async move {
            A::limit(&mut call.query, ROWS);
            let mut all = match read::<Self, A>(self.send(call.request()).await?)? {
                Ok(first) => first,
                refused => return Ok(refused),
            };
            for _ in 1..pages {
                let Some(after) = all.next() else { break };
                A::turn(&mut call.query, after);
                match read::<Self, A>(self.send(call.request()).await?)? {
                    Ok(page) => all.append(page),
                    refused => return Ok(refused),
                }
            }
            Ok(Ok(all))
        }
    }
}

fn read<C: Client + ?Sized, A: DeserializeOwned>(reply: Reply) -> Result<Answer<A>, C::Error> {
    let unreadable = |error| C::unreadable(reply.status, &error);
    match reply.status {
        0..400 => serde_json::from_slice(&reply.body)
            .map(Ok)
            .map_err(unreadable),
        _ => serde_json::from_slice(&reply.body)
            .map(Err)
            .map_err(unreadable),
    }
}
