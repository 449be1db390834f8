//! A route of the API as a value: how it is asked, by whom, and what it answers. The server serves it, clients ask it,
//! and the document describes it.

use std::marker::PhantomData;
use std::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use swirl_access::Need;

use crate::audited::{Action, Audit, Kind};

/// The longest `Idempotency-Key`, in bytes.
pub const KEY_BYTES_MAX: usize = 255;

/// No parameters, or no body.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Nothing {}

/// The parameter that all actions take besides their own.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Reason {
    /// The reason, for the audit log and for the history of an instance.
    #[schemars(length(max = 500))]
    pub reason: Option<String>,
}

/// The parameters of a listing.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct PageQuery {
    /// Where to go on: 'next' of another page.
    pub after: Option<String>,
    /// How many at most.
    #[schemars(range(min = 1, max = 1000), extend("default" = 100))]
    pub limit: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Delete,
    Get,
    Post,
}

impl Method {
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Delete => "DELETE",
            Method::Get => "GET",
            Method::Post => "POST",
        }
    }
}

/// The schema of a type.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// The forms that a body may have: media types with schemas.
pub(crate) type Bodies = &'static [(&'static str, SchemaOf)];

/// A status with which a route answers.
#[derive(Clone, Copy)]
pub(crate) struct Success {
    pub status: u16,
    pub about: &'static str,
    pub bodies: Bodies,
    /// The answer has the address of what it is about.
    pub located: bool,
}

/// A body that a route takes, which is JSON unless its handler reads it in other forms.
#[derive(Clone, Copy)]
pub struct Takes {
    pub bytes_max: usize,
    pub required: bool,
    /// The meaning of an empty body, unless it is required.
    pub absent: &'static str,
    /// For the message to a client that has sent something else.
    pub example: &'static str,
    pub(crate) about: &'static str,
    pub(crate) bodies: Bodies,
}

/// The place of a route, and the rules for it.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    pub method: Method,
    pub path: &'static str,
    pub need: Need,
    /// The entries in the audit log; a route without any changes nothing by hand.
    pub audit: Option<Audit>,
    /// It is given up when the client disconnects. Others that leave an entry are carried out nevertheless.
    pub given_up: bool,
}

/// A route with its path's parameters, its query, its body and its answer.
pub struct Endpoint<P, Q, B, A> {
    pub route: Route,
    /// Asking again changes nothing.
    pub repeatable: bool,
    pub takes: Option<Takes>,
    pub(crate) id: &'static str,
    pub(crate) tag: &'static str,
    pub(crate) summary: &'static str,
    /// More than the summary says; may be empty.
    pub(crate) description: &'static str,
    /// The effect of an `Idempotency-Key`.
    pub(crate) key: Option<&'static str>,
    /// The effect of `Prefer`.
    pub(crate) prefer: Option<&'static str>,
    pub(crate) successes: [Option<Success>; 3],
    pub(crate) problems: &'static [u16],
    types: PhantomData<fn(&P, &Q, &B) -> A>,
}

impl<P, Q, B, A> Deref for Endpoint<P, Q, B, A> {
    type Target = Route;

    fn deref(&self) -> &Route {
        &self.route
    }
}

impl<P, Q, B, A> Endpoint<P, Q, B, A> {
    pub(crate) const fn new(method: Method, path: &'static str, need: Need) -> Self {
        Endpoint {
            route: Route {
                method,
                path,
                need,
                audit: None,
                given_up: false,
            },
            repeatable: matches!(method, Method::Get),
            takes: None,
            id: "",
            tag: "",
            summary: "",
            description: "",
            key: None,
            prefer: None,
            successes: [None; 3],
            problems: &[],
            types: PhantomData,
        }
    }

    pub(crate) const fn named(
        mut self,
        id: &'static str,
        tag: &'static str,
        summary: &'static str,
    ) -> Self {
        (self.id, self.tag, self.summary) = (id, tag, summary);
        self
    }

    pub(crate) const fn explained(mut self, description: &'static str) -> Self {
        self.description = description;
        self
    }

    pub(crate) const fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }

    /// It leaves one of these entries in the audit log.
    pub(crate) const fn audited(mut self, kind: &'static Kind, actions: &'static [Action]) -> Self {
        self.route.audit = Some(Audit { kind, actions });
        self
    }

    pub(crate) const fn given_up(mut self) -> Self {
        self.route.given_up = true;
        self
    }

    /// It takes an `Idempotency-Key`, with which it can be asked again.
    pub(crate) const fn keyed(mut self, about: &'static str) -> Self {
        self.key = Some(about);
        self
    }

    /// It takes a preference.
    pub(crate) const fn prefers(mut self, about: &'static str) -> Self {
        self.prefer = Some(about);
        self
    }

    /// The problems that it answers in particular. Any route may answer others.
    pub(crate) const fn refuses(mut self, problems: &'static [u16]) -> Self {
        self.problems = problems;
        self
    }

    /// Whether a request may have an `Idempotency-Key`.
    pub fn is_keyed(&self) -> bool {
        self.key.is_some()
    }

    /// The status with which it answers by default.
    pub fn status(&self) -> u16 {
        self.successes[0].map_or(200, |success| success.status)
    }
}

impl<P, Q, B, A: JsonSchema> Endpoint<P, Q, B, A> {
    /// The first one is its default.
    pub(crate) const fn answers(self, status: u16, about: &'static str) -> Self {
        self.answers_with::<A>(status, about)
    }
}

impl<P, Q, B, A> Endpoint<P, Q, B, A> {
    /// As `answers`, with one of several forms of the answer.
    pub(crate) const fn answers_with<F: JsonSchema>(
        self,
        status: u16,
        about: &'static str,
    ) -> Self {
        self.answers_as(status, about, json::<F>())
    }

    /// As `answers`, with a body that isn't JSON, or with none.
    pub(crate) const fn answers_as(
        mut self,
        status: u16,
        about: &'static str,
        bodies: Bodies,
    ) -> Self {
        self.successes[self.successes_len()] = Some(Success {
            status,
            about,
            bodies,
            located: false,
        });
        self
    }

    /// Its handler reads the body, which has one of these forms. Clients send the first one.
    pub(crate) const fn takes_any(mut self, bodies: Bodies, about: &'static str) -> Self {
        self.takes = Some(Takes {
            bytes_max: 0,
            required: true,
            absent: "",
            example: "",
            about,
            bodies,
        });
        self
    }

    /// The answer before has the address of what it is about.
    pub(crate) const fn located(mut self) -> Self {
        if let Some(last) = &mut self.successes[self.successes_len() - 1] {
            last.located = true;
        }
        self
    }

    const fn successes_len(&self) -> usize {
        let mut len = 0;
        while len < self.successes.len() && self.successes[len].is_some() {
            len += 1;
        }
        len
    }
}

impl<P, Q, B: JsonSchema, A> Endpoint<P, Q, B, A> {
    pub(crate) const fn takes(
        mut self,
        bytes_max: usize,
        required: bool,
        example: &'static str,
    ) -> Self {
        self.takes = Some(Takes {
            bytes_max,
            required,
            absent: "null",
            example,
            about: "",
            bodies: json::<B>(),
        });
        self
    }

    /// The forms of the body, where the schema isn't that of its type.
    pub(crate) const fn shaped(mut self, bodies: Bodies) -> Self {
        if let Some(takes) = &mut self.takes {
            takes.bodies = bodies;
        }
        self
    }

    /// The meaning of an empty body, and what the body is.
    pub(crate) const fn absent(mut self, absent: &'static str, about: &'static str) -> Self {
        if let Some(takes) = &mut self.takes {
            (takes.absent, takes.about) = (absent, about);
        }
        self
    }
}

const fn json<T: JsonSchema>() -> Bodies {
    &[("application/json", SchemaGenerator::subschema_for::<T>)]
}
