//! `docs/tour.md`: like the tutorial, but with a mistake that is fixed on the way, and with a server. Ids and times
//! differ in each run.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::{blocks, name, printed};

/// The instance id on the page.
const ID: &str = "d82ace05f62d001e316dfceb";

#[test]
fn every_step_works() {
    let page = include_str!("../../../docs/tour.md");
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut server: Option<Server> = None;
    let mut id: Option<String> = None;
    let (mut files, mut commands) = (0, 0);
    for block in blocks(page) {
        match block.kind {
            "yaml" | "json" => {
                std::fs::write(path(name(&block)), &block.text).unwrap();
                files += 1;
            }
            "diff" => {
                let mut lines = block.text.lines();
                let (old, new) = (&lines.next().unwrap()[1..], &lines.next().unwrap()[1..]);
                let text = std::fs::read_to_string(path("order.sw.yaml")).unwrap();
                assert_eq!(text.matches(old).count(), 1, "{old}");
                std::fs::write(path("order.sw.yaml"), text.replace(old, new)).unwrap();
            }
            "sh" => {
                assert_eq!(block.text, "swirl dev .\n");
                server = Some(Server::start(folder.path()));
            }
            "console" => {
                let (command, expected) = block.text.split_once('\n').unwrap();
                let mut command = command.strip_prefix("$ ").unwrap().to_owned();
                if let Some(id) = &id {
                    command = command.replace(ID, id);
                }
                if let (Some(server), false) = (&server, command.starts_with("swirl test")) {
                    command = format!("{command} --server {}", server.url);
                }
                let mut found = printed(folder.path(), &command);
                if command.starts_with("swirl start") {
                    id = Some(found.trim().to_owned());
                }
                if let Some(id) = &id {
                    found = found.replace(id, ID).replace(&id[..8], &ID[..8]);
                }
                let expected = without_times(expected);
                assert_eq!(without_times(&found).trim(), expected.trim(), "{command}");
                commands += 1;
            }
            kind => panic!("a block of the kind '{kind}', which this test doesn't know"),
        }
    }
    assert!(
        files >= 5 && commands >= 9,
        "{files} files, {commands} commands"
    );
    assert!(path("coverage.html").exists());
    for picture in page.split("](images/").skip(1) {
        let name = picture.split(')').next().unwrap();
        let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/images");
        assert!(images.join(name).exists(), "{name}");
    }
}

/// The lines without the times at their beginnings.
fn without_times(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let (first, rest) = line.trim_start().split_once(' ').unwrap_or((line, ""));
        let seconds = first.strip_suffix('s').unwrap_or_default();
        match seconds.parse::<f64>() {
            Ok(_) => format!("TIME {rest}\n"),
            Err(_) => format!("{line}\n"),
        }
    });
    lines.collect()
}

/// `swirl dev` on a free port, until this is dropped.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    /// Returns once it has printed its API's address.
    fn start(folder: &Path) -> Server {
        let mut process = Command::new(env!("CARGO_BIN_EXE_swirl"))
            .args(["dev", "--memory", "--listen", "127.0.0.1:0"])
            .args(["--color", "never", "."])
            .current_dir(folder)
            .env_remove("SWIRL_LOG")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let url = lines.by_ref().find_map(|line| {
            let line = line.unwrap();
            let (_, url) = line.split_once("the API is at ")?;
            Some(url.trim_end_matches("/api/v1/openapi.json").to_owned())
        });
        // Reads to the end, because otherwise the process blocks once the pipe is full.
        std::thread::spawn(move || lines.for_each(drop));
        let url = url.unwrap_or_default();
        let server = Server { process, url };
        assert!(!server.url.is_empty(), "it didn't start");
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
