//! The address of a gRPC server.

use std::fmt;
use std::str::FromStr;

use url::Url;

/// A server's address: `grpc://host:port` without TLS, `grpcs://host:port` with TLS.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Server {
    host: String,
    port: u16,
    tls: bool,
}

/// A text that is not a valid address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a valid address of a gRPC server: write grpc://host:port, or grpcs://host:port for TLS"
)]
pub struct ServerError(pub String);

impl Server {
    pub fn uses_tls(&self) -> bool {
        self.tls
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// The URI in the form that HTTP/2 requires.
    pub(super) fn http_uri(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}:{}", self.host, self.port)
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "grpcs" } else { "grpc" };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

impl FromStr for Server {
    type Err = ServerError;

    /// `http` and `https` mean `grpc` and `grpcs`. The default port is 80, or 443 with TLS.
    fn from_str(text: &str) -> Result<Server, ServerError> {
        // An invalid address may contain a password, so only the part before the host is shown then.
        let wrong = || {
            let shown = text.split_once('@').map_or(text, |(_, rest)| rest);
            ServerError(shown.chars().take(200).collect())
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        let tls = match scheme {
            "grpc" | "http" => false,
            "grpcs" | "https" => true,
            _ => return Err(wrong()),
        };
        // With a well-known scheme, `Url` validates and normalises the host.
        let scheme = if tls { "https" } else { "http" };
        let url = Url::parse(&format!("{scheme}://{rest}")).map_err(|_| wrong())?;
        let is_bare = url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        let host = url.host_str().filter(|_| is_bare).ok_or_else(wrong)?;
        Ok(Server {
            host: host.to_owned(),
            port: url.port_or_known_default().unwrap_or(80),
            tls,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (text, expected) in [
            ("grpc://users:9000", "grpc://users:9000"),
            ("http://127.0.0.1:1/", "grpc://127.0.0.1:1"),
            ("grpcs://Users.Example.org", "grpcs://users.example.org:443"),
            ("https://h", "grpcs://h:443"),
            ("grpc://h", "grpc://h:80"),
            ("grpc://[::1]:9000", "grpc://[::1]:9000"),
        ] {
            let server: Server = text.parse().unwrap();
            assert_eq!(server.to_string(), expected);
        }
        for text in [
            "",
            "users:9000",
            "users",
            "ftp://users:9000",
            "grpc://",
            "grpc://h:9000/path",
            "grpc://h:9000?a",
            "grpc://h:99999",
            "grpc://a b:1",
        ] {
            assert_eq!(text.parse::<Server>(), Err(ServerError(text.to_owned())));
        }
        let error = "grpc://me:pw@h:1".parse::<Server>().unwrap_err();
        assert!(!error.to_string().contains("pw"), "{error}");
    }
}
