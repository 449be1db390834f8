//! `swirl config`

use std::process::{Command, Output};

use swirl_config::settings;

fn swirl(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_swirl"));
    let ours = std::env::vars().filter(|(name, _)| name.starts_with("SWIRL_"));
    for (name, _) in ours {
        command.env_remove(name);
    }
    command.args(arguments).output().unwrap()
}

#[test]
fn the_configuration_is_checked_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let default = swirl(&["config", "default"]);
    let text = String::from_utf8(default.stdout).unwrap();
    let file = folder.path().join("swirl.toml");
    std::fs::write(&file, &text).unwrap();
    let path = file.to_str().unwrap();
    let checked = swirl(&["config", "check", "--config", path, "--for", "worker"]);
    assert_eq!(checked.status.code(), Some(0));
    let shown = String::from_utf8(checked.stdout).unwrap();
    assert!(
        shown.contains("namespace = \"default\"") && shown.contains("# default"),
        "{shown}"
    );
    let checked = swirl(&["config", "check", "--config", path, "--output", "json"]);
    assert_eq!(checked.status.code(), Some(1));
    let shown: serde_json::Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!(shown["valid"], false);
    assert!(
        shown["problems"][0]["message"]
            .as_str()
            .unwrap()
            .contains("auth.mode")
    );
    let checked = swirl(&["config", "check", "--auth-mode", "off", "--redis-cluster"]);
    let shown = String::from_utf8(checked.stdout).unwrap();
    assert!(shown.contains("# flag --redis-cluster"), "{shown}");
    // Each setting has its own flag, and clap accepts all of them.
    let help = String::from_utf8(swirl(&["config", "check", "--help"]).stdout).unwrap();
    for setting in settings() {
        assert!(
            help.contains(&format!("--{}", setting.flag())),
            "{}",
            setting.key
        );
    }
}
