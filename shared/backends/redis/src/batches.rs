//! Batches of operators' actions, and the marks that they leave on instances. All keys of batches share one hash tag,
//! since few batches run at a time.

use std::collections::HashMap;

use async_trait::async_trait;
use redis::Cmd;
use serde_json::from_str;
use swirl_model::event::{HistoryEntry, Input};
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::time::Timestamp;
use swirl_ports::{
    Batch, BatchCounts, BatchCreation, BatchItem, BatchOrder, BatchOutcome, BatchState, Batches,
    Error, InboxItem, MARKS_MAX, Operated, Result,
};

use crate::Redis;
use crate::connect::damaged;
use crate::record::{encode, kind};
use crate::script::{Lazy, Script};

const PARTS: [&str; 2] = [
    include_str!("lua/lines.lua"),
    include_str!("lua/operate.lua"),
];
static OPERATE: Lazy = Lazy::new(|| Script::of_instance(&PARTS));
static ENDING: Lazy = Lazy::new(|| Script::of_instance(&PARTS).freeing());
static CREATE: Lazy = Lazy::new(|| Script::new(&[include_str!("lua/batches/create.lua")]));
static CHANGE: Lazy = Lazy::new(|| Script::freeing_small(include_str!("lua/batches/change.lua")));
static RECORD: Lazy = Lazy::new(|| Script::freeing_small(include_str!("lua/batches/record.lua")));
static LEASE: Lazy = Lazy::new(|| Script::freeing_small(include_str!("lua/batches/lease.lua")));

pub(crate) fn freeing() -> [&'static Script; 1] {
    [&ENDING]
}

/// The number of ids in one command.
const IDS_AT_ONCE: usize = 1_000;
/// A draft whose creator died is dropped after this time.
const DRAFT_MS: u64 = 3_600_000;

type Fields = HashMap<String, String>;

impl Redis {
    pub(crate) async fn operate_once(
        &self,
        id: &InstanceId,
        mark: &str,
        entry: &HistoryEntry,
        input: Option<Input>,
    ) -> Result<Operated> {
        let limit = self.options().record_max;
        let root = ScopeRef::root(id.clone());
        let keys = self.keys_of_lines(id);
        let script = match &input {
            Some(Input::Cancel { .. }) => &ENDING,
            _ => &OPERATE,
        };
        let mut call = self.call_scope(script, &keys, &root);
        call.arg(self.options().history_max.max(1));
        call.arg(mark).arg(MARKS_MAX);
        match input.map(InboxItem::new) {
            Some(InboxItem { id: name, input }) => {
                let what = || format!("the input '{name}' of {id}");
                let payload = encode(&input, what, limit)?;
                call.arg(&name).arg(kind(&input)).arg(payload);
            }
            None => {
                call.arg("").arg("").arg("");
            }
        }
        call.arg(self.options().inbox_max);
        crate::history::add(&mut call, std::slice::from_ref(entry), id, limit)?;
        match self.run::<i64>(script, call).await? {
            0 => Ok(Operated::Unknown),
            1 => Ok(Operated::New),
            2 => Ok(Operated::Known),
            waiting => Err(Error::TooLarge {
                what: format!("the inbox of {id}"),
                size: waiting.unsigned_abs() as usize,
                limit: self.options().inbox_max,
            }),
        }
    }

    pub(crate) async fn has_mark(&self, id: &InstanceId, mark: &str) -> Result<bool> {
        let mut read = Cmd::new();
        read.arg("HGET").arg(self.keys().hash_of(id)).arg("om");
        let marks: Option<String> = self.query(read).await?;
        let marks = marks.unwrap_or_default();
        Ok(marks.split_whitespace().any(|known| known == mark))
    }

    fn batch_key(&self, name: &str) -> String {
        format!("{{{}:b}}:{name}", self.keys().namespace())
    }

    fn batch_keys(&self, id: &str) -> BatchKeys {
        let key = |name: &str| self.batch_key(&format!("{name}:{id}"));
        BatchKeys {
            record: key("batch"),
            instances: key("ids"),
            outcomes: key("outcomes"),
            lease: key("lease"),
        }
    }

    /// The batches of an index, newest first.
    async fn indexed(&self, index: &str) -> Result<Vec<Batch>> {
        let mut read = Cmd::new();
        read.arg("ZRANGE").arg(self.batch_key(index));
        read.arg(0).arg(-1).arg("REV");
        let ids: Vec<String> = self.query(read).await?;
        let reads = ids.iter().map(|id| {
            let mut read = Cmd::new();
            read.arg("HGETALL").arg(self.batch_keys(id).record);
            read
        });
        let found: Vec<Fields> = self.read_all(&reads.collect::<Vec<_>>()).await?;
        // A batch may have been dropped between the two reads.
        let found = found.into_iter().map(batch_of);
        found.filter_map(Result::transpose).collect()
    }
}

struct BatchKeys {
    record: String,
    instances: String,
    outcomes: String,
    lease: String,
}

fn batch_of(fields: Fields) -> Result<Option<Batch>> {
    if fields.is_empty() {
        return Ok(None);
    }
    let broken = |reason: String| damaged("a batch", reason);
    let field = |name: &str| {
        let found = fields.get(name);
        found.ok_or_else(|| broken(format!("it has no '{name}'")))
    };
    let count = |name: &str| {
        let number = field(name)?.parse::<u32>();
        number.map_err(|error| broken(error.to_string()))
    };
    let codes = fields.keys().filter_map(|name| name.strip_prefix("code:"));
    let refusals = codes.map(|code| Ok((code.to_owned(), count(&format!("code:{code}"))?)));
    let refusals = refusals.collect::<Result<_>>()?;
    let word = field("state")?;
    let state = BatchState::ALL.iter().find(|state| state.as_str() == word);
    let ended_at = fields.get("ended").map(|at| at.parse::<i64>()).transpose();
    Ok(Some(Batch {
        order: from_str(field("order")?).map_err(|error| broken(error.to_string()))?,
        state: *state.ok_or_else(|| broken(format!("its state is '{word}'")))?,
        counts: BatchCounts {
            done: count("done")?,
            refused: count("refused")?,
            failed: count("failed")?,
            refusals,
        },
        ended_at: ended_at
            .map_err(|error| broken(error.to_string()))?
            .map(Timestamp),
    }))
}

#[async_trait]
impl Batches for Redis {
    async fn create_batch(
        &self,
        order: &BatchOrder,
        instances: &[InstanceId],
        active_max: usize,
    ) -> Result<BatchCreation> {
        let what = || format!("batch {}", order.id);
        let text = encode(order, what, self.options().record_max)?;
        let keys = self.batch_keys(&order.id);
        let draft = format!("{}:{}-{}", keys.instances, self.process(), self.attempt());
        for ids in instances.chunks(IDS_AT_ONCE) {
            let mut add = Cmd::new();
            add.arg("RPUSH").arg(&draft);
            for id in ids {
                add.arg(id.as_str());
            }
            self.query::<i64>(add).await?;
            let mut expire = Cmd::new();
            expire.arg("PEXPIRE").arg(&draft).arg(DRAFT_MS);
            self.query::<i64>(expire).await?;
        }
        let all = [
            self.batch_key("all"),
            self.batch_key("active"),
            keys.record,
            keys.instances,
            draft,
        ];
        let mut call = CREATE.call(&all);
        call.arg(&order.id).arg(order.created_at.0);
        call.arg(text).arg(instances.len()).arg(active_max);
        match self.run::<i64>(&CREATE, call).await? {
            0 => Ok(BatchCreation::Known),
            1 => Ok(BatchCreation::New),
            -2 => Ok(BatchCreation::TooMany),
            // A response was lost, and the command was sent again.
            _ => Err(Error::Unavailable(
                "the instances of the batch were not stored completely".to_owned(),
            )),
        }
    }

    async fn batch(&self, id: &str) -> Result<Option<Batch>> {
        let mut read = Cmd::new();
        read.arg("HGETALL").arg(self.batch_keys(id).record);
        batch_of(self.query(read).await?)
    }

    async fn batches(&self) -> Result<Vec<Batch>> {
        self.indexed("all").await
    }

    async fn active_batches(&self) -> Result<Vec<Batch>> {
        self.indexed("active").await
    }

    async fn batch_items(&self, id: &str, from: u32, limit: u32) -> Result<Vec<BatchItem>> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let keys = self.batch_keys(id);
        let read = |key: &str| {
            let mut read = Cmd::new();
            let last = u64::from(from) + u64::from(limit) - 1;
            read.arg("LRANGE").arg(key).arg(from).arg(last);
            read
        };
        let reads = [read(&keys.instances), read(&keys.outcomes)];
        let lists: Vec<Vec<String>> = self.read_all(&reads).await?;
        let [ids, outcomes] = lists.try_into().unwrap_or_default();
        let items = ids.into_iter().enumerate().map(|(place, id)| {
            let outcome = outcomes.get(place).map(|text| from_str(text));
            let outcome = outcome.transpose();
            Ok(BatchItem {
                instance: InstanceId::new(id.as_str()),
                outcome: outcome.map_err(|error| damaged(format!("the outcome of {id}"), error))?,
            })
        });
        items.collect()
    }

    async fn change_batch(&self, id: &str, to: BatchState, at: Timestamp) -> Result<Option<Batch>> {
        let keys = [self.batch_key("active"), self.batch_keys(id).record];
        let mut call = CHANGE.call(&keys);
        call.arg(id).arg(to.as_str());
        match to.has_ended() {
            true => call.arg(at.0),
            false => call.arg(""),
        };
        for from in BatchState::ALL.iter().filter(|from| from.may_become(to)) {
            call.arg(from.as_str());
        }
        batch_of(self.run(&CHANGE, call).await?)
    }

    /// Uses the clock of Redis.
    async fn lease_batch(&self, id: &str, carrier: &str, _now: Timestamp, ms: u64) -> Result<bool> {
        let keys = self.batch_keys(id);
        let mut call = LEASE.call(&[keys.lease, keys.record]);
        call.arg(carrier).arg(ms);
        Ok(self.run::<i64>(&LEASE, call).await? == 1)
    }

    async fn record_outcomes(
        &self,
        id: &str,
        from: u32,
        outcomes: &[BatchOutcome],
        at: Timestamp,
    ) -> Result<Option<Batch>> {
        let mut counts = BatchCounts::default();
        outcomes.iter().for_each(|outcome| counts.add(outcome));
        let keys = self.batch_keys(id);
        let keys = [
            self.batch_key("active"),
            keys.record,
            keys.instances,
            keys.outcomes,
        ];
        let mut call = RECORD.call(&keys);
        call.arg(id).arg(from).arg(at.0);
        call.arg(counts.done).arg(counts.refused).arg(counts.failed);
        call.arg(counts.refusals.len());
        for (code, count) in &counts.refusals {
            call.arg(code).arg(count);
        }
        for outcome in outcomes {
            let what = || format!("an outcome of batch {id}");
            call.arg(encode(outcome, what, self.options().record_max)?);
        }
        batch_of(self.run(&RECORD, call).await?)
    }

    async fn drop_batch(&self, id: &str) -> Result<()> {
        // The indexes come last, so that an interrupted removal can be repeated.
        let keys = self.batch_keys(id);
        let mut delete = Cmd::new();
        delete.arg("DEL").arg(keys.record).arg(keys.instances);
        delete.arg(keys.outcomes).arg(keys.lease);
        self.query::<i64>(delete).await?;
        for index in ["active", "all"] {
            let mut remove = Cmd::new();
            remove.arg("ZREM").arg(self.batch_key(index)).arg(id);
            self.query::<i64>(remove).await?;
        }
        Ok(())
    }
}
