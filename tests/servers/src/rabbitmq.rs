//! One AMQP broker: RabbitMQ.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::port::free_ports;
use crate::process::{ATTEMPTS, Process, command};

/// The script that Debian's `rabbitmq-server` runs as the user `rabbitmq`.
const PROGRAM: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";
const CONTROL: &str = "/usr/lib/rabbitmq/bin/rabbitmqctl";

/// A private broker. Dropping it kills it. It takes several seconds to start.
#[derive(Debug)]
pub struct RabbitServer {
    // Dropped in this order: the process first, then its folder.
    process: Option<Process>,
    port: u16,
    /// The port for Erlang's nodes and tools, and the port of its port mapper.
    node_port: u16,
    names_port: u16,
    folder: TempDir,
}

impl RabbitServer {
    pub fn start() -> Result<RabbitServer> {
        let mut attempt = 1;
        loop {
            let ports = free_ports(3)?;
            let mut server = RabbitServer {
                process: None,
                port: ports[0],
                node_port: ports[1],
                names_port: ports[2],
                folder: tempfile::tempdir()?,
            };
            match server.launch() {
                Ok(()) => return Ok(server),
                Err(error) if attempt == ATTEMPTS => return Err(error),
                // Another process may have taken a port.
                Err(_) => attempt += 1,
            }
        }
    }

    fn environment(&self) -> Vec<String> {
        let folder = self.folder.path().display();
        vec![
            format!("HOME={folder}"),
            format!("ERL_EPMD_PORT={}", self.names_port),
            "ERL_EPMD_ADDRESS=127.0.0.1".to_owned(),
            format!("RABBITMQ_NODENAME=rabbit{}@localhost", self.port),
            "RABBITMQ_NODE_IP_ADDRESS=127.0.0.1".to_owned(),
            format!("RABBITMQ_NODE_PORT={}", self.port),
            format!("RABBITMQ_DIST_PORT={}", self.node_port),
            format!("RABBITMQ_MNESIA_BASE={folder}/data"),
            format!("RABBITMQ_LOG_BASE={folder}"),
            "RABBITMQ_LOGS=-".to_owned(),
            format!("RABBITMQ_ENABLED_PLUGINS_FILE={folder}/plugins"),
            format!("RABBITMQ_CONFIG_FILE={folder}/none"),
            format!("RABBITMQ_PID_FILE={folder}/pid"),
            // With this it becomes the server, instead of starting one.
            "RUNNING_UNDER_SYSTEMD=true".to_owned(),
        ]
    }

    fn launch(&mut self) -> Result<()> {
        ensure!(
            Path::new(PROGRAM).is_file(),
            "rabbitmq-server isn't installed: the tests need it, `apt-get install rabbitmq-server` \
             brings it"
        );
        let log = self.folder.path().join("log");
        let mut args = self.environment();
        args.push(PROGRAM.to_owned());
        let process = Process::start("env", "coreutils", &args, &log)?;
        let port = self.port;
        self.process
            .insert(process)
            .wait_until("connection", || says_hello(port).is_ok())
            .context("rabbitmq-server")
    }

    /// The output of `rabbitmqctl`.
    pub fn control(&self, args: &[&str]) -> Result<String> {
        let done = command("env")
            .args(self.environment())
            .arg(CONTROL)
            .args(args)
            .output()?;
        ensure!(done.status.success(), "rabbitmqctl {args:?}: {done:?}");
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// `127.0.0.1:PORT`
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// `kill -9`
    pub fn kill(&mut self) -> Result<()> {
        match self.process.take() {
            Some(mut process) => process.kill(),
            None => Ok(()),
        }
    }

    /// Restarts it on the same port with the same data. If it is running, it is killed first.
    pub fn restart(&mut self) -> Result<()> {
        self.kill()?;
        self.launch()
    }
}

/// The port opens before the broker accepts clients, so it is ready when it answers one.
fn says_hello(port: u16) -> io::Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(b"AMQP\0\0\x09\x01")?;
    stream.read_exact(&mut [0])
}

impl Drop for RabbitServer {
    fn drop(&mut self) {
        // A test that ends has no use for the errors. Erlang leaves its port mapper running, which ends on request when
        // no node is left.
        let _ = self.kill();
        let _ = command("epmd")
            .args(["-port", &self.names_port.to_string(), "-kill"])
            .output();
    }
}
