//! Diagrams of workflows and human-readable histories of instances, for the command line and every other program that
//! shows workflows. This crate needs neither a terminal nor a server.
//!
//! [`chart`] describes the visible parts without any geometry; `mermaid` writes them as Mermaid text, and `layout` and
//! `svg` draw them. The same workflow always gives the same diagram.

pub mod changes;
pub mod chart;
mod counts;
mod details;
mod extent;
mod handlers;
mod icons;
mod layout;
pub mod line;
mod mermaid;
mod names;
mod occupancy;
mod paint;
pub mod place;
mod rewind;
mod size;
pub mod steps;
mod svg;
mod tasks;
pub mod text;
pub mod timeline;
mod trail;
mod words;

use swirl_model::workflow::Workflow;

pub use counts::Counts;
pub use names::Names;
pub use occupancy::Occupancies;
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

/// Draws a workflow. One that is too large is drawn without the ways between its states.
pub fn render(workflow: &Workflow, format: Format) -> String {
    match format {
        Format::Svg => draw(workflow, |_| {}),
        Format::Mermaid => mermaid::write(&chart::Chart::whole(workflow)),
    }
}

/// Draws a workflow as SVG, with an instance's trail and current position.
pub fn render_with(workflow: &Workflow, trail: &Trail) -> String {
    draw(workflow, |chart| trail.paint(chart))
}

/// Draws a workflow as SVG, with the number of times that each part has run.
pub fn render_counts(workflow: &Workflow, counts: &Counts) -> String {
    draw(workflow, |chart| counts.paint(chart))
}

/// Draws a workflow as SVG, showing how many instances are in each state.
pub fn render_occupied(workflow: &Workflow, occupancies: &Occupancies) -> String {
    draw(workflow, |chart| occupancies.paint(chart))
}

fn draw(workflow: &Workflow, paint: impl Fn(&mut chart::Chart)) -> String {
    let mut chart = chart::Chart::new(workflow);
    paint(&mut chart);
    svg::draw(&chart).unwrap_or_else(|| {
        let mut chart = chart::Chart::simple(workflow);
        paint(&mut chart);
        svg::draw_simple(&chart)
    })
}

/// The style sheet of the diagrams. [`render`] includes it in each image; a page that embeds several diagrams may
/// include it once instead.
pub fn style() -> &'static str {
    svg::STYLE
}

#[cfg(test)]
pub(crate) mod sample;
