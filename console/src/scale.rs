//! The scale of a timeline: linear, but long times in which nothing began or ended are squeezed, so that a night of
//! waiting leaves room for the second in which everything happened.

/// The width of the whole timeline, in units of its drawings.
pub const WIDTH: f64 = 1000.0;
/// A gap is longer than this, and this many times longer than all shorter intervals together.
const GAP_MS_MIN: i64 = 1_000;
const GAP_RATIO: f64 = 4.0;
/// The width of a gap, compared with all that isn't one.
const GAP_SHARE: f64 = 0.35;

pub struct Scale {
    /// Instants in milliseconds with their places, in order.
    points: Vec<(i64, f64)>,
    /// The squeezed intervals.
    pub gaps: Vec<(i64, i64)>,
}

impl Scale {
    /// `instants`: when something began or ended.
    pub fn new(mut instants: Vec<i64>) -> Scale {
        instants.sort_unstable();
        instants.dedup();
        let mut lengths: Vec<i64> = instants.windows(2).map(|pair| pair[1] - pair[0]).collect();
        lengths.sort_unstable();
        let mut worked = 0.0;
        let mut longest = i64::MAX;
        for length in lengths {
            if length > GAP_MS_MIN && length as f64 > worked * GAP_RATIO && worked > 0.0 {
                longest = length - 1;
                break;
            }
            worked += length as f64;
        }
        let mut points = Vec::with_capacity(instants.len());
        let mut gaps = Vec::new();
        let mut at = 0.0;
        points.extend(instants.first().map(|first| (*first, 0.0)));
        for pair in instants.windows(2) {
            let length = pair[1] - pair[0];
            at += match length > longest {
                true => {
                    gaps.push((pair[0], pair[1]));
                    worked * GAP_SHARE
                }
                false => length as f64,
            };
            points.push((pair[1], at));
        }
        let unit = if at > 0.0 { WIDTH / at } else { 1.0 };
        points.iter_mut().for_each(|(_, place)| *place *= unit);
        Scale { points, gaps }
    }

    /// The place of an instant.
    pub fn place(&self, instant: i64) -> f64 {
        let next = self.points.partition_point(|(known, _)| *known < instant);
        match (
            next.checked_sub(1).map(|last| self.points[last]),
            self.points.get(next),
        ) {
            (Some((from, low)), Some((to, high))) => {
                low + (high - low) * (instant - from) as f64 / (to - from) as f64
            }
            (_, Some((_, place))) => *place,
            (Some((_, place)), None) => place,
            (None, None) => 0.0,
        }
    }

    /// The instant at a place.
    pub fn instant(&self, place: f64) -> i64 {
        let next = self.points.partition_point(|(_, known)| *known < place);
        match (
            next.checked_sub(1).map(|last| self.points[last]),
            self.points.get(next),
        ) {
            (Some((from, low)), Some((to, high))) if *high > low => {
                from + ((to - from) as f64 * (place - low) / (high - low)) as i64
            }
            (_, Some((instant, _))) => *instant,
            (Some((instant, _)), None) => instant,
            (None, None) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_night_leaves_room_for_a_second() {
        let night = 8 * 3_600_000;
        let scale = Scale::new(vec![0, 400, 1_000, 1_000 + night, 2_000 + night]);
        assert_eq!(scale.gaps, [(1_000, 1_000 + night)]);
        assert_eq!(scale.place(0), 0.0);
        assert_eq!(scale.place(2_000 + night), WIDTH);
        assert!(scale.place(1_000) > 300.0, "{}", scale.place(1_000));
        let middle = scale.place(500);
        assert!((scale.place(400)..scale.place(1_000)).contains(&middle));
        assert!((scale.instant(middle) - 500).abs() <= 1);
        assert_eq!(scale.instant(-1.0), 0);
    }

    #[test]
    fn similar_times_are_linear() {
        let scale = Scale::new(vec![0, 1_000, 3_000, 4_000]);
        assert!(scale.gaps.is_empty());
        assert_eq!(scale.place(2_000), 500.0);
        let alone = Scale::new(vec![7]);
        assert_eq!((alone.place(7), alone.instant(500.0)), (0.0, 7));
        assert_eq!(Scale::new(Vec::new()).place(1), 0.0);
    }
}
