//! A figure over several runs.

use serde::Serialize;

/// Median, least and greatest of what the runs gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Spread {
    /// The middle one; of an even number the mean of both.
    pub(crate) median: f64,
    /// The least.
    pub(crate) min: f64,
    /// The greatest.
    pub(crate) max: f64,
}

impl Spread {
    /// Of these figures; all 0 if there are none.
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = figures.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (Some(min), Some(max)) = (sorted.first(), sorted.last()) else { return Self::default() };
        let at = |place: usize| sorted.get(place).copied().unwrap_or_default();
        let (low, high) = ((sorted.len() - 1) / 2, sorted.len() / 2);
        Self { median: f64::midpoint(at(low), at(high)), min: *min, max: *max }
    }
}

/// The value below which so many hundredths of the sorted values lie; the default if there are none.
pub(crate) fn percentile<T: Copy + Default>(sorted: &[T], hundredths: usize) -> T {
    let last = sorted.len().saturating_sub(1);
    sorted.get((sorted.len() * hundredths / 100).min(last)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one_or_the_mean_of_both() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(Spread::of([4.0, 1.0]), Spread { median: 2.5, min: 1.0, max: 4.0 });
        assert_eq!(Spread::of([]), Spread::default());
    }

    #[test]
    fn percentiles_lie_within_the_values() {
        let values: Vec<u32> = (0..100).collect();
        assert_eq!((percentile(&values, 50), percentile(&values, 99), percentile(&values, 100)), (50, 99, 99));
        assert_eq!((percentile(&[7], 99), percentile::<u32>(&[], 50)), (7, 0));
    }
}
