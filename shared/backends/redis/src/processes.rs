//! The processes that use a namespace. Each gives a sign of life from time to time, and is forgotten when it stops.
//!
//! Only people use this. Leases decide who does what.

use redis::Value;
use swirl_model::time::Timestamp;
use swirl_ports::{PROCESSES_MAX, ProcessInfo, Result, SeenProcess};

use crate::Redis;
use crate::connect::damaged;
use crate::reply::Reply;
use crate::script::{Lazy, Script};

static PROCESSES: Lazy = Lazy::new(|| Script::freeing_small(include_str!("lua/processes.lua")));
static SEEN: Lazy = Lazy::new(|| Script::freeing_small(include_str!("lua/seen.lua")));

impl Redis {
    /// Notes a sign of life. A process that gives none for `kept_ms` is forgotten.
    ///
    /// # Errors
    /// Redis doesn't answer.
    pub async fn note_process(&self, process: &ProcessInfo, kept_ms: u64) -> Result<()> {
        let text = serde_json::to_string(process);
        let text = text.map_err(|error| damaged("the description of a process", error))?;
        self.note(&process.id, &text, kept_ms).await
    }

    /// Forgets a process at once.
    ///
    /// # Errors
    /// Redis doesn't answer.
    pub async fn forget_process(&self, id: &str, kept_ms: u64) -> Result<()> {
        self.note(id, "", kept_ms).await
    }

    async fn note(&self, id: &str, text: &str, kept_ms: u64) -> Result<()> {
        let args = [
            id.to_owned(),
            text.to_owned(),
            kept_ms.to_string(),
            PROCESSES_MAX.to_string(),
        ];
        let _: i64 = self.eval(&PROCESSES, &self.process_keys(), &args).await?;
        Ok(())
    }

    /// The processes that gave a sign of life, each role together, the oldest process first.
    ///
    /// # Errors
    /// Redis doesn't answer, or a description cannot be read.
    pub async fn processes(&self) -> Result<Vec<SeenProcess>> {
        let none: [&str; 0] = [];
        let found: Value = self.eval(&SEEN, &self.process_keys(), &none).await?;
        let (mut parts, mut all) = (Reply::new(found)?, Vec::new());
        while !parts.is_empty() {
            let seen = Timestamp(parts.number()?);
            let process = serde_json::from_slice(&parts.bytes()?);
            let process =
                process.map_err(|error| damaged("the description of a process", error))?;
            all.push(SeenProcess { process, seen });
        }
        all.sort_by(|a, b| {
            let key = |one: &SeenProcess| (one.process.role.clone(), one.process.since);
            key(a).cmp(&key(b))
        });
        Ok(all)
    }

    fn process_keys(&self) -> [String; 2] {
        let keys = ["{processes}:seen", "{processes}:about"];
        keys.map(|name| self.keys().global(name))
    }
}
