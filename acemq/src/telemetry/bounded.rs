//! Handles for label values that strangers choose: a limited number, and one handle for all others.

use std::{
    hash::{Hash, RandomState},
    sync::{Arc, PoisonError, RwLock},
};

use hashbrown::{Equivalent, HashMap};

use super::names::OTHER;

/// The longest value of a label; what is longer is no name that anybody gave on purpose.
const LONGEST: usize = 200;

/// One value of `V` for each of the first so many combinations of `N` labels, and one for the rest.
#[derive(Debug)]
pub(super) struct Bounded<const N: usize, V> {
    known: RwLock<HashMap<[String; N], Arc<V>, RandomState>>,
    most: usize,
    other: Arc<V>,
}

#[derive(Hash)]
struct Labels<'a, const N: usize>([&'a str; N]);

impl<const N: usize> Equivalent<[String; N]> for Labels<'_, N> {
    fn equivalent(&self, key: &[String; N]) -> bool {
        self.0.iter().zip(key).all(|(mine, other)| mine == other)
    }
}

impl<const N: usize, V> Bounded<N, V> {
    pub(super) fn new(most: usize, make: impl FnOnce([String; N]) -> V) -> Self {
        Self { known: RwLock::default(), most, other: Arc::new(make([OTHER; N].map(str::to_owned))) }
    }

    /// The value for these labels, made by `make` when they are new and there is room for them.
    pub(super) fn get(&self, labels: [&str; N], make: impl FnOnce([String; N]) -> V) -> Arc<V> {
        if let Some(known) = self.known.read().unwrap_or_else(PoisonError::into_inner).get(&Labels(labels)) {
            return Arc::clone(known);
        }
        if labels.iter().any(|label| label.len() > LONGEST) {
            return Arc::clone(&self.other);
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&Labels(labels)) {
            return Arc::clone(known);
        }
        if known.len() >= self.most {
            return Arc::clone(&self.other);
        }
        let labels = labels.map(str::to_owned);
        let value = Arc::new(make(labels.clone()));
        known.insert(labels, Arc::clone(&value));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_values_have_their_own_handle_and_all_others_share_one() {
        let bounded = Bounded::new(2, |labels: [String; 1]| labels);
        let of = |label: &str| bounded.get([label], |labels| labels)[0].clone();
        assert_eq!([of("a"), of("b"), of("c"), of("d"), of("b")], ["a", "b", OTHER, OTHER, "b"]);
    }

    #[test]
    fn a_value_without_end_takes_no_place() {
        let bounded = Bounded::new(1, |labels: [String; 1]| labels);
        let of = |label: &str| bounded.get([label], |labels| labels)[0].clone();
        assert_eq!(of(&"x".repeat(201)), OTHER);
        assert_eq!(of("a"), "a");
    }
}
