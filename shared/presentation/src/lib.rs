//! Pictures of workflows, and the history of an instance for people: for the command line, and for
//! every other program that shows workflows. It depends on no terminal and no server.
//!
//! [`chart`] has the visible parts, without any geometry; `mermaid` writes them as text for Mermaid, and `layout` and
//! `svg` draw them. The same workflow always gives the same picture.

pub mod chart;
mod counts;
mod details;
mod handlers;
mod icons;
mod layout;
pub mod line;
mod mermaid;
mod paint;
pub mod place;
mod size;
mod svg;
pub mod text;
pub mod timeline;
mod trail;
mod words;

use swirl_model::workflow::Workflow;

pub use counts::Counts;
pub use paint::escape;
pub use trail::Trail;

/// The format of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// Draws a workflow as SVG, with the trail of an instance and its current place.
pub fn render_with(workflow: &Workflow, trail: &Trail) -> String {
    let mut chart = chart::Chart::new(workflow);
    trail.paint(&mut chart);
    svg::draw(&chart)
}

/// Draws a workflow as SVG, with how often each part of it has run.
pub fn render_counts(workflow: &Workflow, counts: &Counts) -> String {
    let mut chart = chart::Chart::new(workflow);
    counts.paint(&mut chart);
    svg::draw(&chart)
}

/// The style sheet of the pictures, which [`render`] writes into each. Pages that hold a picture may have
/// it once, for the elements of the picture.
pub fn style() -> &'static str {
    svg::STYLE
}

#[cfg(test)]
pub(crate) mod sample;
