//! Pictures of workflows.
//!
//! [`chart`] says what is to be seen, without any geometry; `mermaid` writes that as text for
//! Mermaid, and `layout` and `svg` draw it. The same workflow always gives the same picture.

pub mod chart;
mod handlers;
mod icons;
mod layout;
mod mermaid;
mod paint;
mod size;
mod svg;
mod words;

use swirl_model::workflow::Workflow;

/// What a picture is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// An SVG image, readable on light and dark backgrounds.
    Svg,
    /// A Mermaid `stateDiagram-v2`, which GitHub, GitLab and many editors draw.
    Mermaid,
}

/// Draws a workflow.
pub fn render(workflow: &Workflow, format: Format) -> String {
    let chart = chart::Chart::new(workflow);
    match format {
        Format::Svg => svg::draw(&chart),
        Format::Mermaid => mermaid::write(&chart),
    }
}

#[cfg(test)]
pub(crate) mod sample;
