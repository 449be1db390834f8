//! Deployed definitions. All of them carry one hash tag: they are few, and read together.

use async_trait::async_trait;
use swirl_model::ids::DefinitionId;
use swirl_model::time::Timestamp;
use swirl_ports::{DefinitionRecord, Definitions, Result};

use crate::Redis;
use crate::connect::damaged;
use crate::script::{Lazy, Script};

static DEFINE: Lazy = Lazy::new(|| Script::new(&[include_str!("lua/define.lua")]));

static REPLACE: Lazy = Lazy::new(|| Script::new(&[include_str!("lua/replace.lua")]));

/// How many records are read at once: a document may be large.
const PAGE: usize = 50;

impl Redis {
    fn definition_key(&self, name: &str) -> String {
        format!("{{{}:d}}:{name}", self.keys().namespace())
    }
}

/// No name holds a line feed.
fn field(id: &DefinitionId) -> String {
    format!("{}\n{}", id.workflow, id.version)
}

fn read(text: &str) -> Result<DefinitionRecord> {
    serde_json::from_str(text).map_err(|error| damaged("a definition", error))
}

#[async_trait]
impl Definitions for Redis {
    async fn put(&self, record: DefinitionRecord) -> Result<Option<DefinitionRecord>> {
        let text = serde_json::to_string(&record)
            .map_err(|error| damaged(format!("definition {}", record.id), error))?;
        let keys = ["records", "order", "revision"].map(|name| self.definition_key(name));
        let args = [field(&record.id), text];
        let found: Option<String> = self.eval(&DEFINE, &keys, &args).await?;
        found.as_deref().map(read).transpose()
    }

    async fn replace(&self, record: DefinitionRecord) -> Result<()> {
        let text = serde_json::to_string(&record)
            .map_err(|error| damaged(format!("definition {}", record.id), error))?;
        let keys = ["records", "order", "revision"].map(|name| self.definition_key(name));
        let args = [field(&record.id), text];
        self.eval::<i64>(&REPLACE, &keys, &args).await?;
        Ok(())
    }

    async fn get(&self, id: &DefinitionId) -> Result<Option<DefinitionRecord>> {
        let mut cmd = redis::cmd("HGET");
        cmd.arg(self.definition_key("records")).arg(field(id));
        let found: Option<String> = self.query(cmd).await?;
        found.as_deref().map(read).transpose()
    }

    async fn all(&self) -> Result<Vec<DefinitionRecord>> {
        let mut order = redis::cmd("LRANGE");
        order.arg(self.definition_key("order")).arg(0).arg(-1);
        let order: Vec<String> = self.query(order).await?;
        let mut all = Vec::with_capacity(order.len());
        for page in order.chunks(PAGE) {
            let mut cmd = redis::cmd("HMGET");
            cmd.arg(self.definition_key("records")).arg(page);
            let found: Vec<Option<String>> = self.query(cmd).await?;
            for text in found {
                let text = text.ok_or_else(|| damaged("a definition", "it isn't there"))?;
                all.push(read(&text)?);
            }
        }
        Ok(all)
    }

    async fn revision(&self) -> Result<u64> {
        let mut cmd = redis::cmd("GET");
        cmd.arg(self.definition_key("revision"));
        Ok(self.query::<Option<u64>>(cmd).await?.unwrap_or_default())
    }

    async fn mark(&self, name: &str) -> Result<Option<Timestamp>> {
        let mut cmd = redis::cmd("HGET");
        cmd.arg(self.definition_key("marks")).arg(name);
        Ok(self.query::<Option<i64>>(cmd).await?.map(Timestamp))
    }

    async fn set_mark(&self, name: &str, at: Timestamp) -> Result<()> {
        let mut cmd = redis::cmd("HSET");
        cmd.arg(self.definition_key("marks")).arg(name).arg(at.0);
        self.query::<i64>(cmd).await?;
        Ok(())
    }
}
