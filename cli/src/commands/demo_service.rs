//! `swirl demo-service`

use std::net::SocketAddr;

use crate::terminal::Terminal;

/// Serves the small shop that the examples call.
///
/// It keeps everything in memory and describes itself at /openapi.json. Its calls are logged at
/// /calls, so that it can be seen what a workflow really did.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl demo-service
  swirl demo-service --listen 127.0.0.1:9000
  curl http://127.0.0.1:8090/openapi.json")]
pub struct Args {
    /// The address to listen on; port 0 takes any free one.
    #[arg(long, default_value = "127.0.0.1:8090", value_name = "ADDRESS")]
    pub listen: SocketAddr,
}

pub fn run(args: &Args, _terminal: &Terminal) -> anyhow::Result<u8> {
    anyhow::bail!(
        "this build of swirl has no demo service to listen on {}",
        args.listen
    )
}
