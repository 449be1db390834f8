//! The HTTP client of the function callers, as configured.

use swirl_worker::breaker::BreakerConfig;
use swirl_worker::http::HttpConfig;

use crate::config::{Breaker, Http};

pub fn http(config: &Http) -> HttpConfig {
    HttpConfig {
        connect_timeout: config.connect_timeout,
        timeout: config.timeout,
        response_bytes_max: config.response_bytes_max,
        request_bytes_max: config.request_bytes_max,
        idle_per_host_max: config.idle_per_host_max,
        breaker: (config.breaker.failures > 0).then(|| breaker(&config.breaker)),
        ..HttpConfig::default()
    }
}

fn breaker(config: &Breaker) -> BreakerConfig {
    BreakerConfig {
        failures: config.failures,
        window: config.window,
        pause: config.pause,
        pause_max: config.pause_max,
    }
}
