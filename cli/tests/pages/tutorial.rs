//! `docs/tutorial.md`: every definition in it is saved under its given name, every command is run, and
//! prints the output that the page shows below it.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::Path;
use std::process::Command;

/// A block of the page, and the last line of text before it.
struct Block<'p> {
    kind: &'p str,
    text: String,
    before: &'p str,
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut before = "";
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(kind) = line.strip_prefix("```") {
            let text = lines.by_ref().take_while(|line| *line != "```");
            let text = text.map(|line| format!("{line}\n")).collect();
            blocks.push(Block { kind, text, before });
        } else if !line.is_empty() {
            before = line;
        }
    }
    blocks
}

/// The name in ``Save this as `NAME`:``.
fn name<'p>(block: &Block<'p>) -> &'p str {
    let name = block.before.strip_suffix("`:").unwrap_or_else(|| {
        panic!("there is no name before\n{}", block.text);
    });
    name.rsplit('`').next().unwrap()
}

/// Words, where `'` holds some together.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for c in line.chars() {
        match c {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words
}

fn printed(folder: &Path, command: &str) -> String {
    let words = words(command);
    assert_eq!(words[0], "swirl", "{command}");
    let output = Command::new(env!("CARGO_BIN_EXE_swirl"))
        .current_dir(folder)
        .args(&words[1..])
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    text(output.stdout) + &text(output.stderr)
}

#[test]
fn every_step_works() {
    let page = include_str!("../../docs/tutorial.md");
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
