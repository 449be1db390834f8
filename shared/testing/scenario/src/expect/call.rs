//! Calls, as a scenario expects them.

use swirl_model::Data;

use crate::answer::without_path;
use crate::differ;
use crate::observed::ObservedCall;
use crate::rows::{Row, millis};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct WantedCall {
    /// The name of a function, or the name or place of a task.
    pub function: Option<String>,
    /// Arguments of tasks are compared as a subset.
    pub is_task: bool,
    pub method: Option<String>,
    /// Without its query.
    pub uri: Option<String>,
    pub query: Option<Data>,
    pub headers: Option<Data>,
    pub body: Option<Data>,
    pub arguments: Option<Data>,
    /// Virtual milliseconds since time zero.
    pub at_ms: Option<i64>,
}

impl WantedCall {
    fn names(&self, seen: &ObservedCall) -> bool {
        let own = self.function.as_deref();
        own.is_none_or(|name| name == seen.function || seen.place.as_deref() == Some(name))
    }

    fn fits_request(&self, seen: &ObservedCall) -> bool {
        let parts = [&self.query, &self.headers, &self.body];
        if self.method.is_none() && self.uri.is_none() && parts.iter().all(|part| part.is_none()) {
            return true;
        }
        let Some(request) = &seen.request else {
            return false;
        };
        self.method
            .as_ref()
            .is_none_or(|method| *method == request.method)
            && self.uri.as_ref().is_none_or(|uri| {
                *uri == request.uri || without_path(&request.uri).as_ref() == Some(uri)
            })
            && self
                .query
                .as_ref()
                .is_none_or(|query| *query == request.query)
            && self.body.as_ref().is_none_or(|body| *body == request.body)
            && self.missing_headers(&request.headers).is_empty()
    }

    /// A line for each expected header that was not sent so. Names are compared without regard to case.
    fn missing_headers(&self, sent: &[(String, String)]) -> Vec<String> {
        let wanted = self.headers.as_ref().and_then(Data::as_object);
        let wanted = wanted.into_iter().flat_map(|all| all.iter());
        let missing = wanted.filter_map(|(name, value)| {
            let (name, value) = (Data(name.clone()).to_text(), Data(value.clone()).to_text());
            let mut of_name = sent
                .iter()
                .filter(|(other, _)| other.eq_ignore_ascii_case(&name))
                .peekable();
            let first = of_name.peek().map(|(_, sent)| format!("got '{sent}'"));
            if of_name.any(|(_, sent)| *sent == value) {
                return None;
            }
            let got = first.unwrap_or_else(|| "is missing".to_owned());
            Some(format!("headers: {name}: expected '{value}', {got}"))
        });
        missing.collect()
    }
}

impl Row for WantedCall {
    type Seen = ObservedCall;

    fn fits(&self, seen: &ObservedCall) -> bool {
        self.names(seen)
            && self.fits_request(seen)
            && self.arguments.as_ref().is_none_or(|arguments| {
                match self.is_task || seen.place.is_some() {
                    true => differ::contains(&seen.arguments, arguments),
                    false => *arguments == seen.arguments,
                }
            })
            && self.at_ms.is_none_or(|at| at == seen.at_ms)
    }

    fn text(&self) -> String {
        let at = self
            .at_ms
            .map(|at| format!(" at {}", millis(at)))
            .unwrap_or_default();
        let arguments = self
            .arguments
            .as_ref()
            .map(|data| format!(" {data}"))
            .unwrap_or_default();
        let name = self.function.as_deref().unwrap_or("a task");
        let method = self.method.iter().map(|method| format!(" {method}"));
        let uri = self.uri.iter().map(|uri| format!(" {uri}"));
        let parts = [
            ("query", &self.query),
            ("headers", &self.headers),
            ("body", &self.body),
        ];
        let parts = parts.iter().filter_map(|(name, part)| {
            let part = part.as_ref()?;
            Some(format!(" {name} {part}"))
        });
        let request: String = method.chain(uri).chain(parts).collect();
        format!("{name}{request}{at}{arguments}")
    }

    fn seen_text(seen: &ObservedCall) -> String {
        let at = millis(seen.at_ms);
        match &seen.request {
            Some(request) => {
                let (method, uri) = (&request.method, &request.uri);
                let (query, body) = (&request.query, &request.body);
                let headers = request.headers.iter();
                let headers = headers.map(|(name, value)| format!("{name}: {value}"));
                let headers: Vec<String> = headers.collect();
                let headers = headers.join(", ");
                let name = &seen.function;
                format!(
                    "{name} {method} {uri} query {query} headers {{{headers}}} body {body} at {at}"
                )
            }
            None => format!("{} at {at} {}", seen.function, seen.arguments),
        }
    }

    fn details(&self, seen: &ObservedCall) -> Vec<String> {
        if !self.names(seen) {
            return Vec::new();
        }
        let is_subset = self.is_task || seen.place.is_some();
        let differences = |name: &str, wanted: &Option<Data>, found: &Data, is_subset: bool| {
            let lines = wanted.as_ref().map(|wanted| match is_subset {
                true => differ::missing(wanted, found),
                false => differ::diff(wanted, found),
            });
            let lines = lines.unwrap_or_default().into_iter();
            lines
                .map(|line| format!("{name}: {line}"))
                .collect::<Vec<String>>()
        };
        let mut lines = differences("arguments", &self.arguments, &seen.arguments, is_subset);
        if let Some(request) = &seen.request {
            lines.extend(differences("query", &self.query, &request.query, false));
            lines.extend(differences("body", &self.body, &request.body, false));
            lines.extend(self.missing_headers(&request.headers));
        }
        lines
    }
}
