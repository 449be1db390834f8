//! The Google proto files that are built in.

use protox::file::{File, FileResolver};

/// Options that service files often use. No call needs them, but without these definitions a file that imports them
/// doesn't compile.
const GOOGLE_API: [(&str, &str); 5] = [
    (
        "google/api/annotations.proto",
        include_str!("google/annotations.proto"),
    ),
    (
        "google/api/client.proto",
        include_str!("google/client.proto"),
    ),
    (
        "google/api/field_behavior.proto",
        include_str!("google/field_behavior.proto"),
    ),
    ("google/api/http.proto", include_str!("google/http.proto")),
    (
        "google/api/resource.proto",
        include_str!("google/resource.proto"),
    ),
];

/// Whether a file is built in.
pub(super) fn is_known(name: &str) -> bool {
    name.starts_with("google/protobuf/") || GOOGLE_API.iter().any(|(known, _)| *known == name)
}

/// Provides the options in `google/api`.
pub(super) struct GoogleApi;

impl FileResolver for GoogleApi {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match GOOGLE_API.iter().find(|(known, _)| *known == name) {
            Some((name, text)) => File::from_source(name, text),
            None => Err(protox::Error::file_not_found(name)),
        }
    }
}
