//! `/overview`: the state of the system at a glance. `/me`: the caller's permissions.

use std::collections::BTreeMap;

use swirl_api::Nothing;
use swirl_api::instance::quoted;
use swirl_api::overview::{Failures, Interval, Me, Overview, StatusCount, Trend};
use swirl_model::instance::Status;
use swirl_model::time::Timestamp;
use swirl_ports::{Filter, Summary, Tally};

use super::problem::Problem;
use super::serve::Asked;
use super::{Api, listing};

/// How many running and how many faulted instances are examined, newest first.
const COUNTED_MAX: usize = 1000;
/// How many groups of failures, and how many running instances, are listed.
const LISTED: usize = 10;

const STATUSES: [Status; 5] = [
    Status::Running,
    Status::Faulted,
    Status::Completed,
    Status::Cancelled,
    Status::Terminated,
];

/// Similar failures: the fields by which a query finds them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    workflow: String,
    state: Option<String>,
    error: Option<String>,
}

pub async fn overview(api: Api, _: Asked<Nothing, Nothing, Nothing>) -> Result<Overview, Problem> {
    let (total, _) = api.queries.counts(&[]).await?;
    let counts = STATUSES.map(|status| {
        let mut total = total;
        StatusCount {
            status: status.into(),
            count: *total.of(status),
            more: false,
        }
    });
    let trend = api.queries.trend(api.service.clock.now()).await?;
    let some = async |status| {
        let filter = Filter {
            statuses: vec![status],
            limit: COUNTED_MAX,
            ..Filter::default()
        };
        api.queries.list(&filter).await
    };
    let mut running = some(Status::Running).await?;
    let faulted = some(Status::Faulted).await?;
    let suspended = running.iter().filter(|row| row.suspended).count();
    // The rows are newest first, so the last ones are the oldest that were examined.
    let mut oldest = running.split_off(running.len().saturating_sub(LISTED));
    oldest.reverse();
    Ok(Overview {
        counts: counts.into(),
        trend: Trend {
            hour: trend.hour.into_iter().map(interval).collect(),
            day: trend.day.into_iter().map(interval).collect(),
        },
        suspended,
        failures: failures(&faulted),
        oldest: listing::lines(&api, oldest).await?,
    })
}

fn interval((from, tally): (Timestamp, Tally)) -> Interval {
    let completed = tally.completed;
    Interval {
        from: from.into(),
        started: tally.started,
        completed,
        faulted: tally.faulted,
        cancelled: tally.cancelled,
        terminated: tally.terminated,
        average_ms: tally.millis.checked_div(completed),
        longest_ms: (completed > 0).then_some(tally.longest),
    }
}

/// The newest failures by workflow, state and error, the most frequent first.
fn failures(faulted: &[Summary]) -> Vec<Failures> {
    let mut groups: BTreeMap<Kind, Vec<&Summary>> = BTreeMap::new();
    for summary in faulted {
        let error = summary.error.as_ref();
        let kind = Kind {
            workflow: summary.header.definition.workflow.to_string(),
            state: error.and_then(|error| error.state.clone()),
            error: error.map(|error| error.name.clone()),
        };
        groups.entry(kind).or_default().push(summary);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, all)| std::cmp::Reverse(all.len()));
    let more = faulted.len() >= COUNTED_MAX;
    let shown = groups.into_iter().take(LISTED).map(|(kind, all)| {
        let newest = all.first();
        let message = newest.and_then(|one| one.error.as_ref());
        Failures {
            query: kind.query(),
            workflow: kind.workflow,
            state: kind.state,
            error: kind.error.unwrap_or_default(),
            count: all.len(),
            more,
            newest: newest.map(|one| one.header.id.to_string()),
            message: message.map(|error| error.message.clone()),
        }
    });
    shown.collect()
}

impl Kind {
    fn query(&self) -> String {
        let is = |name: &str, value: &Option<String>| match value {
            Some(value) => format!("{name} = {}", quoted(value)),
            // Every text begins with nothing.
            None => format!("not {name} ^= \"\""),
        };
        format!(
            "status = faulted and workflow = {} and {} and {}",
            quoted(&self.workflow),
            is("state", &self.state),
            is("error", &self.error)
        )
    }
}

/// The caller and their permissions.
pub async fn me(api: Api, asked: Asked<Nothing, Nothing, Nothing>) -> Result<Me, Problem> {
    let roles = asked.caller.iter().flat_map(|caller| &caller.roles);
    Ok(Me {
        roles: roles.map(ToString::to_string).collect(),
        name: asked.caller.map(|caller| caller.name),
        open: api.access.is_open(),
        namespace: api.access.namespace().to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        rehearsals: api.rehearsals.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use swirl_model::WorkflowError;
    use swirl_model::attribute::Attributes;
    use swirl_model::instance::Header;

    fn failed(id: &str, workflow: &str, state: Option<&str>, name: &str) -> Summary {
        let mut error = WorkflowError::new(name, "it says no");
        error.state = state.map(str::to_owned);
        let header = json!({
            "id": id, "definition": {"workflow": workflow, "version": "1"}, "version": "1", "input": null,
            "started_at": 0, "depth": 0,
        });
        let header: Header = serde_json::from_value(header).unwrap();
        Summary {
            header: header.into(),
            status: Status::Faulted,
            suspended: false,
            ended_at: Some(Timestamp(1)),
            error: Some(error),
            attributes: Attributes::new(),
        }
    }

    #[test]
    fn a_query_finds_exactly_the_failures_of_a_group() {
        let all = [
            failed("1", "order", Some("Say \"no\""), "timeout"),
            failed("2", "order", Some("Pay"), "timeout"),
            failed("3", "order", None, "timeout"),
            failed("4", "order", Some("Pay"), "timeout"),
            failed("5", "other\\", Some("Pay"), "timeout"),
        ];
        let groups = failures(&all);
        let mut seen = 0;
        for group in &groups {
            let query = swirl_instance_query::Query::parse(&group.query, Timestamp(0)).unwrap();
            let found: Vec<_> = all.iter().filter(|one| query.matches(one)).collect();
            assert_eq!(found.len(), group.count, "{}", group.query);
            assert_eq!(
                found[0].header.id.as_str(),
                group.newest.as_deref().unwrap()
            );
            seen += found.len();
        }
        assert_eq!((groups.len(), seen, groups[0].count), (4, 5, 2));
        assert!(groups.iter().all(|group| !group.more));
    }
}
