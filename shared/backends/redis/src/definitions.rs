//! Deployed definitions. All of them share one hash tag, since they are few and read together.

use async_trait::async_trait;
use redis::Value;
use swirl_model::ids::DefinitionId;
use swirl_model::time::Timestamp;
use swirl_ports::{Changes, DefinitionHead, DefinitionRecord, Definitions, Result};
use tokio::task::spawn_blocking;

use crate::Redis;
use crate::connect::damaged;
use crate::line::LARGE;
use crate::script::{Lazy, Script};

static DEFINE: Lazy = Lazy::new(|| Script::new(&[include_str!("lua/define.lua")]));

static REPLACE: Lazy = Lazy::new(|| Script::new(&[include_str!("lua/replace.lua")]));

static CHANGES: Lazy = Lazy::new(|| Script::new(&[include_str!("lua/changes.lua")]));

static DEFINITION: Lazy = Lazy::new(|| Script::new(&[include_str!("lua/definition.lua")]));

static ADVANCE: Lazy = Lazy::new(|| Script::freeing_small(include_str!("lua/advance.lua")));

/// The number of heads read at once.
const PAGE: usize = 200;

impl Redis {
    fn definition_key(&self, name: &str) -> String {
        format!("{{{}:d}}:{name}", self.keys().namespace())
    }

    /// Writes a definition, and its position among the changes. `expected`: the record that must be there, unless empty.
    async fn write<T: redis::FromRedisValue>(
        &self,
        script: &Script,
        record: &DefinitionRecord,
        expected: &str,
    ) -> Result<T> {
        let wrong = |error| damaged(format!("definition {}", record.id), error);
        let text = serde_json::to_string(record).map_err(wrong)?;
        let head = serde_json::to_string(&record.head()).map_err(wrong)?;
        let names = ["records", "revision", "heads", "changes"];
        let keys = names.map(|name| self.definition_key(name));
        let is_large = text.len() + expected.len() >= LARGE;
        let mut call = script.call(&keys);
        call.arg(field(&record.id))
            .arg(text)
            .arg(head)
            .arg(expected);
        if !is_large {
            return self.run(script, call).await;
        }
        let _place = self.definition_reads().acquire().await;
        self.run_aside(script, call).await
    }

    /// The record with its text. Large ones are read one at a time, beside all other commands.
    async fn definition(&self, id: &DefinitionId) -> Result<Option<(DefinitionRecord, String)>> {
        let key = self.definition_key("records");
        let args = [field(id), LARGE.to_string()];
        let found: Value = self
            .eval(&DEFINITION, std::slice::from_ref(&key), &args)
            .await?;
        match found {
            Value::Nil => Ok(None),
            Value::Int(_) => {
                let _place = self.definition_reads().acquire().await;
                let mut cmd = redis::cmd("HGET");
                cmd.arg(key).arg(field(id));
                let text: Option<String> = self.query_aside(cmd).await?;
                let Some(text) = text else { return Ok(None) };
                // It takes so long that other tasks of the thread would wait.
                let parsed = spawn_blocking(move || read(&text).map(|record| (record, text)));
                let parsed = parsed
                    .await
                    .map_err(|error| damaged("a definition", error))?;
                parsed.map(Some)
            }
            text => {
                let text = crate::reply::text(text)?;
                Ok(Some((read(&text)?, text)))
            }
        }
    }

    /// Revisions and heads of definitions that changed after a revision.
    async fn changes_page(&self, since: u64) -> Result<Vec<(u64, DefinitionHead)>> {
        let names = ["heads", "changes"];
        let keys = names.map(|name| self.definition_key(name));
        let args = [since.to_string(), PAGE.to_string()];
        let parts: Vec<String> = self.eval(&CHANGES, &keys, &args).await?;
        let (rows, _) = parts.as_chunks::<3>();
        let row = |[field, revision, head]: &[String; 3]| {
            let what = || format!("definition {}", field.replace('\n', ":"));
            let revision = revision.parse::<u64>();
            let revision = revision.map_err(|error| damaged(what(), error))?;
            let head = serde_json::from_str(head).map_err(|error| damaged(what(), error))?;
            Ok((revision, head))
        };
        rows.iter().map(row).collect()
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
        let found: Option<String> = self.write(&DEFINE, &record, "").await?;
        found.as_deref().map(read).transpose()
    }

    async fn replace(&self, record: DefinitionRecord) -> Result<()> {
        self.write::<i64>(&REPLACE, &record, "").await.map(drop)
    }

    async fn replace_if(&self, old: &DefinitionRecord, new: DefinitionRecord) -> Result<bool> {
        // Another build may have written it, with its members in another order.
        let Some((found, text)) = self.definition(&old.id).await? else {
            return Ok(false);
        };
        if found != *old {
            return Ok(false);
        }
        let revision: i64 = self.write(&REPLACE, &new, &text).await?;
        Ok(revision > 0)
    }

    async fn get(&self, id: &DefinitionId) -> Result<Option<DefinitionRecord>> {
        Ok(self.definition(id).await?.map(|(record, _)| record))
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
            let Some((revision, _)) = page.last() else {
                break;
            };
            changes.revision = *revision;
            changes.heads.extend(page.into_iter().map(|(_, head)| head));
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

    async fn advance_mark(&self, name: &str, at: Timestamp) -> Result<()> {
        let keys = [self.definition_key("marks")];
        let args = [name.to_owned(), at.0.to_string()];
        self.eval::<i64>(&ADVANCE, &keys, &args).await?;
        Ok(())
    }

    async fn set_mark(&self, name: &str, at: Timestamp) -> Result<()> {
        let mut cmd = redis::cmd("HSET");
        cmd.arg(self.definition_key("marks")).arg(name).arg(at.0);
        self.query::<i64>(cmd).await?;
        Ok(())
    }
}
