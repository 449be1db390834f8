//! Clients of single servers: addresses, TLS, and the settings of sockets.

use std::time::Duration;

use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::{
    Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisError,
    RedisResult, TlsCertificates,
};

use crate::options::{ConnectError, Options, Tls};

/// A peer that is gone is noticed after this much time, also by connections that only receive.
const GONE: Duration = Duration::from_secs(15);
/// A quiet connection is probed by the kernel after this much time, and then three times as often.
const QUIET: Duration = Duration::from_secs(9);

pub(crate) fn certificates(tls: &Tls) -> TlsCertificates {
    let client = tls.client.as_ref().map(|(chain, key)| ClientTlsConfig {
        client_cert: chain.clone(),
        client_key: key.clone(),
    });
    TlsCertificates {
        client_tls: client,
        root_cert: tls.ca.clone(),
    }
}

pub(crate) fn parse(url: &str) -> Result<ConnectionInfo, ConnectError> {
    let plain = url.replacen("-sentinel://", "://", 1);
    let info = plain.as_str().into_connection_info();
    info.map_err(|error| url_error(url, &error))
}

pub(crate) fn address(url: &str, options: &Options) -> Result<ConnectionInfo, ConnectError> {
    let info = parse(url)?;
    let mut settings = info.redis_settings().clone();
    if let Some(username) = &options.username {
        settings = settings.set_username(username);
    }
    if let Some(password) = &options.password {
        settings = settings.set_password(password);
    }
    let info = info.set_redis_settings(settings);
    Ok(info.set_tcp_settings(tcp_settings()))
}

/// Without these, a connection whose peer's machine is gone would stay for a quarter of an hour.
fn tcp_settings() -> TcpSettings {
    let keepalive = TcpKeepalive::new().with_time(QUIET);
    #[cfg(target_os = "linux")]
    let keepalive = keepalive.with_interval(QUIET / 3).with_retries(3);
    let settings = TcpSettings::default().set_nodelay(true);
    #[cfg(target_os = "linux")]
    let settings = settings.set_user_timeout(GONE);
    settings.set_keepalive(keepalive)
}

/// The master that a sentinel names.
pub(crate) fn with_keepalive(found: &Client) -> RedisResult<Client> {
    let info = found.get_connection_info().clone();
    open(
        info.set_tcp_settings(tcp_settings()),
        certificates(&Tls::default()),
    )
}

pub(crate) fn is_tls(info: &ConnectionInfo) -> bool {
    matches!(info.addr(), ConnectionAddr::TcpTls { .. })
}

pub(crate) fn open(info: ConnectionInfo, tls: TlsCertificates) -> RedisResult<Client> {
    if is_tls(&info) {
        Client::build_with_tls(info, tls)
    } else {
        Client::open(info)
    }
}

/// Shows only the part of a URL that can't contain a password.
pub(crate) fn url_error(url: &str, error: &RedisError) -> ConnectError {
    let shown = url
        .split_whitespace()
        .map(|url| match url.rsplit_once('@') {
            Some((_, rest)) => format!("***@{rest}"),
            None => url.to_owned(),
        });
    ConnectError::Url {
        url: shown.collect::<Vec<_>>().join(" "),
        reason: error.to_string(),
    }
}
