//! What a client can do with partial results, and what a plan asks of it.

use std::collections::BTreeSet;

use super::{AggregateKind, PlanOptions, QueryInfo};

/// What clients name in the header of a plan request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feature {
    Aggregate,
    NonValueAggregate,
    MultipleAggregates,
    ListAndSetAggregate,
    CountIf,
    DCount,
    Distinct,
    GroupBy,
    OffsetAndLimit,
    OrderBy,
    MultipleOrderBy,
    Top,
}

const NAMES: [(&str, Feature); 12] = [
    ("Aggregate", Feature::Aggregate),
    ("NonValueAggregate", Feature::NonValueAggregate),
    ("MultipleAggregates", Feature::MultipleAggregates),
    ("ListAndSetAggregate", Feature::ListAndSetAggregate),
    ("CountIf", Feature::CountIf),
    ("DCount", Feature::DCount),
    ("Distinct", Feature::Distinct),
    ("GroupBy", Feature::GroupBy),
    ("OffsetAndLimit", Feature::OffsetAndLimit),
    ("OrderBy", Feature::OrderBy),
    ("MultipleOrderBy", Feature::MultipleOrderBy),
    ("Top", Feature::Top),
];

impl Feature {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        NAMES.iter().find(|(_, own)| *own == self).map_or("", |(name, _)| name)
    }
}

/// The features that a client has, and what else its request says about the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features {
    known: BTreeSet<Feature>,
    names_key: bool,
}

impl Features {
    /// Reads the list of a header. Names that we do not know are left out:
    /// clients may be newer than we are.
    #[must_use]
    pub fn parse(list: &str) -> Features {
        let find = |name: &str| {
            NAMES.iter().find(|(own, _)| *own == name.trim()).map(|(_, feature)| *feature)
        };
        Features { known: list.split(',').filter_map(find).collect(), names_key: false }
    }

    #[must_use]
    pub fn all() -> Features {
        let known = NAMES.iter().map(|(_, feature)| *feature).collect();
        Features { known, names_key: false }
    }

    /// The request names a key, so that one partition answers the query.
    #[must_use]
    pub fn with_key(self) -> Features {
        Features { names_key: true, ..self }
    }

    /// What the planner is asked for by a client with these features.
    pub(crate) fn options(&self) -> PlanOptions {
        PlanOptions {
            non_value_aggregates: self.has(Feature::NonValueAggregate),
            distinct_counts: self.has(Feature::DCount),
            logical_key: self.names_key,
            ..PlanOptions::default()
        }
    }

    fn has(&self, feature: Feature) -> bool {
        self.known.contains(&feature)
    }

    /// What the plan asks for and the client has not.
    pub(super) fn missing(&self, info: &QueryInfo) -> Vec<&'static str> {
        let needed = needed(info);
        needed.into_iter().filter(|f| !self.known.contains(f)).map(Feature::as_str).collect()
    }
}

/// In the order in which the service lists them.
fn needed(info: &QueryInfo) -> Vec<Feature> {
    let aggregates: Vec<AggregateKind> = info
        .aggregates
        .iter()
        .copied()
        .chain(info.aliases.iter().filter_map(|(_, kind)| *kind))
        .collect();
    let has = |kinds: &[AggregateKind]| aggregates.iter().any(|kind| kinds.contains(kind));
    let checks = [
        (info.aggregates.len() == 1, Feature::Aggregate),
        (info.aggregates.is_empty() && aggregates.len() == 1, Feature::NonValueAggregate),
        (aggregates.len() > 1, Feature::MultipleAggregates),
        (has(&[AggregateKind::MakeList, AggregateKind::MakeSet]), Feature::ListAndSetAggregate),
        (has(&[AggregateKind::CountIf]), Feature::CountIf),
        (info.distinct_count.is_some(), Feature::DCount),
        (info.distinct != super::DistinctType::None, Feature::Distinct),
        (!info.group_by.is_empty(), Feature::GroupBy),
        (info.offset.is_some() || info.limit.is_some(), Feature::OffsetAndLimit),
        (info.order_by.len() == 1, Feature::OrderBy),
        (info.order_by.len() > 1, Feature::MultipleOrderBy),
        (info.top.is_some(), Feature::Top),
    ];
    checks.into_iter().filter(|(needs, _)| *needs).map(|(_, feature)| feature).collect()
}
