//! Pictures of definitions. A large one takes most of a second, so they are drawn by threads that serve nobody, a few at a
//! time, and the last ones are kept.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Weak};

use axum::body::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use swirl_engine::Definition;
use swirl_presentation::{Format, Occupancies, Trail, render, render_occupied, render_with};
use tokio::sync::Semaphore;

use super::problem::Problem;

/// How many pictures are drawn at once.
const AT_ONCE: usize = 2;
/// The bytes of the pictures that are kept, and their usual number.
const BYTES_MAX: u64 = 16 << 20;
const USUAL: usize = 256;

/// What a picture shows besides the definition.
#[derive(Hash)]
pub enum Shown {
    Nothing,
    Trail(Trail),
    Occupied(Occupancies),
}

#[derive(Clone)]
pub struct Pictures(Arc<Parts>);

struct Parts {
    kept: Cache<Key, Kept, Sizes>,
    room: Arc<Semaphore>,
}

/// The address of the definition, and a hash of what is shown.
type Key = (usize, blake3::Hash);

/// A definition's address isn't used again while this is kept.
#[derive(Clone)]
struct Kept {
    _definition: Weak<Definition>,
    svg: Bytes,
}

#[derive(Clone)]
struct Sizes;

impl Weighter<Key, Kept> for Sizes {
    fn weight(&self, _: &Key, kept: &Kept) -> u64 {
        kept.svg.len() as u64
    }
}

impl Default for Pictures {
    fn default() -> Pictures {
        Pictures(Arc::new(Parts {
            kept: Cache::with_weighter(USUAL, BYTES_MAX, Sizes),
            room: Arc::new(Semaphore::new(AT_ONCE)),
        }))
    }
}

impl Pictures {
    /// Draws it, unless it has been drawn already. Requests for the same picture wait for the one that is drawn.
    pub async fn get(&self, definition: &Arc<Definition>, shown: Shown) -> Result<Bytes, Problem> {
        let mut hashed = Hashed(blake3::Hasher::new());
        shown.hash(&mut hashed);
        let key = (Arc::as_ptr(definition) as usize, hashed.0.finalize());
        let drawn = self.0.kept.get_or_insert_async(&key, async {
            let svg = self.draw(definition.clone(), shown).await?;
            Ok::<_, Problem>(Kept {
                _definition: Arc::downgrade(definition),
                svg,
            })
        });
        Ok(drawn.await?.svg)
    }

    /// Draws it, and keeps nothing.
    pub async fn draw(&self, definition: Arc<Definition>, shown: Shown) -> Result<Bytes, Problem> {
        // Never closed.
        let place = self.0.room.clone().acquire_owned().await.ok();
        let drawn = tokio::task::spawn_blocking(move || {
            // Also if nobody waits any more.
            let _place = place;
            let workflow = &definition.workflow;
            match shown {
                Shown::Nothing => render(workflow, Format::Svg),
                Shown::Trail(trail) => render_with(workflow, &trail),
                Shown::Occupied(occupancies) => render_occupied(workflow, &occupancies),
            }
        });
        match drawn.await {
            Ok(svg) => Ok(Bytes::from(svg)),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(Problem::stopping()),
            },
        }
    }
}

struct Hashed(blake3::Hasher);

impl Hasher for Hashed {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Not used: the whole hash is.
    fn finish(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use swirl_spec::resource::MapResources;

    use super::*;

    fn definition(name: &str) -> Arc<Definition> {
        let document = format!(
            "{{id: w, name: {name}, version: '1', specVersion: '0.8', states: [{{name: A, type: inject, data: {{}}, \
             end: true}}]}}"
        );
        let options = swirl_spec::Options::default();
        let reading = swirl_spec::read(document.as_bytes(), &MapResources::default(), &options);
        Definition::compile(reading.workflow.unwrap()).unwrap()
    }

    #[tokio::test]
    async fn what_was_drawn_is_kept() {
        let pictures = Pictures::default();
        let (one, other) = (definition("one"), definition("other"));
        let drawn = async |of: &Arc<Definition>, shown| pictures.get(of, shown).await.unwrap();
        let first = drawn(&one, Shown::Nothing).await;
        assert!(String::from_utf8_lossy(&first).contains(">one<"));
        assert_eq!(drawn(&one, Shown::Nothing).await.as_ptr(), first.as_ptr());
        // A replaced definition may have the same id and version.
        let replaced = drawn(&other, Shown::Nothing).await;
        assert!(String::from_utf8_lossy(&replaced).contains(">other<"));
        let marked = drawn(&one, Shown::Trail(Trail::at("A"))).await;
        assert!(String::from_utf8_lossy(&marked).contains("is here"));
        assert_eq!(drawn(&one, Shown::Nothing).await.as_ptr(), first.as_ptr());
    }
}
