//! `swirl demo-service`

use std::net::SocketAddr;

use anyhow::Context;

use crate::terminal::Terminal;

/// Serves the small shop that the examples call.
///
/// It keeps everything in memory and describes itself at /openapi.json. Its calls are logged at
/// /calls, so that you can check what a workflow really did.
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

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(args.listen)
            .await
            .with_context(|| format!("cannot listen on {}", args.listen))?;
        let address = listener.local_addr()?;
        terminal.message(&format!(
            "the demo service is at http://{address}/openapi.json"
        ));
        tokio::select! {
            served = swirl_demo_service::serve(listener) => served?,
            stopped = tokio::signal::ctrl_c() => stopped?,
        }
        Ok(0)
    })
}
