//! The collector of traces and metrics.

use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::report::Report;
use swirl_config::Config;

const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Only checks that it accepts connections, because a collector sends nothing before it receives something.
pub async fn collector(report: &mut Report, config: &Config) {
    let Some(endpoint) = &config.telemetry.otlp_endpoint else {
        return;
    };
    let url = endpoint.expose();
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return;
    };
    let hint = "traces and metrics are lost meanwhile: check telemetry.otlp_endpoint and any firewalls in between";
    let plain = host.trim_start_matches('[').trim_end_matches(']');
    match timeout(ANSWER_MAX, TcpStream::connect((plain, port))).await {
        Ok(Ok(_)) => report.ok(
            "collector",
            format!("something accepts connections at {host}:{port}"),
        ),
        Ok(Err(error)) => {
            let message = format!("nothing accepts connections at {host}:{port}: {error}");
            report.error("collector", message, hint);
        }
        Err(_) => report.error("collector", format!("{host}:{port} doesn't answer"), hint),
    }
}
