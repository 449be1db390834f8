//! Where functions of catalogs are (DSL 1.0, "Catalogs").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::AuthId;

use super::Reader;
use crate::resource::DEFAULT_CATALOG;

/// The host that has the files of repositories on GitHub.
const RAW: &str = "https://raw.githubusercontent.com";

/// A function of a catalog: `NAME:VERSION@CATALOG`.
pub(super) struct Cataloged<'t> {
    pub name: &'t str,
    pub version: &'t str,
    pub catalog: &'t str,
}

impl<'t> Cataloged<'t> {
    pub fn parse(text: &'t str) -> Option<Cataloged<'t>> {
        let (function, catalog) = text.rsplit_once('@')?;
        let (name, version) = function.split_once(':')?;
        Some(Cataloged {
            name,
            version,
            catalog,
        })
    }

    /// The function's file in the catalog.
    fn path(&self) -> String {
        format!("functions/{}/{}/function.yaml", self.name, self.version)
    }
}

impl Reader<'_, '_> {
    /// The addresses at which a cataloged function may be, the most likely one first.
    pub fn cataloged(&mut self, node: &Node, call: &Cataloged<'_>) -> Option<Vec<String>> {
        if call.catalog.is_empty() {
            let message = "the name of the catalog is missing after '@'".to_owned();
            let hint = "write 'NAME:VERSION@CATALOG', such as 'log:1.0.0@global'".to_owned();
            self.error(node, codes::BAD_NAME, message, hint);
            return None;
        }
        for (part, what) in [(call.name, "name"), (call.version, "version")] {
            let is_plain =
                |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
            if part.is_empty() || part.starts_with('.') || !part.chars().all(is_plain) {
                let message = format!("the {what} of a function in a catalog cannot be '{part}'");
                let hint = "write 'NAME:VERSION@CATALOG', such as 'log:1.0.0@global'".to_owned();
                self.error(node, codes::BAD_NAME, message, hint);
                return None;
            }
        }
        let known = self.reuse.catalogs.iter();
        let own = known.clone().any(|(name, _)| name == call.catalog);
        if call.catalog == "default" && !own {
            return Some(vec![format!("{DEFAULT_CATALOG}/{}", call.path())]);
        }
        let catalog = self.named(node, call.catalog, "catalog", |reuse| &reuse.catalogs)?;
        let (root, auth) = self.catalog_address(&catalog)?;
        let addresses = raw(&beneath(&root, &call.path()));
        if let Some(auth) = auth {
            let guarded = addresses.iter().map(|address| (address.clone(), auth));
            self.credentials.extend(guarded);
        }
        Some(addresses)
    }

    /// Finds the mistakes in catalogs that nothing refers to.
    pub fn check_catalogs(&mut self) {
        for (_, node) in self.reuse.catalogs.clone() {
            self.catalog_address(&node);
        }
    }

    /// The endpoint of a catalog, and its credentials.
    pub fn catalog_address(&mut self, node: &Node) -> Option<(String, Option<AuthId>)> {
        let obj = self.object(node, "a catalog", &["endpoint"])?;
        let Some(endpoint) = obj.get("endpoint") else {
            self.missing(obj, "a catalog", &["endpoint"]);
            return None;
        };
        let mut auth = None;
        let node = match endpoint.as_str() {
            Some(_) => endpoint,
            None => {
                let obj = self.object(endpoint, "'endpoint'", &["uri", "authentication"])?;
                if let Some(node) = obj.get("authentication") {
                    auth = self.authentication(node);
                }
                match obj.get("uri") {
                    Some(node) => node,
                    None => {
                        self.missing(obj, "'endpoint'", &["uri"]);
                        return None;
                    }
                }
            }
        };
        let text = self.string(node, "'endpoint'")?;
        if text.contains("${") || text.contains('{') {
            let message = "the endpoint of a catalog has an expression or a variable";
            let hint = "functions are fetched at deployment: write the address itself".to_owned();
            self.error(node, codes::BAD_URI, message, hint);
            return None;
        }
        Some((text, auth))
    }
}

/// The address of a file of a catalog. A query of the catalog's address is one of each file.
fn beneath(root: &str, path: &str) -> String {
    let root = root.split_once('#').map_or(root, |(root, _)| root);
    let (root, query) = match root.split_once('?') {
        Some((root, query)) => (root, format!("?{query}")),
        None => (root, String::new()),
    };
    format!("{}/{path}{query}", root.trim_end_matches('/'))
}

/// The addresses of the file itself, where a repository's page is named: the page's address comes last.
pub(super) fn raw(address: &str) -> Vec<String> {
    let page = address.to_owned();
    let Some((scheme, rest)) = address.split_once("://") else {
        return vec![page];
    };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = host.to_ascii_lowercase();
    if host == "github.com" || host == "www.github.com" {
        let mut parts = path.splitn(3, '/');
        let (Some(owner), Some(repository)) = (parts.next(), parts.next()) else {
            return vec![page];
        };
        let repository = repository.strip_suffix(".git").unwrap_or(repository);
        let rest = parts.next().unwrap_or_default();
        let base = format!("{RAW}/{owner}/{repository}");
        let named = ["tree/", "blob/", "raw/"];
        let named = named.iter().find_map(|word| rest.strip_prefix(word));
        return match named {
            // A branch; else a tag or a commit.
            Some(rest) if !rest.starts_with("refs/") => {
                vec![
                    format!("{base}/refs/heads/{rest}"),
                    format!("{base}/{rest}"),
                    page,
                ]
            }
            Some(rest) => vec![format!("{base}/{rest}"), page],
            None => vec![format!("{base}/HEAD/{rest}"), page],
        };
    }
    for word in ["/-/tree/", "/-/blob/"] {
        if let Some((project, rest)) = path.split_once(word) {
            return vec![format!("{scheme}://{host}/{project}/-/raw/{rest}"), page];
        }
    }
    // A project may be in a group of groups, so its path ends where the catalog's begins.
    match path.split_once("/functions/") {
        Some((project, rest)) if host == "gitlab.com" && !project.contains("/-/") => {
            let file = format!("{scheme}://{host}/{project}/-/raw/HEAD/functions/{rest}");
            vec![file, page]
        }
        _ => vec![page],
    }
}

#[cfg(test)]
mod tests {
    use super::{beneath, raw};

    #[test]
    fn files_have_the_query_of_their_catalog() {
        for (root, expected) in [
            ("https://e.com/c", "https://e.com/c/f"),
            (
                "https://e.com/c/?ref=v1&a=b",
                "https://e.com/c/f?ref=v1&a=b",
            ),
            ("https://e.com?ref=v1", "https://e.com/f?ref=v1"),
            ("https://e.com/c#part", "https://e.com/c/f"),
        ] {
            assert_eq!(beneath(root, "f"), expected);
        }
    }

    #[test]
    fn pages_of_repositories_become_files() {
        let path = "functions/log/1.0.0/function.yaml";
        for (root, expected) in [
            (
                "https://github.com/acme/catalog/tree/main",
                "https://raw.githubusercontent.com/acme/catalog/refs/heads/main",
            ),
            (
                "https://github.com/acme/catalog",
                "https://raw.githubusercontent.com/acme/catalog/HEAD",
            ),
            (
                "https://gitlab.com/a/b/catalog/-/tree/main/x",
                "https://gitlab.com/a/b/catalog/-/raw/main/x",
            ),
            (
                "https://gitlab.com/a/b/catalog",
                "https://gitlab.com/a/b/catalog/-/raw/HEAD",
            ),
            (
                "https://git.example.com/a/catalog/-/tree/v1",
                "https://git.example.com/a/catalog/-/raw/v1",
            ),
            ("https://example.com/catalog", "https://example.com/catalog"),
            ("catalog", "catalog"),
        ] {
            let found = raw(&format!("{root}/{path}"));
            assert_eq!(found[0], format!("{expected}/{path}"), "{root}");
        }
    }
}
