//! The settings below `limits`.

use swirl_ports::PendingStartsMax;
use swirl_runtime::StartLimits;

use super::Values;
use crate::types::Limits;

impl Values<'_> {
    pub(super) fn limits(&self) -> Limits {
        Limits {
            data_bytes: self.count("limits.data_bytes"),
            fork_bytes: self.count("limits.fork_bytes"),
            instance_bytes: self.count("limits.instance_bytes"),
            chain: self.small("limits.chain"),
            starts: StartLimits {
                workflow: self.small("limits.starts"),
                chained: self.small("limits.chained_starts"),
                runaway: self.small("limits.runaway_starts"),
                all: self.small("limits.all_starts"),
                pending: PendingStartsMax {
                    workflow: self.small("limits.pending_starts"),
                    all: self.small("limits.all_pending_starts"),
                },
                schedule_ms: self.duration("limits.schedule_interval").as_millis() as i64,
            },
        }
    }
}
