//! How much of its machine a process uses.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use swirl_ports::ProcessInfo;

/// A shorter time says little about the processor, since clocks are coarse.
const SPAN_MIN: Duration = Duration::from_secs(1);

/// The processor time of this process, from one look to the next.
pub struct Load {
    last: Mutex<Look>,
}

struct Look {
    at: Instant,
    used: Duration,
    percent: Option<u32>,
}

impl Load {
    /// Counts from now on.
    #[expect(clippy::new_without_default, reason = "it begins at this moment")]
    pub fn new() -> Load {
        Load {
            last: Mutex::new(Look {
                at: Instant::now(),
                used: swirl_telemetry::processor_time(),
                percent: None,
            }),
        }
    }

    /// Notes the memory, and the processor time since the last look that was at least a second ago.
    pub fn note(&self, process: &mut ProcessInfo) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let span = last.at.elapsed();
        if span >= SPAN_MIN {
            let used = swirl_telemetry::processor_time();
            last.percent = Some(percent(used.saturating_sub(last.used), span));
            (last.at, last.used) = (Instant::now(), used);
        }
        process.processor_percent = last.percent;
        process.memory_bytes =
            swirl_telemetry::memory().and_then(|bytes| u64::try_from(bytes).ok());
    }
}

fn percent(used: Duration, span: Duration) -> u32 {
    let percent = used.as_millis() * 100 / span.as_millis().max(1);
    u32::try_from(percent).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_busy_processors_are_200_percent() {
        let span = Duration::from_secs(5);
        assert_eq!(percent(span * 2, span), 200);
        assert_eq!(percent(Duration::from_millis(50), span), 1);
        assert_eq!(percent(Duration::ZERO, span), 0);
    }

    #[test]
    fn the_processor_time_is_not_known_at_once() {
        let mut process = ProcessInfo::default();
        Load::new().note(&mut process);
        assert_eq!(process.processor_percent, None);
        assert!(process.memory_bytes.is_none_or(|bytes| bytes > 0));
    }
}
