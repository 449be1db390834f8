//! `swirl lsp`

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use lsp_server::Connection;
use serde_json::json;
use swirl_authoring::lsp::{Session, Source, serve};
use swirl_deployment::RESOURCE_BYTES_MAX;
use swirl_spec::resource::{FileResources, Resources};
use url::Url;

use crate::terminal::Terminal;

/// Serves editors: findings as you type, completion, hover, rename and more.
///
/// It implements the Language Server Protocol on stdin and stdout. Editors start it; docs/editors.md explains how to
/// set up VS Code, JetBrains, Neovim and Helix.
///
/// Exit code 0 if the editor ended it, 2 if the input did not follow the protocol.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl lsp")]
pub struct Args {}

/// Other documents in the folder of a document that an editor has open.
struct Files;

impl Source for Files {
    fn beside(&self, uri: &str) -> Box<dyn Resources> {
        let path = Url::parse(uri).ok().and_then(|uri| uri.to_file_path().ok());
        let folder = path.as_deref().and_then(Path::parent).map(PathBuf::from);
        Box::new(FileResources::new(folder.unwrap_or_default(), RESOURCE_BYTES_MAX).anywhere())
    }
}

pub fn run(_: &Args, _: &Terminal) -> anyhow::Result<u8> {
    let (connection, threads) = Connection::stdio();
    let (id, _) = connection
        .initialize_start()
        .context("the editor did not begin")?;
    let version = env!("CARGO_PKG_VERSION");
    let about = json!({
        "capabilities": Session::capabilities(),
        "serverInfo": {"name": "swirl", "version": version},
    });
    connection
        .initialize_finish(id, about)
        .context("the editor did not begin")?;
    serve(&connection, Arc::new(Files))?;
    drop(connection);
    threads.join().context("the editor could not be reached")?;
    Ok(0)
}
