//! Waits for conditions.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// The time limit for a condition. It measures nothing, but ends a journey that would hang.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(50);

/// Polls until there is a value. As long as there is none, `ask` describes the current state instead.
///
/// # Errors
/// No value appeared within a minute, or `ask` failed.
pub async fn until<T>(
    what: &str,
    mut ask: impl AsyncFnMut() -> Result<Result<T, String>>,
) -> Result<T> {
    let begun = Instant::now();
    loop {
        match ask().await? {
            Ok(value) => return Ok(value),
            Err(there) if begun.elapsed() > PATIENCE => {
                bail!("it never comes: {what}. There is:\n{there}")
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}
