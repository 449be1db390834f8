//! Documents that a definition refers to by URI.
//!
//! Reading a definition does no IO itself: the caller passes in the source of documents. Those behind `http:` and
//! `https:` are fetched by a crate that has a client.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The URI of functions that a deployment gives, for documents that name functions without implementations.
pub const FUNCTIONS_URI: &str = "swirl:functions";

/// Where referenced documents come from.
pub trait Resources {
    /// The bytes of the document at `uri`. A relative one is relative to `base`, the URI or path of
    /// the document that refers to it, where that is known.
    fn fetch(&self, uri: &str, base: Option<&str>) -> Result<Vec<u8>, ResourceError>;
}

/// The reason why a document is unavailable. Each message says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResourceError {
    #[error("nothing is known at '{uri}'{}", match suggestion {
        Some(near) => format!("; did you mean '{near}'?"),
        None => String::new(),
    })]
    NotFound {
        uri: String,
        suggestion: Option<String>,
    },
    #[error("'{uri}' cannot be read from {path}: {reason}")]
    Unreadable {
        uri: String,
        path: String,
        reason: String,
    },
    #[error("'{uri}' has more than {limit} bytes; split it, or raise the limit")]
    TooLarge { uri: String, limit: usize },
    #[error("'{uri}' is outside of the folder of the definition; move it into that folder")]
    Outside { uri: String },
    #[error("'{uri}' has the scheme '{scheme}', which is not available here; use a file")]
    Scheme { uri: String, scheme: String },
    #[error("'{uri}' cannot be fetched: {reason}")]
    Failed { uri: String, reason: String },
}

/// The scheme of a URI. One letter is a drive of Windows, not a scheme.
pub fn scheme(uri: &str) -> Option<&str> {
    let (scheme, _) = uri.split_once(':')?;
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let begins = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    (scheme.len() > 1 && begins && scheme.chars().all(good)).then_some(scheme)
}

/// A URI without `file:` or `file://`; the language writes `file://name.json` for a name next to the definition.
fn without_file(uri: &str) -> &str {
    match uri.get(..5) {
        Some(prefix) if prefix.eq_ignore_ascii_case("file:") => {
            uri[5..].strip_prefix("//").unwrap_or(&uri[5..])
        }
        _ => match classpath(uri) {
            Some(name) => name,
            None => uri,
        },
    }
}

/// The form `classpath:name`, which other runtimes write for a name next to the definition.
pub fn classpath(uri: &str) -> Option<&str> {
    let own = scheme(uri)?;
    let rest = own
        .eq_ignore_ascii_case("classpath")
        .then(|| &uri[own.len() + 1..])?;
    Some(rest.trim_start_matches('/'))
}

fn is_file(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case("file") || scheme.eq_ignore_ascii_case("classpath")
}

/// Documents in memory, by URI. A `file:` or `file://` in front makes no difference, nor does
/// `./`.
#[derive(Debug, Clone, Default)]
pub struct MapResources {
    documents: BTreeMap<String, Vec<u8>>,
}

impl MapResources {
    pub fn insert(&mut self, uri: impl Into<String>, document: impl Into<Vec<u8>>) {
        self.documents.insert(uri.into(), document.into());
    }
}

fn plain_name(uri: &str) -> &str {
    let name = without_file(uri);
    name.strip_prefix("./").unwrap_or(name)
}

impl Resources for MapResources {
    fn fetch(&self, uri: &str, _base: Option<&str>) -> Result<Vec<u8>, ResourceError> {
        let same = || {
            let mut documents = self.documents.iter();
            documents.find(|(known, _)| plain_name(known) == plain_name(uri))
        };
        let found = self.documents.get_key_value(uri).or_else(same);
        found.map(|(_, document)| document.clone()).ok_or_else(|| {
            let known = self.documents.keys().map(String::as_str);
            let suggestion = crate::suggest::did_you_mean(uri, known).map(str::to_owned);
            ResourceError::NotFound {
                uri: uri.to_owned(),
                suggestion,
            }
        })
    }
}

/// Files, relative to the definition's folder. Nothing outside of that folder is read unless
/// that is allowed: a definition may come from someone else.
#[derive(Debug, Clone)]
pub struct FileResources {
    folder: PathBuf,
    limit: usize,
    anywhere: bool,
}

impl FileResources {
    /// `limit` is the most bytes that a file may have.
    pub fn new(folder: impl Into<PathBuf>, limit: usize) -> FileResources {
        FileResources {
            folder: folder.into(),
            limit,
            anywhere: false,
        }
    }

    /// Allows files outside of the folder, as where the user's own definitions are checked.
    pub fn anywhere(mut self) -> FileResources {
        self.anywhere = true;
        self
    }

    fn path(&self, uri: &str, base: Option<&str>) -> Result<PathBuf, ResourceError> {
        if let Some(scheme) = scheme(uri).filter(|scheme| !is_file(scheme)) {
            let scheme = scheme.to_owned();
            return Err(ResourceError::Scheme {
                uri: uri.to_owned(),
                scheme,
            });
        }
        let name = without_file(uri);
        let name = name.split(['#', '?']).next().unwrap_or(name);
        let name = decode(name).ok_or_else(|| ResourceError::Failed {
            uri: uri.to_owned(),
            reason: "a percent escape in it is not valid".to_owned(),
        })?;
        // `file://localhost/etc` names this machine.
        let name = match (uri.contains("//"), name.strip_prefix("localhost/")) {
            (true, Some(rest)) => format!("/{rest}"),
            _ => name,
        };
        let base = base.filter(|base| scheme(base).is_none_or(is_file));
        let folder = match base.and_then(|base| Path::new(without_file(base)).parent()) {
            // Joining an absolute path replaces the folder.
            Some(parent) => self.folder.join(parent),
            None => self.folder.clone(),
        };
        Ok(folder.join(name))
    }
}

impl Resources for FileResources {
    fn fetch(&self, uri: &str, base: Option<&str>) -> Result<Vec<u8>, ResourceError> {
        let path = self.path(uri, base)?;
        let unreadable = |error: std::io::Error| ResourceError::Unreadable {
            uri: uri.to_owned(),
            path: path.display().to_string(),
            reason: error.to_string(),
        };
        let real = path.canonicalize().map_err(unreadable)?;
        if !self.anywhere {
            // Compared after links were followed, so that none leads out.
            let folder = match self.folder.as_os_str().is_empty() {
                true => Path::new("."),
                false => &self.folder,
            };
            if !real.starts_with(folder.canonicalize().map_err(unreadable)?) {
                return Err(ResourceError::Outside {
                    uri: uri.to_owned(),
                });
            }
        }
        // A pipe or device could block for ever.
        let file = std::fs::File::open(&real).map_err(unreadable)?;
        if !file.metadata().map_err(unreadable)?.is_file() {
            return Err(unreadable(std::io::Error::other("it is not a file")));
        }
        let mut bytes = Vec::new();
        let most = self.limit as u64 + 1;
        file.take(most)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        if bytes.len() > self.limit {
            return Err(ResourceError::TooLarge {
                uri: uri.to_owned(),
                limit: self.limit,
            });
        }
        Ok(bytes)
    }
}

/// Percent escapes; `None` if one is wrong or the result isn't a text.
pub(crate) fn decode(name: &str) -> Option<String> {
    if !name.contains('%') {
        return Some(name.to_owned());
    }
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                (digit()? * 16 + digit()?) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_memory() {
        let mut map = MapResources::default();
        map.insert("file://functions.json", "a");
        map.insert("events.yaml", "b");
        map.insert("https://example.org/x.json", "c");
        for (uri, found) in [
            ("file://functions.json", Some("a")),
            ("functions.json", Some("a")),
            ("file:functions.json", Some("a")),
            ("./functions.json", Some("a")),
            ("FILE://events.yaml", Some("b")),
            ("file:./events.yaml", Some("b")),
            ("https://example.org/x.json", Some("c")),
            ("http://example.org/x.json", None),
            ("\u{e9}\u{e9}\u{e9}", None),
        ] {
            let found = found.map(|text| text.as_bytes().to_vec());
            assert_eq!(map.fetch(uri, None).ok(), found, "{uri}");
        }
        let error = map.fetch("event.yaml", None).unwrap_err().to_string();
        assert_eq!(
            error,
            "nothing is known at 'event.yaml'; did you mean 'events.yaml'?"
        );
    }

    #[test]
    fn files() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(inner.join("a b.json"), "ab").unwrap();
        std::fs::write(inner.join("large.json"), "0123456789").unwrap();
        std::fs::write(folder.path().join("secret"), "no").unwrap();
        let files = FileResources::new(&inner, 5);
        let show = |uri: &str, base: Option<&str>| match files.fetch(uri, base) {
            Ok(bytes) => String::from_utf8(bytes).unwrap(),
            Err(error) => error.to_string(),
        };
        let absolute = format!("file://{}", inner.join("a b.json").display());
        for uri in [
            "a b.json",
            "file://a%20b.json",
            "file:a b.json",
            "./a%20b.json#x",
            &absolute,
        ] {
            assert_eq!(show(uri, None), "ab", "{uri}");
        }
        assert_eq!(show("../inner/a b.json", Some("sub.json")), "ab");
        for (uri, part) in [
            ("large.json", "more than 5 bytes"),
            ("../secret", "outside of the folder"),
            ("file:///etc/passwd", "outside of the folder"),
            ("none.json", "cannot be read from"),
            (".", "it is not a file"),
            ("a%2", "percent escape"),
            ("https://example.org/a", "the scheme 'https'"),
        ] {
            let error = show(uri, None);
            assert!(
                error.contains(part) && error.contains(uri),
                "{uri}: {error}"
            );
        }
        let anywhere = FileResources::new(&inner, 5).anywhere();
        assert_eq!(anywhere.fetch("../secret", None).unwrap(), b"no");
        let link = inner.join("link");
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(folder.path().join("secret"), link).unwrap();
            assert!(show("link", None).contains("outside of the folder"));
        }
    }
}
