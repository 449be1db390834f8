//! Every command in the pages, the READMEs and the deployment guide exists, with its options and their values. The
//! files and servers that a command needs don't exist here, so only its help is requested: everything before `--help`
//! must be right.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::blocks;

#[test]
fn every_command_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut pages = vec![root.join("README.md")];
    for folder in ["clients", "deploy", "docs", "editors", "examples"] {
        collect(&root.join(folder), &mut pages);
    }
    let (mut count, mut wrong) = (0, Vec::new());
    for path in pages {
        let page = std::fs::read_to_string(&path).unwrap();
        let of_blocks = blocks(&page).into_iter();
        let of_blocks = of_blocks.filter(|block| matches!(block.kind, "sh" | "console"));
        let mut texts: Vec<String> = of_blocks.map(|block| block.text).collect();
        texts.extend(spans(&page).map(str::to_owned));
        for words in texts.iter().flat_map(|text| commands(text)) {
            count += 1;
            let output = Command::new(env!("CARGO_BIN_EXE_swirl"))
                .args(&words)
                .arg("--help")
                .output()
                .unwrap();
            if !output.status.success() {
                let message = String::from_utf8_lossy(&output.stderr);
                let line = message.lines().next().unwrap_or_default().to_owned();
                wrong.push(format!("{}: {}: {line}", path.display(), words.join(" ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 200, "{count} commands");
}

fn collect(folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "node_modules") {
                collect(&path, pages);
            }
        } else if path.extension().is_some_and(|end| end == "md") {
            pages.push(path);
        }
    }
}

/// Inline code that is a command with arguments.
fn spans(page: &str) -> impl Iterator<Item = &str> {
    let lines = page.lines();
    let spans = lines.flat_map(|line| line.split('`').skip(1).step_by(2));
    spans.filter(|span| span.starts_with("swirl ") && !span.contains(['|', '…']))
}

/// The words after `swirl` in each command in a piece of shell.
fn commands(text: &str) -> Vec<Vec<String>> {
    let text = text.replace("\\\n", " ");
    let mut found: Vec<Vec<String>> = vec![Vec::new()];
    let (mut word, mut is_word, mut quote) = (String::new(), false, None);
    let mut chars = format!("{text}\n")
        .chars()
        .collect::<Vec<_>>()
        .into_iter()
        .peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => (quote, is_word) = (Some(c), true),
            (None, '#') if !is_word => while chars.next_if(|c| *c != '\n').is_some() {},
            (None, ' ' | '\n' | ';' | '|' | '&' | '<' | '>' | '(' | ')') => {
                if is_word {
                    let last = found.last_mut().unwrap();
                    last.push(std::mem::take(&mut word));
                    is_word = false;
                }
                match c {
                    ' ' => {}
                    // The file name of a redirection isn't an argument of the command.
                    '<' | '>' => found.last_mut().unwrap().push(REDIRECTED.to_owned()),
                    _ => found.push(Vec::new()),
                }
            }
            (None, c) => {
                word.push(c);
                is_word = true;
            }
        }
    }
    found.into_iter().filter_map(arguments).collect()
}

const REDIRECTED: &str = ">";

fn arguments(words: Vec<String>) -> Option<Vec<String>> {
    let is_variable = |word: &String| {
        let (name, _) = word.split_once('=').unwrap_or_default();
        !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
    };
    let mut words = words
        .into_iter()
        .skip_while(|word| is_variable(word) || word == "$");
    (words.next()? == "swirl").then(|| words.take_while(|word| word != REDIRECTED).collect())
}

#[test]
fn commands_are_found_in_shell() {
    let text = "# swirl no\nA=b swirl x 'a b' \\\n  --c \"d\" > file &\necho '{\"a\":\n 1}' | swirl y - # why\n$ swirl z; ls";
    let expected: [&[&str]; 3] = [&["x", "a b", "--c", "d"], &["y", "-"], &["z"]];
    assert_eq!(commands(text), expected);
}
