//! The part of a query's scope that one page covers.
//!
//! Where rows come in no order that partitions would have to agree on, a page covers one
//! physical partition, and returns what that one has, even if it is nothing. So does the
//! service: clients count its answers, and position, range and charge of an answer are
//! those of one partition. An order, groups and DISTINCT need all partitions, which are
//! queried for each page.

use model::epk::{Epk, EpkRange};

use super::cursor::ResumePoint;
use crate::layout::map::ContainerMap;

/// A part of the query's scope.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PageScope {
    /// In order and disjoint.
    pub(super) within: Vec<EpkRange>,
    /// Where the next one begins, if there is one.
    pub(super) beyond: Option<Epk>,
}

impl PageScope {
    /// The scope of one partition from a position on. What a cursor has begun is completed
    /// first, though it may belong to several partitions by now, or be a part of one.
    pub(super) fn next(
        map: &ContainerMap,
        within: &[EpkRange],
        place: Option<&ResumePoint>,
    ) -> PageScope {
        let scope = match place {
            Some(ResumePoint::AfterItem(after)) => Some(after.group.clone()),
            Some(ResumePoint::FromEpk(position)) => partition_from(map, within, position),
            Some(ResumePoint::Recount | ResumePoint::AfterRow(_)) | None => {
                partition_from(map, within, &Epk::MIN)
            }
        };
        let Some(scope) = scope else { return PageScope { within: Vec::new(), beyond: None } };
        let beyond = first_from(within, &scope.max);
        let within = within.iter().filter_map(|asked| asked.intersect(&scope)).collect();
        PageScope { within, beyond }
    }
}

/// What is left of the partition that has the first position of the query's scope from
/// another one on.
fn partition_from(map: &ContainerMap, within: &[EpkRange], position: &Epk) -> Option<EpkRange> {
    let from = first_from(within, position)?;
    let owner = map.ranges().iter().map(|record| &record.range).find(|range| range.contains(&from));
    let end = owner.map_or(Epk::max(), |range| range.max.clone());
    Some(EpkRange::new(from, end))
}

/// The first position of the query's scope from another one on.
fn first_from(within: &[EpkRange], position: &Epk) -> Option<Epk> {
    let first = within.iter().find(|asked| *position < asked.max)?;
    Some(first.min.clone().max(position.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::cursor::AfterItem;
    use model::partition_key::PartitionKeyDefinition;

    fn quarters() -> ContainerMap {
        ContainerMap::fresh(&PartitionKeyDefinition::hash(["/pk"]).unwrap(), 4)
    }

    /// The scopes of successive pages.
    fn scopes(within: &[EpkRange]) -> Vec<Vec<EpkRange>> {
        let (map, mut all, mut place) = (quarters(), Vec::new(), None);
        loop {
            let PageScope { within, beyond } = PageScope::next(&map, within, place.as_ref());
            all.push(within);
            let Some(beyond) = beyond else { return all };
            place = Some(ResumePoint::FromEpk(beyond));
        }
    }

    #[test]
    fn each_partition_has_a_scope() {
        let ranges: Vec<EpkRange> =
            quarters().ranges().iter().map(|record| record.range.clone()).collect();
        let each: Vec<Vec<EpkRange>> = ranges.iter().map(|range| vec![range.clone()]).collect();
        assert_eq!(scopes(&[EpkRange::full()]), each);

        // Two positions in one partition, and a range that reaches from one partition into
        // the next.
        let at = |partition: usize, byte: u8| {
            let min = ranges[partition].min.as_bytes();
            Epk::from_bytes(&[min, &[byte]].concat()).unwrap()
        };
        let (one, other) = (EpkRange::of(at(1, 1)), EpkRange::of(at(1, 9)));
        let long = EpkRange::new(at(2, 4), at(3, 4));
        let within = [one.clone(), other.clone(), long.clone()];
        let halves = [&ranges[2], &ranges[3]].map(|range| vec![long.intersect(range).unwrap()]);
        let [first, second] = halves;
        assert_eq!(scopes(&within), [vec![one, other], first, second]);
        assert_eq!(scopes(&[]), [Vec::new()]);
    }

    #[test]
    fn what_was_begun_is_read_to_its_end() {
        let map = quarters();
        let [first, second, third, _] = map.ranges() else { panic!("four ranges") };
        let group = EpkRange::new(first.range.min.clone(), second.range.max.clone());
        let place = ResumePoint::AfterItem(AfterItem { group, ordinal: 7, rows: None });
        let scope = PageScope::next(&map, &[EpkRange::full()], Some(&place));
        let within = EpkRange::new(first.range.min.clone(), second.range.max.clone());
        let beyond = Some(third.range.min.clone());
        assert_eq!(scope, PageScope { within: vec![within], beyond });
    }
}
