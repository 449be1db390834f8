//! One MQTT broker: Mosquitto. Its log has each packet that it receives and sends.

use std::net::TcpStream;

use anyhow::{Context, Result, ensure};

use crate::process::{Process, command};
use crate::server::{Kind, Place, Server};

/// Options for starting a broker.
#[derive(Debug, Clone, Default)]
pub struct MosquittoOptions {
    /// User and password. Without them, anyone may connect.
    pub login: Option<(String, String)>,
}

/// A Mosquitto broker.
pub type MosquittoServer = Server<MosquittoOptions>;

impl Kind for MosquittoOptions {
    fn launch(&self, place: &Place<'_>) -> Result<Process> {
        let folder = place.folder;
        let config = folder.join("mosquitto.conf");
        let mut text = format!("listener {} 127.0.0.1\n", place.port);
        match &self.login {
            None => text.push_str("allow_anonymous true\n"),
            Some((user, password)) => {
                let file = folder.join("passwords");
                let made = command("mosquitto_passwd")
                    .args(["-b", "-c"])
                    .arg(&file)
                    .args([user, password])
                    .output()
                    .context("mosquitto_passwd cannot be run; it is in the package mosquitto")?;
                ensure!(made.status.success(), "mosquitto_passwd: {made:?}");
                text.push_str(&format!(
                    "allow_anonymous false\npassword_file {}\n",
                    file.display()
                ));
            }
        }
        // As root, it would switch to a user who cannot read the folder.
        text.push_str("user root\n");
        std::fs::write(&config, text)?;
        let config = config.display().to_string();
        let args = ["-v", "-c", &config];
        let mut process = Process::start("mosquitto", "mosquitto", args, &place.log)?;
        process.wait_until("connection", || {
            TcpStream::connect(("127.0.0.1", place.port)).is_ok()
        })?;
        Ok(process)
    }
}

impl MosquittoServer {
    pub fn start() -> Result<MosquittoServer> {
        MosquittoServer::start_with(MosquittoOptions::default())
    }

    pub fn start_with(options: MosquittoOptions) -> Result<MosquittoServer> {
        MosquittoServer::start_on(None, |_| Ok(options.clone()))
    }
}
