//! Listings, newest first, merged from the shards' indexes page by page.

use std::sync::Arc;

use futures::future::try_join_all;
use futures::{StreamExt, TryStreamExt, stream};
use redis::{Cmd, Value};
use serde::de::DeserializeOwned;
use swirl_model::attribute::Attributes;
use swirl_model::ids::{InstanceId, ScopeId};
use swirl_model::instance::{Header, Status};
use swirl_model::scope::Scope;
use swirl_model::time::Timestamp;
use swirl_model::{Data, WorkflowError};
use swirl_ports::{Counts, Error, Filter, Keep, Page, Result, Summary};

use crate::Redis;
use crate::attributes::read_heads;
use crate::beginnings::read_beginning;
use crate::connect::damaged;
use crate::keys::{STATUSES, Span};
use crate::record::{read_status, status_letter};
use crate::reply::{Reply, json};
use crate::script::{Lazy, Script};

static PAGE: Lazy = Lazy::new(|| Script::new(&[include_str!("lua/page.lua")]));
static COUNT: Lazy = Lazy::new(|| Script::new(&[include_str!("lua/count.lua")]));

/// The minimum page size of one shard, so that few rounds are needed if most instances are filtered out.
const PAGE_MIN: usize = 20;
/// The maximum page size of one shard.
const PAGE_MAX: usize = 1000;
/// The page size if only ids are read, for example to search by the beginning of an id.
const PAGE_OF_PREFIX: usize = 2000;
/// The default number of instances that are examined for one page.
const EXAMINED_MAX: usize = 100_000;
/// The number of instances that this process reads at a time, for all its listings.
pub(crate) const READS_MAX: usize = 64;
/// The number of workflows counted by one function. The server is blocked meanwhile.
const COUNTED_AT_ONCE: usize = 100;

/// The time of creation in microseconds, then the instance. This is the order of listings.
type Place = (u64, String);

impl Redis {
    pub(crate) async fn listing(&self, filter: &Filter, keep: Keep<'_>) -> Result<Page> {
        if filter.ids.is_none()
            && let Some(attribute) = &filter.attribute
        {
            return self.listing_by_attribute(filter, attribute, keep).await;
        }
        let after = match (&filter.from, &filter.after) {
            (Some(from), _) => Some(place_of_cursor(from)?),
            (None, None) => None,
            (None, Some(id)) => {
                let place = self.place(id).await?;
                Some(place.ok_or_else(|| Error::UnknownPlace(id.to_string()))?)
            }
        };
        if let Some(ids) = &filter.ids {
            return self.listing_of(filter, ids.clone(), after, keep).await;
        }
        if let Some(key) = &filter.key {
            return self.listing_by_key(filter, key, after, keep).await;
        }
        let examined_max = match filter.examined_max {
            0 => EXAMINED_MAX,
            most => most,
        };
        let least = filter.since.and_then(|since| u64::try_from(since.0).ok());
        let least = least.unwrap_or(0).saturating_mul(1000);
        let mut found = Page::default();
        let mut below = after;
        let mut size = filter.limit.clamp(PAGE_MIN, PAGE_MAX);
        if filter.prefix.is_some() {
            size = PAGE_OF_PREFIX;
        }
        while found.rows.len() < filter.limit {
            if found.examined >= examined_max {
                found.next = below.as_ref().map(cursor_of_place);
                return Ok(found);
            }
            let size_max = size.min(examined_max - found.examined);
            let page = self.page_of_all(filter, below.as_ref(), size_max).await?;
            let Some(last) = page.last().cloned() else {
                return Ok(found);
            };
            let is_last = last.0 < least;
            let ids = page.iter().filter(|(time, _)| *time >= least);
            let ids = ids.map(|(_, id)| InstanceId::new(id.as_str()));
            let ids: Vec<InstanceId> = ids.filter(|id| filter.allows(id)).collect();
            let summaries = self.summaries(ids).await?;
            for (place, summary) in summaries {
                if filter.passes(&summary) && keep(&summary) {
                    found.rows.push(summary);
                    if found.rows.len() == filter.limit {
                        found.examined += page.iter().filter(|other| **other >= place).count();
                        found.next = Some(cursor_of_place(&place));
                        return Ok(found);
                    }
                }
            }
            found.examined += page.len();
            if is_last {
                return Ok(found);
            }
            below = Some(last);
            // Most were filtered out, otherwise the page would be full.
            size = (size * 2).clamp(PAGE_MIN, PAGE_MAX.max(size));
        }
        Ok(found)
    }

    /// The number of instances in total, and per workflow.
    pub(crate) async fn count_by_workflow(
        &self,
        workflows: &[Arc<str>],
    ) -> Result<(Counts, Vec<Counts>)> {
        let mut all = Counts::default();
        let mut each = vec![Counts::default(); workflows.len()];
        let mut first = 0;
        loop {
            let some = &workflows[first..workflows.len().min(first + COUNTED_AT_ONCE)];
            let calls = (0..self.keys().shards()).map(async |shard| {
                let mut call = COUNT.call(&self.keys().listings(shard));
                for workflow in some {
                    call.arg(&**workflow);
                }
                self.run::<Vec<u64>>(&COUNT, call).await
            });
            for counts in try_join_all(calls).await? {
                let (of_all, of_each) = counts.split_at(STATUSES.len().min(counts.len()));
                if first == 0 {
                    add(&mut all, of_all)?;
                }
                for (place, counts) in of_each.chunks(STATUSES.len()).enumerate() {
                    if let Some(total) = each.get_mut(first + place) {
                        add(total, counts)?;
                    }
                }
            }
            first += some.len();
            if first >= workflows.len() {
                return Ok((all, each));
            }
        }
    }

    /// The number of instances of each status, in the shards of this process.
    pub async fn count_instances(&self) -> Result<Vec<(Status, u64)>> {
        let mut counts = Vec::new();
        let shards = self.shards();
        for (place, letter) in STATUSES.into_iter().enumerate() {
            let sizes = shards.iter().map(|shard| {
                let mut size = Cmd::new();
                size.arg("ZCARD").arg(&self.keys().listings(*shard)[place]);
                self.query::<u64>(size)
            });
            let count = try_join_all(sizes).await?.into_iter().sum();
            counts.push((read_status(letter)?, count));
        }
        Ok(counts)
    }

    async fn listing_by_key(
        &self,
        filter: &Filter,
        key: &str,
        after: Option<Place>,
        keep: Keep<'_>,
    ) -> Result<Page> {
        let pages = (0..self.keys().shards()).map(|shard| {
            let mut read = Cmd::new();
            read.arg("ZRANGE").arg(self.keys().index(shard, "keys"));
            read.arg(format!("[{key}\x01")).arg(format!("({key}\x02"));
            // Instances are named by workflow and key, and a key has few instances.
            read.arg("BYLEX").arg("LIMIT").arg(0).arg(EXAMINED_MAX);
            self.query::<Vec<String>>(read)
        });
        let members = try_join_all(pages).await?.concat();
        let ids = members.iter().filter_map(|member| {
            let (_, id) = member.rsplit_once('\x01')?;
            Some(InstanceId::new(id))
        });
        self.listing_of(filter, ids.collect(), after, keep).await
    }

    /// A listing of a few known instances.
    async fn listing_of(
        &self,
        filter: &Filter,
        mut ids: Vec<InstanceId>,
        after: Option<Place>,
        keep: Keep<'_>,
    ) -> Result<Page> {
        ids.sort_unstable();
        ids.dedup();
        let mut all = self.summaries(ids).await?;
        all.sort_by(|a, b| b.0.cmp(&a.0));
        all.retain(|(place, _)| after.as_ref().is_none_or(|after| place < after));
        let mut found = Page::default();
        for (place, summary) in all {
            if found.rows.len() == filter.limit {
                break;
            }
            found.examined += 1;
            if filter.passes(&summary) && keep(&summary) {
                found.rows.push(summary);
                found.next = Some(cursor_of_place(&place));
            }
        }
        if found.rows.len() < filter.limit {
            found.next = None;
        }
        Ok(found)
    }

    /// The next instances of all shards together.
    async fn page_of_all(
        &self,
        filter: &Filter,
        below: Option<&Place>,
        limit: usize,
    ) -> Result<Vec<Place>> {
        let pages = (0..self.keys().shards()).map(async |shard| {
            let mut keys = self.keys().listings(shard);
            let by_workflow = keys.split_off(5);
            if filter.workflow.is_some() {
                keys = by_workflow;
            }
            if !filter.statuses.is_empty() {
                let mut statuses = STATUSES.into_iter();
                keys.retain(|_| {
                    let letter = statuses.next();
                    let mut wanted = filter.statuses.iter();
                    wanted.any(|status| Some(status_letter(*status)) == letter)
                });
            }
            let mut call = PAGE.call(&keys);
            call.arg(filter.workflow.as_deref().unwrap_or_default());
            match below {
                Some((time, _)) => call.arg(time),
                None => call.arg(""),
            };
            // Instances as old as the last one are found again, and left out below.
            call.arg(limit + 8);
            let mut parts = Reply::new(self.run(&PAGE, call).await?)?;
            let mut places = Vec::new();
            while !parts.is_empty() {
                places.push((parts.number()?, parts.text()?));
            }
            Ok::<Vec<Place>, swirl_ports::Error>(places)
        });
        let mut places = try_join_all(pages).await?.concat();
        places.retain(|place| below.is_none_or(|below| place < below));
        places.sort_unstable_by(|a, b| b.cmp(a));
        places.truncate(limit);
        Ok(places)
    }

    pub(crate) async fn summaries(&self, ids: Vec<InstanceId>) -> Result<Vec<(Place, Summary)>> {
        let found = stream::iter(ids).map(async |id| {
            let _place = self.reads().acquire().await;
            let key = self.keys().hash_of(&id);
            let fields = ["h", "err", "s", "p", "end", "lw", "at"];
            // The input and the error may be large.
            let parts = self.beginnings(&key, &fields, 2).await?;
            self.read_summary(&id, parts).await
        });
        let found = found
            .buffered(READS_MAX)
            .try_filter_map(async |row| Ok(row));
        found.try_collect().await
    }

    /// Returns `None` if the instance was removed meanwhile.
    async fn read_summary(
        &self,
        id: &InstanceId,
        mut parts: Reply,
    ) -> Result<Option<(Place, Summary)>> {
        let what = format!("instance {id}");
        let (header, error) = (parts.value()?, parts.value()?);
        let status = match parts.value()? {
            Value::Nil => return Ok(None),
            found => read_status(&crate::reply::text(found)?)?,
        };
        let suspended = parts.value()? != Value::Nil;
        let ended_at = match parts.value()? {
            Value::Nil => None,
            found => {
                let at: i64 = json(&crate::reply::bytes(found)?, "the end of an instance")?;
                Some(Timestamp(at))
            }
        };
        let place = read_place(id, &parts.text()?)?;
        let attributes = match parts.value()? {
            Value::Nil => Attributes::new(),
            found => read_heads(&crate::reply::text(found)?, &what)?,
        };
        let header = read_beginning(&crate::reply::bytes(header)?, &["input"], &what)?;
        let mut header: Header = match header {
            Some(header) => header,
            // An older build has written the input in the middle.
            None => match self.whole(id, "h", &what).await? {
                Some(header) => header,
                None => return Ok(None),
            },
        };
        header.input = Data::NULL;
        let error: Option<WorkflowError> = match error {
            Value::Nil => None,
            found => {
                let bytes = crate::reply::bytes(found)?;
                let what = format!("the error of {id}");
                match read_beginning(&bytes, &[], &what)? {
                    Some(error) => Some(error),
                    None => self.whole(id, "err", &what).await?,
                }
            }
        };
        let summary = Summary {
            attributes,
            header: Arc::new(header),
            status,
            suspended,
            ended_at,
            error: error.map(WorkflowError::shortened),
        };
        Ok(Some((place, summary)))
    }

    /// Reads the whole of a field whose beginning isn't enough.
    async fn whole<T: DeserializeOwned>(
        &self,
        id: &InstanceId,
        field: &str,
        what: &str,
    ) -> Result<Option<T>> {
        let mut read = Cmd::new();
        read.arg("HGET").arg(self.keys().hash_of(id)).arg(field);
        let bytes: Option<Vec<u8>> = self.query_aside(read).await?;
        bytes.map(|bytes| json(&bytes, what)).transpose()
    }

    /// The root scope without what may be large.
    pub(crate) async fn outline(&self, id: &InstanceId) -> Result<Option<Scope>> {
        let _place = self.reads().acquire().await;
        let field = format!("r:{}", ScopeId::root());
        let fields = [field.as_str()];
        let mut parts = self
            .beginnings(&self.keys().hash_of(id), &fields, 1)
            .await?;
        let bytes = match parts.value()? {
            Value::Nil => return Ok(None),
            found => crate::reply::bytes(found)?,
        };
        let what = format!("the root scope of {id}");
        match read_beginning(&bytes, &["data"], &what)? {
            Some(scope) => Ok(Some(scope)),
            None => self.whole(id, &field, &what).await,
        }
    }

    async fn place(&self, id: &InstanceId) -> Result<Option<Place>> {
        let mut read = Cmd::new();
        read.arg("HGET").arg(&self.keys().of(id, Span::Ready)[0]);
        read.arg("lw");
        let place: Option<String> = self.query(read).await?;
        place.map(|place| read_place(id, &place)).transpose()
    }
}

fn read_place(id: &InstanceId, place: &str) -> Result<Place> {
    let time = place
        .split('\x01')
        .nth(1)
        .and_then(|time| time.parse().ok());
    let bad = || damaged(format!("instance {id}"), "its place in the listing");
    Ok((time.ok_or_else(bad)?, id.to_string()))
}

fn add(total: &mut Counts, counts: &[u64]) -> Result<()> {
    for (letter, count) in STATUSES.iter().zip(counts) {
        *total.of(read_status(letter)?) += count;
    }
    Ok(())
}

fn cursor_of_place((time, id): &Place) -> String {
    format!("t{time}.{id}")
}

fn place_of_cursor(cursor: &str) -> Result<Place> {
    let parts = cursor.strip_prefix('t').and_then(|it| it.split_once('.'));
    let place = parts.and_then(|(time, id)| Some((time.parse().ok()?, id.to_owned())));
    place.ok_or_else(|| Error::UnknownPlace(cursor.to_owned()))
}
