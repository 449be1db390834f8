//! The names by which files of a folder are recognised.

/// The endings of files that are definitions, whatever is in them.
pub const DEFINITION_ENDINGS: [&str; 3] = [".sw.yaml", ".sw.yml", ".sw.json"];

/// The endings of files that may be definitions.
pub const DOCUMENT_ENDINGS: [&str; 3] = [".yaml", ".yml", ".json"];

/// The endings of scenario files.
pub const SCENARIO_ENDINGS: [&str; 3] = [".scenario.yaml", ".scenario.yml", ".scenario.json"];

/// Files with functions for documents that only name them, beside a document or in the folder of a deployment.
pub const FUNCTIONS_BESIDE: [&str; 3] = ["functions.yaml", "functions.yml", "functions.json"];

/// The URI of the functions in the folder of a deployment, for all of its documents.
pub const FOLDER_FUNCTIONS_URI: &str = "swirl:functions-of-the-folder";
