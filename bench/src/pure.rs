//! The definition with ten pure states, for measurements in this process.

use std::sync::Arc;

use anyhow::{Context, Result};
use swirl_engine::Definition;
use swirl_spec::resource::MapResources;

use crate::cluster::workflows;

pub fn ten_states() -> Result<Arc<Definition>> {
    let reading = swirl_spec::read(
        workflows::pure("ten").to_string().as_bytes(),
        &MapResources::default(),
        &Default::default(),
    );
    let findings: Vec<String> = reading
        .diagnostics
        .iter()
        .map(ToString::to_string)
        .collect();
    let workflow = reading.workflow.with_context(|| findings.join("\n"))?;
    Definition::compile(workflow).map_err(|problems| anyhow::anyhow!("{problems:?}"))
}
