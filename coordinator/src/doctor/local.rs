//! Checks of this machine: the files that settings name, and the access to the API.

use std::path::Path;
use std::time::Duration;

use swirl_config::{AuthMode, Config, NatsAuth, Process, files};
use swirl_functions::secrets::{File, Folder};
use swirl_model::time::Timestamp;
use tokio::time::timeout;

use super::certificates;
use super::report::Report;
use crate::access::Token;
use crate::process::{oidc, tokens};
use crate::server::Tls;

const PROVIDER_MAX: Duration = Duration::from_secs(15);
/// A token that expires within this time should be replaced.
const SOON_MS: u64 = 14 * 24 * 60 * 60 * 1000;

pub async fn local(report: &mut Report, config: &Config, processes: &[Process]) {
    let (redis, nats) = (&config.redis.tls, &config.nats.tls);
    for (name, path) in [
        ("redis.tls_ca", &redis.ca),
        ("redis.tls_cert", &redis.cert),
        ("nats.tls_ca", &nats.ca),
        ("nats.tls_cert", &nats.cert),
    ] {
        if let Some(path) = path {
            certificates::file(report, name, path);
        }
    }
    match &config.nats.auth {
        NatsAuth::Nkey(path) => readable(report, "nats.nkey_file", path),
        NatsAuth::Credentials(path) => readable(report, "nats.credentials_file", path),
        _ => {}
    }
    if processes.contains(&Process::Worker) {
        secrets(report, config);
    }
    if processes.contains(&Process::Coordinator) {
        coordinator(report, config);
        access(report, config).await;
    }
}

fn readable(report: &mut Report, name: &str, path: &Path) {
    match files::read(path, files::BYTES_MAX) {
        Ok(_) => report.ok(name, format!("{} can be read", path.display())),
        Err(error) => {
            let message = format!("{} cannot be read: {error}", path.display());
            report.error(name, message, "check its path and permissions");
        }
    }
}

fn secrets(report: &mut Report, config: &Config) {
    let hint = "workers will not start: check its path, permissions and content";
    for path in &config.secrets.files {
        match File::new(path) {
            Ok(_) => report.ok("secrets.files", format!("{} can be read", path.display())),
            Err(error) => report.error("secrets.files", error.to_string(), hint),
        }
    }
    for path in &config.secrets.folders {
        match Folder::new(path) {
            Ok(_) => report.ok("secrets.folders", format!("{} can be read", path.display())),
            Err(error) => report.error("secrets.folders", error.to_string(), hint),
        }
    }
}

fn coordinator(report: &mut Report, config: &Config) {
    let settings = &config.coordinator;
    match &settings.tls {
        Some((cert, key)) => match Tls::load(cert, key) {
            Ok(_) => certificates::file(report, "coordinator.tls_cert", cert),
            Err(error) => {
                let hint = "coordinators will not start: check both files";
                report.error("coordinator.tls_cert", error.to_string(), hint);
            }
        },
        None if !settings.listen.ip().is_loopback() && config.auth.mode == AuthMode::On => {
            let message = "the API doesn't use TLS: tokens can be read in transit";
            let hint = "set coordinator.tls_cert and coordinator.tls_key, or put a TLS proxy in front of it";
            report.warning("coordinator.tls_cert", message, hint);
        }
        None => {}
    }
    if config.auth.mode == AuthMode::Off && !settings.listen.ip().is_loopback() {
        let message = format!("anyone who can reach {} may do everything", settings.listen);
        report.warning(
            "auth.mode",
            message,
            "set it to on, with tokens or a provider",
        );
    }
}

async fn access(report: &mut Report, config: &Config) {
    if config.auth.mode == AuthMode::Off {
        return;
    }
    match tokens(&config.auth) {
        Ok(tokens) => {
            let all = tokens.all();
            if !all.is_empty() || config.auth.tokens_file.is_some() {
                report.ok(
                    "auth.tokens",
                    format!("{} tokens are configured", all.len()),
                );
            }
            if all.is_empty() && config.auth.oidc.is_none() {
                let hint = "'swirl token create' makes one";
                report.warning(
                    "auth.tokens",
                    "no one can use the API: no token is configured",
                    hint,
                );
            }
            for token in all.iter() {
                expiry(report, token);
            }
        }
        Err(error) => {
            let hint = "coordinators will not start: check the file";
            report.error("auth.tokens_file", format!("{error:#}"), hint);
        }
    }
    let Some(settings) = &config.auth.oidc else {
        return;
    };
    if let Some(ca) = &settings.ca {
        certificates::file(report, "auth.oidc.tls_ca", ca);
    }
    let asked = async {
        let oidc = oidc(settings).map_err(|error| format!("{error:#}"))?;
        let keys = oidc.check().await?;
        if settings.sign_in.is_some() {
            oidc.check_sign_in().await?;
        }
        Ok::<usize, String>(keys)
    };
    match timeout(PROVIDER_MAX, asked).await {
        Ok(Ok(keys)) => {
            let message = format!("{} has {keys} keys that can be used", settings.issuer);
            report.ok("auth.oidc", message);
        }
        Ok(Err(reason)) => {
            let hint = "until it is, tokens of the provider get 503";
            report.error("auth.oidc", reason, hint);
        }
        Err(_) => {
            let message = format!("{} doesn't answer", settings.issuer);
            report.error("auth.oidc", message, "until it does, its tokens get 503");
        }
    }
}

fn expiry(report: &mut Report, token: &Token) {
    let Some(at) = token.expires else {
        return;
    };
    let now = Timestamp(super::servers::now_ms());
    if at <= now {
        let message = format!("the token '{}' expired at {at}", token.name);
        report.warning("auth.tokens", message, "remove it, or replace it");
    } else if at <= now.plus_ms(SOON_MS) {
        let message = format!("the token '{}' expires at {at}", token.name);
        report.warning("auth.tokens", message, "replace it");
    }
}
