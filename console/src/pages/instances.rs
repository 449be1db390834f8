//! Instances, newest first; the search is part of the address, and the browser keeps which columns it shows.

use askama::Template;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use percent_encoding::percent_decode_str;
use swirl_api::batches::Operation;
use swirl_api::instance::{InstanceSummary, Instances, LIST, ListQuery};
use swirl_api::views::{self, SavedView};
use swirl_api::{Status, definitions};

use super::Done;
use super::batch_trial::Deed;
use super::columns::{
    COLUMNS_MAX, Cell, Column, Offered, Row, column, heading, now, offered, rows, sort, words,
};
use super::search::{SPANS, Search, address};
use crate::answer::{Answer, go_to, page};
use crate::asking::{Refusal, segment};
use crate::console::Console;
use crate::naming::Kind;
use crate::shell::Shell;
use crate::visitor::{Visitor, is_secure};

/// How many are on a page.
const PAGE: u32 = 50;
/// How many are sorted, unless they are in the order of the store. All of them can be ticked, and a query names at most
/// this many.
const SORTED: u32 = 100;

/// The cookie with the chosen columns, and how long a browser keeps it, in seconds.
const COLUMNS: &str = "swirl_columns";
const COLUMNS_KEPT: u32 = 365 * 24 * 3600;
/// The longest value of the cookie. Browsers drop cookies of more than 4,096 bytes.
const COOKIE_BYTES_MAX: usize = 3_000;
/// In place of columns: those that are there by default.
const DEFAULT: &str = "default";

const STATUSES: [&str; 7] = [
    "running",
    "waiting",
    "suspended",
    "faulted",
    "completed",
    "cancelled",
    "terminated",
];

#[derive(Template)]
#[template(path = "instances.html")]
struct Page {
    shell: Shell,
    search: Search,
    statuses: Vec<Choice>,
    workflows: Vec<Choice>,
    spans: Vec<Choice>,
    /// The heading of the first column, and its order.
    heading: String,
    first: Column,
    columns: Vec<Column>,
    offered: Vec<Offered>,
    rows: Vec<Row>,
    /// The number of rows that are sorted, if there are more instances than these.
    sorted_of: usize,
    /// Why the query cannot be carried out; empty if it can.
    wrong: String,
    /// The number of instances examined for this page.
    scanned: usize,
    /// The addresses of the first and of the next page; empty if there is none.
    newest: String,
    next: String,
    /// The actions that are possible for some of the instances.
    deeds: Vec<Deed>,
    /// The whole search as a query, for a batch; empty if nothing is searched for.
    all: String,
    /// The search as fields, for a view and for the choice of columns.
    saved: Vec<(&'static str, String)>,
    given: Vec<(&'static str, String)>,
    views: Vec<View>,
    /// No definition is deployed.
    is_new: bool,
}

/// A saved view.
struct View {
    name: String,
    by: String,
    address: String,
    /// It is the search that the page shows.
    chosen: bool,
}

struct Choice {
    value: String,
    word: String,
    chosen: bool,
}

impl View {
    fn new(row: &SavedView, search: &Search) -> View {
        let view = Search::of_view(row);
        View {
            name: row.name.clone(),
            by: row.by.clone().unwrap_or_default(),
            chosen: view.kept() == search.kept(),
            address: address(&view.given()),
        }
    }
}

/// The columns that this browser has kept.
fn kept(headers: &HeaderMap) -> Vec<String> {
    let all = headers.get_all(header::COOKIE).iter();
    let mut pairs = all
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    let found = pairs.find(|(name, _)| *name == COLUMNS);
    let (_, words) = found.unwrap_or_default();
    let words = words.split('|').filter(|word| !word.is_empty());
    words
        .map(|word| percent_decode_str(word).decode_utf8_lossy().into_owned())
        .collect()
}

/// Lets the browser keep these columns, and shows the search with them.
fn choose(search: &Search, is_secure: bool) -> Answer {
    let mut response = go_to(&address(&search.given()))?;
    let (words, age) = match search.columns.iter().any(|word| word == DEFAULT) {
        true => (String::new(), 0),
        false => {
            let words = search.columns.iter().take(COLUMNS_MAX);
            let mut words: Vec<String> = words.map(|word| segment(word)).collect();
            while words.join("|").len() > COOKIE_BYTES_MAX {
                words.pop();
            }
            (words.join("|"), COLUMNS_KEPT)
        }
    };
    let secure = if is_secure { "; Secure" } else { "" };
    let cookie = format!(
        "{COLUMNS}={words}; Path=/console/instances; Max-Age={age}; HttpOnly; SameSite=Lax{secure}"
    );
    if let Ok(cookie) = HeaderValue::try_from(cookie) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// The instances of a search, or why there are none. A mistake in the query is named where the visitor has written it.
async fn find(
    visitor: &Visitor,
    search: &Search,
    limit: u32,
) -> Result<(Instances, String), Refusal> {
    let is_mistake = |refusal: &Refusal| {
        ["invalid-search", "unknown-attribute"].contains(&&*refusal.problem.code)
    };
    let asked = search.asked(limit);
    match visitor.asking.ask(LIST.ask().query(asked)).await {
        Ok(found) => Ok((found, String::new())),
        Err(refusal) if is_mistake(&refusal) => {
            let written = ListQuery {
                query: Some(search.query.clone()),
                limit: Some(1),
                ..ListQuery::default()
            };
            let again = visitor.asking.ask(LIST.ask().query(written)).await;
            let refusal = again.err().filter(is_mistake).unwrap_or(refusal);
            Ok((Instances::default(), refusal.problem.detail))
        }
        Err(refusal) => Err(refusal),
    }
}

pub async fn show(
    State(console): State<Console>,
    visitor: Visitor,
    uri: Uri,
    headers: HeaderMap,
    Query(done): Query<Done>,
) -> Answer {
    let search = Search::read(uri.query().unwrap_or_default());
    if !search.columns.is_empty() {
        return choose(&search, is_secure(&console, &headers));
    }
    let shell = Shell::new(&visitor, "instances", "Instances").await?;
    let limit = if search.sort.is_empty() { PAGE } else { SORTED };
    let (found, wrong) = find(&visitor, &search, limit).await?;
    let deployed = visitor.asking.ask_pages(definitions::LIST.ask()).await?;
    let definitions = deployed.definitions.into_iter();
    let mut workflows: Vec<String> = definitions.map(|one| one.head.id).collect();
    let is_new = workflows.is_empty();
    if !search.workflow.is_empty() {
        workflows.push(search.workflow.clone());
    }
    workflows.sort();
    workflows.dedup();
    let choice = |value: &str, word: &str, chosen: &str| Choice {
        value: value.to_owned(),
        word: word.to_owned(),
        chosen: value == chosen,
    };
    let views = visitor.asking.ask(views::LIST.ask()).await?;
    let views = views.views.iter();
    let next = found.next.as_ref().map(|next| {
        let mut given = search.given();
        given.push(("after", next));
        address(&given)
    });
    let newest = match search.after.is_empty() {
        true => String::new(),
        false => address(&search.given()),
    };
    let (mut all, now) = (found.instances, now());
    let deeds = deeds(&all, &search, next.is_some());
    sort(&mut all, &search.sort, now);
    let words = words(&kept(&headers), &all);
    let offered = offered(&words, &all);
    let sorted_of = match search.sort.is_empty() || next.is_none() && search.after.is_empty() {
        true => 0,
        false => all.len(),
    };
    let rows = rows(all, &words, now);
    let address_of = |sort: &str| search.sorted(sort);
    let shell = shell.with_done(done.done.as_deref());
    page(&Page {
        shell: match search.after.is_empty() {
            true => shell.with_news(),
            false => shell,
        },
        statuses: STATUSES
            .iter()
            .map(|word| choice(word, word, &search.status))
            .collect(),
        workflows: workflows
            .iter()
            .map(|id| choice(id, id, &search.workflow))
            .collect(),
        spans: SPANS
            .iter()
            .map(|(value, word, _)| choice(value, word, &search.since))
            .collect(),
        heading: heading(&rows),
        first: column("name", &search.sort, address_of),
        columns: words
            .iter()
            .map(|word| column(word, &search.sort, address_of))
            .collect(),
        offered,
        rows,
        sorted_of,
        wrong,
        scanned: found.scanned,
        newest,
        next: next.unwrap_or_default(),
        deeds,
        all: match search.narrows() {
            true => search.as_query(),
            false => String::new(),
        },
        saved: search.kept(),
        given: search
            .given()
            .into_iter()
            .map(|(name, value)| (name, value.to_owned()))
            .collect(),
        views: views.map(|row| View::new(row, &search)).collect(),
        is_new,
        search,
    })
}

/// The actions that are possible for some of these instances. `has_more`: there are others, which may have any status that
/// the search allows.
fn deeds(rows: &[InstanceSummary], search: &Search, has_more: bool) -> Vec<Deed> {
    let status = search.status.as_str();
    let (is_open, is_any) = (!status.is_empty(), has_more && status.is_empty());
    let has = |wanted: &dyn Fn(&InstanceSummary) -> bool| is_any || rows.iter().any(wanted);
    let runs = |row: &InstanceSummary| row.status == Status::Running;
    let faulted = has(&|row| row.status == Status::Faulted);
    let running = has(&runs);
    // More of those that run may be suspended.
    let suspended = has(&|row| row.suspended) || is_open && has_more && running;
    let active = has(&|row| runs(row) && !row.suspended) || is_open && has_more && running;
    let ended = has(&|row| !runs(row));
    let all = [
        (Operation::Retry, faulted),
        (Operation::Skip, faulted),
        (Operation::Rerun, faulted),
        (Operation::Suspend, active),
        (Operation::Resume, suspended),
        (Operation::Migrate, running || faulted),
        (Operation::Cancel, running),
        (Operation::Remove, ended),
    ];
    let all = all.into_iter().filter(|(_, is_possible)| *is_possible);
    all.map(|(operation, _)| Deed::of(operation)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(status: &str, suspended: bool) -> InstanceSummary {
        let row = json!({"id": "i", "workflow": "order", "version": "1", "status": status, "suspended": suspended,
            "key": null, "instanceKey": null, "startedAt": "2024-01-31T09:00:00.000Z", "scheduledAt": null,
            "endedAt": null});
        serde_json::from_value(row).unwrap()
    }

    #[test]
    fn only_what_is_possible_is_offered() {
        let of = |rows: &[InstanceSummary], search: &str, has_more| -> Vec<String> {
            let search = Search::read(search);
            let deeds = deeds(rows, &search, has_more).into_iter();
            deeds.map(|deed| deed.word).collect()
        };
        let running = row("running", false);
        assert_eq!(
            of(std::slice::from_ref(&running), "", false),
            ["suspend", "migrate", "cancel"]
        );
        assert_eq!(
            of(&[row("running", true)], "", false),
            ["resume", "migrate", "cancel"]
        );
        assert_eq!(
            of(&[row("faulted", false)], "status=faulted", true),
            ["retry", "skip", "rerun", "migrate", "remove"]
        );
        assert_eq!(of(&[row("completed", false)], "", false), ["remove"]);
        assert_eq!(
            of(std::slice::from_ref(&running), "", true).len(),
            8,
            "there may be any"
        );
        assert_eq!(
            of(&[running], "status=running", true),
            ["suspend", "resume", "migrate", "cancel"]
        );
    }

    #[test]
    fn a_browser_keeps_columns() {
        let mut headers = HeaderMap::new();
        let cookie = HeaderValue::from_static("a=b; swirl_columns=%40order%20id|status|");
        headers.insert(header::COOKIE, cookie);
        assert_eq!(kept(&headers), ["@order id", "status"]);
        assert!(kept(&HeaderMap::new()).is_empty());
        let response = choose(
            &Search::read("status=faulted&column=%40a%7Cb&column=id"),
            true,
        );
        let response = response.unwrap();
        assert_eq!(
            response.headers()[header::LOCATION],
            "/console/instances?status=faulted"
        );
        let cookie = response.headers()[header::SET_COOKIE].to_str().unwrap();
        assert!(cookie.starts_with("swirl_columns=%40a%7Cb|id; Path=/console/instances; Max-Age="));
        // Browsers drop a cookie that is too long.
        for (word, most) in [
            ("@a".to_owned(), COLUMNS_MAX),
            (format!("@{}", "a".repeat(1_000)), 2),
        ] {
            let search = Search {
                columns: vec![word; 100],
                ..Search::default()
            };
            let response = choose(&search, true).unwrap();
            let cookie = response.headers()[header::SET_COOKIE].to_str().unwrap();
            let (words, _) = cookie.split_once(';').unwrap();
            assert_eq!(words.split('|').count(), most);
        }
    }
}
