//! The size of instances, as their limit counts it.

use swirl_model::event::Command;
use swirl_ports::Commit;

/// The size in KiB. Anything smaller counts as zero.
pub(crate) fn kib(bytes: usize) -> usize {
    bytes >> 10
}

/// Whether the instance's size limit applies. A commit that closes a fork frees more than it uses.
pub(crate) fn is_bounded(commit: &Commit, instance_bytes: usize) -> bool {
    let closes = |command: &Command| matches!(command, Command::CloseFork(_) | Command::End { .. });
    instance_bytes > 0 && !commit.fits && !commit.commands.iter().any(closes)
}
