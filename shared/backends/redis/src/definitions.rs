//! Deployed definitions. All of them share one hash tag, since they are few and read together.

use async_trait::async_trait;
use swirl_model::ids::DefinitionId;
use swirl_model::time::Timestamp;
use swirl_ports::{Changes, DefinitionHead, DefinitionRecord, Definitions, Result};

use crate::Redis;
use crate::connect::damaged;
use crate::script::{Lazy, Script};

static DEFINE: Lazy = Lazy::new(|| Script::new(&[include_str!("lua/define.lua")]));

static REPLACE: Lazy = Lazy::new(|| Script::new(&[include_str!("lua/replace.lua")]));

static CHANGES: Lazy = Lazy::new(|| Script::new(&[include_str!("lua/changes.lua")]));

/// The number of heads read at once.
const PAGE: usize = 200;

impl Redis {
    fn definition_key(&self, name: &str) -> String {
        format!("{{{}:d}}:{name}", self.keys().namespace())
    }

    /// Writes a definition, and its position among the changes.
    async fn write<T: redis::FromRedisValue>(
        &self,
        script: &Script,
        record: &DefinitionRecord,
    ) -> Result<T> {
        let wrong = |error| damaged(format!("definition {}", record.id), error);
        let text = serde_json::to_string(record).map_err(wrong)?;
        let head = serde_json::to_string(&record.head()).map_err(wrong)?;
        let names = ["records", "order", "revision", "heads", "changes"];
        let keys = names.map(|name| self.definition_key(name));
        self.eval(script, &keys, &[field(&record.id), text, head])
            .await
    }

    /// Names, revisions and heads of definitions that changed after a revision.
    async fn changes_page(&self, since: u64) -> Result<Vec<(String, u64, String)>> {
        let names = ["order", "revision", "heads", "changes"];
        let keys = names.map(|name| self.definition_key(name));
        let args = [since.to_string(), PAGE.to_string()];
        let parts: Vec<String> = self.eval(&CHANGES, &keys, &args).await?;
        let (rows, _) = parts.as_chunks::<3>();
        let row = |[field, revision, head]: &[String; 3]| {
            let revision = revision.parse::<u64>();
            let revision = revision.map_err(|error| damaged("a definition's revision", error))?;
            Ok((field.clone(), revision, head.clone()))
        };
        rows.iter().map(row).collect()
    }

    /// Older builds store no heads.
    async fn head(&self, field: &str, head: &str) -> Result<DefinitionHead> {
        if !head.is_empty() {
            return serde_json::from_str(head).map_err(|error| damaged("a definition", error));
        }
        let mut cmd = redis::cmd("HGET");
        cmd.arg(self.definition_key("records")).arg(field);
        let found: Option<String> = self.query(cmd).await?;
        let text = found.ok_or_else(|| damaged("a definition", "it is missing"))?;
        Ok(read(&text)?.head())
    }
}

/// Names never contain a line feed.
fn field(id: &DefinitionId) -> String {
    format!("{}\n{}", id.workflow, id.version)
}

fn read(text: &str) -> Result<DefinitionRecord> {
    serde_json::from_str(text).map_err(|error| damaged("a definition", error))
}

#[async_trait]
impl Definitions for Redis {
    async fn put(&self, record: DefinitionRecord) -> Result<Option<DefinitionRecord>> {
        let found: Option<String> = self.write(&DEFINE, &record).await?;
        found.as_deref().map(read).transpose()
    }

    async fn replace(&self, record: DefinitionRecord) -> Result<()> {
        self.write::<i64>(&REPLACE, &record).await.map(drop)
    }

    async fn get(&self, id: &DefinitionId) -> Result<Option<DefinitionRecord>> {
        let mut cmd = redis::cmd("HGET");
        cmd.arg(self.definition_key("records")).arg(field(id));
        let found: Option<String> = self.query(cmd).await?;
        found.as_deref().map(read).transpose()
    }

    async fn changes(&self, since: u64) -> Result<Changes> {
        let mut cmd = redis::cmd("GET");
        cmd.arg(self.definition_key("revision"));
        let last = self.query::<Option<u64>>(cmd).await?.unwrap_or_default();
        let mut changes = Changes {
            // The database was replaced, so everything counts as new.
            revision: if last < since { 0 } else { since },
            heads: Vec::new(),
        };
        while changes.revision < last {
            let page = self.changes_page(changes.revision).await?;
            let Some((_, revision, _)) = page.last() else {
                break;
            };
            changes.revision = *revision;
            for (field, _, head) in page {
                changes.heads.push(self.head(&field, &head).await?);
            }
        }
        Ok(changes)
    }

    async fn mark(&self, name: &str) -> Result<Option<Timestamp>> {
        let mut cmd = redis::cmd("HGET");
        cmd.arg(self.definition_key("marks")).arg(name);
        Ok(self.query::<Option<i64>>(cmd).await?.map(Timestamp))
    }

    async fn marks(&self, names: &[String]) -> Result<Vec<Option<Timestamp>>> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut cmd = redis::cmd("HMGET");
        cmd.arg(self.definition_key("marks")).arg(names);
        let marks: Vec<Option<i64>> = self.query(cmd).await?;
        Ok(marks.into_iter().map(|mark| mark.map(Timestamp)).collect())
    }

    async fn set_mark(&self, name: &str, at: Timestamp) -> Result<()> {
        let mut cmd = redis::cmd("HSET");
        cmd.arg(self.definition_key("marks")).arg(name).arg(at.0);
        self.query::<i64>(cmd).await?;
        Ok(())
    }
}
