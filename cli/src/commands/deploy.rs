//! `swirl deploy`

use std::path::PathBuf;

use anyhow::Context;
use serde_json::json;

use crate::client::{Server, findings, timeline::shown};
use crate::terminal::{Output, Terminal};

/// Deploys definitions to a server.
///
/// A definition is immutable under its id and version: deploying the same again changes nothing, and
/// another content is refused. Exit code 1 when some were refused.
///
/// The server reads what a definition refers to, so paths in it are the server's: relative to the
/// folder of 'swirl dev', and within it.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl deploy order.sw.yaml
  swirl deploy *.sw.yaml --server http://127.0.0.1:9000")]
pub struct Args {
    /// Definitions, YAML or JSON.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    server: Server,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    args.server.run(async |client| {
        let mut code = 0;
        let mut all = Vec::new();
        for file in &args.files {
            let name = file.display().to_string();
            let document = std::fs::read(file).with_context(|| format!("{name} cannot be read"))?;
            let query = [("name", name.as_str())];
            let headers = [("content-type", "application/yaml")];
            let answer = client
                .post(&["definitions"], &query, &headers, document)
                .await?;
            if answer.refused() {
                code = 1;
                terminal.message(&format!("{name}: {}", shown(&answer.body["detail"])));
                if let Some(found) = answer.body["diagnostics"].as_array() {
                    terminal.message(&findings(&name, found));
                }
            } else if terminal.output == Output::Text {
                let (id, version) = (shown(&answer.body["id"]), shown(&answer.body["version"]));
                let word = match answer.body["outcome"].as_str() {
                    Some("unchanged") => "is deployed already",
                    _ => "is deployed",
                };
                terminal.result(&format!("{name}: {id}:{version} {word}\n"))?;
            }
            all.push(json!({"file": name, "status": answer.status, "answer": answer.body}));
        }
        if terminal.output == Output::Json {
            terminal.result(&format!("{:#}\n", json!(all)))?;
        }
        Ok(code)
    })
}
