//! The HTTP client of the function callers, as configured.

use swirl_config::{Breaker, Config, Endpoint};
use swirl_functions::breaker::BreakerConfig;
use swirl_functions::egress::{DiscoveredServers, Egress};
use swirl_functions::http::HttpConfig;

/// `found`: servers of this installation that its clients find later.
pub fn http(config: &Config, found: &DiscoveredServers) -> HttpConfig {
    let egress = egress(config, found);
    let config = &config.http;
    HttpConfig {
        egress,
        connect_timeout: config.connect_timeout,
        timeout: config.timeout,
        response_bytes_max: config.response_bytes_max,
        request_bytes_max: config.request_bytes_max,
        idle_per_host_max: config.idle_per_host_max,
        breaker: (config.breaker.failures > 0).then(|| breaker(&config.breaker)),
        ..HttpConfig::default()
    }
}

/// The addresses that functions may call and documents may come from.
pub fn egress(config: &Config, found: &DiscoveredServers) -> Egress {
    let egress = config.http.egress.clone().without(own_servers(config));
    egress.without_found(found.clone())
}

/// Where Redis and NATS are.
fn own_servers(config: &Config) -> Vec<(String, u16)> {
    let servers = config.redis.urls.iter().chain(&config.nats.urls);
    let place = |server: &Endpoint| {
        let url = server.expose();
        let default = match url.scheme() {
            "nats" | "tls" => 4222,
            "redis-sentinel" | "rediss-sentinel" => 26379,
            _ => 6379,
        };
        let host = url.host_str()?.trim_matches(['[', ']']).to_owned();
        Some((host, url.port().unwrap_or(default)))
    };
    servers.filter_map(place).collect()
}

fn breaker(config: &Breaker) -> BreakerConfig {
    BreakerConfig {
        failures: config.failures,
        window: config.window,
        pause: config.pause,
        pause_max: config.pause_max,
    }
}
