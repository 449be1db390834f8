//! The state that the handlers share.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::BoxFuture;
use swirl_api::Finding;
use swirl_console::VIEWERS_MAX;
use swirl_deployment::{Checked, Deployer, Outcome, Reader, Source};
use swirl_ports::{Batches, DefinitionRecord, InstanceQueries, SavedViews};
use swirl_service::{Auditing, BatchLimits, Batching, Error, Service};
use tokio::runtime::Handle;

use super::answered::Answers;
use super::checks::Checks;
use super::documents::Documents;
use super::hosts::plain_host;
use super::insight::Insight;
use super::letters::DeadLetters;
use super::permits::DeploymentPermits;
use super::pictures::Pictures;
use super::ready::Readiness;
use super::rehearsing::Rehearsals;
use crate::access::Access;

/// A handle, since each layer of the router clones it for each request.
#[derive(Clone)]
pub struct Api(Arc<Parts>);

#[derive(Clone)]
pub struct Parts {
    /// For requests that change something.
    pub service: Service,
    /// For requests that only read.
    pub queries: Arc<dyn InstanceQueries>,
    reader: Arc<dyn Reader>,
    deployer: Deployer,
    /// Limits documents that are being read.
    pub(super) deployments: DeploymentPermits,
    pub(crate) access: Arc<Access>,
    stopping: Arc<AtomicBool>,
    /// The host names that requests may use in addition to this machine's; `None` allows any.
    pub(super) hosts: Option<Arc<[String]>>,
    /// The origins whose pages may use the API.
    pub(super) origins: Arc<[String]>,
    /// The path below which everything is served: empty, or with a slash at its beginning only.
    pub(super) base_path: Arc<str>,
    /// The senders that may deliver events as webhooks.
    pub(super) webhook_origins: Arc<[String]>,
    pub(super) metrics: Option<Metrics>,
    pub(super) answers: Option<Answers>,
    pub(super) health: Option<Arc<dyn Health>>,
    pub(super) dead_letters: Option<Arc<dyn DeadLetters>>,
    pub(super) batches: Option<(Arc<dyn Batches>, BatchLimits)>,
    pub(super) auditing: Option<Arc<Auditing>>,
    pub(super) views: Option<Arc<dyn SavedViews>>,
    pub(super) rehearsals: Option<Rehearsals>,
    pub(super) insight: Option<Arc<dyn Insight>>,
    pub(super) checks: Option<Checks>,
    /// How many pages of the console may get hints.
    pub(super) viewers_max: usize,
    pub(super) pictures: Pictures,
    pub(super) documents: Documents,
    pub(super) readiness: Readiness,
}

/// Metrics in the text format of Prometheus; `None` if they are unavailable now.
pub type Metrics = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// How the servers are that the API depends on.
pub trait Health: Send + Sync {
    /// The functions that are currently unavailable, although requests are answered. Fails if changes cannot be stored.
    fn limited(&self) -> BoxFuture<'_, swirl_ports::Result<Vec<String>>>;

    /// The reason why only a restart of this process helps.
    fn beyond_recovery(&self) -> Option<String>;
}

impl Deref for Api {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl Api {
    pub fn new(
        service: Service,
        queries: Arc<dyn InstanceQueries>,
        reader: Arc<dyn Reader>,
        access: Access,
    ) -> Api {
        Api(Arc::new(Parts {
            deployer: Deployer::new(service.clone(), queries.clone()),
            deployments: DeploymentPermits::default(),
            service,
            queries,
            reader,
            access: Arc::new(access),
            stopping: Arc::default(),
            hosts: None,
            origins: Arc::default(),
            base_path: Arc::default(),
            webhook_origins: Arc::default(),
            metrics: None,
            answers: None,
            health: None,
            dead_letters: None,
            batches: None,
            auditing: None,
            views: None,
            rehearsals: None,
            insight: None,
            checks: None,
            viewers_max: VIEWERS_MAX,
            pictures: Pictures::default(),
            documents: Documents::default(),
            readiness: Readiness::default(),
        }))
    }

    /// The parts, to set one of them.
    fn parts(&mut self) -> &mut Parts {
        Arc::make_mut(&mut self.0)
    }

    /// Sets what `/readyz` and `/healthz` report.
    #[must_use]
    pub fn with_health(mut self, health: Arc<dyn Health>) -> Api {
        self.parts().health = Some(health);
        self
    }

    /// Sets the store of dead letters; without it there are none.
    #[must_use]
    pub fn with_dead_letters(mut self, kept: Arc<dyn DeadLetters>) -> Api {
        self.parts().dead_letters = Some(kept);
        self
    }

    /// Sets the store of batches; without it there are none. [`Batching::run`] has to carry them out somewhere.
    #[must_use]
    pub fn with_batches(mut self, batches: &Batching) -> Api {
        self.parts().batches = Some((batches.store.clone(), batches.limits));
        self
    }

    /// Sets the audit log; without it actions leave no entry.
    #[must_use]
    pub fn with_auditing(mut self, auditing: Auditing) -> Api {
        self.parts().auditing = Some(Arc::new(auditing));
        self
    }

    /// Sets the store of saved views; without it there are none.
    #[must_use]
    pub fn with_views(mut self, views: Arc<dyn SavedViews>) -> Api {
        self.parts().views = Some(views);
        self
    }

    /// Lets definitions be rehearsed; without it rehearsals are switched off.
    #[must_use]
    pub fn with_rehearsals(mut self, rehearsals: Rehearsals) -> Api {
        self.parts().rehearsals = Some(rehearsals);
        self
    }

    /// Sets how many pages of the console may get hints about changes; further ones look for changes by themselves.
    #[must_use]
    pub fn with_viewers_max(mut self, viewers_max: usize) -> Api {
        self.parts().viewers_max = viewers_max;
        self
    }

    /// Sets the source of what is known about the system; without it little is.
    #[must_use]
    pub fn with_insight(mut self, insight: Arc<dyn Insight>) -> Api {
        self.parts().checks = Some(Checks::new(insight.clone(), self.service.clock.clone()));
        self.parts().insight = Some(insight);
        self
    }

    /// Sets the threads from which the servers are looked at for `/readyz`.
    pub(crate) fn looked_at_from(&mut self, process: Handle) {
        self.parts().readiness = Readiness::from(process);
    }

    /// Ends all waiting. Clients that wait for the end of an instance get its current status, and can wait at another
    /// server.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Requires that requests name this machine, by `localhost` or by an address. Otherwise a web page whose host name
    /// resolves to this machine could do whatever its visitor may do.
    #[must_use]
    pub fn only_local(self) -> Api {
        self.only_hosts(&[])
    }

    /// Like [`Api::only_local`], but also allows these host names.
    #[must_use]
    pub fn only_hosts(mut self, hosts: &[String]) -> Api {
        let hosts = hosts.iter().map(|host| plain_host(host));
        self.parts().hosts = Some(hosts.collect());
        self
    }

    /// Lets web pages of these origins use the API. An origin is written as browsers do, with scheme, host and port,
    /// such as `https://app.example.org`. Pages of other origins are refused.
    #[must_use]
    pub fn with_origins(mut self, origins: &[String]) -> Api {
        self.parts().origins = origins.into();
        self
    }

    /// Serves everything below a path as well, and puts that path before all addresses in responses.
    #[must_use]
    pub fn with_base_path(mut self, base: &str) -> Api {
        self.parts().base_path = base.trim_end_matches('/').into();
        self
    }

    /// Agrees to the deliveries of these senders of webhooks, by the names that they give themselves; `*` is any.
    #[must_use]
    pub fn with_webhook_origins(mut self, origins: &[String]) -> Api {
        self.parts().webhook_origins = origins.into();
        self
    }

    /// Serves metrics at `/metrics`.
    #[must_use]
    pub fn with_metrics(mut self, metrics: Metrics) -> Api {
        self.parts().metrics = Some(metrics);
        self
    }

    /// Reports each request to `answers` after its response.
    #[must_use]
    pub fn with_answers(mut self, answers: Answers) -> Api {
        self.parts().answers = Some(answers);
        self
    }

    /// Reads and deploys a document. Running instances keep the definition that they started with.
    ///
    /// # Errors
    /// The store failed.
    pub async fn deploy(&self, source: Source) -> Result<Outcome, Error> {
        self.deploy_by(self.reader.clone(), source, false).await
    }

    /// Like [`Api::deploy`]. Also returns the warnings about the document.
    ///
    /// # Errors
    /// The store failed.
    pub(super) async fn deploy_with_warnings(
        &self,
        source: Source,
    ) -> Result<(Outcome, Vec<Finding>), Error> {
        self.deployer
            .deploy(self.reader.clone(), source, false)
            .await
    }

    /// Like [`Api::deploy`], with a reader other than that of requests; see [`Deployer::deploy`].
    ///
    /// # Errors
    /// The store failed.
    pub async fn deploy_by(
        &self,
        reader: Arc<dyn Reader>,
        source: Source,
        replaces: bool,
    ) -> Result<Outcome, Error> {
        let (outcome, _) = self.deployer.deploy(reader, source, replaces).await?;
        Ok(outcome)
    }

    /// The warnings about a deployed document.
    pub(super) async fn warnings(&self, record: &DefinitionRecord) -> Vec<Finding> {
        let source = Source {
            resources: record.resources.clone(),
            ..Source::new(record.name.clone(), record.document.clone())
        };
        let reader = self.reader.clone();
        let read = tokio::task::spawn_blocking(move || reader.warnings(&source));
        read.await.unwrap_or_default()
    }

    /// Checks a document as if it were deployed; see [`Deployer::check`].
    ///
    /// # Errors
    /// The store failed.
    pub(super) async fn check(&self, source: Source) -> Result<Checked, Error> {
        self.deployer.check(self.reader.clone(), source).await
    }
}
