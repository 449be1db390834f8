//! Documents that were sent together with the document that refers to them.

use swirl_spec::resource::{MapResources, ResourceError, Resources};

/// Documents that are given by URI take precedence over documents found elsewhere.
pub struct GivenOr<R> {
    given: MapResources,
    others: R,
}

impl<R> GivenOr<R> {
    pub fn new(given: &[(String, String)], others: R) -> GivenOr<R> {
        let mut map = MapResources::default();
        for (uri, content) in given {
            map.insert(uri.clone(), content.clone());
        }
        GivenOr { given: map, others }
    }
}

impl<R: Resources> Resources for GivenOr<R> {
    fn fetch(&self, uri: &str, base: Option<&str>) -> Result<Vec<u8>, ResourceError> {
        let given = self.given.fetch(uri, base);
        given.or_else(|_| self.others.fetch(uri, base))
    }
}
