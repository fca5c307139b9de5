//! How much of a corpus is answered alike.

use std::collections::BTreeMap;

use model::json::Value;

/// Counts per family.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) rows: usize,
    pub(crate) differing: usize,
    fields: BTreeMap<&'static str, usize>,
    /// Rows that both answer with a plan, and that both refuse.
    planned: usize,
    refused: usize,
}

impl Figures {
    pub(crate) fn add(&mut self, theirs: &Value, fields: &[&'static str]) {
        self.rows += 1;
        self.differing += usize::from(!fields.is_empty());
        for field in fields {
            *self.fields.entry(field).or_default() += 1;
        }
        if fields != ["accept"] {
            let planned = theirs.get("ok").and_then(Value::as_bool) == Some(true);
            *(if planned { &mut self.planned } else { &mut self.refused }) += 1;
        }
    }

    pub(crate) fn join(&mut self, other: &Figures) {
        self.rows += other.rows;
        self.differing += other.differing;
        self.planned += other.planned;
        self.refused += other.refused;
        for (field, count) in &other.fields {
            *self.fields.entry(field).or_default() += count;
        }
    }

    /// The share of rows that agree in something, among those where it can be told.
    pub(crate) fn share(&self, field: &str) -> f64 {
        let of = match field {
            "accept" => self.rows,
            "ranges" | "text" | "info" => self.planned,
            _ => self.refused,
        };
        share(self.fields.get(field).copied().unwrap_or(0), of)
    }

    pub(crate) fn everything(&self) -> f64 {
        share(self.differing, self.rows)
    }
}

/// In percent.
fn share(wrong: usize, of: usize) -> f64 {
    let count = |count: usize| u32::try_from(count).map_or(f64::MAX, f64::from);
    if of == 0 { 100.0 } else { 100.0 - 100.0 * count(wrong) / count(of) }
}
