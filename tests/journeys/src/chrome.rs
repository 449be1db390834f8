//! Chromium and its driver, as Debian packages them.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;
use thirtyfour::{
    BrowserCapabilitiesHelper, ChromiumLikeCapabilities, DesiredCapabilities, LoggingPrefsLogLevel,
    WebDriver,
};

/// No command of a browser takes longer, even on a busy machine.
const COMMAND_MAX: Duration = Duration::from_secs(120);

/// The driver. Dropping it ends it; its browsers end with their sessions.
pub struct Chrome {
    process: Child,
    url: String,
    client: reqwest::Client,
    /// Contains the profiles of browsers.
    _folder: TempDir,
}

/// What chromedriver prints before it ends because of its port.
const PORT_IS_TAKEN: &str = "port not available";

impl Chrome {
    /// Returns after it has printed its port.
    ///
    /// With port 0, chromedriver gets a free one for IPv6, and ends if another process has the same one for IPv4. Then
    /// it is started again.
    pub fn start(client: reqwest::Client) -> Result<Chrome> {
        const STARTS_MAX: usize = 10;
        let mut starts = 1;
        loop {
            match Chrome::start_once(client.clone()) {
                Err(error) if starts < STARTS_MAX && error.to_string().contains(PORT_IS_TAKEN) => {
                    starts += 1;
                }
                done => return done,
            }
        }
    }

    fn start_once(client: reqwest::Client) -> Result<Chrome> {
        let folder = tempfile::tempdir()?;
        let process = Command::new("chromedriver")
            .arg("--port=0")
            .env("TMPDIR", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut process = process.context(
            "chromedriver cannot be run: 'apt-get install chromium chromium-driver' brings it",
        )?;
        let output = process.stdout.take().context("no output of chromedriver")?;
        let mut lines = BufReader::new(output).lines();
        let mut chrome = Chrome {
            process,
            url: String::new(),
            client,
            _folder: folder,
        };
        let mut said = String::new();
        for line in lines.by_ref() {
            let line = line.context("the output of chromedriver")?;
            if let Some((_, port)) = line.split_once("successfully on port ") {
                chrome.url = format!("http://127.0.0.1:{}", port.trim_end_matches('.'));
                break;
            }
            said.push_str(&line);
            said.push('\n');
        }
        if chrome.url.is_empty() {
            bail!("chromedriver didn't start:\n{said}");
        }
        // Read to the end, because otherwise the process blocks once the pipe is full.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(chrome)
    }

    /// A browser with a profile of its own.
    pub async fn session(&self, scripts: bool) -> Result<WebDriver> {
        let mut wanted = DesiredCapabilities::chrome();
        for argument in [
            "--headless=new",
            // The sandbox needs rights that containers don't give. Only our own pages are visited.
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--disable-background-networking",
            "--hide-scrollbars",
            "--lang=en-US",
            "--no-first-run",
            "--window-size=1280,1000",
        ] {
            wanted.add_arg(argument)?;
        }
        wanted.set_browser_log_level(LoggingPrefsLogLevel::All)?;
        if !scripts {
            let off = serde_json::json!({"profile.managed_default_content_settings.javascript": 2});
            wanted.set_browser_option("prefs", off)?;
        }
        let driver = WebDriver::builder(&self.url, wanted)
            .client(self.client.clone())
            .request_timeout(COMMAND_MAX)
            .connect();
        driver.await.context("Chromium cannot be started")
    }
}

impl Drop for Chrome {
    fn drop(&mut self) {
        // Otherwise it has ended by itself.
        if self.process.kill().is_ok() {
            let _ = self.process.wait();
        }
    }
}
