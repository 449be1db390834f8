//! Redis and NATS, with the settings of workers and coordinators.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use swirl_config::Config;
use swirl_nats::Streams;
use swirl_redis::Redis;
use tokio::time::timeout;

use super::report::Report;

/// The time limit for all checks of one server.
const SERVER_MAX: Duration = Duration::from_secs(30);
/// A clock difference beyond this gets a warning.
const SKEW_MS: i64 = 1_000;

pub async fn servers(report: &mut Report, config: &Config) {
    // One at a time, so that the report has a fixed order. Each check has a time limit.
    if timeout(SERVER_MAX, redis(report, config)).await.is_err() {
        let hint = "check its address and any firewalls in between";
        report.error("redis", "Redis doesn't answer in time", hint);
    }
    if timeout(SERVER_MAX, nats(report, config)).await.is_err() {
        let hint = "check its address and any firewalls in between";
        report.error("nats", "NATS doesn't answer in time", hint);
    }
}

async fn redis(report: &mut Report, config: &Config) {
    let hint = "check redis.url, redis.password and redis.tls_*, and that Redis is running";
    let options = match swirl_connections::redis_options(config) {
        Ok(options) => options,
        Err(error) => return report.error("redis", format!("{error:#}"), hint),
    };
    let seen = match Redis::examine(&options).await {
        Ok(seen) => seen,
        Err(error) => return report.error("redis", error.to_string(), hint),
    };
    for (server, version) in &seen.servers {
        let message = format!("Redis {version} at {server}");
        report.ok("redis", message);
    }
    for finding in seen.findings {
        report.find("redis", finding);
    }
    let (namespace, wanted) = (&config.namespace, config.redis.shards);
    match seen.shards {
        None => {
            let message = format!("the namespace '{namespace}' isn't in use yet");
            report.ok("redis-namespace", message);
        }
        Some(found) if found == wanted => {
            let message = format!("the namespace '{namespace}' has {found} shards");
            report.ok("redis-namespace", message);
        }
        Some(found) => {
            let message = format!(
                "the namespace '{namespace}' has {found} shards, but redis.shards is {wanted}"
            );
            let hint =
                format!("set redis.shards to {found}: the number of shards cannot be changed");
            report.error("redis-namespace", message, &hint);
        }
    }
    if let Some((clock, took)) = seen.clock {
        let half = i64::try_from(took.as_millis() / 2).unwrap_or(i64::MAX);
        skew(
            report,
            "redis-clock",
            "Redis",
            clock.0.saturating_add(half),
            half,
        );
    }
}

/// Compares a clock with this machine's clock. `uncertain` is the part of the difference that the request itself may
/// have caused.
pub fn skew(report: &mut Report, name: &str, whose: &str, clock_ms: i64, uncertain_ms: i64) {
    let ahead = clock_ms - now_ms();
    let message = match ahead.abs() <= SKEW_MS + uncertain_ms {
        true => {
            return report.ok(name, format!("the clock of {whose} matches this machine's"));
        }
        false if ahead > 0 => format!("the clock of {whose} is {ahead} ms ahead of this machine's"),
        false => format!(
            "the clock of {whose} is {} ms behind this machine's",
            -ahead
        ),
    };
    let hint =
        "synchronise the clocks (NTP): instances use Redis' clock, tokens and logs the machines'";
    report.warning(name, message, hint);
}

pub fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let ms = now.map_or(0, |now| now.as_millis());
    i64::try_from(ms).unwrap_or(i64::MAX)
}

async fn nats(report: &mut Report, config: &Config) {
    let hint = "check nats.url, its user and nats.tls_*, and that NATS is running";
    let client = match swirl_nats::connect(&swirl_connections::nats_options(config, "doctor")).await
    {
        Ok(client) => client,
        Err(error) => return report.error("nats", error.to_string(), hint),
    };
    let (subjects, _) = swirl_connections::subjects(config);
    let streams = Streams::new(
        client.clone(),
        &config.namespace,
        subjects,
        swirl_connections::stream_options(config),
    );
    let seen = streams.inspect(&client).await;
    report.ok("nats", format!("NATS {}", seen.version));
    for (stream, messages) in &seen.streams {
        let noun = if *messages == 1 {
            "message"
        } else {
            "messages"
        };
        let message = format!("the stream {stream} holds {messages} {noun}");
        report.ok("nats-stream", message);
        if *stream == streams.dead() && *messages > 0 {
            let message = match messages {
                1 => "1 message could not be processed, and is kept as a dead letter".to_owned(),
                more => {
                    format!("{more} messages could not be processed, and are kept as dead letters")
                }
            };
            let hint = "see the console's page Events or 'swirl dead-letters list': correct them, send them again, or drop them";
            report.warning("nats-dead-letters", message, hint);
        }
    }
    if !seen.missing.is_empty() {
        let message = format!(
            "the first process will create the streams {}",
            seen.missing.join(", ")
        );
        report.ok("nats-stream", message);
    }
    for finding in seen.findings {
        report.find("nats", finding);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::report::Status;

    #[test]
    fn clocks() {
        let said = |ahead: i64, uncertain: i64| {
            let mut report = Report::default();
            skew(&mut report, "c", "x", now_ms() + ahead, uncertain);
            report.checks.remove(0)
        };
        assert_eq!(said(500, 0).status, Status::Ok);
        assert_eq!(said(-2_500, 2_000).status, Status::Ok);
        assert!(said(60_000, 0).message.contains("ahead"));
        assert!(said(-60_000, 0).message.contains("behind"));
    }
}
