//! `cargo xtask verify journeys`: user journeys through the console, run in Chromium.
//!
//! A journey is a task that a user wants to complete, from the first page to the proof that it worked. Most journeys
//! have a `swirl dev` of their own; those that need tokens or NATS share a small cluster. Each has a browser with its
//! own profile. Every visited page is checked: a journey fails on an error or warning in the browser's console (such as
//! a violation of the Content-Security-Policy), on a control without an accessible name, and on text with too little
//! contrast. The journeys that read every page have axe-core look at it, too, if npm could fetch that.
//!
//! A journey that failed is run once more, alone. If it passes then, it is reported as unsteady.

mod api;
mod browser;
mod chrome;
mod definitions;
mod journeys;
mod server;
mod stage;
mod wait;

use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use futures::StreamExt;
use thirtyfour::WebDriverRunError;

use crate::browser::{Browser, Wanted};
use crate::chrome::Chrome;
use crate::journeys::{ALL, Journey};
use crate::stage::{Site, Stage};

const HELP: &str = "\
swirl-journeys PATH-TO-SWIRL [WORD...]

Runs the journeys whose names have one of the words; all of them without any. With SWIRL_PICTURES=FOLDER the pictures
of the documentation are written there, with SWIRL_PAGES=FOLDER pictures of every page. SWIRL_AXE names the file of
axe-core, which then looks at every page.";

/// Folders for screenshots.
const PICTURES: &str = "SWIRL_PICTURES";
const PAGES: &str = "SWIRL_PAGES";
/// A file.
const AXE: &str = "SWIRL_AXE";

/// The number of journeys that run at once.
const AT_ONCE: usize = 2;

/// If more journeys than this fail, that is no accident, and they aren't run again.
const UNSTEADY_MAX: usize = 2;

/// The time limit for a journey, even on a busy machine.
const JOURNEY_MAX: Duration = Duration::from_secs(300);

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(swirl) = arguments.next().filter(|swirl| !swirl.starts_with('-')) else {
        say(HELP);
        return ExitCode::from(2);
    };
    match run(PathBuf::from(swirl), &arguments.collect::<Vec<_>>()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "a command")]
fn say(line: &str) {
    println!("{line}");
}

/// Returns whether all journeys passed.
#[tokio::main]
async fn run(swirl: PathBuf, words: &[String]) -> Result<bool> {
    let swirl = std::fs::canonicalize(&swirl).with_context(|| swirl.display().to_string())?;
    // An error means that it has been done already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build()?;
    let chrome = Chrome::start(client.clone())?;
    let path = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let axe =
        path(AXE).map(|file| std::fs::read_to_string(&file).context(file.display().to_string()));
    let wanted = Rc::new(Wanted {
        pictures: path(PICTURES),
        pages: path(PAGES),
        axe: axe.transpose()?,
    });
    let site = Rc::new(Site::new(swirl, client).await?);
    let chosen = ALL.iter().filter(|journey| {
        words.is_empty()
            || words
                .iter()
                .any(|word| journey.name.contains(word.as_str()))
    });
    let chosen: Vec<&'static Journey> = chosen.collect();
    let begun = Instant::now();
    let run = async |journey: &'static Journey| {
        let begun = Instant::now();
        let result = one(journey, &chrome, &site, wanted.clone()).await;
        let took = begun.elapsed().as_secs_f64();
        match &result {
            Ok(()) => say(&format!("ok      {} ({took:.1} s)", journey.name)),
            Err(error) => say(&format!(
                "FAILED  {} ({took:.1} s): {error:#}",
                journey.name
            )),
        }
        result.err().map(|_| journey)
    };
    let runs = chosen.iter().map(|journey| run(journey));
    let failed: Vec<Option<&Journey>> = futures::stream::iter(runs)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let mut failed: Vec<&Journey> = failed.into_iter().flatten().collect();
    if failed.len() <= UNSTEADY_MAX {
        for journey in std::mem::take(&mut failed) {
            match run(journey).await {
                Some(journey) => failed.push(journey),
                None => say(&format!(
                    "unsteady: {}: failed beside another, passed alone",
                    journey.name
                )),
            }
        }
    }
    let passed = chosen.len() - failed.len();
    let took = begun.elapsed().as_secs_f64();
    say(&format!(
        "{passed} passed, {} failed ({took:.1} s)",
        failed.len()
    ));
    Ok(failed.is_empty() && passed > 0)
}

async fn one(
    journey: &Journey,
    chrome: &Chrome,
    site: &Rc<Site>,
    wanted: Rc<Wanted>,
) -> Result<()> {
    let driver = chrome.session(journey.scripts).await?;
    let run = driver.run_and_quit(async |driver| {
        let stage = Stage {
            browser: Browser::new(driver, journey.scripts, wanted),
            site: site.clone(),
        };
        let run = (journey.run)(stage);
        let ended = tokio::time::timeout(JOURNEY_MAX, run).await;
        ended.unwrap_or_else(|_| Err(anyhow!("it takes longer than {JOURNEY_MAX:?}")))
    });
    run.await.map_err(|error| match error {
        WebDriverRunError::Body(error) | WebDriverRunError::BodyAndCleanup { body: error, .. } => {
            error
        }
        other => anyhow!("the browser doesn't end: {other}"),
    })
}
