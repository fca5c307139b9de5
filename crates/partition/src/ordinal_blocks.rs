//! The blocks of ordinals that a partition may assign to items.
//!
//! Ordinals are unique in a container for ever, although many partitions assign
//! them at the same time: the map allocates to each partition blocks of its own,
//! and a partition that has used up its blocks asks for another. It uses them in
//! ascending order, and every block that it is given is above all ordinals of its
//! items: so ordinals grow with creation.

use std::ops::Range;

/// Allocated blocks, and where to continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OrdinalBlocks {
    blocks: Vec<Range<u64>>,
    next: u64,
}

impl OrdinalBlocks {
    /// Continues after the highest number that any head has recorded for these blocks.
    pub(crate) fn resume(
        blocks: Vec<Range<u64>>,
        recorded: impl Iterator<Item = u64>,
    ) -> OrdinalBlocks {
        // A fully used block records its end, hence the inclusive comparison.
        let of_ours =
            |next: &u64| blocks.iter().any(|block| (block.start..=block.end).contains(next));
        let start = blocks.first().map_or(0, |block| block.start);
        let next = recorded.filter(of_ours).max().unwrap_or(start).max(start);
        OrdinalBlocks { blocks, next }
    }

    /// The next number, if there is one left.
    pub(crate) fn take(&mut self) -> Option<u64> {
        let number = self
            .blocks
            .iter()
            .filter(|block| self.next < block.end)
            .map(|block| self.next.max(block.start))
            .min()?;
        self.next = number + 1;
        Some(number)
    }

    /// The unused numbers.
    pub(crate) fn left(&self) -> Vec<Range<u64>> {
        let rest = |block: &Range<u64>| block.start.max(self.next)..block.end;
        self.blocks.iter().map(rest).filter(|block| !block.is_empty()).collect()
    }

    /// The number that a head records.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinals_run_through_the_blocks_and_resume() {
        let blocks = vec![10..12, 20..22];
        let mut ordinals = OrdinalBlocks::resume(blocks.clone(), std::iter::empty());
        let mut taken = Vec::new();
        assert_eq!(ordinals.left(), blocks);
        while let Some(number) = ordinals.take().filter(|_| taken.len() < 10) {
            taken.push(number);
            // A restart after every number changes nothing; heads of other buckets may lag
            // or carry another partition's ordinals.
            ordinals = OrdinalBlocks::resume(
                blocks.clone(),
                [11, ordinals.next(), 500]
                    .into_iter()
                    .filter(|n| *n <= ordinals.next() || *n == 500),
            );
        }
        assert_eq!(taken, [10, 11, 20, 21]);
        assert!(ordinals.left().is_empty());
        assert_eq!(OrdinalBlocks { blocks, next: 11 }.left(), [11..12, 20..22]);
    }
}
