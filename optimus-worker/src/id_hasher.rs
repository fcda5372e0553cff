//! A hasher of tasks by id and fence: [`IdHasher`].

use std::hash::Hasher;

/// Odd, with bits at random places: the fraction of the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Multiplies each half of an id. An id is random or contains the time, so this spreads ids as well
/// as the default hasher does, for a tenth of its instructions.
#[derive(Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write_u64(&mut self, part: u64) {
        let product = u128::from(self.0 ^ part ^ SPREAD) * u128::from(SPREAD);
        // Each bit of the part is in the upper or in the lower half.
        let (upper, lower) = halves(product);
        self.0 = upper ^ lower;
    }

    fn write_u128(&mut self, id: u128) {
        let (upper, lower) = halves(id);
        self.write_u64(upper);
        self.write_u64(lower);
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

fn halves(number: u128) -> (u64, u64) {
    ((number >> 64) as u64, (number << 64 >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use std::{
        collections::HashSet,
        hash::{BuildHasher, BuildHasherDefault},
    };

    use optimus_core::{QueueName, TaskId};

    use super::*;

    /// The bits that a table of `HashMap` uses: the lower ones for the bucket, the upper seven to
    /// compare within it.
    #[test]
    fn ids_of_one_moment_with_one_fence_are_spread_over_the_buckets_and_within_them() {
        let queue = QueueName::new("q").unwrap();
        let hashes = BuildHasherDefault::<IdHasher>::default();
        let ids = (0..10_000).map(|_| hashes.hash_one((TaskId::new(queue.clone()), 7_u64)));
        let (mut buckets, mut tags) = (HashSet::new(), HashSet::new());
        for hash in ids {
            buckets.insert(hash & 0xffff);
            tags.insert(hash >> 57);
        }
        // Of 10,000 random numbers below 65,536, about 9,290 differ.
        assert!(buckets.len() > 9_000, "{}", buckets.len());
        assert_eq!(tags.len(), 128);
    }

    #[test]
    fn fences_and_the_numbers_in_made_ids_change_the_hash() {
        let hashes = BuildHasherDefault::<IdHasher>::default();
        let keys = (0..100_u128).flat_map(|id| (0..100_u64).map(move |fence| (id, fence)));
        let found: HashSet<u64> = keys.map(|key| hashes.hash_one(key)).collect();
        assert_eq!(found.len(), 10_000);
    }
}
