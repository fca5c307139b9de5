//! Readable entries, for the messages of `check` and for tests.

use model::json::{DEPTH_MAX, Raw, write_string};
use model::policy::{PolicyPathStep, SortOrder};

use crate::absence::is_of_members;
use crate::path_hash::PathHash;
use crate::plan::{Composite, IndexPlan};
use crate::value::{DecodeError, Decoded};

impl IndexPlan {
    /// Describes an entry: `/a/b = "x"`.
    ///
    /// A hash does not reveal its path; the path is searched among those of `item` and of
    /// the policy, and shown as a number if it is none of them. The cost is that of a
    /// traversal of the item.
    pub fn explain(&self, item: Raw<'_>, entry: &[u8]) -> Result<String, DecodeError> {
        let (hash, mut rest) = entry.split_first_chunk::<8>().ok_or(DecodeError::Truncated)?;
        let hash = PathHash::from_bytes(*hash);
        if let Some(composite) = self.composites.iter().find(|composite| composite.hash == hash) {
            return self.explain_composite(composite, rest);
        }
        if is_of_members(entry) {
            let is_of = |at: PathHash| at.members(self.seed) == hash;
            let path = self.path_of(item, &is_of).unwrap_or_else(|| "unknown".to_owned());
            return Ok(format!("names in {}", if path.is_empty() { "/" } else { &path }));
        }
        let value = Decoded::read(&mut rest)?;
        let path = self.name_of(item, hash);
        let path =
            path.unwrap_or_else(|| format!("path {:016x}", u64::from_be_bytes(hash.to_bytes())));
        Ok(format!("{path} = {value}"))
    }

    fn explain_composite(
        &self,
        composite: &Composite,
        mut rest: &[u8],
    ) -> Result<String, DecodeError> {
        let mut parts = Vec::with_capacity(composite.parts.len());
        for (slot, order) in &composite.parts {
            let value = Decoded::read_part(&mut rest, *order)?;
            let path = self.slots.get(*slot).map(|slot| path_of_names(&slot.names));
            let arrow = match order {
                SortOrder::Ascending => '↑',
                SortOrder::Descending => '↓',
            };
            parts.push(format!("{}{arrow} {value}", path.unwrap_or_default()));
        }
        Ok(format!("({})", parts.join(", ")))
    }

    fn name_of(&self, item: Raw<'_>, wanted: PathHash) -> Option<String> {
        let slot = self.slots.iter().find(|slot| slot.hash == wanted);
        slot.map(|slot| path_of_names(&slot.names))
            .or_else(|| self.path_of(item, &|at| at == wanted))
    }

    /// The path of a value in an item.
    fn path_of(&self, item: Raw<'_>, is_wanted: &dyn Fn(PathHash) -> bool) -> Option<String> {
        let mut steps = self.find(item, PathHash::item(self.seed), is_wanted, 0)?;
        steps.reverse();
        Some(path_of_steps(&steps))
    }

    /// The steps from `value` to the path, the last one first.
    fn find(
        &self,
        value: Raw<'_>,
        at: PathHash,
        is_wanted: &dyn Fn(PathHash) -> bool,
        depth: usize,
    ) -> Option<Vec<PolicyPathStep>> {
        if is_wanted(at) {
            return Some(Vec::new());
        }
        if depth > DEPTH_MAX {
            return None;
        }
        let below = |step: PolicyPathStep, value| {
            let mut steps = self.find(value, at.step(self.seed, &step), is_wanted, depth + 1)?;
            steps.push(step);
            Some(steps)
        };
        let mut members = value
            .members()
            .map(|(name, value)| (PolicyPathStep::Property(name.into_owned()), value));
        members
            .find_map(|(step, value)| below(step, value))
            .or_else(|| value.elements().find_map(|value| below(PolicyPathStep::Elements, value)))
    }
}

fn path_of_names(names: &[String]) -> String {
    names.iter().fold(String::new(), |path, name| push_name(path, name))
}

fn path_of_steps(steps: &[PolicyPathStep]) -> String {
    steps.iter().fold(String::new(), |path, step| match step {
        PolicyPathStep::Property(name) => push_name(path, name),
        PolicyPathStep::Elements => path + "/[]",
    })
}

fn push_name(mut path: String, name: &str) -> String {
    path.push('/');
    if !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        path.push_str(name);
    } else {
        write_string(&mut path, name);
    }
    path
}
