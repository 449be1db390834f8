//! Host names by which requests address this server.

/// A name in the form used for comparison.
pub(super) fn plain_host(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}
