//! Saved views.

use std::sync::Arc;

use async_trait::async_trait;
use swirl_ports::{Result, SavedView, SavedViews, VIEWS_MAX};

use crate::Embedded;
use crate::key::Key;

#[async_trait]
impl SavedViews for Embedded {
    async fn save_view(&self, view: &SavedView) -> Result<bool> {
        self.write(|state| {
            let name: Arc<str> = view.name.as_str().into();
            if !state.views.contains_key(&name) && state.views.len() >= VIEWS_MAX {
                return false;
            }
            state.views.insert(name.clone(), view.clone());
            state.touch(Key::View(name));
            true
        })
        .await
    }

    async fn views(&self) -> Result<Vec<SavedView>> {
        self.read(|state| state.views.values().cloned().collect())
    }

    async fn remove_view(&self, name: &str) -> Result<bool> {
        self.write(|state| {
            let Some((name, _)) = state.views.remove_entry(name) else {
                return false;
            };
            state.touch(Key::View(name));
            true
        })
        .await
    }
}
