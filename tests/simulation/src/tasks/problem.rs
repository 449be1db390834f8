//! Errors (DSL 1.0, "Error"), and what stops tasks.

use serde_json::Value;
use swirl_model::{Data, WorkflowError};

const TYPES: &str = "https://serverlessworkflow.io/spec/1.0.0/errors/";

/// The detail of an error that the runtime raises: in its own words.
const OWN_WORDS: &str = "?";

#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    pub kind: String,
    pub status: i64,
    pub title: Option<String>,
    pub detail: Option<String>,
    pub instance: Option<String>,
}

/// The reasons why tasks end before their list does.
#[derive(Debug, Clone)]
pub enum Stop {
    Fail(Problem),
    /// The end of the workflow: the output of the last task, and the context.
    End(Data, Data),
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Stop {
        Stop::Fail(problem)
    }
}

impl Problem {
    /// One of the language's own errors.
    pub fn own(word: &str, status: i64) -> Problem {
        let mut title = word.to_owned();
        if let Some(first) = title.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        Problem {
            kind: format!("{TYPES}{word}"),
            status,
            title: Some(title),
            detail: Some(OWN_WORDS.to_owned()),
            instance: None,
        }
    }

    pub fn expression() -> Problem {
        Problem::own("expression", 400)
    }

    pub fn timeout() -> Problem {
        Problem::own("timeout", 408)
    }

    /// The error with this place, unless it has one.
    pub fn at(mut self, place: &str) -> Problem {
        self.instance.get_or_insert_with(|| place.to_owned());
        self
    }

    pub fn to_data(&self) -> Data {
        let mut data = Data::object();
        data.set("type", Data::string(&*self.kind));
        data.set("status", Data::int(self.status));
        for (name, value) in [
            ("title", &self.title),
            ("detail", &self.detail),
            ("instance", &self.instance),
        ] {
            if let Some(value) = value {
                data.set(name, Data::string(&**value));
            }
        }
        data
    }

    /// `errors.with`: all given properties are equal.
    pub fn fits(&self, with: &Value) -> bool {
        let Some(members) = with.as_object() else {
            return true;
        };
        members.iter().all(|(name, wanted)| {
            let text = wanted.as_str();
            match name.as_str() {
                "type" => {
                    let last = |kind: &str| kind.rsplit('/').next().map(str::to_owned);
                    let own = |kind: &str| kind.contains("/errors/");
                    text.is_some_and(|wanted| {
                        wanted == self.kind
                            || own(wanted) && own(&self.kind) && last(wanted) == last(&self.kind)
                    })
                }
                "status" => wanted.as_i64() == Some(self.status),
                "title" => text == self.title.as_deref(),
                "detail" => text == self.detail.as_deref(),
                "instance" => text == self.instance.as_deref(),
                _ => false,
            }
        })
    }

    /// As outcomes are compared.
    pub fn shown(&self) -> String {
        line(
            &self.kind,
            Some(self.status),
            self.title.as_deref(),
            self.instance.as_deref(),
        )
    }
}

fn line(kind: &str, status: Option<i64>, title: Option<&str>, instance: Option<&str>) -> String {
    let status = status.unwrap_or_default();
    let (title, instance) = (title.unwrap_or("-"), instance.unwrap_or("-"));
    format!("{kind} {status} '{title}' at {instance}")
}

/// The error of an instance, as outcomes are compared: by its name, or in DSL 1.0 by its description.
pub fn shown(error: &WorkflowError) -> String {
    let problem = error.problem.as_deref();
    let place = problem.and_then(|problem| problem.instance.as_deref());
    match (problem, place) {
        (Some(problem), Some(place)) if place == "/" || place.starts_with("/do/") => line(
            &problem.kind,
            error.status.map(i64::from),
            problem.title.as_deref(),
            Some(place),
        ),
        _ => error.name.clone(),
    }
}
