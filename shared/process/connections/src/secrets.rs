//! Where secrets come from, as configured.

use std::sync::Arc;

use swirl_config::SecretSources;
use swirl_functions::secrets::{Chain, Environment, File, Folder};

/// Files first, then folders, then the environment.
///
/// # Errors
/// A file or folder cannot be used.
pub fn secrets(sources: &SecretSources) -> anyhow::Result<Arc<Chain>> {
    let mut chain = Chain::new();
    for file in &sources.files {
        chain = chain.then(File::new(file)?);
    }
    for folder in &sources.folders {
        chain = chain.then(Folder::new(folder)?);
    }
    if sources.environment {
        chain = chain.then(Environment::new());
    }
    Ok(Arc::new(chain))
}
