//! `swirl explain`

mod codes;

use anyhow::bail;
use serde_json::json;
use swirl_authoring::lint::RULES;
use swirl_documents::codes::TABLE;
use swirl_documents::suggest;

use crate::terminal::{Output, Terminal};

/// Explains the code of a finding, a rule, the code of a refusal, or an error of an instance.
///
/// Each finding of 'swirl validate' has a code, such as 'unknown-property'. Its page explains the finding, and shows a
/// wrong document and the corrected one. It also explains the codes of a server's refusals, the rules of 'swirl lint'
/// and the names of errors of instances.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl explain unknown-property
  swirl explain wrong-status
  swirl explain wait-without-timeout
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
    let mut table = TABLE.iter();
    let rule = RULES.iter().find(|rule| rule.name == code);
    let (summary, page) = match (table.find(|entry| entry.code.as_str() == code), rule) {
        (Some(entry), _) => (entry.summary, entry.page.to_owned()),
        (None, Some(rule)) => (rule.summary, rule.page.to_owned()),
        (None, None) => match codes::find(code)
            .copied()
            .or_else(|| codes::of_status(code))
        {
            Some((_, summary, help)) => (summary, format!("# {code}\n\n{summary}\n\n{help}")),
            None => {
                let codes = TABLE.iter().map(|entry| entry.code.as_str());
                let codes = codes.chain(RULES.iter().map(|rule| rule.name));
                let codes = codes.chain(codes::all().map(|(code, ..)| *code));
                match suggest::did_you_mean(code, codes) {
                    Some(best) => bail!("there is no code '{code}'; did you mean '{best}'?"),
                    None => bail!("there is no code '{code}'; 'swirl explain --list' shows all"),
                }
            }
        },
    };
    Ok(match output {
        Output::Json => format!(
            "{:#}\n",
            json!({"code": code, "summary": summary, "page": page})
        ),
        _ => format!("{}\n", page.trim_end()),
    })
}

fn list(output: Output) -> String {
    let findings = TABLE
        .iter()
        .map(|entry| (entry.code.as_str(), entry.summary));
    let others = codes::all().map(|(code, summary, _)| (*code, *summary));
    let rules = RULES.iter().map(|rule| (rule.name, rule.summary));
    let rows: Vec<(&str, &str)> = findings.chain(rules).chain(others).collect();
    if output == Output::Json {
        let codes: Vec<_> = rows
            .iter()
            .map(|(code, summary)| json!({"code": code, "summary": summary}))
            .collect();
        return format!("{:#}\n", serde_json::Value::from(codes));
    }
    let width = rows.iter().map(|(code, _)| code.len()).max().unwrap_or(0);
    let line = |(code, summary): &(&str, &str)| format!("{code:width$}  {summary}\n");
    rows.iter().map(line).collect()
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
        assert_eq!(
            list.lines().count(),
            TABLE.len() + RULES.len() + codes::all().count()
        );
        assert!(
            page("wrong-status", Output::Text)
                .unwrap()
                .contains("faulted")
        );
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
