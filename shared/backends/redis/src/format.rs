//! Lets builds of several versions share a namespace. Records have a format, a number that rises whenever an older
//! build would misread the records of a newer one. All builds with the same format work side by side. A build with a
//! newer format announces it in the namespace's notes before it writes anything, and waits until processes with older
//! formats have stopped; these check the notes regularly. A process with an older format that connects later is
//! refused.

use std::time::Duration;

use redis::Cmd;

use crate::Redis;
use crate::connect::damaged;
use crate::options::ConnectError;

/// How often a running process checks the format.
const LOOK: Duration = Duration::from_secs(3);
/// The maximum time until a process has noticed a change.
pub const NOTICED: Duration = Duration::from_secs(5);

impl Redis {
    /// `before`: the format that the namespace had.
    pub(crate) async fn take_over(&self, before: String) -> Result<(), ConnectError> {
        let own = self.options().format;
        let found: u32 = before
            .parse()
            .map_err(|_| damaged("the format of the namespace", format!("'{before}'")))?;
        if found > own {
            let namespace = self.options().namespace.clone();
            return Err(ConnectError::Newer {
                namespace,
                found,
                own,
            });
        }
        if found < own {
            tracing::info!(
                from = found,
                to = own,
                "records get a newer format; waiting for processes of older builds to stop"
            );
            let pause = self.options().takeover_ms.max(1);
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        Ok(())
    }

    /// Waits until the namespace has a newer format than this build reads. Returns that format.
    pub async fn outdated(&self) -> u32 {
        loop {
            tokio::time::sleep(LOOK).await;
            let mut read = Cmd::new();
            read.arg("HMGET").arg(self.keys().global("meta"));
            read.arg("format").arg("followed");
            // If the server is unavailable, all other operations notice that too.
            let Ok((found, followed)) = self.query::<(Option<u32>, Option<String>)>(read).await
            else {
                continue;
            };
            self.set_follows(followed.is_some());
            if let Some(found) = found
                && found > self.options().format
            {
                return found;
            }
        }
    }
}
