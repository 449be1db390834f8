//! Arguments of the commands that run workflows: loading definitions, secrets, JSON.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use swirl_deployment::Loader;
use swirl_embedded::SystemClock;
use swirl_functions::Settings;
use swirl_functions::http::HttpConfig;
use swirl_functions::resources::Hosts;
use swirl_functions::secrets::{Chain, Environment, Fixed};

/// The reason for an action.
#[derive(Debug, clap::Args)]
pub struct Reason {
    /// The reason, for the audit log.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Reason {
    /// The reason as the query of a request.
    pub fn asked(&self) -> swirl_api::Reason {
        swirl_api::Reason {
            reason: self.reason.clone(),
        }
    }
}

/// Limits for instances that a process keeps itself.
#[derive(Debug, clap::Args)]
pub struct LimitArgs {
    /// The data that an instance may hold in all its paths of execution together. More than that is the error
    /// LimitExceeded.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = swirl_config::size)]
    limits_instance_bytes: usize,
}

impl LimitArgs {
    pub fn options(&self) -> swirl_embedded::Options {
        swirl_embedded::Options {
            instance_bytes: self.limits_instance_bytes,
            ..swirl_embedded::Options::default()
        }
    }
}

/// `hosts`: the hosts besides this machine from which documents may be fetched. `settings`: the operator's settings for
/// function types.
pub fn loader(hosts: &[String], settings: Settings) -> anyhow::Result<Loader> {
    loader_with(hosts, settings, None)
}

/// As [`loader`]. `timeout`: the limit for a call whose actions have no timeout.
pub fn loader_with(
    hosts: &[String],
    settings: Settings,
    timeout: Option<Duration>,
) -> anyhow::Result<Loader> {
    let (hosts, clock) = (Hosts::parse(hosts)?, Arc::new(SystemClock));
    let default = HttpConfig::default();
    let http = HttpConfig {
        timeout: timeout.unwrap_or(default.timeout),
        ..default
    };
    Ok(Loader::new(hosts, http, settings, clock)?)
}

/// Values from the command line take precedence over those from the environment.
pub fn secrets(given: &[String]) -> anyhow::Result<Arc<Chain>> {
    let fixed = Fixed::parse(given)?;
    Ok(Arc::new(Chain::new().then(fixed).then(Environment::new())))
}

/// Reads JSON: literally, as `@FILE`, or `-` for stdin.
pub fn json_argument(argument: &str) -> anyhow::Result<swirl_model::Data> {
    let text = match argument.strip_prefix('@') {
        Some(file) => swirl_documents::files::read(
            std::path::Path::new(file),
            swirl_documents::files::BYTES_MAX,
        )
        .with_context(|| format!("{file} cannot be read"))?,
        None if argument == "-" => {
            let mut text = Vec::new();
            std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut text)?;
            text
        }
        None => argument.as_bytes().to_vec(),
    };
    swirl_model::Data::parse(&text).with_context(|| format!("'{argument}' is not valid JSON"))
}
