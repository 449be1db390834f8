//! Instances that events start, and what the records of these events say about them.

use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::instance::Header;
use swirl_model::scope::StartEvent;
use swirl_ports::Result;
use swirl_ports::matching::Correlation;

use super::names::{EventKeys, event_digest, waiting_keys};
use super::shard::DeliveredMark;
use crate::Redis;

/// The beginning of an instance that events start.
#[derive(Debug, Default)]
pub(crate) struct Begun {
    pub correlation: Correlation,
    /// Generations and digests of the events. The instance has consumed them from its creation on. If one of them is
    /// ingested again after a crash, it is for other instances.
    pub consumed: Vec<(String, String)>,
    /// The generation of the last of them that is kept. An instance that correlates begins with it, regardless of when
    /// it is created.
    pub born: Option<String>,
}

impl Redis {
    /// The correlation values are known as soon as the events are ingested, so that no second instance is started
    /// meanwhile.
    pub(crate) async fn begun(&self, header: &Header, events: &[StartEvent]) -> Result<Begun> {
        let digests: Vec<String> = events
            .iter()
            .map(|start| event_digest(&start.event))
            .collect();
        // The last event decides.
        let open = digests.iter().map(|digest| self.open_event(digest));
        let open = futures::future::try_join_all(open).await?;
        let mut begun = Begun::default();
        for (found, digest) in open.into_iter().zip(digests) {
            let Some((generation, outcome)) = found else {
                continue;
            };
            begun.consumed.push((generation, digest));
            let mut starts = outcome.into_iter().flat_map(|outcome| outcome.starts);
            let mine = starts.find(|start| start.is_of(&header.definition.workflow, events));
            if let Some(mine) = mine
                && begun.correlation.is_empty()
            {
                begun.correlation = mine.correlation;
            }
        }
        Ok(begun)
    }

    /// Whether some of these events are kept for later waits, so that [`Redis::started`] has something to record.
    pub(crate) async fn are_kept(&self, events: &[StartEvent]) -> Result<bool> {
        let kept = events.iter().map(|start| {
            let digest = event_digest(&start.event);
            let mut cmd = redis::cmd("HEXISTS");
            cmd.arg(EventKeys::of(self.keys(), &digest).bodies)
                .arg(digest);
            self.query::<bool>(cmd)
        });
        let kept = futures::future::try_join_all(kept).await?;
        Ok(kept.contains(&true))
    }

    /// Adds what follows from those of its events that are kept. The first turn may wait for more events of the same
    /// kind, so this is part of the creation.
    pub(crate) async fn add_kept(&self, begun: &mut Begun, events: &[StartEvent]) -> Result<()> {
        for start in events {
            let digest = event_digest(&start.event);
            let Some((generation, _)) = self.kept_event(&digest).await? else {
                continue;
            };
            begun.born = begun.born.take().max(Some(generation.clone()));
            if begun.consumed.iter().all(|(_, other)| *other != digest) {
                begun.consumed.push((generation, digest));
            }
        }
        Ok(())
    }

    /// Records that these events started an instance, which has therefore consumed them. `correlates`: the instance
    /// correlates from the beginning. Returns scopes that have something to do.
    pub(crate) async fn started(
        &self,
        id: &InstanceId,
        events: &[StartEvent],
        correlates: bool,
    ) -> Result<Vec<ScopeRef>> {
        let mut any_kept = false;
        let mut last: Option<String> = None;
        for start in events {
            let digest = event_digest(&start.event);
            let Some((generation, kept)) = self.kept_event(&digest).await? else {
                continue;
            };
            any_kept = true;
            last = last.max(Some(generation.clone()));
            let [_, _, consumed] = waiting_keys(self, id);
            let mut cmd = redis::cmd("ZADD");
            cmd.arg(consumed).arg(&generation).arg(&digest);
            self.query::<i64>(cmd).await?;
            let how = DeliveredMark::Yes;
            self.record_consumer((&digest, &generation), how, None, id)
                .await?;
            self.remove_from_kinds(&digest, &kept).await?;
        }
        if !any_kept {
            return Ok(Vec::new());
        }
        // The instance begins with the last of them, regardless of when it is created.
        if correlates && let Some(last) = last {
            let [_, waits, _] = waiting_keys(self, id);
            let mut cmd = redis::cmd("HSET");
            cmd.arg(waits).arg("B").arg(last);
            self.query::<i64>(cmd).await?;
        }
        let mut woken = Vec::new();
        self.reindex(id, &mut woken).await?;
        Ok(woken)
    }
}
