//! `docs/tutorial.md`: every definition in it is saved under its given name, every command is run, and
//! prints the output that the page shows below it.

use super::{blocks, name, printed};

#[test]
fn every_step_works() {
    let page = include_str!("../../../docs/tutorial.md");
    let folder = tempfile::tempdir().unwrap();
    let (mut files, mut commands) = (0, 0);
    for block in blocks(page) {
        match block.kind {
            "yaml" => {
                std::fs::write(folder.path().join(name(&block)), &block.text).unwrap();
                files += 1;
            }
            "console" => {
                let (command, expected) = block.text.split_once('\n').unwrap();
                let command = command.strip_prefix("$ ").unwrap();
                let found = printed(folder.path(), command);
                assert_eq!(found.trim(), expected.trim(), "{command}");
                commands += 1;
            }
            kind => panic!("a block of the kind '{kind}', which this test doesn't know"),
        }
    }
    assert!(
        files >= 8 && commands >= 7,
        "{files} files, {commands} commands"
    );
}
