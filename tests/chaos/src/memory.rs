//! What each process takes of memory, over the time of a run.

use std::collections::BTreeMap;
use std::time::Duration;

/// How often is looked.
pub const EVERY: Duration = Duration::from_secs(5);

/// Bytes of each process, in the order in which they were seen.
#[derive(Debug, Default)]
pub struct Memory {
    seen: BTreeMap<String, Vec<u64>>,
}

impl Memory {
    /// Notes what a process takes now; nothing if it is gone.
    pub fn look(&mut self, name: &str, pid: u32) {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"));
        if let Some(bytes) = status.ok().as_deref().and_then(resident) {
            self.seen.entry(name.to_owned()).or_default().push(bytes);
        }
    }

    /// A line a process: what it took after a third of the run, at its end, and at most.
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
    fn this_process_takes_some() {
        let mut memory = Memory::default();
        memory.look("test", std::process::id());
        memory.look("gone", u32::MAX);
        let rows = memory.rows();
        assert_eq!(rows.len(), 1);
        assert!(rows[0].1.contains(" MiB after a third"), "{rows:?}");
    }
}
