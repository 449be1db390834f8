//! The order within each layer.

use super::{Graph, ROUNDS};

impl Graph {
    /// Orders each layer by the average position of its neighbours, and keeps the order with the fewest crossings.
    pub(super) fn order(&mut self) {
        // The position of each item in its layer.
        let mut places = vec![0.0; self.items.len()];
        for layer in &self.layers {
            place(&mut places, layer);
        }
        let mut best = (self.crossings(&places), self.layers.clone());
        let depth = self.layers.len();
        for round in 0..ROUNDS {
            if best.0 == 0 {
                break;
            }
            let down = round % 2 == 0;
            let sides = if down { &self.above } else { &self.below };
            for step in 1..depth {
                let layer = &mut self.layers[if down { step } else { depth - 1 - step }];
                let mut keyed: Vec<(f64, usize)> = layer
                    .iter()
                    .map(|&item| {
                        let near = &sides[item];
                        let sum: f64 = near.iter().map(|&other| places[other]).sum();
                        let middle = if near.is_empty() {
                            places[item]
                        } else {
                            sum / near.len() as f64
                        };
                        (middle, item)
                    })
                    .collect();
                keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
                *layer = keyed.into_iter().map(|(_, item)| item).collect();
                place(&mut places, layer);
            }
            let crossings = self.crossings(&places);
            if crossings < best.0 {
                best = (crossings, self.layers.clone());
            }
        }
        self.layers = best.1;
    }

    fn crossings(&self, places: &[f64]) -> usize {
        let mut count = 0;
        for layer in &self.layers {
            // Edges by their upper end. The lower ends of two edges show whether they cross.
            let mut lower: Vec<f64> = Vec::new();
            for &item in layer {
                let mut ends: Vec<f64> = self.below[item]
                    .iter()
                    .map(|&other| places[other])
                    .collect();
                ends.sort_by(f64::total_cmp);
                for end in &ends {
                    // Kept sorted, so that all edges to the right are counted at once.
                    count += lower.len() - lower.partition_point(|other| other <= end);
                }
                for end in ends {
                    lower.insert(lower.partition_point(|other| *other <= end), end);
                }
            }
        }
        count
    }
}

fn place(places: &mut [f64], layer: &[usize]) {
    for (at, &item) in layer.iter().enumerate() {
        places[item] = at as f64;
    }
}
