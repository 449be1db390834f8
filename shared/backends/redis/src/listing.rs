//! Listings, newest first, merged from the shards' indexes page by page.

use std::sync::Arc;

use futures::future::try_join_all;
use redis::{Cmd, Value};
use swirl_model::ids::InstanceId;
use swirl_model::instance::{Header, Status};
use swirl_model::time::Timestamp;
use swirl_ports::{Filter, Result, Summary};

use crate::Redis;
use crate::connect::damaged;
use crate::keys::{STATUSES, Span};
use crate::record::{read_status, status_letter};
use crate::reply::{Reply, json};
use crate::script::{Lazy, Script};

static PAGE: Lazy = Lazy::new(|| Script::new(&[include_str!("lua/page.lua")]));

/// A page of one shard has at least so many, so that few rounds are needed where most are filtered.
const PAGE_MIN: usize = 20;
/// Of ids alone, as where one is looked for by its beginning, a page has more.
const PAGE_OF_PREFIX: usize = 2000;
/// A listing is given up after so many instances that the filter refuses: better half a page than
/// one that never comes.
const SEEN_MAX: usize = 100_000;

/// Time of creation in microseconds, then the instance: the order of listings.
type Place = (u64, String);

impl Redis {
    pub(crate) async fn listing(&self, filter: &Filter) -> Result<Vec<Summary>> {
        let after = match &filter.after {
            None => None,
            Some(id) => match self.place(id).await? {
                None => return Ok(Vec::new()),
                place => place,
            },
        };
        if let Some(key) = &filter.key {
            return self.listing_by_key(filter, key, after).await;
        }
        let mut found = Vec::new();
        let mut below = after;
        let mut seen = 0;
        while found.len() < filter.limit && seen < SEEN_MAX {
            let page = self.page(filter, below.as_ref()).await?;
            let Some(last) = page.last().cloned() else {
                break;
            };
            seen += page.len();
            let ids = page.into_iter().map(|(_, id)| InstanceId::new(id));
            let ids = ids.filter(|id| filter.begins(id));
            found.extend(self.summaries(ids.collect(), filter).await?);
            below = Some(last);
        }
        found.truncate(filter.limit);
        Ok(found.into_iter().map(|(_, summary)| summary).collect())
    }

    /// How many instances there are of each status, in the shards that this process looks after.
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
    ) -> Result<Vec<Summary>> {
        let pages = (0..self.keys().shards()).map(|shard| {
            let mut read = Cmd::new();
            read.arg("ZRANGE").arg(self.keys().index(shard, "keys"));
            read.arg(format!("[{key}\x01")).arg(format!("({key}\x02"));
            read.arg("BYLEX").arg("LIMIT").arg(0).arg(SEEN_MAX);
            self.query::<Vec<String>>(read)
        });
        let members = try_join_all(pages).await?.concat();
        let ids = members.iter().filter_map(|member| {
            let (_, id) = member.rsplit_once('\x01')?;
            Some(InstanceId::new(id))
        });
        let ids = ids.filter(|id| filter.begins(id));
        let mut found = self.summaries(ids.collect(), filter).await?;
        found.sort_by(|a, b| b.0.cmp(&a.0));
        found.retain(|(place, _)| after.as_ref().is_none_or(|after| place < after));
        found.truncate(filter.limit);
        Ok(found.into_iter().map(|(_, summary)| summary).collect())
    }

    /// The next of all shards together.
    async fn page(&self, filter: &Filter, below: Option<&Place>) -> Result<Vec<Place>> {
        let least = match filter.prefix {
            Some(_) => PAGE_OF_PREFIX,
            None => PAGE_MIN,
        };
        let limit = filter.limit.max(least);
        let pages = (0..self.keys().shards()).map(async |shard| {
            let mut keys = self.keys().listings(shard);
            let by_workflow = keys.split_off(5);
            if filter.workflow.is_some() {
                keys = by_workflow;
            }
            if let Some(status) = filter.status {
                let ending = format!(":{}", status_letter(status));
                keys.retain(|key| key.ends_with(&ending));
            }
            let mut call = PAGE.call(&keys);
            call.arg(filter.workflow.as_deref().unwrap_or_default());
            match below {
                Some((time, _)) => call.arg(time),
                None => call.arg(""),
            };
            // What is as old as the last one is found again, and left out below.
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

    async fn summaries(
        &self,
        ids: Vec<InstanceId>,
        filter: &Filter,
    ) -> Result<Vec<(Place, Summary)>> {
        let found = ids.iter().map(async |id| {
            let mut read = Cmd::new();
            read.arg("HMGET").arg(&self.keys().of(id, Span::Ready)[0]);
            read.arg(&["s", "p", "h", "end", "lw", "err"][..]);
            read_summary(id, Reply::new(self.query(read).await?)?)
        });
        let found = try_join_all(found).await?.into_iter().flatten();
        Ok(found
            .filter(|(_, summary)| passes(summary, filter))
            .collect())
    }

    async fn place(&self, id: &InstanceId) -> Result<Option<Place>> {
        let mut read = Cmd::new();
        read.arg("HGET").arg(&self.keys().of(id, Span::Ready)[0]);
        read.arg("lw");
        let place: Option<String> = self.query(read).await?;
        place.map(|place| read_place(id, &place)).transpose()
    }
}

/// `None`: it was removed meanwhile.
fn read_summary(id: &InstanceId, mut parts: Reply) -> Result<Option<(Place, Summary)>> {
    let status = match parts.value()? {
        Value::Nil => return Ok(None),
        found => read_status(&crate::reply::text(found)?)?,
    };
    let suspended = parts.value()? != Value::Nil;
    let header = parts.bytes()?;
    let ended_at = match parts.value()? {
        Value::Nil => None,
        found => {
            let at: i64 = json(&crate::reply::bytes(found)?, "the end of an instance")?;
            Some(Timestamp(at))
        }
    };
    let place = read_place(id, &parts.text()?)?;
    let error = match parts.value()? {
        Value::Nil => None,
        found => Some(json(
            &crate::reply::bytes(found)?,
            &format!("the error of {id}"),
        )?),
    };
    let summary = Summary {
        header: Arc::new(json(&header, &format!("instance {id}"))?),
        status,
        suspended,
        ended_at,
        error,
    };
    Ok(Some((place, summary)))
}

fn read_place(id: &InstanceId, place: &str) -> Result<Place> {
    let time = place
        .split('\x01')
        .nth(1)
        .and_then(|time| time.parse().ok());
    let bad = || damaged(format!("instance {id}"), "its place in the listing");
    Ok((time.ok_or_else(bad)?, id.to_string()))
}

fn passes(summary: &Summary, filter: &Filter) -> bool {
    let equal = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|w| w == found);
    let header: &Header = &summary.header;
    equal(&filter.workflow, &header.definition.workflow)
        && equal(&filter.version, &header.definition.version)
        && filter.status.is_none_or(|status| status == summary.status)
        && filter
            .key
            .as_ref()
            .is_none_or(|key| header.key.as_ref() == Some(key))
}
