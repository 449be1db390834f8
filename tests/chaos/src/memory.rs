//! The memory of each process in the course of a run.

use std::collections::BTreeMap;
use std::time::Duration;

/// The interval between measurements.
pub const EVERY: Duration = Duration::from_secs(5);
/// The minimum number of measurements for detecting growth.
const LOOKS_MIN: usize = 30;
/// A process may grow by this much, or by a tenth, between the second and the last third of a run.
const GROWTH_MAX: u64 = 4 << 20;

/// The bytes of each process, in the order of measurement.
#[derive(Debug, Default)]
pub struct Memory {
    seen: BTreeMap<String, Vec<u64>>,
}

impl Memory {
    /// Records the current memory of a process; does nothing if it has ended.
    pub fn look(&mut self, name: &str, pid: u32) {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"));
        if let Some(bytes) = status.ok().as_deref().and_then(resident) {
            self.seen.entry(name.to_owned()).or_default().push(bytes);
        }
    }

    /// One line for each process: its memory after a third of the run, at the end, and at most.
    pub fn rows(&self) -> Vec<(String, String)> {
        let rows = self.seen.iter().filter_map(|(name, seen)| {
            let (last, most) = (seen.last()?, seen.iter().max()?);
            let third = seen.get(seen.len() / 3)?;
            let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
            let text = format!(
                "{:.1} MiB after a third of the time, {:.1} at the end, {:.1} at most",
                mib(*third),
                mib(*last),
                mib(*most)
            );
            Some((format!("memory of {name}"), text))
        });
        rows.collect()
    }

    /// The processes whose memory grew: the median of the last third of the run is compared with that of the second
    /// third. The first third isn't compared, because caches fill and retained data builds up.
    pub fn growth(&self) -> Vec<String> {
        let grown = self.seen.iter().filter_map(|(name, seen)| {
            let third = seen.len() / 3;
            if seen.len() < LOOKS_MIN {
                let looks = seen.len();
                return Some(format!(
                    "{name}: {looks} looks at its memory don't say whether it grows"
                ));
            }
            let (before, after) = (median(&seen[third..2 * third]), median(&seen[2 * third..]));
            let most = before + GROWTH_MAX.max(before / 10);
            (after > most).then(|| {
                let kib = |bytes: u64| bytes >> 10;
                format!(
                    "{name} grows: {} KiB in the second third of the time, {} KiB in the last one",
                    kib(before),
                    kib(after)
                )
            })
        });
        grown.collect()
    }
}

fn median(seen: &[u64]) -> u64 {
    let mut sorted = seen.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// The resident bytes in a process's status.
fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_bytes_are_read() {
        let status = "Name:\tswirl\nVmPeak:\t  9 kB\nVmRSS:\t   2048 kB\n";
        assert_eq!(resident(status), Some(2 << 20));
        assert_eq!(resident("Name:\tgone\n"), None);
    }

    #[test]
    fn growth_is_detected() {
        let looked = |bytes: fn(u64) -> u64, looks: u64| Memory {
            seen: [("a".to_owned(), (0..looks).map(bytes).collect())].into(),
        };
        // It fills, and then fluctuates.
        let flat = |look: u64| (50 << 20) + (look.min(20) << 20) + ((look % 3) << 20);
        assert!(looked(flat, 90).growth().is_empty());
        let leaking = |look: u64| (50 << 20) + (look << 18);
        assert_eq!(looked(leaking, 90).growth().len(), 1);
        assert!(looked(flat, 10).growth()[0].contains("don't say"));
    }

    #[test]
    fn this_process_uses_memory() {
        let mut memory = Memory::default();
        memory.look("test", std::process::id());
        memory.look("gone", u32::MAX);
        let rows = memory.rows();
        assert_eq!(rows.len(), 1);
        assert!(rows[0].1.contains(" MiB after a third"), "{rows:?}");
    }
}
