//! Provides the documents that a scenario's definitions refer to.

use std::collections::BTreeMap;
use std::path::Path;

use swirl_documents::source::Limits;
use swirl_spec::resource::{
    DEFAULT_CATALOG, FileResources, MapResources, ResourceError, Resources,
};

/// Documents that the scenario contains, by URI, otherwise files relative to the file that refers to them.
pub struct ScenarioResources {
    given: MapResources,
    files: FileResources,
}

impl ScenarioResources {
    pub fn new(given: &BTreeMap<String, String>, file: &Path) -> ScenarioResources {
        let mut map = MapResources::default();
        for (uri, content) in given {
            map.insert(uri.clone(), content.clone());
        }
        let folder = file
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        ScenarioResources {
            given: map,
            files: FileResources::new(folder, Limits::default().bytes_max),
        }
    }
}

impl Resources for ScenarioResources {
    fn fetch(&self, uri: &str, base: Option<&str>) -> Result<Vec<u8>, ResourceError> {
        // The default catalog is beside the scenario.
        if let Some(path) = uri.strip_prefix(DEFAULT_CATALOG)
            && let Ok(found) = self.fetch(path.trim_start_matches('/'), None)
        {
            return Ok(found);
        }
        match self.given.fetch(uri, base) {
            Err(missing) => self.files.fetch(uri, base).map_err(|_| missing),
            found => found,
        }
    }
}
