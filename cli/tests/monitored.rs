//! A real Prometheus scrapes real processes with the configuration in `deploy/`.

use std::path::Path;
use std::process::Command;

/// The script names the checks that it skips for lack of a program. On a CI server it fails instead.
#[test]
fn prometheus_scrapes_every_process_and_evaluates_the_alerts() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut script = Command::new("python3");
    script
        .arg(root.join("deploy/tests/cluster.py"))
        .arg(env!("CARGO_BIN_EXE_swirl"))
        .env("PYTHONDONTWRITEBYTECODE", "1");
    for name in ["SWIRL_LOG", "SWIRL_CONFIG", "SWIRL_SERVER"] {
        script.env_remove(name);
    }
    let done = match script.output() {
        Ok(done) => done,
        Err(error) if std::env::var_os("CI").is_none() => {
            eprintln!("left out: deploy/tests/cluster.py: python3 cannot be run: {error}");
            return;
        }
        Err(error) => panic!("python3 cannot be run: {error}"),
    };
    let output = String::from_utf8_lossy(&done.stdout);
    assert!(
        done.status.success(),
        "{output}{}",
        String::from_utf8_lossy(&done.stderr)
    );
    for line in output.lines().filter(|line| line.starts_with("left out")) {
        eprintln!("{line}");
    }
}
