//! The last events that any coordinator received, newest first, as JSON. Only people use this.

use redis::Cmd;
use serde::Serialize;
use serde::de::DeserializeOwned;
use swirl_ports::Result;

use crate::Redis;
use crate::connect::damaged;

/// The number of events that are kept, and for how long after the last one.
const KEPT_MAX: usize = 500;
const KEPT_SECONDS: u64 = 24 * 3_600;

impl Redis {
    /// Adds events, the newest last.
    ///
    /// # Errors
    /// Redis doesn't answer, or has no memory left.
    pub async fn note_events(&self, events: &[impl Serialize]) -> Result<()> {
        if events.is_empty() {
            return Ok(());
        }
        let key = self.recent_key();
        let mut push = Cmd::new();
        push.arg("LPUSH").arg(&key);
        for event in events {
            let text = serde_json::to_string(event);
            push.arg(text.map_err(|error| damaged("a recent event", error))?);
        }
        let _: i64 = self.query(push).await?;
        let mut trim = Cmd::new();
        trim.arg("LTRIM").arg(&key).arg(0).arg(KEPT_MAX - 1);
        let _: () = self.query(trim).await?;
        let mut expire = Cmd::new();
        expire.arg("EXPIRE").arg(&key).arg(KEPT_SECONDS);
        let _: i64 = self.query(expire).await?;
        Ok(())
    }

    /// The last events, newest first.
    ///
    /// # Errors
    /// Redis doesn't answer, or an event cannot be read.
    pub async fn noted_events<T: DeserializeOwned>(&self, limit: usize) -> Result<Vec<T>> {
        let mut read = Cmd::new();
        read.arg("LRANGE").arg(self.recent_key());
        read.arg(0).arg(limit.saturating_sub(1));
        let texts: Vec<String> = self.query(read).await?;
        let events = texts.iter().map(|text| {
            serde_json::from_str(text).map_err(|error| damaged("a recent event", error))
        });
        events.collect()
    }

    fn recent_key(&self) -> String {
        self.keys().global("events:recent")
    }
}
