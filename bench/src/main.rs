//! What the engine and the embedded store reach on this machine.
//!
//! `cargo bench-swirl` (an alias for `cargo run --release -p swirl-bench`) prints: transitions a
//! second of the bare engine, and instances a second of a workflow of ten pure states in memory and
//! on the durable store, with fsync and group commit.

#![allow(clippy::print_stdout)]

mod engine;
mod instances;

use anyhow::{Context, Result};
use swirl_engine::Definition;
use swirl_model::{Data, data};
use swirl_spec::resource::MapResources;

#[global_allocator]
static ALLOCATOR: swirl_expr::CountingAllocator = swirl_expr::CountingAllocator;

/// Ten pure states: five that inject, five that switch on the data.
fn ten_states() -> String {
    let mut text = String::from("id: ten\nversion: '1.0.0'\nspecVersion: '0.8'\nstates:\n");
    for index in 0..5 {
        let (inject, switch) = (index * 2, index * 2 + 1);
        let next = match index {
            4 => "end: true".to_owned(),
            _ => format!("transition: S{}", switch + 1),
        };
        text.push_str(&format!(
            "  - {{name: S{inject}, type: inject, data: {{n: {index}}}, transition: S{switch}}}\n\
             \x20 - {{name: S{switch}, type: switch, dataConditions: [{{condition: '${{ .n == {index} }}', {next}}}], defaultCondition: {{end: true}}}}\n"
        ));
    }
    text
}

pub fn definition(text: &str) -> Result<std::sync::Arc<Definition>> {
    let reading = swirl_spec::read(
        text.as_bytes(),
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

fn main() -> Result<()> {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let seconds = if quick { 0.5 } else { 3.0 };
    let ten = definition(&ten_states())?;
    let input: Data = data!({"name": "Ada", "n": 0});

    println!("| what | figure |");
    println!("| --- | --- |");
    let rate = engine::transitions(&ten, &input, seconds)?;
    println!("| engine alone, inject and switch, one core | {rate:.0} transitions/s |");

    let runtime = tokio::runtime::Runtime::new()?;
    for callers in [1, 16, 256] {
        let memory = runtime.block_on(instances::run(&ten, &input, None, callers, seconds))?;
        println!("| ten pure states in memory, {callers} at once | {memory} |");
    }
    for callers in [1, 16, 256, 1024] {
        let folder = tempfile::tempdir()?;
        let path = Some(folder.path());
        let durable = runtime.block_on(instances::run(&ten, &input, path, callers, seconds))?;
        println!("| ten pure states, durable with fsync, {callers} at once | {durable} |");
    }
    Ok(())
}
