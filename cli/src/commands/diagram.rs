//! `swirl diagram`

use std::path::PathBuf;

use anyhow::{Context, bail};
use swirl_presentation::{Format, render};

use super::validate::{self, Read};
use crate::terminal::Terminal;

/// Draws a workflow.
///
/// It shows states with their actions, events and timeouts, and transitions with their conditions.
/// Error transitions are dashed, compensation is dotted. The same definition always gives the same picture.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl diagram order.sw.yaml -o order.svg
  swirl diagram order.sw.yaml --format mermaid")]
pub struct Args {
    /// The definition, YAML or JSON.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The output format. The default is the one of the file name given with -o, or svg.
    #[arg(long, value_enum)]
    format: Option<Form>,

    /// The file to write, instead of stdout.
    #[arg(long = "out", short, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// The library's formats as values of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    /// An SVG image, readable on light and dark backgrounds.
    Svg,
    /// A Mermaid `stateDiagram-v2`, which GitHub, GitLab and many editors draw.
    Mermaid,
}

impl From<Form> for Format {
    fn from(form: Form) -> Format {
        match form {
            Form::Svg => Format::Svg,
            Form::Mermaid => Format::Mermaid,
        }
    }
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    let read = Read::file(&args.file)?;
    let Some(workflow) = &read.reading.workflow else {
        let findings = validate::human(&read, false);
        terminal.failure(&findings, &findings);
        return Ok(1);
    };
    let format = match args.format {
        Some(form) => form.into(),
        None => by_name(args.out.as_ref())?,
    };
    let picture = render(workflow, format);
    match &args.out {
        None => terminal.result(&picture)?,
        Some(path) => std::fs::write(path, picture)
            .with_context(|| format!("{} cannot be written", path.display()))?,
    }
    Ok(0)
}

fn by_name(path: Option<&PathBuf>) -> anyhow::Result<Format> {
    let Some(path) = path else {
        return Ok(Format::Svg);
    };
    match path.extension().and_then(|end| end.to_str()) {
        Some("mmd" | "mermaid") => Ok(Format::Mermaid),
        Some("svg") | None => Ok(Format::Svg),
        Some(other) => bail!(
            "'{}' cannot be written: '.{other}' is neither .svg nor .mmd; set the format with '--format'",
            path.display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_follows_the_name() {
        assert_eq!(
            by_name(Some(&PathBuf::from("a.mmd"))).unwrap(),
            Format::Mermaid
        );
        assert_eq!(by_name(Some(&PathBuf::from("a.svg"))).unwrap(), Format::Svg);
        assert_eq!(by_name(None).unwrap(), Format::Svg);
        assert!(by_name(Some(&PathBuf::from("a.png"))).is_err());
    }
}
