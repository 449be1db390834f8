//! Addresses of services from outside the definition: `functions.servers`.
//!
//! A key is the name of a function, the document that describes it, a gRPC service, or the origin of a URL. An address
//! takes precedence over the definition's, so the same definition runs against production and against a test.

use swirl_model::workflow::Function;
use swirl_spec::resource::{plain_name, scheme};
use url::Url;

/// The addresses that the operator configures.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Servers {
    /// In the order in which they were given.
    named: Vec<(String, Url)>,
    origins: Vec<(Url, Url)>,
}

/// The reason why an entry is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServersError {
    #[error(
        "`{0}` has no address: write NAME=ADDRESS, where NAME is a function, its document, a gRPC service or an \
         origin such as https://host"
    )]
    Entry(String),
    #[error("the address of `{name}` is not a URL with a host: write for example http://host:port")]
    Address { name: String },
    #[error("the address of `{name}` must have no user, password, query or fragment")]
    Parts { name: String },
}

impl Servers {
    /// Each entry is `NAME=ADDRESS`. If a name occurs twice, the first entry counts.
    ///
    /// # Errors
    /// [`ServersError`] for the first entry that is not valid.
    pub fn parse(entries: &[impl AsRef<str>]) -> Result<Servers, ServersError> {
        let mut servers = Servers::default();
        for entry in entries {
            let entry = entry.as_ref();
            let parts = entry.split_once('=');
            let parts = parts.map(|(name, address)| (name.trim(), address.trim()));
            let (name, address) = parts
                .filter(|(name, _)| !name.is_empty())
                .ok_or_else(|| ServersError::Entry(without_user(entry)))?;
            let wrong = || ServersError::Address {
                name: name.to_owned(),
            };
            let address = Url::parse(address).map_err(|_| wrong())?;
            if !address.has_host() || address.host_str().is_none_or(str::is_empty) {
                return Err(wrong());
            }
            let is_plain = address.username().is_empty()
                && address.password().is_none()
                && address.query().is_none()
                && address.fragment().is_none();
            if !is_plain {
                return Err(ServersError::Parts {
                    name: name.to_owned(),
                });
            }
            match origin(name) {
                Some(origin) => servers.origins.push((origin, address)),
                None => servers.named.push((name.to_owned(), address)),
            }
        }
        Ok(servers)
    }

    fn named(&self, matches: impl Fn(&str) -> bool) -> Option<&Url> {
        let mut named = self.named.iter();
        named
            .find(|(name, _)| matches(name))
            .map(|(_, address)| address)
    }

    /// The address of a function's service: by the function's name, else by its document or the whole operation.
    pub(crate) fn address_of(&self, function: &Function, document: Option<&str>) -> Option<&Url> {
        self.named(|name| name == &*function.name)
            .or_else(|| {
                let document = plain_name(document?);
                self.named(|name| plain_name(name) == document)
            })
            .or_else(|| self.named(|name| name == function.operation))
    }

    /// The address of a gRPC service. Its full name takes precedence over its short one.
    pub(crate) fn of_service(&self, full_name: &str, name: &str) -> Option<&Url> {
        self.named(|known| known == full_name)
            .or_else(|| self.named(|known| known == name))
    }

    /// The URL that is called instead of this one, if its origin has another address. The path is kept, below the path
    /// of the address.
    pub(crate) fn redirected(&self, url: &Url) -> Option<Url> {
        let key = |url: &Url| {
            let port = url.port_or_known_default();
            (
                url.scheme().to_owned(),
                url.host_str().map(str::to_owned),
                port,
            )
        };
        let mut origins = self.origins.iter();
        let (_, address) = origins.find(|(origin, _)| key(origin) == key(url))?;
        let base = address.path().trim_end_matches('/');
        let mut target = address.clone();
        target.set_path(&format!("{base}{}", url.path()));
        target.set_query(url.query());
        target.set_fragment(url.fragment());
        Some(target)
    }
}

/// An origin: a URL without anything behind its host and port.
fn origin(name: &str) -> Option<Url> {
    scheme(name)?;
    let (_, rest) = name.split_once("://")?;
    let is_bare = !rest.trim_end_matches('/').contains(['/', '?', '#', '@']);
    let url = Url::parse(name).ok()?;
    (is_bare && url.has_host()).then_some(url)
}

/// An invalid entry may contain a password, so only the part before it is shown then.
fn without_user(entry: &str) -> String {
    let shown = entry.split_once('@').map_or(entry, |(_, rest)| rest);
    shown.chars().take(200).collect()
}

/// The reason why a function without an address cannot be called.
pub(crate) fn unknown(function: &str, service: &str, example: &str) -> String {
    format!(
        "the address of {service} is unknown: pass it to the runtime with `--function-server {function}={example}` \
         (`functions.servers`), or give the function `metadata: {{server: \"{example}\"}}`"
    )
}

#[cfg(test)]
mod tests {
    use swirl_model::workflow::FunctionKind;

    use super::*;

    fn function(name: &str, operation: &str) -> Function {
        Function {
            name: name.into(),
            kind: FunctionKind::Rest,
            operation: operation.to_owned(),
            place: String::new(),
            resource_auth: None,
            auth: None,
            metadata: swirl_model::Data::object(),
            within: None,
        }
    }

    #[test]
    fn the_function_takes_precedence_over_its_document() {
        let servers = Servers::parse(&[
            "specs/api.yaml=http://document:1",
            "hello = http://function:2/base",
            "rest:get:/x=http://operation:3",
        ])
        .unwrap();
        let of = |name: &str, document: &str| {
            let function = function(name, &format!("{document}#op"));
            servers
                .address_of(&function, Some(document))
                .map(Url::to_string)
        };
        assert_eq!(
            of("hello", "specs/api.yaml").as_deref(),
            Some("http://function:2/base")
        );
        for document in [
            "specs/api.yaml",
            "./specs/api.yaml",
            "classpath:/specs/api.yaml",
            "file://specs/api.yaml",
        ] {
            assert_eq!(
                of("other", document).as_deref(),
                Some("http://document:1/"),
                "{document}"
            );
        }
        assert_eq!(of("other", "specs/other.yaml"), None);
        let custom = servers.address_of(&function("f", "rest:get:/x"), None);
        assert_eq!(custom.map(Url::as_str), Some("http://operation:3/"));
    }

    #[test]
    fn origins_are_redirected() {
        let servers = Servers::parse(&[
            "https://shop.example.org=http://localhost:8080/staging/",
            "http://plain:81/=http://localhost:1",
        ])
        .unwrap();
        let redirected = |url: &str| {
            let url = Url::parse(url).unwrap();
            servers.redirected(&url).map(|url| url.to_string())
        };
        for (url, expected) in [
            (
                "https://shop.example.org/api/v1?a=b",
                Some("http://localhost:8080/staging/api/v1?a=b"),
            ),
            (
                "https://shop.example.org:443/",
                Some("http://localhost:8080/staging/"),
            ),
            ("http://plain:81/x", Some("http://localhost:1/x")),
            ("http://shop.example.org/api", None),
            ("https://shop.example.org:8443/api", None),
        ] {
            assert_eq!(redirected(url).as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn grpc_services_go_by_their_full_name_first() {
        let servers = Servers::parse(&[
            "Users=grpc://a:1",
            "acme.Users = grpc://b:1",
            "Users=grpc://c:1",
        ])
        .unwrap();
        let get = |full, short| servers.of_service(full, short).map(Url::to_string);
        assert_eq!(get("acme.Users", "Users").as_deref(), Some("grpc://b:1"));
        assert_eq!(get("other.Users", "Users").as_deref(), Some("grpc://a:1"));
        assert_eq!(get("acme.Orders", "Orders"), None);
    }

    #[test]
    fn wrong_entries_are_explained() {
        for (entry, expected) in [
            ("Users", "`Users` has no address"),
            ("=http://a:1", "has no address"),
            ("f=a:1", "not a URL with a host"),
            ("f=localhost", "not a URL with a host"),
            ("f=http://me:pw@h", "must have no user"),
            ("f=http://h?x", "must have no user"),
        ] {
            let error = Servers::parse(&[entry]).unwrap_err().to_string();
            assert!(
                error.contains(expected) && !error.contains("pw"),
                "{entry}: {error}"
            );
        }
    }
}
