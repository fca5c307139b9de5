//! What can be measured, by name.

use std::fmt;
use std::str::FromStr;

use anyhow::{Error, Result, bail};

use crate::document::Documents;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Upsert,
    Replace,
    Read,
    Patch,
    Batch,
    Bulk,
    Feed,
    Query(Query),
    Ycsb(Mix, Distribution),
}

/// The six queries that other servers are compared by, each followed to its last page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Query {
    KeyFilter,
    Equality,
    Range,
    Scan,
    Count,
    OrderBy,
}

/// The mixes of the Yahoo! Cloud Serving Benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mix {
    /// Half reads, half updates.
    A,
    /// 95 % reads, 5 % updates.
    B,
    /// Reads.
    C,
    /// 95 % reads of what is newest, 5 % inserts.
    D,
    /// 95 % scans of up to 100 items, 5 % inserts.
    E,
    /// Half reads, half reads that are followed by an update.
    F,
}

/// Which documents are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Distribution {
    Uniform,
    Zipfian,
}

const ITEMS: [(&str, Operation); 8] = [
    ("read", Operation::Read),
    ("create", Operation::Create),
    ("upsert", Operation::Upsert),
    ("replace", Operation::Replace),
    ("patch", Operation::Patch),
    ("batch", Operation::Batch),
    ("bulk", Operation::Bulk),
    ("feed", Operation::Feed),
];

const QUERIES: [(&str, Query); 6] = [
    ("query-key-filter", Query::KeyFilter),
    ("query-equality", Query::Equality),
    ("query-range", Query::Range),
    ("query-scan", Query::Scan),
    ("query-count", Query::Count),
    ("query-order-by", Query::OrderBy),
];

const MIXES: [(&str, Mix); 6] = [
    ("ycsb-a", Mix::A),
    ("ycsb-b", Mix::B),
    ("ycsb-c", Mix::C),
    ("ycsb-d", Mix::D),
    ("ycsb-e", Mix::E),
    ("ycsb-f", Mix::F),
];

const DISTRIBUTIONS: [(&str, Distribution); 2] =
    [("uniform", Distribution::Uniform), ("zipfian", Distribution::Zipfian)];

impl Operation {
    /// All of them with their names. Reads and queries come first, while there is nothing
    /// but the load.
    pub(crate) fn all() -> Vec<(String, Operation)> {
        let named = |(name, operation): (&str, Operation)| (name.to_owned(), operation);
        let mut all: Vec<_> = ITEMS.into_iter().take(1).map(named).collect();
        all.extend(QUERIES.map(|(name, query)| named((name, Operation::Query(query)))));
        all.extend(ITEMS.into_iter().skip(1).map(named));
        for (mix_name, mix) in MIXES {
            all.extend(DISTRIBUTIONS.map(|(name, distribution)| {
                (format!("{mix_name}-{name}"), Operation::Ycsb(mix, distribution))
            }));
        }
        all
    }

    /// Whether it leaves work for flush and compaction.
    pub(crate) fn writes(self) -> bool {
        let reads = matches!(self, Operation::Read | Operation::Feed | Operation::Query(_));
        !reads && !matches!(self, Operation::Ycsb(Mix::C, _))
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = Operation::all();
        let name = all.iter().find(|(_, operation)| operation == self);
        f.write_str(name.map_or("load", |(name, _)| name))
    }
}

/// The operations of a word: one of them, or all whose names begin with it.
#[derive(Clone, Debug)]
pub(crate) struct Selection(pub(crate) Vec<Operation>);

impl FromStr for Selection {
    type Err = Error;

    fn from_str(word: &str) -> Result<Selection> {
        let all = Operation::all();
        let chosen: Vec<Operation> = match word {
            "all" => all.iter().map(|(_, operation)| *operation).collect(),
            "items" => ITEMS.iter().map(|(_, operation)| *operation).collect(),
            "none" => Vec::new(),
            word => {
                let begins = |name: &str| name == word || name.starts_with(&format!("{word}-"));
                let chosen = all.iter().filter(|(name, _)| begins(name));
                let chosen: Vec<_> = chosen.map(|(_, operation)| *operation).collect();
                if chosen.is_empty() {
                    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
                    bail!("there are all, none, items, query, ycsb and {}", names.join(", "));
                }
                chosen
            }
        };
        Ok(Selection(chosen))
    }
}

impl Query {
    /// Its text, and its key if it is on one.
    pub(crate) fn text(self, documents: Documents) -> (String, Option<String>) {
        let loaded = documents.loaded();
        let half = loaded / 2;
        let text = match self {
            Query::KeyFilter => {
                let key = documents.key(7);
                let text = format!(r#"SELECT * FROM c WHERE c.pk = "{key}" AND c.n < {half}"#);
                return (text, Some(key));
            }
            Query::Equality => format!(r#"SELECT * FROM c WHERE c.s = "{}""#, documents.name(1)),
            Query::Range => {
                let end = half + (loaded / 100).max(1);
                format!("SELECT c.id, c.n FROM c WHERE c.n >= {half} AND c.n < {end}")
            }
            Query::Scan => r#"SELECT TOP 500 c.id FROM c WHERE ENDSWITH(c.s, "7")"#.to_owned(),
            Query::Count => "SELECT VALUE COUNT(1) FROM c".to_owned(),
            Query::OrderBy => "SELECT TOP 10 c.id, c.n FROM c ORDER BY c.n DESC".to_owned(),
        };
        (text, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_chooses_one_operation_or_a_family() {
        let count = |word: &str| word.parse::<Selection>().unwrap().0.len();
        assert_eq!(
            ["all", "items", "query", "ycsb", "ycsb-a", "read"].map(count),
            [26, 8, 6, 12, 2, 1]
        );
        assert!("reed".parse::<Selection>().is_err());
    }
}
