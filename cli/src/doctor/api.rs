//! The API of a server, from a client's point of view.

use reqwest::header::DATE;
use reqwest::tls::TlsInfo;
use serde_json::Value;
use swirl_coordinator::doctor::{Report, certificates, servers};
use swirl_presentation::timeline::shown;

use crate::client::{Client, Target};

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
    let alive = match client.look("/healthz").await {
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
    let body: Value = alive.json().await.unwrap_or_default();
    match body["version"].as_str() {
        Some(VERSION) => report.ok("api", format!("Swirl {VERSION} at {url}")),
        Some(other) => {
            let message = format!("Swirl {other} at {url}, and this is {VERSION}");
            report.warning("api", message, "use the same version everywhere");
        }
        None => {
            let message = format!("{url} is not a Swirl server");
            return report.error("api", message, hint);
        }
    }
    match client.look("/readyz").await {
        Ok(answer) if answer.status().is_success() => {
            let body: Value = answer.json().await.unwrap_or_default();
            let limited = body["limited"].as_array().cloned().unwrap_or_default();
            for reason in &limited {
                report.warning("api-ready", shown(reason), "see the checks above");
            }
            if limited.is_empty() {
                report.ok("api-ready", "it can work");
            }
        }
        Ok(answer) => {
            let body: Value = answer.json().await.unwrap_or_default();
            let message = format!("it cannot work: {}", shown(&body["detail"]));
            report.error("api-ready", message, "check its log, and Redis");
        }
        Err(error) => report.error("api-ready", format!("{error:#}"), hint),
    }
    match client.get(&["instances"], &[("limit", "1")]).await {
        Ok(answer) if answer.refused() => {
            let hint = "without a token that it accepts, nothing can be done there";
            report.error("api-access", answer.refusal(), hint);
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
