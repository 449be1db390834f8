//! Places boxes in layers from top to bottom, so that edges go down and nothing overlaps.
//!
//! The usual steps of Sugiyama's method: edges that close a cycle are reversed, each node gets a layer below all nodes
//! that lead to it, edges across several layers get a placeholder in each layer, layers are ordered so that few edges
//! cross, and x positions keep edges straight. Labels are placeholders with a size, so that they have their own space.

mod order;
mod ranks;
mod straighten;

use ranks::{ranks, turned};

/// Space between neighbours in a layer, in pixels.
const GAP_X: f64 = 28.0;
/// Space between layers.
const GAP_Y: f64 = 20.0;
/// Space beside a placeholder.
const GAP_LINE: f64 = 14.0;
/// The maximum width of starts and ends. They have only one port.
const CIRCLE_MAX: f64 = 40.0;
/// The width of an edge from a box to itself.
pub(super) const LOOP_WIDTH: f64 = 22.0;
/// The number of iterations for ordering and for straightening.
const ROUNDS: usize = 24;
/// The largest number of boxes and placeholders: an edge has a placeholder in each layer that it crosses.
const ITEMS_MAX: usize = 40_000;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Size {
    pub w: f64,
    pub h: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub x: f64,
    pub y: f64,
}

/// An edge. Without a label, its size is zero.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    pub from: usize,
    pub to: usize,
    pub label: Size,
}

#[derive(Debug, Default)]
pub(super) struct Layout {
    pub size: Size,
    /// Upper left corners.
    pub nodes: Vec<Option<Point>>,
    pub routes: Vec<Route>,
}

/// The course of an edge: vertical at each of its points, and curved between points with different x.
#[derive(Debug, Default, Clone)]
pub(super) struct Route {
    pub points: Vec<Point>,
    /// The middle of the label.
    pub label: Option<Point>,
    /// From a box to itself, drawn on its right side.
    pub is_loop: bool,
}

/// A box or a placeholder.
#[derive(Debug, Clone)]
struct Item {
    layer: usize,
    /// The space to the left and right of its centre.
    left: f64,
    right: f64,
    height: f64,
    /// The node, if the item is one.
    node: Option<usize>,
    x: f64,
}

/// The vertical position of a layer.
#[derive(Clone, Copy)]
struct Row {
    top: f64,
    height: f64,
}

impl Item {
    fn gap(&self) -> f64 {
        if self.node.is_some() { GAP_X } else { GAP_LINE }
    }
}

/// A link, split at each layer.
struct Chain {
    link: usize,
    /// The link was reversed to break a cycle, so the items run from its end to its start.
    turned: bool,
    items: Vec<usize>,
}

/// `None` if it would take too long.
pub(super) fn layout(sizes: &[Size], links: &[Link]) -> Option<Layout> {
    let mut graph = Graph::new(sizes, links)?;
    graph.order();
    graph.straighten();
    Some(graph.draw(sizes, links))
}

struct Graph {
    items: Vec<Item>,
    layers: Vec<Vec<usize>>,
    chains: Vec<Chain>,
    /// By item: neighbours above and below.
    above: Vec<Vec<usize>>,
    below: Vec<Vec<usize>>,
}

impl Graph {
    fn new(sizes: &[Size], links: &[Link]) -> Option<Graph> {
        let turned = turned(sizes.len(), links);
        let ranks = ranks(sizes.len(), links, &turned);
        let layers = links
            .iter()
            .map(|link| 2 * ranks[link.from].abs_diff(ranks[link.to]));
        if sizes.len() + layers.sum::<usize>() > ITEMS_MAX {
            return None;
        }
        let mut items: Vec<Item> = sizes
            .iter()
            .zip(&ranks)
            .enumerate()
            .map(|(node, (size, rank))| Item {
                layer: rank * 2,
                left: size.w / 2.0,
                right: size.w / 2.0,
                height: size.h,
                node: Some(node),
                x: 0.0,
            })
            .collect();
        let mut chains = Vec::new();
        for (index, link) in links.iter().enumerate() {
            if link.from == link.to {
                items[link.from].right += LOOP_WIDTH + link.label.w + 6.0;
                continue;
            }
            let turned = turned[index];
            let (top, bottom) = if turned {
                (link.to, link.from)
            } else {
                (link.from, link.to)
            };
            let (first, last) = (items[top].layer + 1, items[bottom].layer - 1);
            let label_layer = if turned { last } else { first };
            let mut chain = vec![top];
            for layer in first..=last {
                let label = if layer == label_layer {
                    link.label
                } else {
                    Size::default()
                };
                chain.push(items.len());
                let (left, right) = (label.w / 2.0, label.w / 2.0);
                items.push(Item {
                    layer,
                    left,
                    right,
                    height: label.h,
                    node: None,
                    x: 0.0,
                });
            }
            chain.push(bottom);
            chains.push(Chain {
                link: index,
                turned,
                items: chain,
            });
        }
        let depth = items.iter().map(|item| item.layer + 1).max().unwrap_or(0);
        let mut layers = vec![Vec::new(); depth];
        let (mut above, mut below) = (vec![Vec::new(); items.len()], vec![Vec::new(); items.len()]);
        for chain in &chains {
            for pair in chain.items.windows(2) {
                below[pair[0]].push(pair[1]);
                above[pair[1]].push(pair[0]);
            }
        }
        // The order of a walk from the top is a good initial guess.
        let mut seen = vec![false; items.len()];
        let mut todo: Vec<usize> = (0..sizes.len()).rev().collect();
        while let Some(item) = todo.pop() {
            if !std::mem::replace(&mut seen[item], true) {
                layers[items[item].layer].push(item);
                todo.extend(below[item].iter().rev());
            }
        }
        Some(Graph {
            items,
            layers,
            chains,
            above,
            below,
        })
    }

    fn draw(&self, sizes: &[Size], links: &[Link]) -> Layout {
        let rows = self.rows();
        let mut nodes: Vec<Option<Point>> = vec![None; sizes.len()];
        for item in &self.items {
            if let Some(node) = item.node {
                nodes[node] = Some(Point {
                    x: item.x - sizes[node].w / 2.0,
                    y: rows[item.layer].top,
                });
            }
        }
        let sorted = |near: &Vec<usize>| {
            let mut near = near.clone();
            near.sort_by(|a, b| self.items[*a].x.total_cmp(&self.items[*b].x));
            near
        };
        let above: Vec<Vec<usize>> = self.above.iter().map(sorted).collect();
        let below: Vec<Vec<usize>> = self.below.iter().map(sorted).collect();
        let mut routes = vec![Route::default(); links.len()];
        for chain in &self.chains {
            let port = |item: usize, towards: usize, near: &[Vec<usize>]| {
                self.port(item, towards, &near[item], sizes)
            };
            let (first, last) = (chain.items[0], chain.items[chain.items.len() - 1]);
            let begin = port(first, chain.items[1], &below);
            let end = port(last, chain.items[chain.items.len() - 2], &above);
            routes[chain.link] = self.route(chain, &rows, begin, end);
        }
        for (index, link) in links.iter().enumerate() {
            if let (true, Some(at)) = (link.from == link.to, nodes[link.from]) {
                routes[index] = loop_beside(at, sizes[link.from], link.label);
            }
        }
        let w = self
            .items
            .iter()
            .map(|item| item.x + item.right)
            .fold(0.0, f64::max);
        let h = rows.last().map_or(0.0, |row| row.top + row.height);
        Layout {
            size: Size { w, h },
            nodes,
            routes,
        }
    }

    /// The vertical positions of the layers.
    fn rows(&self) -> Vec<Row> {
        let mut y = 0.0;
        let rows = self.layers.iter().enumerate().map(|(index, layer)| {
            let heights = layer.iter().map(|&item| self.items[item].height);
            let height = heights.fold(0.0, f64::max);
            let top = y;
            // A layer with only unlabelled placeholders needs no extra gap.
            let empty = index % 2 == 1 && height == 0.0;
            y += height + if empty { 0.0 } else { self.gap_below(index) };
            Row { top, height }
        });
        rows.collect()
    }

    /// The course of an edge. `begin` and `end`: where it touches its boxes.
    fn route(&self, chain: &Chain, rows: &[Row], begin: f64, end: f64) -> Route {
        let mut route = Route::default();
        let last = chain.items.len() - 1;
        for (at, &index) in chain.items.iter().enumerate() {
            let item = &self.items[index];
            let Row { top, height } = rows[item.layer];
            let bottom = top + height;
            if at == 0 {
                let y = top + item.height;
                route.points.push(Point { x: begin, y });
                // The rest of the layer may have higher boxes, so the edge continues straight past them.
                route.points.push(Point {
                    x: begin,
                    y: bottom,
                });
            } else if at == last {
                route.points.push(Point { x: end, y: top });
            } else if top < bottom {
                route.points.push(Point { x: item.x, y: top });
                route.points.push(Point {
                    x: item.x,
                    y: bottom,
                });
                if item.right > 0.0 {
                    route.label = Some(Point {
                        x: item.x,
                        y: top + item.height / 2.0,
                    });
                }
            }
        }
        let is_box = |end: usize| self.items[chain.items[end]].left > CIRCLE_MAX / 2.0;
        snap(&mut route.points, is_box(0), is_box(last));
        if chain.turned {
            route.points.reverse();
        }
        route.points.dedup();
        route
    }

    /// Wide curves need more vertical space to be distinguishable.
    fn gap_below(&self, layer: usize) -> f64 {
        let far = self.layers[layer]
            .iter()
            .flat_map(|&item| self.below[item].iter().map(move |&other| (item, other)))
            .map(|(item, other)| (self.items[item].x - self.items[other].x).abs())
            .fold(0.0, f64::max);
        (GAP_Y + far * 0.05).min(GAP_Y * 2.0)
    }

    /// The point at which an edge touches the upper or lower side of a box. Edges are side by side in the order of the
    /// neighbours: `near`, from left to right.
    fn port(&self, item: usize, towards: usize, near: &[usize], sizes: &[Size]) -> f64 {
        let this = &self.items[item];
        let Some(size) = this.node.map(|node| sizes[node]) else {
            return this.x;
        };
        let at = near.iter().position(|other| *other == towards);
        let at = at.unwrap_or(0) as f64;
        let spread = near.len() as f64 - 1.0;
        let step = if spread > 0.0 {
            (size.w * 0.7 / spread).min(24.0)
        } else {
            0.0
        };
        // Small circles have only one port.
        if size.w < CIRCLE_MAX {
            this.x
        } else {
            this.x + (at - spread / 2.0) * step
        }
    }
}

/// An edge from a box to itself.
fn loop_beside(at: Point, size: Size, label: Size) -> Route {
    let (x, middle) = (at.x + size.w, at.y + size.h / 2.0);
    let reach = (size.h / 4.0).min(14.0);
    let point = |y: f64| Point { x, y };
    Route {
        points: vec![point(middle - reach), point(middle + reach)],
        label: (label.w > 0.0).then_some(Point {
            x: x + LOOP_WIDTH + label.w / 2.0 + 2.0,
            y: middle,
        }),
        is_loop: true,
    }
}

/// Aligns ends that are almost in line with their neighbours.
fn snap(points: &mut [Point], first_is_box: bool, last_is_box: bool) {
    const NEAR: f64 = 8.0;
    if let [.., before, last] = points
        && last_is_box
        && (before.x - last.x).abs() <= NEAR
    {
        last.x = before.x;
    }
    if let [first, second, third, ..] = points
        && first_is_box
        && (third.x - first.x).abs() <= NEAR
    {
        (first.x, second.x) = (third.x, third.x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlaps(layout: &Layout, sizes: &[Size]) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        let boxes: Vec<(Point, Size)> = layout
            .nodes
            .iter()
            .zip(sizes)
            .map(|(at, size)| (at.unwrap(), *size))
            .collect();
        for (i, (a, s)) in boxes.iter().enumerate() {
            for (j, (b, t)) in boxes.iter().enumerate().skip(i + 1) {
                if a.x < b.x + t.w && b.x < a.x + s.w && a.y < b.y + t.h && b.y < a.y + s.h {
                    found.push((i, j));
                }
            }
        }
        found
    }

    /// Many small graphs with cycles, loops and double edges.
    #[test]
    fn nothing_overlaps_and_no_edge_crosses_a_box() {
        let mut seed = 7u64;
        let mut draw = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % below
        };
        for _ in 0..200 {
            let count = 1 + draw(12);
            let sizes: Vec<Size> = (0..count)
                .map(|_| Size {
                    w: 20.0 + draw(200) as f64,
                    h: 20.0 + draw(100) as f64,
                })
                .collect();
            let links: Vec<Link> = (0..draw(20))
                .map(|_| Link {
                    from: draw(count),
                    to: draw(count),
                    label: Size {
                        w: draw(2) as f64 * 80.0,
                        h: 12.0,
                    },
                })
                .collect();
            let layout = layout(&sizes, &links).unwrap();
            assert_eq!(overlaps(&layout, &sizes), [], "{sizes:?} {links:?}");
            for (route, link) in layout.routes.iter().zip(&links) {
                assert!(route.points.len() >= 2);
                for (node, (at, size)) in layout.nodes.iter().zip(&sizes).enumerate() {
                    let at = at.unwrap();
                    let inside = |p: &Point| {
                        p.x > at.x && p.x < at.x + size.w && p.y > at.y && p.y < at.y + size.h
                    };
                    assert!(
                        !route.points.iter().any(inside),
                        "{node} {link:?} {route:?}"
                    );
                }
                for point in &route.points {
                    assert!(point.x >= -1.0 && point.x <= layout.size.w + 1.0);
                    assert!(point.y >= 0.0 && point.y <= layout.size.h);
                }
            }
        }
    }

    #[test]
    fn a_chain_is_straight() {
        let sizes = [
            Size { w: 20.0, h: 20.0 },
            Size { w: 100.0, h: 40.0 },
            Size { w: 60.0, h: 40.0 },
        ];
        let link = |from, to| Link {
            from,
            to,
            label: Size::default(),
        };
        let layout = layout(&sizes, &[link(0, 1), link(1, 2)]).unwrap();
        for route in &layout.routes {
            assert!(
                route
                    .points
                    .iter()
                    .all(|point| point.x == route.points[0].x),
                "{route:?}"
            );
        }
    }
}
