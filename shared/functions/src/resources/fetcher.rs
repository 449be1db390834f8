//! The resources for a definition's reader: files, and documents over HTTP.

use swirl_spec::resource::{
    DEFAULT_CATALOG, FileResources, MapResources, ResourceError, Resources, scheme,
};
use url::Url;

use super::HttpResources;

/// Resources that came with the document are used first. Then `http:` and `https:` URIs are fetched, and so are URIs
/// relative to a document that was fetched. All others are files.
#[derive(Debug, Clone)]
pub struct Fetcher {
    pub given: MapResources,
    pub http: HttpResources,
    /// `None`: no file of this machine may be read.
    pub files: Option<FileResources>,
    /// The default catalog of functions.
    pub catalog: Option<FileResources>,
}

impl Resources for Fetcher {
    fn fetch(&self, uri: &str, base: Option<&str>) -> Result<Vec<u8>, ResourceError> {
        if let Ok(found) = self.given.fetch(uri, base) {
            return Ok(found);
        }
        let failed = |reason: String| ResourceError::Failed {
            uri: uri.to_owned(),
            reason,
        };
        if let (Some(catalog), Some(path)) = (&self.catalog, uri.strip_prefix(DEFAULT_CATALOG)) {
            let path = path.trim_start_matches('/');
            return catalog.fetch(path, None).map_err(|error| match error {
                ResourceError::Unreadable { .. } => {
                    failed("the default catalog lacks it".to_owned())
                }
                error => error,
            });
        }
        let remote = match (is_http(uri), base.filter(|base| is_http(base))) {
            (true, _) => Some(uri.to_owned()),
            (false, None) => None,
            (false, Some(base)) => match scheme(uri) {
                None => {
                    let joined = Url::parse(base).and_then(|base| base.join(uri));
                    Some(joined.map_err(|error| failed(error.to_string()))?.into())
                }
                // The author of a document on the web must not read this machine's files.
                Some(own) if is_file(own) => {
                    return Err(failed(
                        "a document on the web cannot refer to a file".to_owned(),
                    ));
                }
                Some(_) => None,
            },
        };
        match remote {
            Some(url) => self
                .http
                .get(&url)
                .map_err(|error| failed(error.cause.to_string())),
            None => match (&self.files, scheme(uri)) {
                (Some(files), _) => files.fetch(uri, base),
                (None, Some(own)) if !is_file(own) => Err(ResourceError::Scheme {
                    uri: uri.to_owned(),
                    scheme: own.to_owned(),
                }),
                (None, _) => Err(failed(
                    "no file is read here: send it with the document".to_owned(),
                )),
            },
        }
    }
}

fn is_file(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case("file") || scheme.eq_ignore_ascii_case("classpath")
}

fn is_http(uri: &str) -> bool {
    let own = scheme(uri).map(str::to_ascii_lowercase);
    matches!(own.as_deref(), Some("http" | "https"))
}
