//! Names that two runs of one plan have in common.
//!
//! The start time of an instance is part of the ids of all its effects, because a key may be used again after its
//! instance was removed, and the new instance's effects must differ from the old one's. With faults, an instance starts
//! at another time than without. So runs are compared by the ids that they would have if each instance started at the
//! beginning of the run. An id gets such a name only if it is derived from its cause; a random id stays unchanged, and
//! differs in each run.

use std::collections::BTreeMap;

use swirl_engine::{child_id, continuation_id, derive};
use swirl_model::CloudEvent;
use swirl_model::ids::{InstanceId, ScopeId};
use swirl_model::instance::Header;
use swirl_model::time::Timestamp;

use super::outside::Called;
use crate::rig::START;

/// The number of sequence numbers of a scope that are tried.
const SEQ_MAX: u32 = 10_000;

/// An event that an instance produced, from its history.
#[derive(Debug, Clone)]
pub struct Produced {
    pub instance: InstanceId,
    pub scope: ScopeId,
    pub id: String,
}

#[derive(Debug, Default)]
pub struct Names {
    /// By the ids of instances and of produced events.
    names: BTreeMap<String, String>,
    started: BTreeMap<String, Timestamp>,
}

/// An instance, and its name.
struct Known {
    real: Header,
    named: Header,
}

impl Known {
    fn new(real: &Header, name: InstanceId) -> Known {
        let named = Header {
            id: name,
            started_at: Timestamp(START),
            ..real.clone()
        };
        Known {
            real: real.clone(),
            named,
        }
    }

    fn event(&self, scope: &ScopeId, id: &str) -> Option<String> {
        let seq = (0..SEQ_MAX).find(|seq| child_id(&self.real, scope, *seq) == id)?;
        Some(child_id(&self.named, scope, seq))
    }
}

impl Names {
    /// `published` has the produced events that were seen outside.
    pub fn of(headers: &[Header], produced: &[Produced], published: &[CloudEvent]) -> Names {
        let mut names = Names::default();
        let mut known: BTreeMap<InstanceId, Known> = BTreeMap::new();
        let mut headers: Vec<&Header> = headers.iter().collect();
        let mut produced: Vec<&Produced> = produced.iter().collect();
        loop {
            let before = headers.len() + produced.len();
            headers.retain(|header| {
                let Some(name) = names.instance(header, &known, published) else {
                    return true;
                };
                names.know(header, name, &mut known);
                false
            });
            produced.retain(|event| {
                let Some(known) = known.get(&event.instance) else {
                    return true;
                };
                if let Some(name) = known.event(&event.scope, &event.id) {
                    names.names.insert(event.id.clone(), name);
                }
                false
            });
            if headers.len() + produced.len() < before {
                continue;
            }
            if headers.is_empty() {
                return names;
            }
            // The remaining ones have no known cause, so they keep their ids.
            let first = headers
                .iter()
                .position(|header| header.parent.is_none() && header.continued_from.is_none());
            let header = headers.remove(first.unwrap_or(0));
            names.know(header, header.id.clone(), &mut known);
        }
    }

    fn know(&mut self, header: &Header, name: InstanceId, known: &mut BTreeMap<InstanceId, Known>) {
        let id = header.id.to_string();
        self.started.insert(id.clone(), header.started_at);
        self.names.insert(id, name.to_string());
        known.insert(header.id.clone(), Known::new(header, name));
    }

    /// `None`: not known yet.
    fn instance(
        &self,
        header: &Header,
        known: &BTreeMap<InstanceId, Known>,
        published: &[CloudEvent],
    ) -> Option<InstanceId> {
        if header.key.is_some() {
            return Some(header.id.clone());
        }
        if let Some(old) = &header.continued_from {
            let old = known.get(old)?;
            let is_derived = continuation_id(&old.real) == header.id;
            return is_derived.then(|| continuation_id(&old.named));
        }
        if let Some(parent) = &header.parent {
            let (scope, call) = (&parent.scope.scope, parent.call);
            let parent = known.get(&parent.scope.instance)?;
            let is_derived = child_id(&parent.real, scope, call) == header.id.as_str();
            return is_derived.then(|| InstanceId::new(child_id(&parent.named, scope, call)));
        }
        let started_by = |events: &[&CloudEvent]| {
            let keys: Vec<String> = events.iter().map(|event| event.key()).collect();
            let mut parts = vec!["event", &*header.definition.workflow];
            parts.extend(keys.iter().map(String::as_str));
            derive(&parts)
        };
        let is_by = |events: &[&CloudEvent]| started_by(events) == header.id.as_str();
        // By one event, or by a list of two.
        let one = published.iter().find(|event| is_by(&[event]));
        let events = match one {
            Some(event) => vec![event],
            None => {
                let mut pairs = published
                    .iter()
                    .flat_map(|first| published.iter().map(move |second| [first, second]));
                pairs.find(|pair| is_by(pair))?.to_vec()
            }
        };
        let named = events.into_iter().map(|event| {
            let id = self.names.get(&event.id)?.clone();
            Some(CloudEvent {
                id,
                ..event.clone()
            })
        });
        let named: Vec<CloudEvent> = named.collect::<Option<_>>()?;
        let named: Vec<&CloudEvent> = named.iter().collect();
        Some(InstanceId::new(started_by(&named)))
    }

    pub fn text(&self, text: &str) -> String {
        let words = text.split_inclusive(|c: char| !c.is_ascii_hexdigit());
        words
            .flat_map(|word| {
                let id = word.trim_end_matches(|c: char| !c.is_ascii_hexdigit());
                let name = self.names.get(id).map_or(id, String::as_str);
                [name, &word[id.len()..]]
            })
            .collect()
    }

    pub fn lines(&self, lines: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let lines = lines.iter();
        lines
            .map(|(place, line)| (self.text(place), self.text(line)))
            .collect()
    }

    /// The key of a call ends with the start time of its instance.
    pub fn call(&self, call: &Called) -> Called {
        let started = self.started.get(&call.instance);
        let own = started.and_then(|at| call.key.strip_suffix(&format!("-{:x}", at.0)));
        let key = match own {
            Some(key) => format!("{key}-{START:x}"),
            None => call.key.clone(),
        };
        Called {
            instance: self.text(&call.instance),
            scope: call.scope.clone(),
            function: call.function.clone(),
            arguments: self.text(&call.arguments),
            key: self.text(&key),
        }
    }
}

#[cfg(test)]
mod tests {
    use swirl_model::Data;
    use swirl_model::ids::{DefinitionId, ScopeRef};
    use swirl_model::instance::ParentLink;
    use swirl_model::trace::Trace;

    use super::*;

    fn header(id: impl Into<String>, started_at: i64) -> Header {
        let id: String = id.into();
        Header {
            id: InstanceId::new(id),
            definition: DefinitionId {
                workflow: "w".into(),
                version: "1".into(),
            },
            version: "1".to_owned(),
            input: Data::object(),
            started_at: Timestamp(started_at),
            parent: None,
            continued_from: None,
            scheduled_at: None,
            key: None,
            instance_key: None,
            timeout: None,
            depth: 0,
            hops: 0,
            trace: Trace::default(),
            retention: Default::default(),
        }
    }

    /// An instance with a key, its sub-workflow, the continuation of that, and an instance that an event of the
    /// sub-workflow starts.
    fn run(late_ms: i64, drawn: bool) -> (Names, [String; 5]) {
        let mut main = header(derive(&["key", "w", "1"]), START + late_ms);
        main.key = Some("1".to_owned());
        let scope = ScopeId::new("r.3.0");
        let id = match drawn {
            true => derive(&["drawn", &late_ms.to_string()]),
            false => child_id(&main, &scope, 7),
        };
        let mut sub = header(id, START + 2 * late_ms);
        sub.parent = Some(ParentLink {
            scope: ScopeRef {
                instance: main.id.clone(),
                scope,
            },
            call: 7,
            detached: false,
        });
        let mut next = header(continuation_id(&sub).to_string(), START + 3 * late_ms);
        next.continued_from = Some(sub.id.clone());
        let event = CloudEvent {
            specversion: "1.0".to_owned(),
            id: child_id(&sub, &ScopeId::root(), 4),
            source: "sub".to_owned(),
            kind: "made".to_owned(),
            attributes: Default::default(),
            data: None,
        };
        let started = header(derive(&["event", "w", &event.key()]), START + 4 * late_ms);
        let produced = Produced {
            instance: sub.id.clone(),
            scope: ScopeId::root(),
            id: event.id.clone(),
        };
        let ids = [&main, &sub, &next, &started].map(|header| header.id.to_string());
        let [main_id, sub_id, next_id, started_id] = ids;
        let ids = [main_id, sub_id, next_id, event.id.clone(), started_id];
        let names = Names::of(&[started, next, sub, main], &[produced], &[event]);
        (names, ids)
    }

    #[test]
    fn runs_with_other_start_times_have_the_same_names() {
        let ((calm, before), (other, after)) = (run(0, false), run(40, false));
        assert_eq!(before[0], after[0]);
        for (before, after) in before.iter().zip(&after).skip(1) {
            assert_ne!(before, after);
            let line = |id: &str| format!("produced {id} of \"{id}\"");
            assert_eq!(calm.text(&line(before)), line(before));
            assert_eq!(other.text(&line(after)), line(before));
        }
    }

    #[test]
    fn a_random_id_stays_unchanged() {
        let (names, ids) = run(40, true);
        assert_eq!(names.text(&ids[1]), ids[1]);
    }

    #[test]
    fn a_key_belongs_to_its_instance() {
        let ((calm, before), (other, after)) = (run(0, false), run(40, false));
        let call = |id: &str, at: i64| Called {
            instance: id.to_owned(),
            scope: "r".to_owned(),
            function: "quick".to_owned(),
            arguments: "{}".to_owned(),
            key: format!("{id}-r-2-{:x}", START + at),
        };
        let wanted = calm.call(&call(&before[1], 0));
        assert_eq!(other.call(&call(&after[1], 80)), wanted);
        assert_ne!(other.call(&call(&after[1], 40)), wanted);
    }
}
