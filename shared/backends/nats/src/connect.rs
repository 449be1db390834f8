//! The connection of a process, which reconnects automatically.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, ServerInfo};

use crate::Error;

/// A dead server is noticed after two of these.
const PING: Duration = Duration::from_secs(5);
const RECONNECT_MAX: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
pub struct Options {
    /// URLs such as `nats://host:4222`. Any of them may be used.
    pub servers: Vec<String>,
    /// The name of the connection, which the server shows.
    pub name: String,
    pub auth: Auth,
    pub tls: Tls,
    /// The time limit for connecting. The default is 5 s.
    pub connect_timeout: Duration,
    /// The time limit for requests other than JetStream operations. The default is 10 s.
    pub request_timeout: Duration,
}

#[derive(Clone, Default)]
pub enum Auth {
    #[default]
    None,
    User {
        user: String,
        password: String,
    },
    Token(String),
    /// A file that contains an NKey seed.
    NkeyFile(PathBuf),
    /// A file with a JWT and its seed.
    CredentialsFile(PathBuf),
}

impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Auth::None => "None",
            Auth::User { .. } => "User(...)",
            Auth::Token(_) => "Token(...)",
            Auth::NkeyFile(_) => "NkeyFile(...)",
            Auth::CredentialsFile(_) => "CredentialsFile(...)",
        })
    }
}

#[derive(Debug, Clone, Default)]
pub struct Tls {
    /// Refuses servers that don't offer TLS.
    pub required: bool,
    /// The trusted CA certificates, instead of the machine's.
    pub ca: Option<PathBuf>,
    /// The client's certificate and key.
    pub client: Option<(PathBuf, PathBuf)>,
}

impl Options {
    pub fn new(servers: Vec<String>, name: impl Into<String>) -> Options {
        Options {
            servers,
            name: name.into(),
            auth: Auth::None,
            tls: Tls::default(),
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(10),
        }
    }

    fn shown(&self) -> String {
        let hosts: Vec<&str> = self
            .servers
            .iter()
            .map(|url| url.rsplit_once('@').map_or(url.as_str(), |(_, host)| host))
            .collect();
        hosts.join(", ")
    }
}

/// Hosts and ports of the server of a connection and of those that it names.
pub fn places(info: &ServerInfo) -> Vec<(String, u16)> {
    let named = info.connect_urls.iter().filter_map(|url| {
        let (host, port) = url.rsplit_once(':')?;
        let host = host.trim_matches(['[', ']']).to_owned();
        Some((host, port.parse().ok()?))
    });
    // A server that listens on all of its addresses calls itself `0.0.0.0`.
    let is_all = info
        .host
        .parse::<IpAddr>()
        .is_ok_and(|host| host.is_unspecified());
    let own = (!is_all).then(|| (info.host.clone(), info.port));
    named.chain(own).collect()
}

/// Connects once. From then on the client reconnects whenever the connection breaks.
pub async fn connect(options: &Options) -> Result<Client, Error> {
    let mut nats = ConnectOptions::new()
        .name(&options.name)
        .connection_timeout(options.connect_timeout)
        .request_timeout(Some(options.request_timeout))
        .ping_interval(PING)
        .max_reconnects(None)
        .reconnect_delay_callback(|attempt| {
            let exponent = attempt.min(6) as u32;
            Duration::from_millis(25 << exponent).min(RECONNECT_MAX)
        })
        .event_callback(|event| async move {
            match event {
                Event::Connected => tracing::debug!("connected to NATS"),
                Event::Disconnected => tracing::warn!("the connection to NATS is lost"),
                other => tracing::warn!("NATS: {other}"),
            }
        });
    let file = |path: &PathBuf, error: std::io::Error| Error::File {
        path: path.display().to_string(),
        reason: error.to_string(),
    };
    nats = match &options.auth {
        Auth::None => nats,
        Auth::User { user, password } => nats.user_and_password(user.clone(), password.clone()),
        Auth::Token(token) => nats.token(token.clone()),
        Auth::NkeyFile(path) => {
            let seed = std::fs::read_to_string(path).map_err(|error| file(path, error))?;
            nats.nkey(seed.trim().to_owned())
        }
        Auth::CredentialsFile(path) => nats
            .credentials_file(path)
            .await
            .map_err(|error| file(path, error))?,
    };
    if options.tls.required {
        nats = nats.require_tls(true);
    }
    if let Some(ca) = &options.tls.ca {
        nats = nats.add_root_certificates(ca.clone());
    }
    if let Some((certificate, key)) = &options.tls.client {
        nats = nats.add_client_certificate(certificate.clone(), key.clone());
    }
    let connected = nats.connect(options.servers.clone()).await;
    connected.map_err(|error| {
        let (servers, reason) = (options.shown(), error.to_string());
        match error.kind() {
            ConnectErrorKind::Io | ConnectErrorKind::TimedOut | ConnectErrorKind::Dns => {
                Error::Unreachable { servers, reason }
            }
            _ => Error::Refused { servers, reason },
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_name_themselves_and_others() {
        let info = |host: &str, urls: &[&str]| ServerInfo {
            host: host.to_owned(),
            port: 4222,
            connect_urls: urls.iter().map(ToString::to_string).collect(),
            ..ServerInfo::default()
        };
        let at = |host: &str, port| (host.to_owned(), port);
        assert_eq!(
            places(&info("0.0.0.0", &["10.0.0.1:4222", "[fd00::1]:4223"])),
            [at("10.0.0.1", 4222), at("fd00::1", 4223)]
        );
        assert_eq!(places(&info("nats-0", &[])), [at("nats-0", 4222)]);
    }
}
