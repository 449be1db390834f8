//! The resource usage of processes and Redis: CPU as reported by the system, scripts and bytes as reported by Redis.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use redis::aio::MultiplexedConnection;

/// The ticks per second in `/proc/PID/stat`. Linux always shows this rate to programs, whatever the kernel's own rate
/// is.
const TICKS: f64 = 100.0;

/// The processes and servers that are measured.
#[derive(Clone, Default)]
pub struct Meter {
    /// Names and process ids. Processes with the same name are added up.
    pub processes: Vec<(String, u32)>,
    pub redis: Option<MultiplexedConnection>,
}

/// Counters that only increase. The difference of two readings is the usage in between.
#[derive(Debug, Clone, Default)]
pub struct Usage {
    /// Seconds of CPU by name.
    pub cpu: BTreeMap<String, f64>,
    /// Calls of scripts and functions.
    pub scripts: f64,
    /// Seconds that Redis spent in them.
    pub script_seconds: f64,
    pub bytes_in: f64,
    pub bytes_out: f64,
}

impl Meter {
    pub async fn read(&self) -> Result<Usage> {
        let mut usage = Usage::default();
        for (name, pid) in &self.processes {
            *usage.cpu.entry(name.clone()).or_default() += cpu(*pid)?;
        }
        if let Some(redis) = &self.redis {
            let info: String = redis::cmd("INFO")
                .arg("everything")
                .query_async(&mut redis.clone())
                .await?;
            let number = |name: &str| -> f64 {
                let mut lines = info.lines();
                let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
                value.and_then(|v| v.trim().parse().ok()).unwrap_or(0.0)
            };
            usage.bytes_in = number("total_net_input_bytes");
            usage.bytes_out = number("total_net_output_bytes");
            for command in ["fcall", "evalsha", "eval"] {
                let (calls, seconds) = command_stat(&info, command);
                usage.scripts += calls;
                usage.script_seconds += seconds;
            }
        }
        Ok(usage)
    }
}

/// Calls and seconds, from a line like `cmdstat_fcall:calls=3,usec=57,...`.
fn command_stat(info: &str, command: &str) -> (f64, f64) {
    let name = format!("cmdstat_{command}:");
    let Some(line) = info.lines().find_map(|line| line.strip_prefix(&*name)) else {
        return (0.0, 0.0);
    };
    let of = |name: &str| -> f64 {
        let mut parts = line.split(',');
        let value = parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
        value.and_then(|v| v.trim().parse().ok()).unwrap_or(0.0)
    };
    (of("calls"), of("usec") / 1e6)
}

/// Seconds of CPU time that a process has used in all of its threads.
pub fn cpu(pid: u32) -> Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .with_context(|| format!("process {pid} is gone"))?;
    // The name is in parentheses and may contain anything.
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = |at: usize| -> f64 {
        let field = rest.split_whitespace().nth(at);
        field.and_then(|v| v.parse().ok()).unwrap_or(0.0)
    };
    Ok((ticks(11) + ticks(12)) / TICKS)
}

impl Usage {
    fn map(&self, other: &Usage, with: impl Fn(f64, f64) -> f64) -> Usage {
        let cpu = self.cpu.iter().map(|(name, value)| {
            let before = other.cpu.get(name).copied().unwrap_or_default();
            (name.clone(), with(*value, before))
        });
        Usage {
            cpu: cpu.collect(),
            scripts: with(self.scripts, other.scripts),
            script_seconds: with(self.script_seconds, other.script_seconds),
            bytes_in: with(self.bytes_in, other.bytes_in),
            bytes_out: with(self.bytes_out, other.bytes_out),
        }
    }

    pub fn since(&self, before: &Usage) -> Usage {
        self.map(before, |now, before| now - before)
    }

    /// The usage divided by this count.
    pub fn by(&self, count: f64) -> Usage {
        self.map(&Usage::default(), |value, _| value / count)
    }

    /// Microseconds of CPU time per process, highest first.
    pub fn cpu_text(&self) -> String {
        let mut parts: Vec<_> = self.cpu.iter().collect();
        parts.sort_by(|a, b| b.1.total_cmp(a.1));
        let parts = parts
            .into_iter()
            .map(|(name, seconds)| format!("{name} {:.0}", seconds * 1e6));
        parts.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_processor_time() {
        let before = cpu(std::process::id()).unwrap();
        let begun = std::time::Instant::now();
        while begun.elapsed().as_millis() < 200 {}
        assert!(cpu(std::process::id()).unwrap() > before);
    }

    #[test]
    fn a_line_of_command_statistics() {
        let info =
            "cmdstat_get:calls=1,usec=2\r\ncmdstat_fcall:calls=3,usec=57,usec_per_call=19.00\r\n";
        assert_eq!(command_stat(info, "fcall"), (3.0, 57e-6));
        assert_eq!(command_stat(info, "eval"), (0.0, 0.0));
    }
}
