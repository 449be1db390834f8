//! Work that remains after the instance of a run has ended: calls, events and sub-workflows that nothing waits for
//! (`invoke: async`), and instances that its events started.

use std::time::{Duration, Instant};

use swirl_model::instance::Status;
use swirl_model::scope::{Role, Scope};
use swirl_model::time::Timestamp;
use swirl_ports::Filter;
use swirl_ports::{Store, Summary};

use super::put_off::{self, PutOff};

/// The number of instances that are read at a time.
const PAGE: usize = 200;

/// The longest pause between two checks.
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// Counts of unfinished work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Left {
    /// Running instances.
    pub instances: usize,
    /// Scopes of ended instances, each with a call or an event of its own.
    pub actions: usize,
    /// Effects that are committed but not carried out yet.
    pub effects: usize,
}

impl Left {
    pub fn is_empty(&self) -> bool {
        *self == Left::default()
    }

    /// `2 async actions and 1 other instance`.
    pub fn text(&self) -> String {
        let counted = |count: usize, one: &str, many: &str| match count {
            0 => None,
            1 => Some(format!("1 {one}")),
            count => Some(format!("{count} {many}")),
        };
        let parts: Vec<String> = [
            counted(self.actions, "async action", "async actions"),
            counted(self.instances, "other instance", "other instances"),
            counted(self.effects, "effect to carry out", "effects to carry out"),
        ]
        .into_iter()
        .flatten()
        .collect();
        parts.join(" and ")
    }
}

/// Counts the unfinished work of the run whose traces have this root, and finds its instances that failed while nothing
/// waited for them.
async fn left(
    store: &dyn Store,
    root: &str,
    begun: Timestamp,
) -> swirl_ports::Result<(Left, Vec<Summary>)> {
    let mut left = Left::default();
    let mut unheard = Vec::new();
    let mut filter = Filter {
        limit: PAGE,
        ..Filter::default()
    };
    loop {
        let page = store.list(&filter).await?;
        for summary in &page {
            let header = &summary.header;
            if header.trace_root() != root {
                continue;
            }
            let is_awaited = header
                .parent
                .as_ref()
                .is_some_and(|parent| !parent.detached);
            if summary.status == Status::Faulted && !is_awaited {
                unheard.push(summary.clone());
            }
            // Nothing continues in a faulted or suspended instance, because it waits for an operator.
            if summary.status == Status::Faulted || summary.suspended {
                continue;
            }
            if !summary.status.ended() {
                left.instances += 1;
                continue;
            }
            let scopes = store.scopes(&header.id).await?;
            let is_left =
                |scope: &&Scope| matches!(scope.role, Role::Detached { .. }) && !scope.ended();
            left.actions += scopes.iter().filter(is_left).count();
        }
        match page.last() {
            // Newest first, so all following instances began before this run.
            Some(last) if page.len() == PAGE && last.header.started_at >= begun => {
                filter.after = Some(last.header.id.clone());
            }
            _ => break,
        }
    }
    left.effects = put_off::of_run(store, root).await?.len();
    Ok((left, unheard))
}

/// Waits until no work is left, and returns the instances that failed while nothing waited for them. `say` gets the
/// first count that isn't empty.
///
/// # Errors
/// An effect couldn't be carried out for too long.
pub(super) async fn finish(
    store: &dyn Store,
    root: &str,
    begun: Timestamp,
    say: impl FnOnce(Left),
    put_off: &mut PutOff<impl FnOnce(String)>,
) -> anyhow::Result<Vec<Summary>> {
    let mut say = Some(say);
    let mut pause = Duration::from_millis(1);
    loop {
        let (now, unheard) = left(store, root, begun).await?;
        if now.is_empty() {
            return Ok(unheard);
        }
        // Effects are normally carried out immediately, so only delayed ones are reported.
        put_off.look(store, Instant::now()).await?;
        if (now.actions > 0 || now.instances > 0)
            && let Some(say) = say.take()
        {
            say(now);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        let left = |actions, instances, effects| Left {
            instances,
            actions,
            effects,
        };
        assert_eq!(left(1, 0, 0).text(), "1 async action");
        assert_eq!(left(2, 1, 0).text(), "2 async actions and 1 other instance");
        assert_eq!(left(0, 0, 3).text(), "3 effects to carry out");
        assert!(left(0, 0, 0).is_empty());
    }
}
