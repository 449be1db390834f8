//! Saved views: a hash by name.

use std::collections::BTreeMap;

use async_trait::async_trait;
use redis::Cmd;
use serde_json::from_str;
use swirl_ports::{Result, SavedView, SavedViews, VIEWS_MAX};

use crate::Redis;
use crate::connect::damaged;
use crate::record::encode_text;
use crate::script::{Lazy, Script};

static SAVE: Lazy = Lazy::new(|| Script::new(&[include_str!("lua/views/save.lua")]));

impl Redis {
    fn views_key(&self) -> String {
        format!("{{{}:o}}:views", self.keys().namespace())
    }
}

#[async_trait]
impl SavedViews for Redis {
    async fn save_view(&self, view: &SavedView) -> Result<bool> {
        let what = || format!("view '{}'", view.name);
        let text = encode_text(view, what, self.options().record_max)?;
        let keys = [self.views_key()];
        let args = [view.name.clone(), text, VIEWS_MAX.to_string()];
        Ok(self.eval::<i64>(&SAVE, &keys, &args).await? == 1)
    }

    async fn views(&self) -> Result<Vec<SavedView>> {
        let mut read = Cmd::new();
        read.arg("HGETALL").arg(self.views_key());
        let found: BTreeMap<String, String> = self.query(read).await?;
        let views = found.iter().map(|(name, text)| {
            from_str(text).map_err(|error| damaged(format!("view '{name}'"), error))
        });
        views.collect()
    }

    async fn remove_view(&self, name: &str) -> Result<bool> {
        let mut remove = Cmd::new();
        remove.arg("HDEL").arg(self.views_key()).arg(name);
        Ok(self.query::<i64>(remove).await? == 1)
    }
}
