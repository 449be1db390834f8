//! The dry run of a batch: what its operation would do to each instance.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use serde_json::Value;
use swirl_api::actions::DataPreview;
use swirl_api::batches::Misfit;
use swirl_model::ids::InstanceId;
use swirl_ports::InstanceKey;
use swirl_presentation::changes::changes;
use swirl_service::{Operation, Preview, Refusal, Replaced, Unfit};

use super::Api;
use super::problem::Problem;

/// How many instances a dry run checks concurrently, and for how long.
const CONCURRENT: usize = 16;
const CHECKED_FOR: Duration = Duration::from_secs(20);
/// The maximum number of different reasons that a dry run reports.
const REASONS_MAX: usize = 100;
/// Larger data, in bytes of JSON, is not compared.
const DATA_BYTES_MAX: usize = 1 << 20;

/// How many instances of a query an operation fits, and why it doesn't fit the others.
#[derive(Debug, Default)]
pub struct Tally {
    pub checked: u32,
    pub fit: u32,
    /// The number of instances and one of them, by code and reason.
    reasons: BTreeMap<Refusal, (u32, String)>,
    /// The instances whose reasons exceed the limit.
    others: u32,
    /// Who would have taken a key by then.
    keys: HashMap<InstanceKey, InstanceId>,
    /// What the data of the first instances would become.
    previews: HashMap<InstanceId, DataPreview>,
}

impl Tally {
    fn add(&mut self, id: &InstanceId, done: Result<Preview, Refusal>, with_data: bool) {
        self.checked += 1;
        let refusal = match done {
            Err(refusal) => refusal,
            Ok(preview) => match self.taken(preview.keys) {
                Some(refusal) => refusal,
                None => {
                    self.fit += 1;
                    if let Some(data) = preview.data.filter(|_| with_data) {
                        self.previews.insert(id.clone(), replaced(&data));
                    }
                    return;
                }
            },
        };
        let room = self.reasons.len() < REASONS_MAX;
        match self.reasons.get_mut(&refusal) {
            Some((count, _)) => *count += 1,
            None if room => {
                self.reasons.insert(refusal, (1, id.as_str().to_owned()));
            }
            None => self.others += 1,
        }
    }

    /// The refusal, if an earlier instance of the batch takes one of these keys.
    fn taken(&mut self, keys: Vec<(InstanceKey, InstanceId)>) -> Option<Refusal> {
        let taken = keys.iter().find_map(|(key, id)| {
            let by = self.keys.get(key).filter(|by| *by != id)?;
            let (key, by) = (key.key.to_string(), by.clone());
            Some(Unfit::KeyInUse { key, by }.into())
        });
        if taken.is_none() {
            self.keys.extend(keys);
        }
        taken
    }

    /// The most frequent reason first.
    pub fn reasons(&self) -> Vec<Misfit> {
        let mut reasons: Vec<_> = self.reasons.iter().collect();
        reasons.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        let listed = reasons.into_iter().map(|(refusal, (count, id))| Misfit {
            code: refusal.code.to_string(),
            reason: refusal.reason.clone(),
            count: *count,
            instance: Some(id.clone()),
        });
        let mut listed: Vec<Misfit> = listed.collect();
        if self.others > 0 {
            listed.push(Misfit {
                code: "others".to_owned(),
                reason: "other reasons".to_owned(),
                count: self.others,
                instance: None,
            });
        }
        listed
    }

    /// What would change in the data of an instance, if it is one of the first.
    pub fn data(&self, id: &InstanceId) -> Option<&DataPreview> {
        self.previews.get(id)
    }
}

/// The changes to the state data of an instance.
pub fn replaced(data: &Replaced) -> DataPreview {
    let sides = [&data.before, &data.after];
    if sides.iter().any(|side| side.exceeds(DATA_BYTES_MAX)) {
        return DataPreview {
            changes: None,
            complete: false,
        };
    }
    let found = changes(&Value::from(&data.before), &Value::from(&data.after));
    DataPreview {
        changes: Some(found.all),
        complete: !found.is_cut,
    }
}

/// Checks the instances, for a limited time. `shown`: the number of the first instances whose new data is shown.
pub async fn tally(
    api: &Api,
    ids: &[InstanceId],
    operation: &Operation,
    shown: usize,
) -> Result<Tally, Problem> {
    let until = tokio::time::Instant::now() + CHECKED_FOR;
    let mut tally = Tally::default();
    let checks = stream::iter(ids.to_vec())
        .map(async |id| {
            let done = api.service.would(&id, operation).await?;
            Ok::<_, Problem>((id, done))
        })
        .buffered(CONCURRENT);
    let mut checks = std::pin::pin!(checks);
    while tokio::time::Instant::now() < until
        && let Some((id, done)) = checks.try_next().await?
    {
        let with_data = (tally.checked as usize) < shown;
        tally.add(&id, done, with_data);
    }
    Ok(tally)
}
