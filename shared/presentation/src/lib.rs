//! Diagrams of workflows and human-readable histories of instances, for the command line and every other program that
//! shows workflows. This crate needs neither a terminal nor a server.
//!
//! [`chart`] describes the visible parts without any geometry; `mermaid` writes them as Mermaid text, and `layout` and
//! `svg` draw them. The same workflow always gives the same diagram.

pub mod changes;
pub mod chart;
mod counts;
mod details;
mod handlers;
mod icons;
mod layout;
pub mod line;
mod mermaid;
mod occupancy;
mod paint;
pub mod place;
mod rewind;
mod size;
mod svg;
pub mod text;
pub mod timeline;
mod trail;
mod words;

use swirl_model::workflow::Workflow;

pub use counts::Counts;
pub use occupancy::{Occupancies, Occupancy};
pub use paint::escape;
pub use rewind::Rewound;
pub use trail::Trail;

/// The format of a diagram.
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

/// Draws a workflow as SVG, with an instance's trail and current position.
pub fn render_with(workflow: &Workflow, trail: &Trail) -> String {
    let mut chart = chart::Chart::new(workflow);
    trail.paint(&mut chart);
    svg::draw(&chart)
}

/// Draws a workflow as SVG, with the number of times that each part has run.
pub fn render_counts(workflow: &Workflow, counts: &Counts) -> String {
    let mut chart = chart::Chart::new(workflow);
    counts.paint(&mut chart);
    svg::draw(&chart)
}

/// Draws a workflow as SVG, showing how many instances are in each state.
pub fn render_occupied(workflow: &Workflow, occupancies: &Occupancies) -> String {
    let mut chart = chart::Chart::new(workflow);
    occupancies.paint(&mut chart);
    svg::draw(&chart)
}

/// The style sheet of the diagrams. [`render`] includes it in each image; a page that embeds several diagrams may
/// include it once instead.
pub fn style() -> &'static str {
    svg::STYLE
}

#[cfg(test)]
pub(crate) mod sample;
