//! `swirl token`

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Subcommand;
use serde_json::json;
use swirl_coordinator::access::{Role, Token, TokenEntry, draw, hash};

use crate::terminal::{Output, Terminal};

/// Short tokens, which people would make up themselves, could be guessed.
const CHARS_MIN: usize = 32;
const CHARS_MAX: usize = 4096;

/// Creates tokens for the API of 'swirl coordinator'.
///
/// A coordinator knows only the hash of a token. Add the token's entry to the file in 'auth.tokens_file', which
/// coordinators read again when it changes.
#[derive(Debug, clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_long_help = "\
Examples:
  swirl token create --name ops --role admin
  swirl token create --name ci --role deployer --write ci.token >> tokens.toml
  swirl token hash < ci.token"
)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Creates a random token, and prints it with its entry. It is shown only once.
    Create(Create),
    /// Prints the hash of a token read from stdin.
    Hash,
}

#[derive(Debug, clap::Args)]
struct Create {
    /// The owner of the token; coordinators name it in their messages.
    #[arg(long, value_name = "NAME")]
    name: String,

    /// A role that it grants: viewer, operator, deployer or admin; may be repeated.
    #[arg(long, required = true, value_name = "ROLE")]
    role: Vec<Role>,

    /// A namespace to which it is restricted; may be repeated [default: all].
    #[arg(long, value_name = "NAME")]
    namespace: Vec<String>,

    /// When it expires, such as 2030-01-31T09:00:00Z [default: never].
    #[arg(long, value_name = "INSTANT")]
    expires: Option<String>,

    /// A new file for the token. Then only the entry is printed.
    #[arg(long, value_name = "PATH")]
    write: Option<PathBuf>,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    match &args.command {
        Command::Create(args) => create(args, terminal)?,
        Command::Hash => {
            let token = from_stdin()?;
            let hash = hash(&token);
            terminal.result(&match terminal.output {
                Output::Json => format!("{:#}\n", json!({ "hash": hash })),
                _ => format!("{hash}\n"),
            })?;
        }
    }
    Ok(0)
}

fn create(args: &Create, terminal: &Terminal) -> anyhow::Result<()> {
    let token = draw()?;
    let entry = TokenEntry {
        name: args.name.clone(),
        hash: hash(&token),
        roles: args.role.iter().map(Role::to_string).collect(),
        namespaces: args.namespace.clone(),
        expires: args.expires.clone(),
    };
    // Refuses an entry here that coordinators would refuse.
    Token::try_from(&entry)?;
    if let Some(path) = &args.write {
        write(path, &token).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    let shown = args.write.is_none().then_some(token.as_str());
    terminal.result(&match terminal.output {
        Output::Json => format!("{:#}\n", json!({"token": shown, "entry": entry})),
        _ => text(shown, &entry)?,
    })?;
    Ok(())
}

fn text(token: Option<&str>, entry: &TokenEntry) -> anyhow::Result<String> {
    let list = |items: &[String]| serde_json::to_string(items);
    let mut text = String::new();
    if let Some(token) = token {
        text.push_str(&format!(
            "The token, for SWIRL_TOKEN or a file of its own; it is shown only once:\n\n{token}\n\n\
             Its entry, for the file of auth.tokens_file:\n\n"
        ));
    }
    text.push_str(&format!(
        "[[tokens]]\nname = {}\nhash = {:?}\nroles = {}\n",
        serde_json::to_string(&entry.name)?,
        entry.hash,
        list(&entry.roles)?
    ));
    if !entry.namespaces.is_empty() {
        text.push_str(&format!("namespaces = {}\n", list(&entry.namespaces)?));
    }
    if let Some(expires) = &entry.expires {
        text.push_str(&format!("expires = {}\n", serde_json::to_string(expires)?));
    }
    Ok(text)
}

/// Existing files aren't touched, and only the owner can read the new one.
fn write(path: &Path, token: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    writeln!(file, "{token}")?;
    file.sync_all()
}

fn from_stdin() -> anyhow::Result<String> {
    let mut text = String::new();
    let mut stdin = std::io::stdin().lock().take(CHARS_MAX as u64 * 4 + 2);
    stdin
        .read_to_string(&mut text)
        .context("stdin cannot be read")?;
    let token = text.trim_end_matches(['\n', '\r']);
    let visible = token.chars().all(|c| c.is_ascii_graphic());
    if !visible || !(CHARS_MIN..=CHARS_MAX).contains(&token.len()) {
        bail!(
            "a token has {CHARS_MIN} to {CHARS_MAX} visible ASCII characters and must be generated at random: its hash is a fast one"
        );
    }
    Ok(token.to_owned())
}
