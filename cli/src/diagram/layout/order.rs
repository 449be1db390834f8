//! The order within each layer.

use super::{Graph, ROUNDS};

impl Graph {
    /// Orders each layer by the middle of its neighbours, and keeps the order with the fewest
    /// crossings.
    pub(super) fn order(&mut self) {
        let mut best = (self.crossings(), self.layers.clone());
        for round in 0..ROUNDS {
            if best.0 == 0 {
                break;
            }
            let down = round % 2 == 0;
            let depth = self.layers.len();
            for step in 1..depth {
                let layer = if down { step } else { depth - 1 - step };
                let fixed = if down { layer - 1 } else { layer + 1 };
                let places = self.places(fixed);
                let sides = if down { &self.above } else { &self.below };
                let mut keyed: Vec<(f64, usize)> = self.layers[layer]
                    .iter()
                    .enumerate()
                    .map(|(at, &item)| {
                        let near: Vec<f64> = sides[item]
                            .iter()
                            .filter_map(|other| places[*other])
                            .collect();
                        let middle = match near.len() {
                            0 => at as f64,
                            n => near.iter().sum::<f64>() / n as f64,
                        };
                        (middle, item)
                    })
                    .collect();
                keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
                self.layers[layer] = keyed.into_iter().map(|(_, item)| item).collect();
            }
            let crossings = self.crossings();
            if crossings < best.0 {
                best = (crossings, self.layers.clone());
            }
        }
        self.layers = best.1;
    }

    /// Position within a layer, by item.
    fn places(&self, layer: usize) -> Vec<Option<f64>> {
        let mut places = vec![None; self.items.len()];
        for (at, &item) in self.layers[layer].iter().enumerate() {
            places[item] = Some(at as f64);
        }
        places
    }

    fn crossings(&self) -> usize {
        let mut count = 0;
        for layer in 0..self.layers.len().saturating_sub(1) {
            let places = self.places(layer + 1);
            // Edges by their upper end; of two, the lower ends tell whether they cross.
            let mut lower: Vec<f64> = Vec::new();
            for &item in &self.layers[layer] {
                let mut ends: Vec<f64> = self.below[item]
                    .iter()
                    .filter_map(|other| places[*other])
                    .collect();
                ends.sort_by(f64::total_cmp);
                count += ends
                    .iter()
                    .map(|end| lower.iter().filter(|other| *other > end).count())
                    .sum::<usize>();
                lower.extend(ends);
            }
        }
        count
    }
}
