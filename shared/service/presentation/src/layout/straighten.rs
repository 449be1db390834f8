//! Horizontal positions.

use super::{Graph, Item, ROUNDS};

impl Graph {
    /// Moves everything as close to its neighbours as the order and the gaps allow.
    pub(super) fn straighten(&mut self) {
        for layer in 0..self.layers.len() {
            self.place_layer(layer, &|graph, item| graph.items[item].x);
        }
        for round in 0..ROUNDS {
            let down = round % 2 == 0;
            for step in 0..self.layers.len() {
                let layer = if down {
                    step
                } else {
                    self.layers.len() - 1 - step
                };
                let last = round + 2 >= ROUNDS;
                self.place_layer(layer, &|graph, item| {
                    let sides: [&[usize]; 2] = match (last, down) {
                        (true, _) => [&graph.above[item], &graph.below[item]],
                        (_, true) => [&graph.above[item], &[]],
                        (_, false) => [&graph.below[item], &[]],
                    };
                    let near = sides.iter().flat_map(|side| side.iter());
                    let (mut sum, mut weight) = (0.0, 0.0);
                    for &other in near {
                        let w = graph.pull(item, other);
                        sum += graph.items[other].x * w;
                        weight += w;
                    }
                    if weight > 0.0 {
                        sum / weight
                    } else {
                        graph.items[item].x
                    }
                });
            }
        }
        self.compact();
        let edge = |item: &Item| item.x - item.left;
        let least = self.items.iter().map(edge).fold(f64::MAX, f64::min);
        for item in &mut self.items {
            item.x = (item.x - least).round();
        }
    }

    /// Moves a connected part to the left if nothing is there.
    fn compact(&mut self) {
        let mut parts: Vec<usize> = (0..self.items.len()).collect();
        fn root(parts: &mut [usize], mut item: usize) -> usize {
            while parts[item] != item {
                parts[item] = parts[parts[item]];
                item = parts[item];
            }
            item
        }
        for (item, below) in self.below.iter().enumerate() {
            for &other in below {
                let (a, b) = (root(&mut parts, item), root(&mut parts, other));
                parts[a.max(b)] = a.min(b);
            }
        }
        let part: Vec<usize> = (0..self.items.len())
            .map(|item| root(&mut parts, item))
            .collect();
        let left = |item: &Item| item.x - item.left;
        // By part: its left edge.
        let mut least = vec![f64::MAX; self.items.len()];
        for (item, part) in self.items.iter().zip(&part) {
            least[*part] = least[*part].min(left(item));
        }
        let mut order: Vec<usize> = part.clone();
        order.sort_unstable();
        order.dedup();
        order.sort_by(|a, b| least[*a].total_cmp(&least[*b]));
        let edge = order.first().map_or(0.0, |first| least[*first]);
        for of in order {
            let mut room = least[of] - edge;
            for layer in &self.layers {
                for pair in layer
                    .windows(2)
                    .filter(|pair| part[pair[1]] == of && part[pair[0]] != of)
                {
                    let (a, b) = (&self.items[pair[0]], &self.items[pair[1]]);
                    room = room.min(left(b) - a.x - a.right - a.gap().max(b.gap()));
                }
            }
            for (item, part) in self.items.iter_mut().zip(&part) {
                if *part == of {
                    item.x -= room.max(0.0);
                }
            }
        }
    }

    /// Straightens long edges first.
    fn pull(&self, one: usize, other: usize) -> f64 {
        match (self.items[one].node, self.items[other].node) {
            (None, None) => 8.0,
            (Some(_), Some(_)) => 1.0,
            _ => 2.0,
        }
    }

    /// The positions nearest to the wanted ones (least squares) that keep the order and the gaps. Without the gaps this
    /// is isotonic regression, which is computed by pooling.
    fn place_layer(&mut self, layer: usize, wanted: &dyn Fn(&Graph, usize) -> f64) {
        let row = &self.layers[layer];
        let mut offset = 0.0;
        let mut offsets = Vec::with_capacity(row.len());
        // Blocks of touching items: the sum of the wanted positions, the weight, and the number of items.
        let mut blocks: Vec<(f64, f64, usize)> = Vec::with_capacity(row.len());
        for (at, &item) in row.iter().enumerate() {
            if at > 0 {
                let before = &self.items[row[at - 1]];
                let this = &self.items[item];
                offset += before.right + this.left + before.gap().max(this.gap());
            }
            offsets.push(offset);
            let weight = if self.items[item].node.is_some() {
                1.0
            } else {
                2.0
            };
            blocks.push(((wanted(self, item) - offset) * weight, weight, 1));
            while let [.., a, b] = blocks[..]
                && a.0 / a.1 >= b.0 / b.1
            {
                blocks.truncate(blocks.len() - 2);
                blocks.push((a.0 + b.0, a.1 + b.1, a.2 + b.2));
            }
        }
        let row = self.layers[layer].clone();
        let mut at = 0;
        for (sum, weight, count) in blocks {
            for _ in 0..count {
                self.items[row[at]].x = sum / weight + offsets[at];
                at += 1;
            }
        }
    }
}
