//! A browser from its user's view: controls are found by their names, and each visited page is checked.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use thirtyfour::error::WebDriverErrorInner;
use thirtyfour::prelude::WebDriverError;
use thirtyfour::{By, Key, TypingData, WebDriver, WebElement};

use crate::wait::until;

/// The rules for pages.
const AUDIT: &str = include_str!("audit.js");

/// What axe-core finds, as sentences. It must not load style sheets again: the policy of the pages forbids that.
const AXE: &str = "
    const done = arguments[arguments.length - 1];
    const said = ({ id, help, nodes }) =>
        nodes.map((one) => `axe: ${help} (${id}): ${one.html.slice(0, 160)} ${one.any[0]?.message ?? ''}`);
    axe.run(document, { preload: false, resultTypes: ['violations'] })
        .then(({ violations }) => done(violations.flatMap(said)), (error) => done([`axe: ${error}`]));";

/// What is wanted from the journeys apart from their outcome.
#[derive(Default)]
pub struct Wanted {
    /// The folder for the screenshots of the documentation.
    pub pictures: Option<PathBuf>,
    /// The folder for screenshots of whole pages.
    pub pages: Option<PathBuf>,
    /// The source of axe-core.
    pub axe: Option<String>,
}

/// The highest picture of a page, in pixels.
const HEIGHT_MAX: u64 = 6_000;

pub struct Browser {
    driver: WebDriver,
    base: RefCell<String>,
    /// Scripts are on, so a script can check the pages.
    scripts: bool,
    /// The statuses of refusals that the journey provoked on purpose, because the browser reports each as an error.
    refusals: RefCell<Vec<u16>>,
    wanted: Rc<Wanted>,
}

/// Whether a control cannot be used yet: the page has replaced it since it was found, or hasn't laid it out.
fn is_passing(error: &anyhow::Error) -> bool {
    use WebDriverErrorInner::*;
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<WebDriverError>())
        .any(|cause| {
            matches!(
                cause.as_inner(),
                StaleElementReference(_) | ElementNotInteractable(_) | ElementClickIntercepted(_)
            )
        })
}

/// Uses a control, and looks it up again while a page that changes keeps it from being used.
async fn unless_replaced(mut act: impl AsyncFnMut() -> Result<()>) -> Result<()> {
    until("a control that can be used", async || match act().await {
        Err(error) if is_passing(&error) => Ok(Err(format!("{error:#}"))),
        other => other.map(Ok),
    })
    .await
}

impl Browser {
    pub fn new(driver: WebDriver, scripts: bool, wanted: Rc<Wanted>) -> Browser {
        Browser {
            driver,
            base: RefCell::default(),
            scripts,
            refusals: RefCell::default(),
            wanted,
        }
    }

    /// Sets the server whose pages are opened from now on.
    pub fn at(&self, url: &str) {
        url.clone_into(&mut self.base.borrow_mut());
    }

    /// Opens a page of the console.
    pub async fn open(&self, path: &str) -> Result<()> {
        let url = format!("{}/console{path}", self.base.borrow());
        self.go(&url).await?;
        self.check().await
    }

    /// As [`open`](Browser::open), if the server refuses with this status.
    pub async fn open_refused(&self, path: &str, status: u16) -> Result<()> {
        self.refusals.borrow_mut().push(status);
        self.open(path).await
    }

    /// Opens any address without checking it.
    pub async fn go(&self, url: &str) -> Result<()> {
        self.driver.goto(url).await.with_context(|| url.to_owned())
    }

    pub async fn address(&self) -> Result<String> {
        Ok(self.driver.current_url().await?.to_string())
    }

    /// Clicks the link, button or summary with this text.
    pub async fn press(&self, words: &str) -> Result<()> {
        self.press_in("", words).await
    }

    /// [`press`](Browser::press) within the part of the page that an XPath selects.
    pub async fn press_in(&self, part: &str, words: &str) -> Result<()> {
        let path = format!(
            "{part}//*[self::a or self::button or self::summary][normalize-space(.)={}]",
            quoted(words)
        );
        unless_replaced(async || {
            let control = self.visible(&path, words).await?;
            control.scroll_into_view().await?;
            control.click().await.with_context(|| words.to_owned())
        })
        .await?;
        self.check().await
    }

    /// Clicks the first row of the timeline whose name is this.
    pub async fn choose_step(&self, name: &str) -> Result<()> {
        let path = format!(
            "//a[contains(@class, 'step')][.//*[@class='words'][normalize-space(.)={}]]",
            quoted(name)
        );
        unless_replaced(async || {
            let row = self.visible(&path, name).await?;
            row.scroll_into_view().await?;
            row.click().await.with_context(|| name.to_owned())
        })
        .await?;
        self.check().await
    }

    /// As [`press`](Browser::press), if the server refuses with this status.
    pub async fn press_refused(&self, words: &str, status: u16) -> Result<()> {
        self.refusals.borrow_mut().push(status);
        self.press(words).await
    }

    /// Replaces the text of the field with this label; in an editor by pasting.
    pub async fn fill(&self, label: &str, text: &str) -> Result<()> {
        if let Some(editor) = self.editor(label).await? {
            editor.click().await?;
            self.chord(Key::Control, "a").await?;
            let paste = "const [editor, text] = arguments;
                const clipboardData = new DataTransfer();
                clipboardData.setData('text/plain', text);
                const options = { clipboardData, bubbles: true, cancelable: true };
                editor.dispatchEvent(new ClipboardEvent('paste', options));";
            let arguments = [editor.to_json()?, json!(text)];
            self.driver.execute(paste, arguments).await?;
            return Ok(());
        }
        unless_replaced(async || {
            let field = self.field(label).await?;
            field.clear().await?;
            Ok(field.send_keys(text).await?)
        })
        .await
    }

    /// As [`fill`](Browser::fill), of the field within the part of the page that an XPath selects.
    pub async fn fill_in(&self, part: &str, label: &str, text: &str) -> Result<()> {
        let path = format!("{part}{}", labelled(label));
        unless_replaced(async || {
            let field = self.visible(&path, label).await?;
            field.clear().await?;
            Ok(field.send_keys(text).await?)
        })
        .await
    }

    /// Whether pages may run scripts.
    pub fn has_scripts(&self) -> bool {
        self.scripts
    }

    /// Chooses files in the field with this label.
    pub async fn choose_files(&self, label: &str, files: &[PathBuf]) -> Result<()> {
        let paths: Vec<String> = files
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        unless_replaced(async || {
            let field = self.field(label).await?;
            // Others would be added to those that were chosen before.
            field.clear().await?;
            Ok(field.send_keys(paths.join("\n")).await?)
        })
        .await
    }

    /// Clicks the box with this name.
    pub async fn tick(&self, name: &str) -> Result<()> {
        let path = format!("//input[@type='checkbox'][@aria-label={}]", quoted(name));
        unless_replaced(async || {
            let found = self.visible(&path, name).await?;
            found.scroll_into_view().await?;
            found.click().await.with_context(|| name.to_owned())
        })
        .await
    }

    /// The text in a field, or the text that the field behind an editor would send.
    pub async fn filled(&self, label: &str) -> Result<String> {
        let field = self.driver.find(By::XPath(labelled(label))).await;
        let field = field.with_context(|| format!("there is no field “{label}”"))?;
        Ok(field.prop("value").await?.unwrap_or_default())
    }

    /// The editor that stands in place of the field with this label.
    async fn editor(&self, label: &str) -> Result<Option<WebElement>> {
        let path = format!(
            "//*[@role='textbox'][@aria-labelledby=//label[starts-with(normalize-space(.), {})]/@id]",
            quoted(label)
        );
        Ok(self.driver.find_all(By::XPath(&path)).await?.pop())
    }

    /// Selects an option in the list with this label.
    pub async fn choose(&self, label: &str, option: &str) -> Result<()> {
        let path = format!("./option[normalize-space(.)={}]", quoted(option));
        unless_replaced(async || {
            let field = self.field(label).await?;
            let found = field.find(By::XPath(&path)).await;
            let found = found.with_context(|| format!("{label} has no option {option}"))?;
            Ok(found.click().await?)
        })
        .await
    }

    /// The field whose label begins with these words.
    async fn field(&self, label: &str) -> Result<WebElement> {
        self.visible(&labelled(label), label).await
    }

    /// The first visible element that an XPath selects.
    async fn visible(&self, path: &str, what: &str) -> Result<WebElement> {
        for one in self.driver.find_all(By::XPath(path)).await? {
            if one.is_displayed().await? {
                return Ok(one);
            }
        }
        let (address, text) = (self.address().await?, self.text().await?);
        bail!("there is no “{what}” on {address}:\n{text}")
    }

    /// The visible text of the page without its frame, on one line.
    pub async fn text(&self) -> Result<String> {
        let main = self.driver.find(By::Css("main")).await?;
        let text = main.text().await?;
        let words: Vec<&str> = text.split_whitespace().collect();
        Ok(words.join(" "))
    }

    /// Waits until the page shows all of these texts, without loading it again.
    pub async fn shows(&self, all: &[&str]) -> Result<()> {
        let what = format!("{all:?}");
        until(&what, async || {
            // A page that is being replaced has no text.
            let text = self.text().await.unwrap_or_default();
            let missing = all.iter().any(|words| !text.contains(words));
            Ok(if missing { Err(text) } else { Ok(()) })
        })
        .await?;
        self.check().await
    }

    pub async fn lacks(&self, words: &str) -> Result<()> {
        let text = self.text().await?;
        ensure!(!text.contains(words), "the page has “{words}”:\n{text}");
        Ok(())
    }

    /// Whether an element matches this selector.
    pub async fn has(&self, selector: &str) -> Result<bool> {
        Ok(!self.driver.find_all(By::Css(selector)).await?.is_empty())
    }

    /// Presses keys at the current focus.
    pub async fn keys(&self, keys: impl Into<TypingData>) -> Result<()> {
        self.driver.action_chain().send_keys(keys).perform().await?;
        Ok(())
    }

    /// Presses a key while another one is held.
    pub async fn chord(&self, held: Key, key: &str) -> Result<()> {
        let chain = self.driver.action_chain();
        let chain = chain.key_down(held.clone()).send_keys(key).key_up(held);
        Ok(chain.perform().await?)
    }

    /// The value of a script.
    pub async fn run(&self, script: &str) -> Result<Value> {
        Ok(self.driver.execute(script, []).await?.json().clone())
    }

    /// Sets the system preference that a media query tests.
    pub async fn prefer(&self, name: &str, value: &str) -> Result<()> {
        let wanted = json!({"features": [{"name": name, "value": value}]});
        let cdp = self.driver.cdp();
        cdp.send_raw("Emulation.setEmulatedMedia", wanted).await?;
        Ok(())
    }

    /// Sets the page's size, as on another device.
    pub async fn resize(&self, width: u32, height: u32) -> Result<()> {
        let wanted =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        let cdp = self.driver.cdp();
        cdp.send_raw("Emulation.setDeviceMetricsOverride", wanted)
            .await?;
        if !self.scripts {
            return Ok(());
        }
        until("the size", async || {
            let found = self.run("return window.innerWidth").await?;
            Ok(if found == json!(width) {
                Ok(())
            } else {
                Err(found.to_string())
            })
        })
        .await
    }

    /// Errors of the page, and warnings that the browser has reported since the last call.
    pub async fn findings(&self) -> Result<Vec<String>> {
        let mut findings = Vec::new();
        if self.scripts {
            let told = self.run(AUDIT).await?;
            let told = told.as_array().context("the audit returned no list")?;
            findings.extend(told.iter().filter_map(Value::as_str).map(str::to_owned));
        }
        for entry in self.driver.browser_log().await? {
            if !["WARNING", "SEVERE"].contains(&entry.level.as_str()) {
                continue;
            }
            let mut refusals = self.refusals.borrow_mut();
            let provoked = refusals
                .iter()
                .position(|status| entry.message.contains(&format!("a status of {status} ")));
            match provoked {
                Some(index) => {
                    refusals.remove(index);
                }
                None => findings.push(format!("{}: {}", entry.level, entry.message)),
            }
        }
        Ok(findings)
    }

    /// Fails if the page violates a rule or the browser reports something.
    pub async fn check(&self) -> Result<()> {
        let findings = self.findings().await?;
        if findings.is_empty() {
            return Ok(());
        }
        bail!("{}:\n{}", self.address().await?, findings.join("\n"))
    }

    /// Looks at a whole page: with axe-core, if it is there, and with people's eyes, if pictures of pages are wanted.
    /// Their names begin with this one.
    pub async fn look(&self, name: &str) -> Result<()> {
        if let Some(axe) = &self.wanted.axe {
            let script = format!("{axe};{AXE}");
            let found = self.driver.execute_async(script, []).await?;
            let found = found
                .json()
                .as_array()
                .context("axe-core returned no list")?;
            let found: Vec<&str> = found.iter().filter_map(Value::as_str).collect();
            if !found.is_empty() {
                bail!("{}:\n{}", self.address().await?, found.join("\n"));
            }
        }
        let Some(folder) = &self.wanted.pages else {
            return Ok(());
        };
        let size = "return [innerWidth, innerHeight, document.documentElement.scrollHeight]";
        let size = self.run(size).await?;
        let pixels = |index: usize| {
            let pixels = size[index].as_u64().unwrap_or(1).min(HEIGHT_MAX);
            u32::try_from(pixels).unwrap_or(1)
        };
        // What is as high as the window is then as high as the page.
        self.resize(pixels(0), pixels(2)).await?;
        self.driver
            .screenshot(&folder.join(format!("{name}.png")))
            .await?;
        self.resize(pixels(0), pixels(1)).await
    }

    /// The folder for pictures of the documentation, which shows pages with scripts.
    fn pictures(&self) -> Option<&Path> {
        let folder = self.wanted.pictures.as_deref();
        folder.filter(|_| self.scripts)
    }

    /// Takes a screenshot of the page for the documentation, with this height in pixels, if screenshots are enabled.
    pub async fn picture(&self, name: &str, height: u32) -> Result<()> {
        let Some(folder) = self.pictures() else {
            return Ok(());
        };
        self.resize(1280, height).await?;
        self.run("scrollTo(0, 0); document.activeElement.blur()")
            .await?;
        self.driver.screenshot(&folder.join(name)).await?;
        self.as_before().await
    }

    /// Like [`picture`](Browser::picture), of the part of the page that a selector names.
    pub async fn picture_of(&self, name: &str, selector: &str) -> Result<()> {
        let Some(folder) = self.pictures() else {
            return Ok(());
        };
        self.resize(1280, 1000).await?;
        let part = self.driver.find(By::Css(selector)).await?;
        part.scroll_into_view().await?;
        part.screenshot(&folder.join(name)).await?;
        self.as_before().await
    }

    /// Ends [`resize`](Browser::resize).
    async fn as_before(&self) -> Result<()> {
        let cdp = self.driver.cdp();
        cdp.send_raw("Emulation.clearDeviceMetricsOverride", json!({}))
            .await?;
        Ok(())
    }

    /// Replaces words on the page before a picture: the names of this machine and its folders.
    pub async fn reword(&self, words: &[(&str, &str)]) -> Result<()> {
        if self.pictures().is_none() {
            return Ok(());
        }
        let script = "const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
            while (texts.nextNode()) {
              for (const [from, to] of arguments[0]) {
                texts.currentNode.data = texts.currentNode.data.replaceAll(from, to);
              }
            }";
        self.driver.execute(script, [json!(words)]).await?;
        Ok(())
    }
}

/// An id in the console's short form.
pub fn short(id: &str) -> String {
    format!("{}…", id.chars().take(12).collect::<String>())
}

/// The XPath of the field whose label begins with these words.
fn labelled(label: &str) -> String {
    format!(
        "//*[@id=//label[starts-with(normalize-space(.), {})]/@for]",
        quoted(label)
    )
}

/// A text in an XPath, which has no escapes.
fn quoted(text: &str) -> String {
    match text.contains('"') {
        true => format!("'{text}'"),
        false => format!("\"{text}\""),
    }
}
