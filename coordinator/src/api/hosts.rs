//! Names that requests call this server by.

/// A name as it is compared.
pub(super) fn plain_host(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}
