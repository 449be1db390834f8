//! `swirl explain`

use anyhow::bail;
use serde_json::json;
use swirl_spec::codes::{Entry, TABLE};
use swirl_spec::suggest;

use crate::terminal::{Output, Terminal};

/// Explains the code of a finding.
///
/// Each finding of 'swirl validate' has a code, such as 'unknown-property'. Its page says what it
/// means, shows a document that is wrong, and the same document mended.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl explain unknown-property
  swirl explain --list")]
pub struct Args {
    /// The code.
    #[arg(required_unless_present = "list")]
    code: Option<String>,

    /// Lists all codes, with a line about each.
    #[arg(long, conflicts_with = "code")]
    list: bool,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    let text = match &args.code {
        Some(code) => page(code, terminal.output)?,
        None => list(terminal.output),
    };
    terminal.result(&text)?;
    Ok(0)
}

fn page(code: &str, output: Output) -> anyhow::Result<String> {
    let Some(entry) = TABLE.iter().find(|entry| entry.code.as_str() == code) else {
        let codes = TABLE.iter().map(|entry| entry.code.as_str());
        match suggest::did_you_mean(code, codes) {
            Some(best) => bail!("there is no code '{code}'; did you mean '{best}'?"),
            None => bail!("there is no code '{code}'; 'swirl explain --list' shows all"),
        }
    };
    Ok(match output {
        Output::Json => format!(
            "{:#}\n",
            json!({
                "code": entry.code.as_str(),
                "summary": entry.summary,
                "page": entry.page,
            })
        ),
        _ => format!("{}\n", entry.page.trim_end()),
    })
}

fn list(output: Output) -> String {
    if output == Output::Json {
        let codes: Vec<_> = TABLE
            .iter()
            .map(|entry| json!({"code": entry.code.as_str(), "summary": entry.summary}))
            .collect();
        return format!("{:#}\n", serde_json::Value::from(codes));
    }
    let width = TABLE
        .iter()
        .map(|entry| entry.code.as_str().len())
        .max()
        .unwrap_or(0);
    let line = |entry: &Entry| format!("{:width$}  {}\n", entry.code.as_str(), entry.summary);
    TABLE.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_the_list() {
        let first = &TABLE[0];
        let code = first.code.as_str();
        assert_eq!(
            page(code, Output::Text).unwrap().trim_end(),
            first.page.trim_end()
        );
        assert!(page(code, Output::Json).unwrap().contains(first.summary));
        let list = list(Output::Text);
        assert_eq!(list.lines().count(), TABLE.len());
        assert!(list.lines().all(|line| line.contains("  ")));
    }

    #[test]
    fn unknown_codes() {
        let error = page("unknown-proprety", Output::Text)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("did you mean 'unknown-property'?"),
            "{error}"
        );
        assert!(
            page("zzzzzzzzzz", Output::Text)
                .unwrap_err()
                .to_string()
                .contains("--list")
        );
    }
}
