//! Documents that a definition refers to by URI.
//!
//! Reading a definition does no IO itself: the caller provides the source of documents. A crate with an HTTP client
//! fetches those at `http:` and `https:` URIs.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use swirl_documents::files;
pub use swirl_model::file_names::{FOLDER_FUNCTIONS_URI, FUNCTIONS_BESIDE};

/// The URI of functions that are provided at deployment, for documents that refer to functions only by name.
pub const FUNCTIONS_URI: &str = "swirl:functions";

/// The same for all documents of a namespace.
pub const NAMESPACE_FUNCTIONS_URI: &str = "swirl:functions-of-the-namespace";

/// The address of the operator's catalog of functions, for documents of DSL 1.0.
pub const DEFAULT_CATALOG: &str = "swirl:catalog";

/// Where such functions are looked up, in this order.
pub(crate) const FUNCTIONS_URIS: [&str; 6] = [
    FUNCTIONS_URI,
    FUNCTIONS_BESIDE[0],
    FUNCTIONS_BESIDE[1],
    FUNCTIONS_BESIDE[2],
    FOLDER_FUNCTIONS_URI,
    NAMESPACE_FUNCTIONS_URI,
];

/// The source of referenced documents.
pub trait Resources {
    /// The bytes of the document at `uri`. A relative URI is relative to `base`, the URI or path of the referring
    /// document, if that is known.
    fn fetch(&self, uri: &str, base: Option<&str>) -> Result<Vec<u8>, ResourceError>;
}

/// The reason why a document is unavailable. Each message includes a remedy.
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

/// The scheme of a URI. A single letter is a Windows drive, not a scheme.
pub fn scheme(uri: &str) -> Option<&str> {
    let (scheme, _) = uri.split_once(':')?;
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let begins = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    (scheme.len() > 1 && begins && scheme.chars().all(good)).then_some(scheme)
}

/// A URI without `file:` or `file://`. The language uses `file://name.json` for a name next to the definition.
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

/// The form `classpath:name`, which other runtimes use for a name next to the definition.
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

/// Documents in memory, by URI. A leading `file:` or `file://` makes no difference, and neither does `./`.
#[derive(Debug, Clone, Default)]
pub struct MapResources {
    documents: BTreeMap<String, Vec<u8>>,
}

impl MapResources {
    pub fn insert(&mut self, uri: impl Into<String>, document: impl Into<Vec<u8>>) {
        self.documents.insert(uri.into(), document.into());
    }
}

/// A URI without the prefixes that make no difference: `file:`, `file://`, `classpath:`, `./`.
pub fn plain_name(uri: &str) -> &str {
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
            let suggestion = swirl_documents::suggest::did_you_mean(uri, known).map(str::to_owned);
            ResourceError::NotFound {
                uri: uri.to_owned(),
                suggestion,
            }
        })
    }
}

/// Files, relative to the definition's folder. Files outside of that folder are read only if that is permitted, because
/// a definition may come from someone else.
#[derive(Debug, Clone)]
pub struct FileResources {
    folder: PathBuf,
    limit: usize,
    anywhere: bool,
}

impl FileResources {
    /// `limit` is the maximum size of a file in bytes.
    pub fn new(folder: impl Into<PathBuf>, limit: usize) -> FileResources {
        FileResources {
            folder: folder.into(),
            limit,
            anywhere: false,
        }
    }

    /// Permits files outside of the folder, for checking the user's own definitions.
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
        // `file://localhost/etc` refers to this machine.
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
            reason: files::in_words(error).to_string(),
        };
        let real = path.canonicalize().map_err(unreadable)?;
        if !self.anywhere {
            // Compared after resolving links, so that no link leads out.
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
        let mut bytes = Vec::new();
        files::open(&real)
            .and_then(|file| file.take(self.limit as u64 + 1).read_to_end(&mut bytes))
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

/// Decodes percent escapes; `None` if one is invalid or the result isn't text.
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
            ("none.json", "none.json: there is no such file"),
            (".", "it is a folder"),
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
