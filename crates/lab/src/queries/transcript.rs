//! What a build answers to random queries, page by page, to be compared with another build.
//!
//! Two builds that are asked the same, from the same seeds, must print the same lines:
//! rows, the charge of each page, what was read for it and the cursor after it.

use std::fmt::Write as _;

use bytes::Bytes;
use service::{Approach, Cursor, ItemQuery, QueryRows, Scope, ServiceError};

use super::dice::Dice;
use super::lab::{Ask, Lab};
use super::trial::{Question, furnished, values_query};
use crate::queries::data::DataSet;
use crate::system_properties;

/// Pages of one query, at most.
const PAGES_MAX: usize = 400;

/// How much a line shows of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// How many there are, and a hash of them.
    Hash,
    /// All of them.
    Rows,
}

/// Asks a random container of at most `items_max` items `queries` random queries, each
/// through indexes and by scanning, and passes on one line for each page. Returns the
/// number of pages.
pub fn write(
    seed: u64,
    items_max: usize,
    queries: usize,
    detail: Detail,
    line: &mut dyn FnMut(&str),
) -> u64 {
    let dice = Dice::new(seed);
    let data = DataSet::random(&dice, items_max);
    let (lab, _) = furnished(&data);
    let mut pages = 0;
    for number in 0..queries {
        let question = Question::random(&dice, &data);
        let mut ask = question.to_ask();
        if dice.once_in(4) {
            ask = Ask::new(values_query(&dice));
        }
        for (approach, size) in [Approach::Index, Approach::Scan].into_iter().zip(question.pages) {
            line(&format!("{seed} {number} {approach:?} {size} {}: {}", data.partitions, ask.text));
            let asked = Asked { lab: &lab, ask: &ask, approach, size };
            pages += asked.pages(detail, line);
        }
    }
    pages
}

struct Asked<'l> {
    lab: &'l Lab,
    ask: &'l Ask,
    approach: Approach,
    size: usize,
}

impl Asked<'_> {
    fn pages(&self, detail: Detail, line: &mut dyn FnMut(&str)) -> u64 {
        let (mut after, mut pages) = (None, 0);
        for _ in 0..PAGES_MAX {
            pages += 1;
            match self.page(after.take(), detail) {
                Ok((text, rest)) => {
                    line(&text);
                    after = rest;
                }
                Err(error) => line(&format!("  {error}")),
            }
            if after.is_none() {
                break;
            }
        }
        pages
    }

    fn page(
        &self,
        after: Option<Cursor>,
        detail: Detail,
    ) -> Result<(String, Option<Cursor>), ServiceError> {
        let query = ItemQuery {
            source: self.ask.text.as_str().into(),
            parameters: self.ask.parameters.clone(),
            scope: Scope { ..self.ask.scope.clone() },
            across_partitions: true,
            merges: true,
            session: None,
            after,
            resume: None,
            items_max: self.size,
            approach: self.approach,
            system: Some(system_properties()),
            is_timed: false,
            names_indexes: false,
        };
        let response = self.lab.within(query)?;
        let charge = response.meta.charge;
        let QueryRows { rows, rest, report, .. } = response.reply;
        let parts: Vec<String> =
            report.partitions.iter().map(|range| format!("{range:?}")).collect();
        let mut text = format!(
            "  {charge:?} [{}] {} entries {} items {} hits {} rows {} of {} ",
            report.access,
            parts.len(),
            report.entries,
            report.items,
            report.hits,
            rows.len(),
            report.row_bytes,
        );
        for byte in rest.as_ref().map(Cursor::to_bytes).unwrap_or_default() {
            let _ = write!(text, "{byte:02x}");
        }
        match detail {
            Detail::Hash => write!(text, " {:016x}", hash(&rows)),
            Detail::Rows => write!(text, " {}", String::from_utf8_lossy(&rows.join(&b' '))),
        }
        .expect("a text takes what is written");
        Ok((text, rest))
    }
}

/// FNV-1a of all rows.
fn hash(rows: &[Bytes]) -> u64 {
    let bytes = rows.iter().flat_map(|row| row.iter().chain(&[0]));
    bytes.fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3)
    })
}
