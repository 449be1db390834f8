//! A search for instances, as it is written in the address of the list.

use swirl_api::Condition;
use swirl_api::instance::{ListQuery, quoted};
use swirl_api::views::SavedView;
use url::form_urlencoded::{Serializer, parse};

/// The fields of a search that a view keeps, in the order of [`Search::kept`].
pub const FIELDS: [&str; 4] = ["workflow", "status", "key", "query"];

/// How far back a search goes: the value in the address, its name, and the beginning in the query language.
pub const SPANS: [(&str, &str, &str); 5] = [
    ("15m", "last 15 minutes", "-15m"),
    ("1h", "last hour", "-1h"),
    ("24h", "last 24 hours", "-24h"),
    ("7d", "last 7 days", "-7d"),
    ("30d", "last 30 days", "-30d"),
];

/// An instance that nobody has as a sub-workflow: every id begins with nothing.
const ON_ITS_OWN: &str = "not parent ^= \"\"";

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Search {
    pub workflow: String,
    pub status: String,
    pub key: String,
    pub query: String,
    /// One of [`SPANS`].
    pub since: String,
    /// Started at or after this, and before that: values of a browser's fields, in UTC.
    pub from: String,
    pub to: String,
    /// Without sub-workflows.
    pub top: bool,
    /// A column, after a minus if the largest comes first; empty for the order of the store.
    pub sort: String,
    pub after: String,
    /// The columns that were chosen just now.
    pub columns: Vec<String>,
}

impl Search {
    /// Reads the query of an address.
    pub fn read(query: &str) -> Search {
        let mut search = Search::default();
        for (name, value) in parse(query.as_bytes()) {
            let value = value.trim().to_owned();
            match &*name {
                "workflow" => search.workflow = value,
                "status" => search.status = value,
                "key" => search.key = value,
                "query" => search.query = value,
                "since" => search.since = value,
                "from" => search.from = value,
                "to" => search.to = value,
                "top" => search.top = !value.is_empty(),
                "sort" => search.sort = value,
                "after" => search.after = value,
                "column" => search.columns.push(value),
                _ => {}
            }
        }
        search
    }

    pub fn of_view(view: &SavedView) -> Search {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        Search {
            workflow: text(&view.workflow),
            status: view
                .status
                .as_ref()
                .map_or("", Condition::as_str)
                .to_owned(),
            key: text(&view.key),
            query: text(&view.query),
            ..Search::default()
        }
    }

    /// The search as a part of addresses, without the place of a page and without columns.
    pub fn given(&self) -> Vec<(&'static str, &str)> {
        let all = [
            ("workflow", self.workflow.as_str()),
            ("status", &self.status),
            ("key", &self.key),
            ("query", &self.query),
            ("since", &self.since),
            ("from", &self.from),
            ("to", &self.to),
            ("top", if self.top { "1" } else { "" }),
            ("sort", &self.sort),
        ];
        let all = all.into_iter().filter(|(_, value)| !value.is_empty());
        all.collect()
    }

    /// Whether it leaves any instance out.
    pub fn narrows(&self) -> bool {
        self.given().iter().any(|(name, _)| *name != "sort")
    }

    /// The search as the fields of a view, whose query says the rest.
    pub fn kept(&self) -> Vec<(&'static str, String)> {
        let values = [
            self.workflow.clone(),
            self.status.clone(),
            self.key.clone(),
            self.narrowed(),
        ];
        let all = FIELDS.into_iter().zip(values);
        all.filter(|(_, value)| !value.is_empty()).collect()
    }

    /// The address of this search from its beginning, in this order.
    pub fn sorted(&self, sort: &str) -> String {
        let search = Search {
            sort: sort.to_owned(),
            ..self.clone()
        };
        address(&search.given())
    }

    /// The request of a page.
    pub fn asked(&self, limit: u32) -> ListQuery {
        let filled = |value: &str| Some(value.to_owned()).filter(|value| !value.is_empty());
        ListQuery {
            workflow: filled(&self.workflow),
            status: filled(&self.status).as_deref().map(Condition::from),
            key: filled(&self.key),
            query: filled(&self.narrowed()),
            after: filled(&self.after),
            limit: Some(limit),
            ..ListQuery::default()
        }
    }

    /// The query with the conditions of the other fields that only it can say.
    fn narrowed(&self) -> String {
        let mut others = Vec::new();
        let spans = SPANS.iter();
        if let Some((.., begin)) = spans.clone().find(|(value, ..)| *value == self.since) {
            others.push(format!("started > {begin}"));
        }
        for (sign, at) in [(">=", &self.from), ("<", &self.to)] {
            if let Some(at) = instant(at) {
                others.push(format!("started {sign} {at}"));
            }
        }
        if self.top {
            others.push(ON_ITS_OWN.to_owned());
        }
        match (self.query.is_empty(), others.is_empty()) {
            (_, true) => self.query.clone(),
            (true, false) => others.join(" and "),
            (false, false) => format!("({}) and {}", self.query, others.join(" and ")),
        }
    }

    /// The whole search as one query, for a batch.
    pub fn as_query(&self) -> String {
        let narrowed = self.narrowed();
        let mut parts = Vec::new();
        for (name, value) in [
            ("workflow", &self.workflow),
            ("status", &self.status),
            ("key", &self.key),
            ("query", &narrowed),
        ] {
            match (name, value.as_str()) {
                (_, "") => {}
                ("status", "suspended") => parts.push("suspended = true".to_owned()),
                ("status", word) => parts.push(format!("status = {word}")),
                ("query", query) if parts.is_empty() => return query.to_owned(),
                ("query", query) => parts.push(format!("({query})")),
                (name, value) => parts.push(format!("{name} = {}", quoted(value))),
            }
        }
        parts.join(" and ")
    }
}

/// The value of a browser's field for an instant, in UTC; `None` if it is something else.
fn instant(text: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_digit() || "-:.TZ+".contains(c);
    if text.is_empty() || !text.chars().all(is_plain) {
        return None;
    }
    Some(match (text.len(), text.ends_with('Z')) {
        (16, false) => format!("{text}:00Z"),
        (19, false) => format!("{text}Z"),
        _ => text.to_owned(),
    })
}

/// The address of a search.
pub fn address(given: &[(&str, &str)]) -> String {
    let query = Serializer::new(String::new()).extend_pairs(given).finish();
    match query.is_empty() {
        true => "/console/instances".to_owned(),
        false => format!("/console/instances?{query}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> String {
        Search::read(text).as_query()
    }

    #[test]
    fn a_search_becomes_one_query() {
        for (given, expected) in [
            ("", ""),
            ("query=a+%3D+1+or+b+%3D+2", "a = 1 or b = 2"),
            (
                "workflow=order&status=faulted&key=say+%22x%22&query=a+%3D+1+or+b+%3D+2",
                r#"workflow = "order" and status = faulted and key = "say \"x\"" and (a = 1 or b = 2)"#,
            ),
            ("status=suspended", "suspended = true"),
            (
                "workflow=order&status=waiting",
                "workflow = \"order\" and status = waiting",
            ),
            ("key='\\", r#"key = "'\\""#),
            ("since=1h&top=1", "started > -1h and not parent ^= \"\""),
            (
                "query=a+%3D+1&from=2026-01-31T09:00&to=2026-02-01",
                "(a = 1) and started >= 2026-01-31T09:00:00Z and started < 2026-02-01",
            ),
            ("from=1)+or+id+%3D+2&since=ever", ""),
        ] {
            assert_eq!(query(given), expected, "{given}");
        }
    }

    #[test]
    fn a_view_keeps_all_but_the_order() {
        let search = Search::read("workflow=order&since=24h&sort=-duration&after=x&column=id");
        let kept = search.kept();
        let kept: Vec<_> = kept
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        assert_eq!(kept, [("workflow", "order"), ("query", "started > -24h")]);
        assert!(search.narrows() && !Search::read("sort=id").narrows());
        assert_eq!(
            search.sorted("status"),
            "/console/instances?workflow=order&since=24h&sort=status"
        );
        assert_eq!(Search::default().sorted(""), "/console/instances");
    }
}
