//! Queries to partitions and their answers as bytes.
//!
//! Both sides are of the same version: this is not a persistent format. It is what a
//! partition in another process would be sent, and shows that nothing else is needed.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use index::{Absence, EntryOrder, EntryRange, Members};
use model::epk::{Epk, EpkRange};
use model::partition_key::PartitionKey;
use model::position::{Lsn, Timestamp};
use model::system_properties::{SystemProperties, SystemProperty, SystemValue};
use model::varint::{bytes, list, number, put_bytes, put_list, put_number, take, text};
use query::{Bound, Context, PartialGroups, QueryError};

use super::access::{AccessPath, IndexRange, OrdinalSet};
use super::point::{Given, Point};
use super::request::{
    OutputRow, PartialPage, PartitionQuery, ScanBudget, ScanEnd, ScanProgress, ScanStep, ScanTimes,
    Task, TopBounds,
};
use super::scan::{ScanStart, ScanStats};
use super::snapshot::StatisticsQuery;

impl PartitionQuery {
    /// `None` if the query has no text that could be sent.
    #[must_use]
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        if !self.bound.encode(&mut out) {
            return None;
        }
        let out_mut = &mut out;
        put_task(out_mut, self.task);
        put_path(out_mut, &self.path);
        put_option(out_mut, self.along.as_ref(), |out, along| along.encode(out));
        put_list(out_mut, &[self.covers_filter, self.by_value, self.is_timed], put_bool);
        put_list(out_mut, &self.order, put_bool);
        put_list(out_mut, &self.within, put_range);
        put_number(out_mut, self.ordinals.start);
        put_number(out_mut, self.ordinals.end);
        put_option(out_mut, self.prefix.as_ref(), |out, prefix| {
            put_bytes(out, prefix.to_string().as_bytes());
        });
        put_list(out_mut, &self.starts, put_start);
        put_list(out_mut, &self.points, put_point);
        put_number(out_mut, self.now.millis());
        put_budget(out_mut, &self.budget);
        put_option(out_mut, self.system.as_ref(), |out, system| {
            put_list(out, &system.iter().cloned().collect::<Vec<_>>(), put_property);
        });
        put_number(out_mut, self.part);
        Some(out)
    }

    /// `container` is what queries may know about the container.
    #[must_use]
    pub fn from_bytes(mut input: &[u8], container: &Context) -> Option<PartitionQuery> {
        let input = &mut input;
        let bound = Arc::new(Bound::decode(input, container)?);
        let (task, path) = (task(input)?, path(input)?);
        let along = option(input, EntryOrder::decode)?;
        let flags = list(input, flag)?;
        let [covers_filter, by_value, is_timed] = flags.as_slice() else { return None };
        let (order, within) = (list(input, flag)?, list(input, range)?);
        let ordinals = number(input)?..number(input)?;
        let prefix = option(input, |input| PartitionKey::parse_json(&text(input)?).ok())?;
        let (starts, points) = (list(input, start)?, list(input, point)?);
        let now = Timestamp::from_millis(number(input)?);
        let budget = budget(input)?;
        let system = option(input, |input| list(input, property))?;
        let part = number(input)?;
        let query = PartitionQuery {
            bound,
            task,
            path: Arc::new(path),
            along,
            covers_filter: *covers_filter,
            order,
            by_value: *by_value,
            within,
            ordinals,
            prefix: prefix.map(Arc::new),
            starts,
            points,
            now,
            budget,
            system: system.map(|system| Arc::new(SystemProperties::new(system))),
            part,
            is_timed: *is_timed,
        };
        input.is_empty().then_some(query)
    }
}

impl PartialPage {
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let out_mut = &mut out;
        put_number(out_mut, self.lsn.get());
        put_list(out_mut, &self.steps, put_step);
        put_list(out_mut, &self.rows, put_row);
        put_list(out_mut, &self.among, put_row);
        self.aggregate.encode(out_mut);
        put_list(out_mut, &self.documents, |out, text| put_bytes(out, text));
        put_stats(out_mut, self.opening);
        put_stats(out_mut, self.stats);
        put_number(out_mut, self.candidates);
        put_progress(out_mut, self.progress);
        put_number(out_mut, self.evaluated as u64);
        match &self.end {
            ScanEnd::Exhausted => out_mut.push(0),
            ScanEnd::Budget => out_mut.push(1),
            ScanEnd::Time => out_mut.push(2),
            ScanEnd::Failed(error) => {
                out_mut.push(3);
                error.encode(out_mut);
            }
        }
        let ScanTimes { finding, loading, writing } = self.times;
        for time in [finding, loading, writing] {
            put_number(out_mut, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        }
        out
    }

    #[must_use]
    pub fn from_bytes(mut input: &[u8]) -> Option<PartialPage> {
        let input = &mut input;
        let page = PartialPage {
            lsn: Lsn::from_u64(number(input)?),
            steps: list(input, step)?,
            rows: list(input, row)?,
            among: list(input, row)?,
            aggregate: PartialGroups::decode(input)?,
            documents: list(input, |input| Some(Bytes::copy_from_slice(bytes(input)?)))?,
            opening: stats(input)?,
            stats: stats(input)?,
            candidates: number(input)?,
            progress: progress(input)?,
            evaluated: size(input)?,
            end: match take(input)? {
                0 => ScanEnd::Exhausted,
                1 => ScanEnd::Budget,
                2 => ScanEnd::Time,
                3 => ScanEnd::Failed(QueryError::decode(input)?),
                _ => return None,
            },
            times: ScanTimes {
                finding: Duration::from_nanos(number(input)?),
                loading: Duration::from_nanos(number(input)?),
                writing: Duration::from_nanos(number(input)?),
            },
        };
        input.is_empty().then_some(page)
    }
}

impl StatisticsQuery {
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            StatisticsQuery::Entries { range, limit } => {
                out.push(0);
                put_key_range(&mut out, range);
                put_number(&mut out, *limit);
            }
            StatisticsQuery::SetsOfNames { range, limit } => {
                out.push(1);
                put_key_range(&mut out, range);
                put_number(&mut out, *limit);
            }
            StatisticsQuery::Values { range, order, limit } => {
                out.push(2);
                put_key_range(&mut out, range);
                order.encode(&mut out);
                put_number(&mut out, *limit);
            }
            StatisticsQuery::KeyItems { positions } => {
                out.push(3);
                put_list(&mut out, positions, |out, epk| put_bytes(out, epk.as_bytes()));
            }
            StatisticsQuery::Items => out.push(4),
            StatisticsQuery::ScopeItems { limit } => {
                out.push(5);
                put_number(&mut out, *limit);
            }
            StatisticsQuery::SampledEntries { range, limit } => {
                out.push(6);
                put_key_range(&mut out, range);
                put_number(&mut out, *limit);
            }
            StatisticsQuery::LastOrdinal => out.push(7),
            StatisticsQuery::KeyMembers { set, limit } => {
                out.push(8);
                put_set(&mut out, set);
                put_number(&mut out, *limit);
            }
        }
        out
    }

    #[must_use]
    pub fn from_bytes(mut input: &[u8]) -> Option<StatisticsQuery> {
        let input = &mut input;
        let query = match take(input)? {
            0 => StatisticsQuery::Entries { range: key_range(input)?, limit: number(input)? },
            1 => StatisticsQuery::SetsOfNames { range: key_range(input)?, limit: number(input)? },
            2 => StatisticsQuery::Values {
                range: key_range(input)?,
                order: EntryOrder::decode(input)?,
                limit: number(input)?,
            },
            3 => StatisticsQuery::KeyItems { positions: list(input, epk)? },
            4 => StatisticsQuery::Items,
            5 => StatisticsQuery::ScopeItems { limit: number(input)? },
            6 => {
                StatisticsQuery::SampledEntries { range: key_range(input)?, limit: number(input)? }
            }
            7 => StatisticsQuery::LastOrdinal,
            8 => StatisticsQuery::KeyMembers { set: set(input)?, limit: number(input)? },
            _ => return None,
        };
        input.is_empty().then_some(query)
    }
}

fn put_bool(out: &mut Vec<u8>, flag: &bool) {
    out.push(u8::from(*flag));
}

fn flag(input: &mut &[u8]) -> Option<bool> {
    Some(take(input)? == 1)
}

fn size(input: &mut &[u8]) -> Option<usize> {
    usize::try_from(number(input)?).ok()
}

fn put_option<T>(out: &mut Vec<u8>, option: Option<&T>, put: impl FnOnce(&mut Vec<u8>, &T)) {
    put_bool(out, &option.is_some());
    if let Some(value) = option {
        put(out, value);
    }
}

fn option<T>(input: &mut &[u8], value: impl FnOnce(&mut &[u8]) -> Option<T>) -> Option<Option<T>> {
    if flag(input)? { Some(Some(value(input)?)) } else { Some(None) }
}

fn put_range(out: &mut Vec<u8>, range: &EpkRange) {
    put_bytes(out, range.min.as_bytes());
    put_bytes(out, range.max.as_bytes());
}

fn range(input: &mut &[u8]) -> Option<EpkRange> {
    Some(EpkRange::new(epk(input)?, epk(input)?))
}

fn epk(input: &mut &[u8]) -> Option<Epk> {
    Epk::from_bytes(bytes(input)?).ok()
}

fn put_task(out: &mut Vec<u8>, task: Task) {
    match task {
        Task::Scan => out.push(0),
        Task::TopRows(TopBounds { rows, skip, bytes }) => {
            out.push(1);
            [rows, skip, bytes].iter().for_each(|bound| put_number(out, *bound as u64));
        }
        Task::Distinct { rows, enough } => {
            out.push(2);
            put_number(out, rows as u64);
            put_option(out, enough.as_ref(), |out, (rows, bytes)| {
                put_number(out, *rows as u64);
                put_number(out, *bytes as u64);
            });
        }
        Task::Aggregate => out.push(3),
        Task::Values => out.push(4),
        Task::Documents => out.push(5),
    }
}

fn task(input: &mut &[u8]) -> Option<Task> {
    Some(match take(input)? {
        0 => Task::Scan,
        1 => {
            let (rows, skip, bytes) = (size(input)?, size(input)?, size(input)?);
            Task::TopRows(TopBounds { rows, skip, bytes })
        }
        2 => {
            let rows = size(input)?;
            let enough = option(input, |input| Some((size(input)?, size(input)?)))?;
            Task::Distinct { rows, enough }
        }
        3 => Task::Aggregate,
        4 => Task::Values,
        5 => Task::Documents,
        _ => return None,
    })
}

fn put_key_range(out: &mut Vec<u8>, range: &EntryRange) {
    put_bytes(out, &range.start);
    put_bytes(out, &range.end);
    put_bool(out, &range.exact);
}

fn key_range(input: &mut &[u8]) -> Option<EntryRange> {
    let (start, end) = (bytes(input)?.to_vec(), bytes(input)?.to_vec());
    Some(EntryRange { start, end, exact: flag(input)? })
}

fn put_path(out: &mut Vec<u8>, path: &AccessPath) {
    match path {
        AccessPath::Nothing => out.push(0),
        AccessPath::Items => out.push(1),
        AccessPath::Created => out.push(4),
        AccessPath::Entries { of, ranges, absent, backwards } => {
            out.push(2);
            put_bytes(out, of.as_bytes());
            put_list(out, ranges, put_key_range);
            put_option(out, absent.as_deref(), put_absence);
            put_bool(out, backwards);
        }
        AccessPath::Set(set) => {
            out.push(3);
            put_set(out, set);
        }
    }
}

fn path(input: &mut &[u8]) -> Option<AccessPath> {
    Some(match take(input)? {
        0 => AccessPath::Nothing,
        1 => AccessPath::Items,
        2 => AccessPath::Entries {
            of: text(input)?.into(),
            ranges: list(input, key_range)?,
            absent: option(input, absence)?.map(Box::new),
            backwards: flag(input)?,
        },
        3 => AccessPath::Set(set(input)?),
        4 => AccessPath::Created,
        _ => return None,
    })
}

fn put_absence(out: &mut Vec<u8>, absence: &Absence) {
    put_bytes(out, &absence.key);
    put_list(out, &absence.runs, put_key_range);
    put_list(out, &absence.others, put_key_range);
    put_list(out, &absence.objects, |out, members| {
        put_key_range(out, &members.range);
        put_list(out, &members.names, |out, name| put_bytes(out, name.as_bytes()));
    });
}

fn absence(input: &mut &[u8]) -> Option<Absence> {
    Some(Absence {
        key: bytes(input)?.to_vec(),
        runs: list(input, key_range)?,
        others: list(input, key_range)?,
        objects: list(input, |input| {
            Some(Members { range: key_range(input)?, names: list(input, text)? })
        })?,
    })
}

fn put_set(out: &mut Vec<u8>, set: &OrdinalSet) {
    let (tag, leaf, sets) = match set {
        OrdinalSet::Equal(leaf) => (0, Some(leaf), None),
        OrdinalSet::Within(leaf) => (1, Some(leaf), None),
        OrdinalSet::All(sets) => (2, None, Some(sets)),
        OrdinalSet::Any(sets) => (3, None, Some(sets)),
    };
    out.push(tag);
    if let Some(IndexRange { of, range }) = leaf {
        put_bytes(out, of.as_bytes());
        put_key_range(out, range);
    }
    if let Some(sets) = sets {
        put_list(out, sets, put_set);
    }
}

fn set(input: &mut &[u8]) -> Option<OrdinalSet> {
    let leaf =
        |input: &mut &[u8]| Some(IndexRange { of: text(input)?.into(), range: key_range(input)? });
    Some(match take(input)? {
        0 => OrdinalSet::Equal(leaf(input)?),
        1 => OrdinalSet::Within(leaf(input)?),
        2 => OrdinalSet::All(list(input, set)?),
        3 => OrdinalSet::Any(list(input, set)?),
        _ => return None,
    })
}

fn put_start(out: &mut Vec<u8>, start: &ScanStart) {
    out.push(match start {
        ScanStart::At(_) => 0,
        ScanStart::After(_) => 1,
        ScanStart::AfterPrefix(_) => 2,
    });
    put_bytes(out, start.position());
}

fn start(input: &mut &[u8]) -> Option<ScanStart> {
    let (tag, position) = (take(input)?, bytes(input)?.to_vec());
    Some(match tag {
        0 => ScanStart::At(position),
        1 => ScanStart::After(position),
        2 => ScanStart::AfterPrefix(position),
        _ => return None,
    })
}

fn put_point(out: &mut Vec<u8>, point: &Point) {
    put_bytes(out, &point.sort_key);
    put_bool(out, &point.past);
    put_option(out, point.given.as_ref(), |out, given| {
        put_number(out, u64::from(given.rows));
        put_list(out, &given.marks, |out, mark| put_number(out, u64::from(*mark)));
    });
}

fn point(input: &mut &[u8]) -> Option<Point> {
    let word = |input: &mut &[u8]| u32::try_from(number(input)?).ok();
    Some(Point {
        sort_key: bytes(input)?.to_vec(),
        past: flag(input)?,
        given: option(input, |input| {
            Some(Given { rows: word(input)?, marks: list(input, word)? })
        })?,
    })
}

fn put_budget(out: &mut Vec<u8>, budget: &ScanBudget) {
    for number in [budget.skip, budget.textless, budget.candidates, budget.look_ahead] {
        put_number(out, number);
    }
    for number in [budget.rows, budget.bytes, budget.steps] {
        put_number(out, number as u64);
    }
    put_progress(out, budget.progress);
    put_bool(out, &budget.is_last);
    put_bool(out, &budget.coalesces);
}

fn budget(input: &mut &[u8]) -> Option<ScanBudget> {
    let (skip, textless) = (number(input)?, number(input)?);
    let (candidates, look_ahead) = (number(input)?, number(input)?);
    let (rows, bytes, steps) = (size(input)?, size(input)?, size(input)?);
    Some(ScanBudget {
        skip,
        textless,
        rows,
        bytes,
        candidates,
        look_ahead,
        steps,
        progress: progress(input)?,
        is_last: flag(input)?,
        coalesces: flag(input)?,
    })
}

fn put_progress(out: &mut Vec<u8>, progress: ScanProgress) {
    let ScanProgress { made, rows, bytes, looked_ahead } = progress;
    for number in [made, rows as u64, bytes as u64, looked_ahead] {
        put_number(out, number);
    }
}

fn progress(input: &mut &[u8]) -> Option<ScanProgress> {
    Some(ScanProgress {
        made: number(input)?,
        rows: size(input)?,
        bytes: size(input)?,
        looked_ahead: number(input)?,
    })
}

fn put_stats(out: &mut Vec<u8>, stats: ScanStats) {
    for number in [stats.entries, stats.items, stats.bytes] {
        put_number(out, number);
    }
}

fn stats(input: &mut &[u8]) -> Option<ScanStats> {
    Some(ScanStats { entries: number(input)?, items: number(input)?, bytes: number(input)? })
}

fn put_row(out: &mut Vec<u8>, row: &OutputRow) {
    put_bytes(out, &row.sort_key);
    put_bytes(out, row.text.as_bytes());
    put_bytes(out, row.identity.as_bytes());
}

fn row(input: &mut &[u8]) -> Option<OutputRow> {
    let sort_key = bytes(input)?.to_vec();
    Some(OutputRow { sort_key, text: text(input)?, identity: text(input)? })
}

fn put_step(out: &mut Vec<u8>, step: &ScanStep) {
    put_bytes(out, &step.position);
    put_bool(out, &step.is_shared);
    put_bool(out, &step.is_one);
    put_number(out, step.steps);
    put_number(out, step.candidates);
    put_list(out, &step.rows, put_row);
    step.aggregate.encode(out);
    put_stats(out, step.stats);
    put_number(out, step.evaluated as u64);
}

fn step(input: &mut &[u8]) -> Option<ScanStep> {
    Some(ScanStep {
        position: Bytes::copy_from_slice(bytes(input)?),
        is_shared: flag(input)?,
        is_one: flag(input)?,
        steps: number(input)?,
        candidates: number(input)?,
        rows: list(input, row)?,
        aggregate: PartialGroups::decode(input)?,
        stats: stats(input)?,
        evaluated: size(input)?,
    })
}

fn put_property(out: &mut Vec<u8>, property: &SystemProperty) {
    put_bytes(out, property.name.as_bytes());
    match &property.value {
        SystemValue::Rid => out.push(0),
        SystemValue::Link { segments } => {
            out.push(1);
            segments.iter().for_each(|segment| put_bytes(out, segment.as_bytes()));
        }
        SystemValue::Etag => out.push(2),
        SystemValue::Text(text) => {
            out.push(3);
            put_bytes(out, text.as_bytes());
        }
        SystemValue::Seconds => out.push(4),
    }
}

fn property(input: &mut &[u8]) -> Option<SystemProperty> {
    let (name, kind) = (text(input)?, take(input)?);
    let value = match kind {
        0 => SystemValue::Rid,
        1 => SystemValue::Link { segments: [text(input)?, text(input)?, text(input)?] },
        2 => SystemValue::Etag,
        3 => SystemValue::Text(text(input)?),
        4 => SystemValue::Seconds,
        _ => return None,
    };
    Some(SystemProperty { name, value })
}
