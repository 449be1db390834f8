//! Coverage as LCOV: a state is a function on its line, and each other part is a branch of that line.

use super::items::ItemKind;
use super::{Coverage, Covered};

/// The LCOV format, for editors and services that show coverage.
pub fn lcov(coverage: &Coverage) -> String {
    coverage.definitions().map(record).collect()
}

fn record(covered: &Covered) -> String {
    let mut text = format!("TN:\nSF:{}\n", covered.file.display());
    let states = || {
        covered
            .items
            .iter()
            .filter(|item| item.kind == ItemKind::State)
    };
    let one_line = |name: &str| name.replace(['\n', '\r'], " ");
    for item in states() {
        text.push_str(&format!("FN:{},{}\n", item.line, one_line(&item.name)));
    }
    for item in states() {
        text.push_str(&format!("FNDA:{},{}\n", item.hits, one_line(&item.name)));
    }
    let (ran, all) = covered.share(ItemKind::State);
    text.push_str(&format!("FNF:{all}\nFNH:{ran}\n"));
    let branches = || {
        covered
            .items
            .iter()
            .filter(|item| item.kind != ItemKind::State)
    };
    for (index, item) in branches().enumerate() {
        text.push_str(&format!("BRDA:{},0,{index},{}\n", item.line, item.hits));
    }
    let ran = branches().filter(|item| item.hits > 0).count();
    text.push_str(&format!("BRF:{}\nBRH:{ran}\n", branches().count()));
    let mut lines: Vec<(usize, u64)> = Vec::new();
    for item in states() {
        match lines.iter_mut().find(|(line, _)| *line == item.line) {
            Some((_, hits)) => *hits += item.hits,
            None => lines.push((item.line, item.hits)),
        }
    }
    for (line, hits) in &lines {
        text.push_str(&format!("DA:{line},{hits}\n"));
    }
    let ran = lines.iter().filter(|(_, hits)| *hits > 0).count();
    text.push_str(&format!("LF:{}\nLH:{ran}\nend_of_record\n", lines.len()));
    text
}
