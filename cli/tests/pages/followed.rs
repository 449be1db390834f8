//! Pages that are complete by themselves: every definition and scenario is saved under its given name, every command is
//! run, and its output must equal the output on the page.

use std::path::Path;

use super::{blocks, name, printed};

/// Returns the number of saved files and of commands that were run.
fn follow(page: &str, folder: &Path) -> (usize, usize) {
    let (mut files, mut commands) = (0, 0);
    for block in blocks(page) {
        match block.kind {
            "yaml" => {
                std::fs::write(folder.join(name(&block)), &block.text).unwrap();
                files += 1;
            }
            "console" => {
                let (command, expected) = block.text.split_once('\n').unwrap();
                let command = command.strip_prefix("$ ").unwrap();
                let found = printed(folder, command);
                assert_eq!(found.trim(), expected.trim(), "{command}");
                commands += 1;
            }
            // These need a server. Another test checks that they are valid commands.
            "sh" => {}
            kind => panic!("a block of the kind '{kind}', which this test doesn't know"),
        }
    }
    (files, commands)
}

fn assert_followed(page: &str, files: usize, commands: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let found = follow(page, folder.path());
    assert!(found.0 >= files && found.1 >= commands, "{found:?}");
    folder
}

#[test]
fn every_step_of_the_tutorial_works() {
    assert_followed(include_str!("../../../docs/tutorial.md"), 8, 7);
    assert_followed(include_str!("../../../docs/tutorial-0.8.md"), 8, 7);
}

#[test]
fn every_task_has_a_working_document() {
    let page = include_str!("../../../docs/tasks.md");
    assert_followed(page, 18, 8);
    for task in [
        "call", "do", "emit", "for", "fork", "listen", "raise", "run", "set", "switch", "try",
        "wait",
    ] {
        assert!(page.contains(&format!("`{task}")), "{task}");
    }
}

#[test]
fn every_scenario_about_testing_passes() {
    assert_followed(include_str!("../../../docs/testing.md"), 3, 2);
}

#[test]
fn every_scenario_about_events_passes() {
    assert_followed(include_str!("../../../docs/events.md"), 3, 1);
}

#[test]
fn every_state_has_a_working_definition_and_its_picture() {
    let page = include_str!("../../../docs/states.md");
    let folder = assert_followed(page, 20, 4);
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/images");
    let mut pictures = 0;
    for picture in page.split("](images/states-").skip(1) {
        let name = picture.split(".svg)").next().unwrap();
        let drawn = printed(folder.path(), &format!("swirl diagram {name}.sw.yaml"));
        let shown = std::fs::read_to_string(images.join(format!("states-{name}.svg"))).unwrap();
        assert!(
            drawn.trim() == shown.trim(),
            "draw it again: swirl diagram {name}.sw.yaml -o docs/images/states-{name}.svg"
        );
        pictures += 1;
    }
    assert!(pictures >= 12, "{pictures} pictures");
    for state in swirl_spec::vocabulary::kinds_of_state() {
        assert!(page.contains(&format!("type: {state}\n")), "{state}");
    }
}

#[test]
fn the_readme_shows_the_diagram_of_its_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let drawn = printed(&root, "swirl diagram examples/order/order.sw.yaml");
    let shown = std::fs::read_to_string(root.join("docs/images/order.svg")).unwrap();
    assert!(include_str!("../../../README.md").contains("](docs/images/order.svg)"));
    assert!(
        drawn.trim() == shown.trim(),
        "draw it again: swirl diagram examples/order/order.sw.yaml -o docs/images/order.svg"
    );
}
