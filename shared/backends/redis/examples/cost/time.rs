//! The costs that a server counts itself.

use swirl_servers::RedisServer;

/// The number of function calls, and their time in microseconds.
pub fn function(server: &RedisServer) -> anyhow::Result<(f64, f64)> {
    let info = server.cli(&["INFO", "commandstats"])?;
    let line = info
        .lines()
        .find(|line| line.starts_with("cmdstat_fcall:"))
        .unwrap_or_default();
    let of = |name: &str| -> f64 {
        let part = line
            .split([',', ':'])
            .find_map(|part| part.strip_prefix(name));
        part.and_then(|value| value.parse().ok()).unwrap_or(0.0)
    };
    Ok((of("calls="), of("usec=")))
}

/// The processor time that the server has used, in seconds.
pub fn cpu(server: &RedisServer) -> anyhow::Result<f64> {
    let info = server.cli(&["INFO", "cpu"])?;
    let of = |name: &str| -> f64 {
        let line = info.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|value| value.trim().parse().ok())
            .unwrap_or_default()
    };
    Ok(of("used_cpu_sys:") + of("used_cpu_user:"))
}
