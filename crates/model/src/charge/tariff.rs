//! From work to charge, by a model of a replica rather than a list of prices.

use super::Charge;
use super::work::{Scanned, Work, Written};

const KIB: u64 = 1024;

/// Prices in 21sts of a request unit, for work on *one* replica.
///
/// A replica that touches an item pays for finding it and for its pages. One that
/// writes it pays for the log besides, and so do all the others: writes are done
/// on every replica, reads on one. `docs/design/charge.md` says which published
/// numbers each parameter rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tariff {
    /// Finding an item: the part of a point read that does not grow.
    pub find: u64,
    /// A page of item text.
    pub page: u64,
    pub page_bytes: u64,
    /// Pages after the first cost this many times as much: they are not stored beside the
    /// item.
    pub overflow_factor: u64,
    /// Items from this size on …
    pub huge_bytes: u64,
    /// … cost this many times as much to touch, as (numerator, denominator).
    pub huge_factor: (u64, u64),
    /// A log record.
    pub log: u64,
    /// A page of item text in the log.
    pub log_page: u64,
    /// What a log record takes along; a larger item …
    pub log_inline_bytes: u64,
    /// … costs this once more.
    pub log_spill: u64,
    /// A term that is added to the index, or removed.
    pub term: u64,
    /// An operation of a patch, besides what it changes.
    pub patched: u64,
    /// Replicas that do a write.
    pub write_replicas: u64,
    /// Replicas that are asked by a read that must not be stale.
    pub quorum_replicas: u64,
    /// A write that one replica, the primary, refused.
    pub refused_write: u64,
    /// A request that was turned away because the budget was used up.
    pub rejection: u64,
    /// Beginning a query in one physical partition.
    pub query: u64,
    /// An item that a query looks into.
    pub query_item: u64,
    /// This many index entries cost as much as one item.
    pub entries_per_item: u64,
    /// Beginning a script.
    pub script: u64,
    /// Some ten thousand steps of a script.
    pub tick: u64,
    /// A call of a user-defined function in a query.
    pub call: u64,
}

impl Tariff {
    /// Calibrated on the numbers that were published in 2026.
    pub const YEAR_2026: Tariff = Tariff {
        find: 20,
        page: 27,
        page_bytes: 32 * KIB,
        overflow_factor: 2,
        huge_bytes: KIB * KIB,
        huge_factor: (16, 9),
        log: 4,
        log_page: 5,
        log_inline_bytes: KIB,
        log_spill: 6,
        term: 1,
        patched: 2,
        write_replicas: 4,
        quorum_replicas: 2,
        refused_write: 26,
        rejection: 8,
        query: 52,
        query_item: 1,
        entries_per_item: 32,
        script: 21,
        tick: 1,
        call: 1,
    };

    /// What one operation costs. Reads are taken to have asked one replica.
    #[must_use]
    pub fn charge(&self, work: &Work) -> Charge {
        Charge::from_units(match work {
            Work::Nothing => 0,
            Work::Probe => self.read(0),
            Work::Read { bytes } => self.read(*bytes),
            Work::Write(written) => self.write(written),
            Work::RefusedWrite => self.refused_write,
            Work::Query(scanned) => self.query(scanned),
            Work::Passed { changes } => self.entries(*changes),
            Work::Script { ticks } => self.script.saturating_add(self.ticks(*ticks)),
            Work::Calls { calls, ticks } => {
                calls.saturating_mul(self.call).saturating_add(self.ticks(*ticks))
            }
        })
    }

    fn ticks(&self, ticks: u64) -> u64 {
        ticks.saturating_mul(self.tick)
    }

    /// The charge of a request that was throttled.
    #[must_use]
    pub fn rejection(&self) -> Charge {
        Charge::from_units(self.rejection)
    }

    /// The charge of a read under strong or bounded-staleness consistency, given what it
    /// costs on one replica. The same holds for a request that was throttled.
    #[must_use]
    pub fn by_quorum(&self, charge: Charge) -> Charge {
        Charge::from_units(charge.units().saturating_mul(self.quorum_replicas))
    }

    fn read(&self, bytes: u64) -> u64 {
        self.whole_units(self.touch(bytes))
    }

    /// A replaced item is deleted and inserted; only terms that differ are touched.
    fn write(&self, written: &Written) -> u64 {
        let versions = [written.removed, written.added];
        let sizes = versions.into_iter().flatten().map(|bytes| self.write_version(bytes));
        let terms = u64::from(written.terms_removed) + u64::from(written.terms_added);
        let on_one_replica = sizes
            .fold(0, u64::saturating_add)
            .saturating_add(terms.saturating_mul(self.term))
            .saturating_add(u64::from(written.patched).saturating_mul(self.patched));
        on_one_replica.saturating_mul(self.write_replicas)
    }

    fn write_version(&self, bytes: u64) -> u64 {
        let spill = if bytes > self.log_inline_bytes { self.log_spill } else { 0 };
        let log = (self.log + spill).saturating_mul(self.page_bytes);
        let logged = bytes.saturating_mul(self.log_page);
        self.whole_units(self.touch(bytes).saturating_add(log).saturating_add(logged))
    }

    fn query(&self, scanned: &Scanned) -> u64 {
        let output = self.whole_units(scanned.output_bytes.saturating_mul(self.page));
        let items = scanned.items.saturating_mul(self.query_item);
        let looked = items.saturating_add(self.entries(scanned.entries));
        self.query.saturating_add(looked).saturating_add(output)
    }

    /// Looking at keys that only name an item.
    fn entries(&self, entries: u64) -> u64 {
        (entries / self.entries_per_item.max(1)).saturating_mul(self.query_item)
    }

    /// Touching an item, in units times `page_bytes`, so that nothing is rounded
    /// before the end.
    fn touch(&self, bytes: u64) -> u64 {
        // No item is so small that it has no text.
        let bytes = bytes.max(1);
        let beyond = bytes.saturating_sub(self.page_bytes);
        let weighted = bytes.saturating_add(beyond.saturating_mul(self.overflow_factor - 1));
        let touch = weighted
            .saturating_mul(self.page)
            .saturating_add(self.find.saturating_mul(self.page_bytes));
        if bytes < self.huge_bytes {
            return touch;
        }
        let (times, parts) = self.huge_factor;
        touch.saturating_mul(times).div_ceil(parts)
    }

    fn whole_units(&self, units_times_page_bytes: u64) -> u64 {
        units_times_page_bytes.div_ceil(self.page_bytes)
    }
}

impl Default for Tariff {
    fn default() -> Tariff {
        Tariff::YEAR_2026
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TARIFF: Tariff = Tariff::YEAR_2026;

    fn charged(work: Work) -> u64 {
        TARIFF.charge(&work).units()
    }

    fn created(bytes: u64, terms_added: u32) -> u64 {
        charged(Work::Write(Written { added: Some(bytes), terms_added, ..Written::default() }))
    }

    fn within(percent: f64, published: f64, units: u64) {
        let charge = Charge::from_units(units).request_units();
        let error = 100.0 * (charge - published).abs() / published;
        assert!(error <= percent, "{charge} for {published}: {error:.1} %");
    }

    #[test]
    fn a_kilobyte_read_is_the_unit() {
        for bytes in [0, 1, 500, KIB] {
            assert_eq!(charged(Work::Read { bytes }), 21);
        }
        assert_eq!(charged(Work::Probe), 21);
        assert_eq!(charged(Work::Nothing), 0);
    }

    #[test]
    fn all_small_items_cost_the_same() {
        for bytes in [0, 1, 500, KIB] {
            assert_eq!(created(bytes, 1), 4 * 26);
        }
    }

    #[test]
    fn the_size_classes_begin_behind_their_bounds() {
        assert_eq!(charged(Work::Read { bytes: 32 * KIB }), 47);
        assert_eq!(charged(Work::Read { bytes: 32 * KIB + 1 }), 48);
        let (below, from) = (KIB * KIB - 1, KIB * KIB);
        assert_eq!(charged(Work::Read { bytes: below }), 1721);
        assert_eq!(charged(Work::Read { bytes: from }), 3060);
        assert_eq!(created(KIB + 1, 1) - created(KIB, 1), 4 * 7);
    }

    /// The rules that are published as formulas, with "5 RU" for the size part of
    /// a kilobyte and "0.2" for a term.
    #[test]
    fn published_formulas_hold() {
        let (added, removed) = (Some(KIB), Some(KIB));
        within(5.0, 7.0, created(KIB, 10));
        let deleted = Written { removed, terms_removed: 10, ..Written::default() };
        assert_eq!(charged(Work::Write(deleted)), created(KIB, 10));
        let replaced =
            Written { removed, added, terms_removed: 2, terms_added: 2, ..Written::default() };
        within(5.0, 10.8, charged(Work::Write(replaced)));
        assert_eq!(
            charged(Work::Write(replaced)),
            2 * created(KIB, 2),
            "delete and insert, each with its terms"
        );
        let patched = Written { patched: 2, ..replaced };
        within(5.0, 11.6, charged(Work::Write(patched)));
    }

    #[test]
    fn what_is_not_done_costs_as_live_traces_show() {
        assert_eq!(charged(Work::RefusedWrite), 26);
        assert_eq!(TARIFF.rejection().units(), 8);
        assert_eq!(TARIFF.by_quorum(TARIFF.rejection()).units(), 16);
    }

    #[test]
    fn a_query_begins_at_two_and_a_half() {
        let nothing = charged(Work::Query(Scanned::default()));
        within(1.0, 2.5, nothing);
        let found = charged(Work::Query(Scanned { items: 1, entries: 1, output_bytes: 9963 }));
        within(10.0, 3.19, found);
    }

    proptest! {
        #[test]
        fn more_never_costs_less(bytes in 0..4 * KIB * KIB, more in 0..KIB * KIB, terms in 0..1000_u32) {
            let read = |bytes| charged(Work::Read { bytes });
            prop_assert!(read(bytes) <= read(bytes + more));
            prop_assert!(created(bytes, terms) <= created(bytes + more, terms));
            prop_assert_eq!(created(bytes, terms + 1) - created(bytes, terms), 4);
        }

        #[test]
        fn writes_lie_on_the_grid_of_four_replicas(
            removed: Option<u32>, added: Option<u32>, terms_added: u16, patched: u8
        ) {
            let written = Written {
                removed: removed.map(u64::from),
                added: added.map(u64::from),
                terms_removed: 0,
                terms_added: u32::from(terms_added),
                patched: u32::from(patched),
            };
            prop_assert_eq!(charged(Work::Write(written)) % 4, 0);
        }

        #[test]
        fn no_count_is_too_large(bytes: u64, terms: u32, items: u64) {
            charged(Work::Read { bytes });
            created(bytes, terms);
            charged(Work::Query(Scanned { items, entries: bytes, output_bytes: bytes }));
        }
    }
}
