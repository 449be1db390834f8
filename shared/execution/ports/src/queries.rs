//! Queries about instances, for people and dashboards. Executing an instance doesn't need them.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use swirl_model::WorkflowError;
use swirl_model::attribute::{Attribute, AttributeKind, Attributes};
use swirl_model::event::HistoryEntry;
use swirl_model::ids::InstanceId;
use swirl_model::instance::{Header, Instance, Status};
use swirl_model::scope::Scope;
use swirl_model::time::Timestamp;

use crate::error::Result;
use crate::execution::InstanceRecords;
use crate::trend::Trend;

/// A row of a listing. It has a bounded size, since a listing has many.
#[derive(Debug, Clone)]
pub struct Summary {
    /// A store may leave out the input.
    pub header: Arc<Header>,
    pub status: Status,
    pub suspended: bool,
    pub ended_at: Option<Timestamp>,
    /// Long texts are cut ([`WorkflowError::shortened`]).
    pub error: Option<WorkflowError>,
    /// The attributes by which the instance can be found.
    pub attributes: Attributes,
}

/// The part of an instance's history that is kept.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KeptHistory {
    /// The number of older entries.
    pub gone: u64,
    pub entries: Vec<HistoryEntry>,
}

/// The requested entries of a history. Numbers count from the first entry ever written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryPart {
    /// Up to `limit` entries after the first `known` ones.
    After { known: u64, limit: usize },
    /// This many of the last entries.
    Last(usize),
}

/// A part of a history. If the entries are large, it has fewer than requested: `After` then ends earlier, and `Last`
/// begins later.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HistoryPage {
    /// The number of entries before this part.
    pub before: u64,
    /// The number of all entries ever.
    pub total: u64,
    pub entries: Vec<HistoryEntry>,
}

impl HistoryPage {
    /// Without recorded data whose time is over. The sweep that removes it may be late.
    #[must_use]
    pub fn at(mut self, now: Timestamp) -> HistoryPage {
        for entry in &mut self.entries {
            if entry.data_until.is_some_and(|until| until <= now) {
                entry.data = None;
            }
        }
        self
    }
}

/// The maximum total size of the entries of a part, in bytes as stored. The last entry may exceed it.
pub const HISTORY_BYTES_MAX: usize = 4 << 20;

impl HistoryPart {
    /// The requested numbers, as far as they are kept.
    pub fn within(self, kept: Range<u64>) -> Range<u64> {
        let wide = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        match self {
            HistoryPart::After { known, limit } => {
                let first = known.clamp(kept.start, kept.end);
                first..first.saturating_add(wide(limit)).min(kept.end)
            }
            HistoryPart::Last(count) => {
                kept.end.saturating_sub(wide(count)).max(kept.start)..kept.end
            }
        }
    }
}

/// Narrows a listing, by properties that a store may have indexed.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub workflow: Option<String>,
    pub version: Option<String>,
    /// Allowed statuses; empty allows any.
    pub statuses: Vec<Status>,
    pub key: Option<String>,
    /// Only these instances. A store looks each of them up, so it examines no others, and lists them newest first.
    pub ids: Option<Vec<InstanceId>>,
    /// Only instances whose id begins with this.
    pub prefix: Option<String>,
    /// Only instances with an attribute value that matches. Without [`Filter::ids`], they are ordered by that value,
    /// largest first; if it is equal, newest first.
    pub attribute: Option<AttributeFilter>,
    /// A store may leave out instances that began earlier than this, both by its own clock and by the clock of the
    /// process that started them.
    pub since: Option<Timestamp>,
    /// Only instances that come after this one in a listing by time.
    pub after: Option<InstanceId>,
    /// The end of the previous page ([`Page::next`]), with the same filter. Takes precedence over `after`.
    pub from: Option<String>,
    pub limit: usize,
    /// The maximum number of instances to examine for one page, whether they pass or not; 0 lets the store decide.
    pub examined_max: usize,
}

/// The matching values of one attribute. All are of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct AttributeFilter {
    pub name: Arc<str>,
    pub values: Values,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    Equal(Attribute),
    /// Strings with this prefix.
    Prefix(String),
    /// The values between two bounds, either of which may be missing.
    Range {
        kind: AttributeKind,
        from: Option<Bound>,
        to: Option<Bound>,
    },
}

/// One end of a range.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    pub value: Attribute,
    /// Whether the value itself is included.
    pub inclusive: bool,
}

/// Whether to return a row that passes the filter.
pub type Keep<'k> = &'k (dyn Fn(&Summary) -> bool + Send + Sync);

/// A page of a listing, newest first unless the filter says otherwise.
#[derive(Debug, Clone, Default)]
pub struct Page {
    pub rows: Vec<Summary>,
    /// The position to continue from, for [`Filter::from`]; `None` if the listing is complete. A page may end early,
    /// even without rows, if the rest has not been examined.
    pub next: Option<String>,
    /// The number of instances that were examined.
    pub examined: usize,
}

/// The number of instances of a workflow, or of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub running: u64,
    pub completed: u64,
    pub faulted: u64,
    pub cancelled: u64,
    pub terminated: u64,
}

/// The number of instances of a workflow by version: only those that run, and those that have failed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VersionCounts {
    /// Of each version that has any.
    pub versions: BTreeMap<Arc<str>, Counts>,
    /// All were counted; otherwise the newest.
    pub is_complete: bool,
}

impl Counts {
    pub fn of(&mut self, status: Status) -> &mut u64 {
        match status {
            Status::Running => &mut self.running,
            Status::Completed => &mut self.completed,
            Status::Faulted => &mut self.faulted,
            Status::Cancelled => &mut self.cancelled,
            Status::Terminated => &mut self.terminated,
        }
    }
}

impl Filter {
    /// Whether an id has the requested prefix, and is one of the requested ids.
    pub fn allows(&self, id: &InstanceId) -> bool {
        let prefix = self.prefix.as_deref();
        prefix.is_none_or(|prefix| id.as_str().starts_with(prefix))
            && self.ids.as_ref().is_none_or(|ids| ids.contains(id))
    }

    /// Whether an instance passes the filter; [`Filter::since`] is only for indexes.
    pub fn passes(&self, summary: &Summary) -> bool {
        let equal =
            |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|w| w == found);
        let header = &summary.header;
        self.allows(&header.id)
            && equal(&self.workflow, &header.definition.workflow)
            && equal(&self.version, &header.definition.version)
            && (self.statuses.is_empty() || self.statuses.contains(&summary.status))
            && (self.key.is_none() || header.key == self.key)
            && self.attribute.as_ref().is_none_or(|wanted| {
                let found = summary.attributes.get(&wanted.name);
                found.is_some_and(|found| wanted.values.hold(found))
            })
    }
}

impl Values {
    /// Whether a value matches.
    pub fn hold(&self, found: &Attribute) -> bool {
        match self {
            Values::Equal(wanted) => found == wanted,
            Values::Prefix(prefix) => {
                matches!(found, Attribute::Text(text) if text.starts_with(prefix))
            }
            Values::Range { kind, from, to } => {
                let within = |bound: &Option<Bound>, wanted: Ordering| {
                    bound.as_ref().is_none_or(|bound| {
                        let order = found.compare(&bound.value);
                        order == Some(wanted) || bound.inclusive && order == Some(Ordering::Equal)
                    })
                };
                found.kind() == *kind
                    && within(from, Ordering::Greater)
                    && within(to, Ordering::Less)
            }
        }
    }
}

#[async_trait]
pub trait InstanceQueries: InstanceRecords {
    /// Returns a page of a listing: at most [`Filter::limit`] rows that pass the filter and `keep`, from at most
    /// [`Filter::examined_max`] instances.
    ///
    /// # Errors
    /// [`Error::UnknownPlace`](crate::Error::UnknownPlace) if the position to continue from doesn't exist.
    async fn page(&self, filter: &Filter, keep: Keep<'_>) -> Result<Page>;

    /// Returns as many rows as the filter's limit, however many instances have to be examined.
    async fn list(&self, filter: &Filter) -> Result<Vec<Summary>> {
        let mut filter = filter.clone();
        let mut rows = Vec::new();
        while filter.limit > 0 {
            let page = self.page(&filter, &|_| true).await?;
            filter.limit = filter.limit.saturating_sub(page.rows.len());
            rows.extend(page.rows);
            let Some(next) = page.next else {
                break;
            };
            filter.from = Some(next);
        }
        Ok(rows)
    }

    /// Returns the number of instances of all workflows together, and of each named workflow.
    async fn counts(&self, workflows: &[Arc<str>]) -> Result<(Counts, Vec<Counts>)>;

    /// Returns how many instances of each version of a workflow are running, and how many have failed. A store may stop
    /// counting after some ten thousand.
    async fn counts_by_version(&self, workflow: &str) -> Result<VersionCounts>;

    /// Returns how many instances have begun and ended lately. Each start and each end is counted once, in the write
    /// that it is part of, by the clock of the store or of the process that wrote it. `now`: the end of the trend.
    async fn trend(&self, now: Timestamp) -> Result<Trend>;

    async fn history(&self, id: &InstanceId) -> Result<Vec<HistoryEntry>>;
    /// Returns the history, with the number of older entries that are no longer kept.
    async fn kept_history(&self, id: &InstanceId) -> Result<KeptHistory> {
        let entries = self.history(id).await?;
        Ok(KeptHistory { gone: 0, entries })
    }

    /// Returns a part of the history without reading the rest.
    async fn history_page(&self, id: &InstanceId, part: HistoryPart) -> Result<HistoryPage> {
        let kept = self.kept_history(id).await?;
        let total = kept.gone + kept.entries.len() as u64;
        let wanted = part.within(kept.gone..total);
        let entries = kept.entries.into_iter();
        let entries = entries.skip((wanted.start - kept.gone) as usize);
        Ok(HistoryPage {
            before: wanted.start,
            total,
            entries: entries.take((wanted.end - wanted.start) as usize).collect(),
        })
    }

    /// Returns an instance with its scopes that have not ended.
    async fn view(&self, id: &InstanceId) -> Result<Option<(Instance, Vec<Scope>)>> {
        let Some(instance) = self.instance(id).await? else {
            return Ok(None);
        };
        let mut scopes = self.scopes(id).await?;
        scopes.retain(|scope| !scope.ended());
        Ok(Some((instance, scopes)))
    }

    /// Returns whether an instance has ended, without reading it; `None` if the instance doesn't exist.
    async fn has_ended(&self, id: &InstanceId) -> Result<Option<bool>> {
        let instance = self.instance(id).await?;
        Ok(instance.map(|instance| instance.state.status.ended()))
    }

    /// Returns only the record of the root scope.
    async fn root(&self, id: &InstanceId) -> Result<Option<Scope>> {
        let scopes = self.scopes(id).await?;
        Ok(scopes.into_iter().find(|scope| scope.id.is_root()))
    }

    /// Returns the root scope for a listing: its cursor, its error, its timers and its waits. Anything else may be missing,
    /// since a listing has many, and their data may be large.
    async fn root_outline(&self, id: &InstanceId) -> Result<Option<Scope>> {
        self.root(id).await
    }

    /// Waits until a watched instance may have ended: a store that is notified of ends returns at that moment. Callers
    /// must still poll from time to time, and more often if [`InstanceQueries::notifies_ends`] returns `false`.
    async fn wait_ended(&self, _id: &InstanceId) {
        std::future::pending().await
    }

    /// Whether [`InstanceQueries::wait_ended`] is notified of ends.
    fn notifies_ends(&self) -> bool {
        false
    }
}
