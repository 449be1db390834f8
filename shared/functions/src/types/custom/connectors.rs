//! The operator's settings for custom function types.

use std::fmt;

use url::Url;

use crate::http::shown;
use crate::types::TYPES;

/// The language's `type` for functions that a runtime defines itself.
const CUSTOM: &str = "custom";

/// The prefix of a command.
const EXEC: &str = "exec:";

/// The prefix of a WebAssembly module.
const WASM: &str = "wasm:";

/// The implementation of a custom function type.
#[derive(Clone, PartialEq, Eq)]
pub enum Connector {
    /// A service that takes a call as a POST of JSON.
    Http(Url),
    /// A command that takes a call as JSON on stdin. The words are the program and its arguments.
    Exec(Vec<String>),
    /// The service that replies on a subject of a NATS server.
    Nats(Subject),
    /// A WebAssembly module that takes a call as JSON in its memory.
    #[cfg(feature = "wasm")]
    Wasm(Module),
}

/// A module that has been loaded and can be called.
#[cfg(feature = "wasm")]
#[derive(Clone, PartialEq, Eq)]
pub struct Module(pub(super) super::wasm::Program);

/// A subject and its server.
#[derive(Clone, PartialEq, Eq)]
pub struct Subject {
    pub(super) server: Url,
    pub(super) subject: String,
}

impl Subject {
    /// Parses `nats://host:port/subject`, or `tls://` for TLS.
    fn of(url: Url) -> Option<Subject> {
        let path = url.path().strip_prefix('/').unwrap_or_default();
        let subject = percent_encoding::percent_decode_str(path)
            .decode_utf8()
            .ok()?;
        // A client may not publish to a subject with empty parts, spaces or wildcards.
        let good = |part: &str| {
            !part.is_empty()
                && part != "*"
                && part != ">"
                && !part.contains(|c: char| c.is_whitespace() || c.is_control())
        };
        let is_good = url.has_host()
            && url.query().is_none()
            && url.fragment().is_none()
            && subject.split('.').all(good);
        let subject = subject.into_owned();
        is_good.then_some(Subject {
            server: url,
            subject,
        })
    }
}

/// Connectors by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Connectors(Vec<(String, Connector)>);

/// The reason why an entry is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectorError {
    #[error(
        "`{0}` names no connector: write NAME=http://host/path, NAME=nats://host:port/subject, \
         NAME=exec:PROGRAM ARGUMENTS or NAME=wasm:MODULE"
    )]
    Entry(String),
    #[error("a connector cannot have the name `{0}`: it is a function type of the language")]
    Name(String),
    #[error(
        "the connector `{0}` is neither an http or https URL with a host, nor a nats or tls URL with a \
         host and a subject, nor `exec:` and a command, nor `wasm:` and a file"
    )]
    Target(String),
    #[error("the command of the connector `{0}` has a quote that isn't closed")]
    Quotes(String),
    #[error("the connector `{0}` cannot be used: {1}")]
    Module(String, String),
}

impl Connectors {
    /// Each entry is `NAME=http(s)://host/path`, `NAME=nats://host:port/subject` (`tls://` with TLS),
    /// `NAME=exec:PROGRAM ARGUMENTS`, or `NAME=wasm:MODULE` with a file that is read immediately. The words of a
    /// command are split as in a shell, but nothing in them is expanded. If a name occurs twice, the first one counts.
    ///
    /// # Errors
    /// [`ConnectorError`] for the first entry that is not valid.
    pub fn parse(entries: &[impl AsRef<str>]) -> Result<Connectors, ConnectorError> {
        let entries = entries.iter().map(|text| entry(text.as_ref()));
        entries.collect::<Result<_, _>>().map(Connectors)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the connector for a function's type, and its name. The operation of a function of type `custom` may
    /// begin with the connector's name and a colon.
    pub(super) fn find(&self, kind: &str, operation: &str) -> Option<(&str, &Connector)> {
        let named = |wanted: &str| {
            let found = self.0.iter().find(|(name, _)| name == wanted);
            found.map(|(name, connector)| (name.as_str(), connector))
        };
        let prefix = operation.split_once(':').filter(|_| kind == CUSTOM);
        prefix
            .and_then(|(prefix, _)| named(prefix))
            .or_else(|| named(kind))
    }
}

fn entry(entry: &str) -> Result<(String, Connector), ConnectorError> {
    let parts = entry.split_once('=');
    let (name, target) = parts
        .map(|(name, target)| (name.trim(), target.trim()))
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| ConnectorError::Entry(entry.to_owned()))?;
    let is_known = TYPES
        .iter()
        .any(|known| known.word == name && name != CUSTOM);
    if is_known || name == "expression" {
        return Err(ConnectorError::Name(name.to_owned()));
    }
    let connector = connector(name, target)?;
    Ok((name.to_owned(), connector))
}

fn connector(name: &str, target: &str) -> Result<Connector, ConnectorError> {
    let wrong = || ConnectorError::Target(name.to_owned());
    if let Some(command) = target.strip_prefix(EXEC) {
        let words = shlex::split(command).ok_or_else(|| ConnectorError::Quotes(name.to_owned()))?;
        return match words.first() {
            Some(program) if !program.is_empty() => Ok(Connector::Exec(words)),
            _ => Err(wrong()),
        };
    }
    if let Some(path) = target.strip_prefix(WASM) {
        return module(path).map_err(|reason| ConnectorError::Module(name.to_owned(), reason));
    }
    let url = Url::parse(target).map_err(|_| wrong())?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(Connector::Http(url)),
        "nats" | "tls" => Subject::of(url).map(Connector::Nats).ok_or_else(wrong),
        _ => Err(wrong()),
    }
}

#[cfg(feature = "wasm")]
fn module(path: &str) -> Result<Connector, String> {
    let program = super::wasm::Program::load(path)?;
    Ok(Connector::Wasm(Module(program)))
}

#[cfg(not(feature = "wasm"))]
fn module(_: &str) -> Result<Connector, String> {
    Err("this build has no WebAssembly; build it with `--features wasm`".to_owned())
}

/// Omits parts that may be secret: a URL's user and query, a command's arguments.
impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Connector::Http(url) => write!(f, "Http({})", shown(url)),
            Connector::Nats(to) => write!(f, "Nats({})", shown(&to.server)),
            #[cfg(feature = "wasm")]
            Connector::Wasm(module) => write!(f, "Wasm({})", module.0.path()),
            Connector::Exec(words) => {
                write!(f, "Exec({})", words.first().map_or("", String::as_str))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries() {
        let connectors = Connectors::parse(&[
            "mail=https://me:pw@mail.example.org/send?key=1",
            "script = exec:deno run '/opt/my scripts/run.ts' \"a b\" $HOME",
            "mail=exec:other",
            "price=nats://me:pw@nats.example.org/functions.price",
        ])
        .unwrap();
        let find = |kind| connectors.find(kind, "x").map(|(_, connector)| connector);
        assert!(matches!(find("mail"), Some(Connector::Http(_))));
        let words = ["deno", "run", "/opt/my scripts/run.ts", "a b", "$HOME"];
        let words = words.map(str::to_owned).to_vec();
        assert_eq!(find("script"), Some(&Connector::Exec(words)));
        assert_eq!(find("none"), None);
        assert!(
            matches!(find("price"), Some(Connector::Nats(to)) if to.subject == "functions.price")
        );
        let shown = format!("{connectors:?}");
        assert!(!shown.contains("pw") && !shown.contains("key"), "{shown}");
        for (entry, expected) in [
            ("mail", ConnectorError::Entry("mail".to_owned())),
            ("=exec:cat", ConnectorError::Entry("=exec:cat".to_owned())),
            ("rest=exec:cat", ConnectorError::Name("rest".to_owned())),
            (
                "expression=exec:cat",
                ConnectorError::Name("expression".to_owned()),
            ),
            ("a=exec:", ConnectorError::Target("a".to_owned())),
            ("a=exec:''", ConnectorError::Target("a".to_owned())),
            ("a=cat", ConnectorError::Target("a".to_owned())),
            ("a=nats://h", ConnectorError::Target("a".to_owned())),
            ("a=nats://h/a.*", ConnectorError::Target("a".to_owned())),
            ("a=nats://h/a..b", ConnectorError::Target("a".to_owned())),
            ("a=tls:///a", ConnectorError::Target("a".to_owned())),
            ("a=ftp://h/", ConnectorError::Target("a".to_owned())),
            ("a=exec:cat 'b", ConnectorError::Quotes("a".to_owned())),
        ] {
            assert_eq!(Connectors::parse(&[entry]), Err(expected), "{entry}");
        }
    }

    #[cfg(not(feature = "wasm"))]
    #[test]
    fn a_build_without_webassembly_rejects_modules() {
        let error = Connectors::parse(&["a=wasm:a.wasm"]).unwrap_err();
        assert!(error.to_string().contains("`--features wasm`"), "{error}");
    }

    #[test]
    fn a_function_of_type_custom_may_name_its_connector() {
        let connectors =
            Connectors::parse(&["sysout=exec:log", "custom=exec:any", "acme=exec:own"]).unwrap();
        for (kind, operation, expected) in [
            ("custom", "sysout:INFO", Some("sysout")),
            ("custom", "/path/to/script.ts#main", Some("custom")),
            ("custom", "service:java:a.B", Some("custom")),
            ("acme", "sysout:INFO", Some("acme")),
            ("other", "sysout:INFO", None),
        ] {
            let found = connectors.find(kind, operation).map(|(name, _)| name);
            assert_eq!(found, expected, "{kind} {operation}");
        }
    }
}
