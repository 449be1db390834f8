//! Tests the checks themselves: a page with one mistake of each kind is rejected for each.

use anyhow::{Result, ensure};

use crate::stage::Stage;

/// No language, no title, a style that its policy forbids, a script error, a field without a label, pale text, and a
/// small button.
const PAGE: &str = "data:text/html,<meta http-equiv=Content-Security-Policy content=\"style-src 'none'\">\
    <main><h1>Mistakes</h1><input><p style='margin:0'><font color=silver>pale</font></p><table><th>a</table>\
    <button id=a>x</button><i id=a></i><svg width=9 height=9></svg><img src=data:,></main>\
    <script>console.error('a mistake')</script>";

const FOUND: [&str; 11] = [
    "a control has no name: <input>",
    "a picture has no text",
    "a drawing has no text",
    "the page has no language",
    "the page has no title",
    "the id a is there twice",
    "a heading has no scope",
    "pixels: <button",
    "a text has a contrast of",
    "Content Security Policy",
    "a mistake",
];

pub async fn find(stage: Stage) -> Result<()> {
    let browser = &stage.browser;
    browser.go(PAGE).await?;
    let findings = browser.findings().await?.join("\n");
    for words in FOUND {
        ensure!(
            findings.contains(words),
            "not found: {words}, only\n{findings}"
        );
    }
    // Each warning is reported once.
    browser
        .go("data:text/html,<title>T</title><html lang=en><main><h1>Good</h1></main>")
        .await?;
    let findings = browser.findings().await?;
    ensure!(findings.is_empty(), "a good page: {findings:?}");
    Ok(())
}
