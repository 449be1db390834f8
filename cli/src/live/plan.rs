//! Carries out the steps of a scenario on the cluster, in real time.

use std::time::Duration;

use swirl_api::actions::{CANCEL, Json, RESUME, RETRY, SUSPEND};
use swirl_api::schedules::Workflow;
use swirl_api::start::{START, StartQuery};
use swirl_model::CloudEvent;
use swirl_model::ids::InstanceId;
use swirl_model::time::Timestamp;
use swirl_nats::Streams;
use swirl_ports::{Filter, InstanceQueries};
use swirl_scenario::RunError;
use swirl_service::Action;
use swirl_virtual_time::{Act, Which};
use tokio::time::{Instant, sleep_until};

use crate::client::Client;

pub struct Actor<'a> {
    pub api: &'a Client,
    pub nats: &'a async_nats::Client,
    pub namespace: &'a str,
    pub queries: &'a dyn InstanceQueries,
    /// The start of virtual time.
    pub zero: Timestamp,
}

fn failed(error: impl std::fmt::Display) -> RunError {
    RunError::Failed(error.to_string())
}

impl Actor<'_> {
    pub async fn carry_out(&self, mut plan: Vec<(Timestamp, Act)>) -> Result<(), RunError> {
        plan.sort_by_key(|(at, _)| *at);
        let mut begun = Instant::now();
        for (at, act) in plan {
            let offset_ms = u64::try_from(at.0 - self.zero.0).unwrap_or(0);
            let planned = begun + Duration::from_millis(offset_ms);
            sleep_until(planned).await;
            let starts = matches!(act, Act::Start(_));
            self.act(act).await?;
            if starts {
                // Later steps keep their distance from the start, however long it took.
                begun += planned.elapsed();
            }
        }
        Ok(())
    }

    async fn act(&self, act: Act) -> Result<(), RunError> {
        match act {
            Act::Start(request) => {
                let query = StartQuery {
                    version: request.version.filter(|version| !version.is_empty()),
                    wait: None,
                };
                let id = request.workflow;
                let call = START.at(&Workflow { id }).query(query);
                let mut call = call.body(&Json(request.input));
                if let Some(key) = &request.key {
                    call = call.key(key);
                }
                match self.api.ask(call).await.map_err(failed)?.0 {
                    // The caller gets the refusal, and the scenario continues without the instance.
                    Err(problem) if !matches!(problem.status, 409 | 422) => {
                        let detail = problem.detail;
                        Err(failed(format!("a start was refused: {detail}")))
                    }
                    _ => Ok(()),
                }
            }
            Act::Event(event) => self.publish(&event).await,
            Act::Operate {
                name,
                which,
                action,
            } => self.operate(&name, &which, &action).await,
        }
    }

    async fn publish(&self, event: &CloudEvent) -> Result<(), RunError> {
        let subject = format!("{}.scenario", Streams::default_events(self.namespace));
        let payload = serde_json::to_vec(event).map_err(failed)?;
        let context = async_nats::jetstream::new(self.nats.clone());
        let sent = context.publish(subject, payload.into()).await;
        sent.map_err(failed)?.await.map_err(failed)?;
        Ok(())
    }

    async fn operate(&self, name: &str, which: &Which, action: &Action) -> Result<(), RunError> {
        let route = match action {
            Action::Cancel => Some(&CANCEL),
            Action::Suspend => Some(&SUSPEND),
            Action::Resume => Some(&RESUME),
            Action::Retry => None,
            Action::Skip(_) | Action::Rerun(_) | Action::Edit { .. } | Action::Patch { .. } => {
                return Err(failed("a scenario cannot express this"));
            }
        };
        let id = self.find(which).await?;
        let id = id.ok_or_else(|| failed(format!("{name}: there is no instance {which}")))?;
        let at = swirl_api::instance::InstanceId { id: id.to_string() };
        let refused = match route {
            Some(route) => self.api.ask(route.at(&at)).await.map_err(failed)?.0.err(),
            None => self.api.ask(RETRY.at(&at)).await.map_err(failed)?.0.err(),
        };
        // As in virtual time, an instance in an unsuitable state stays unchanged.
        match refused.filter(|problem| problem.status != 409) {
            Some(problem) => Err(failed(format!("{}: {}", action.as_str(), problem.detail))),
            None => Ok(()),
        }
    }

    async fn find(&self, which: &Which) -> Result<Option<InstanceId>, RunError> {
        let filter = Filter {
            limit: 10_000,
            ..Filter::default()
        };
        let mut all = self.queries.list(&filter).await.map_err(failed)?;
        all.reverse();
        Ok(which.find(&all).map(|found| found.header.id.clone()))
    }
}
