//! Pages of `docs/` that readers can follow: their files are saved, their commands are run, and the commands' output
//! must equal the page's.

mod commands;
mod examples;
mod followed;
mod tour;

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

/// Splits text into words. `'` quotes several words.
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
