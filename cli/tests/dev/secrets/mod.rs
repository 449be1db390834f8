//! Secrets in arguments and credentials for services that echo everything they receive in many encodings. Everything
//! that is kept or shown is then searched for the secrets: the store, the history, answers of the API, logs at trace
//! level, traces and metrics.
//!
//! The search shares no code with the removal of secrets.

mod cases;
mod cluster;
mod needles;
mod one_process;
mod service;

use std::path::Path;

/// Used in arguments, as a password, and as the secret of an OAuth2 client.
pub const KEY: &str = "kP9x \"quo&ted\" wörd/+%41;\\end<Z7>";
/// Used as a bearer token, which must be visible ASCII.
pub const TOKEN: &str = "tK4w.\"q&t\"/+%25;\\e<m2>_YyX";
/// The access token that the token endpoint issues.
pub const ACCESS: &str = "aC7r-tok/+en%2F&\"v\"_QqZ9";
/// Input data that must be found, which proves that the search works.
pub const CANARY: &str = "canary-5eef";

/// All files in a folder, as text.
pub fn files(folder: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text.push_str(&files(&path));
        } else if let Ok(bytes) = std::fs::read(&path) {
            text.push_str(&String::from_utf8_lossy(&bytes));
            text.push('\n');
        }
    }
    text
}
