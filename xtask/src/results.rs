//! Result files: the results of the last runs against official SDKs, in the target folder.
//! `COMPATIBILITY.md` is rendered from them and from nothing else.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Stores the results of one run under a name, replacing those of an earlier run.
pub fn write<T: Serialize>(target: &Path, name: &str, results: &T) -> Result<()> {
    let folder = target.join("results");
    std::fs::create_dir_all(&folder)?;
    Ok(std::fs::write(folder.join(format!("{name}.json")), serde_json::to_vec_pretty(results)?)?)
}

/// The results of the last run of that name; `None` when there was none.
pub fn read<T: DeserializeOwned>(target: &Path, name: &str) -> Result<Option<T>> {
    let path = target.join("results").join(format!("{name}.json"));
    if !path.is_file() {
        return Ok(None);
    }
    let text = std::fs::read(&path)?;
    let results = serde_json::from_slice(&text);
    Ok(Some(results.with_context(|| format!("{} is damaged", path.display()))?))
}
