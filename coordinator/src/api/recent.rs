//! The data of the last calls of an instance that has not ended. Its history has the calls without it, and its scopes keep
//! it for a while (`history.recent_calls`).

use swirl_model::event::{Event, HistoryEntry};
use swirl_model::instance::{Instance, Status};

use super::Api;
use super::problem::Problem;

/// Fills in what the scopes know. They are read only if an entry lacks something.
pub async fn fill_in(
    api: &Api,
    instance: &Instance,
    entries: &mut [HistoryEntry],
) -> Result<(), Problem> {
    let lacks = |entry: &HistoryEntry| {
        entry.data.is_none() && matches!(entry.event, Event::ActionCompleted { .. })
    };
    let may_continue = matches!(instance.state.status, Status::Running | Status::Faulted);
    if !may_continue || !entries.iter().any(lacks) {
        return Ok(());
    }
    let now = api.service.clock.now();
    for scope in api.queries.scopes(&instance.header.id).await? {
        scope.fill_in_recent(entries, now);
    }
    Ok(())
}
