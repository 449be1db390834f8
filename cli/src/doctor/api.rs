//! The API of a server, from a client's point of view.

use reqwest::header::DATE;
use reqwest::tls::TlsInfo;
use swirl_api::Problem;
use swirl_api::instance::{LIST, ListQuery};
use swirl_api::server::{Health, LIVE, READY};
use swirl_coordinator::doctor::{Report, certificates, servers};
use swirl_presentation::timeline::clean;

use crate::client::{Answered, Client, Target, refusal};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The header has whole seconds, truncated.
const DATE_MS: i64 = 1_000;

pub async fn api(report: &mut Report, url: &str, target: &Target) {
    let hint = "check --server, --token-file and --ca-file";
    let client = match Client::new(target) {
        Ok(client) => client.once(),
        Err(error) => return report.error("api", format!("{error:#}"), hint),
    };
    let begun = std::time::Instant::now();
    let alive = match client.look(LIVE.path).await {
        Ok(answer) => answer,
        Err(error) => return report.error("api", format!("{error:#}"), hint),
    };
    let took = i64::try_from(begun.elapsed().as_millis()).unwrap_or(i64::MAX);
    if let Some(der) = alive.extensions().get::<TlsInfo>()
        && let Some(der) = der.peer_certificate()
    {
        certificates::one(report, "api-certificate", url, der);
    }
    let date = alive
        .headers()
        .get(DATE)
        .and_then(|date| date.to_str().ok());
    if let Some(ms) = date.and_then(date_ms) {
        servers::skew(report, "api-clock", url, ms, DATE_MS + took);
    }
    let body: Health = alive.json().await.unwrap_or_default();
    match body.version.as_deref() {
        Some(VERSION) => report.ok("api", format!("Swirl {VERSION} at {url}")),
        Some(other) => {
            let message = format!("Swirl {other} at {url}, but this is {VERSION}");
            report.warning("api", message, "use the same version everywhere");
        }
        None => {
            let message = format!("{url} is not a Swirl server");
            return report.error("api", message, hint);
        }
    }
    match client.look(READY.path).await {
        Ok(answer) if answer.status().is_success() => {
            let body: Health = answer.json().await.unwrap_or_default();
            for reason in &body.limited {
                report.warning("api-ready", clean(reason), "see the checks above");
            }
            if body.limited.is_empty() {
                report.ok("api-ready", "it is ready");
            }
        }
        Ok(answer) => {
            let problem: Problem = answer.json().await.unwrap_or_default();
            let message = format!("it is not ready: {}", clean(&problem.detail));
            report.error("api-ready", message, "check its log, and Redis");
        }
        Err(error) => report.error("api-ready", format!("{error:#}"), hint),
    }
    let query = ListQuery {
        limit: Some(1),
        ..ListQuery::default()
    };
    match client.ask(LIST.ask().query(query)).await {
        Ok(Answered(Err(problem))) => {
            let hint = "nothing works there without a valid token";
            report.error("api-access", refusal(&problem), hint);
        }
        Ok(_) if target.token.is_some() => report.ok("api-access", "the token is accepted"),
        Ok(_) => report.ok("api-access", "instances can be read without a token"),
        Err(error) => report.error("api-access", format!("{error:#}"), hint),
    }
}

fn date_ms(date: &str) -> Option<i64> {
    let at = httpdate::parse_http_date(date).ok()?;
    let since = at.duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}
