//! `orrery upgrade`: carries a data folder over from the version of the format before this
//! one.
//!
//! The old store is only read. A new one is filled beside it, in batches that record how far
//! they are, so that an interrupted upgrade goes on where it was; it is checked as a whole;
//! then the two exchange their places (`data_dir/upgrade.rs`).

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use runtime::Runtime;
use service::upgrade::{self, CONTENTS, Upgraded};
use storage::backup::Progress;
use storage::local;
use storage::{ContentsVersion, Durability, StorageError, Store};

use crate::commands::backup::ProgressPrinter;
use crate::commands::check;
use crate::commands::compact::{bytes_in, megabytes};
use crate::data_dir::upgrade::{self as folders, Stage};
use crate::data_dir::{self, DataDir, say, say_error};
use crate::settings::rules::Rules;

/// Bytes that the new store may take beyond twice those of the old one, when both are small.
const SPACE_MARGIN_BYTES: u64 = 32 << 20;

/// A number of steps after which the process ends at once, for tests of every moment at
/// which it can end.
const STEPS_MAX: &str = "ORRERY_TEST_UPGRADE_STEPS_MAX";

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The data folder to carry over. It must not be in use.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Remove the old store when the new one is complete, checked and in place.
    #[arg(long)]
    remove_old: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let folder = arguments.folder.as_path();
    let dir = DataDir::claim_existing(folder)?;
    let mut steps = Steps::new();
    let kept = match folders::stage(folder)? {
        Stage::Done => return done(folder, arguments.remove_old),
        Stage::ToFill => {
            let version = local::contents_of(&data_dir::store_folder(folder))?;
            let kept = folders::kept(folder, version);
            ensure!(
                !kept.exists(),
                "{} is there already, from an earlier upgrade: move it away",
                kept.display()
            );
            let new = fill(folder, version, &mut steps)?;
            folders::exchange(folder, (&new, &kept), &mut || steps.step())?;
            steps.step();
            kept
        }
        Stage::Exchanged(old) => {
            let kept = folders::kept(folder, local::contents_of(&old)?);
            folders::keep_old(folder, (&old, &kept))?;
            kept
        }
        Stage::Between(new) => {
            let kept = folders::all_kept(folder).pop();
            folders::put_in_place(folder, &new)?;
            kept.context("the old store is not there any more")?
        }
    };
    finish(folder, &kept, arguments.remove_old)?;
    drop(dir);
    Ok(ExitCode::SUCCESS)
}

/// Nothing is to be carried over; old stores may be left to remove.
fn done(folder: &Path, remove_old: bool) -> anyhow::Result<ExitCode> {
    let kept = folders::all_kept(folder);
    if !remove_old || kept.is_empty() {
        say(&format!("{}: contents version {CONTENTS}, nothing to do", folder.display()));
    } else {
        for old in kept {
            local::destroy(&old)?;
            say(&format!("{} is removed", old.display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes the old store if that is wanted, and says what was done.
fn finish(folder: &Path, old: &Path, remove_old: bool) -> anyhow::Result<()> {
    let (before, place) = (local::contents_of(old)?, folder.display());
    let what = if remove_old {
        local::destroy(old)?;
        "the old store is removed".to_owned()
    } else {
        format!("the old store is in {}: remove it when you no longer want it", old.display())
    };
    say(&format!("{place}: contents version {before} is now {CONTENTS}; {what}"));
    Ok(())
}

/// Makes the new store, complete and checked. Returns its folder.
fn fill(folder: &Path, version: ContentsVersion, steps: &mut Steps) -> anyhow::Result<PathBuf> {
    let store = data_dir::store_folder(folder);
    let outside = Runtime::real();
    let old = local::open_read_only(&store, version)?;
    if let Some(loss) = old.loss() {
        say_error(&loss.to_string());
    }
    let place = folders::new_store(folder, local::newest_commit(&store)?);
    check_space(folder, &store, &place)?;
    folders::remove_others(folder, &place)?;
    let new = open_or_create(&place, &outside)?;
    let mut printer = ProgressPrinter::new("items", "carried over");
    let from = (old.as_ref(), version);
    let filled = upgrade::fill(from, &new, &outside, |Upgraded { items, bytes }| {
        printer.print(Progress { rows: items, bytes });
        steps.step();
    });
    filled.with_context(|| {
        format!(
            "{} is as it was, and the command can be given again: it goes on where it stopped",
            store.display()
        )
    })?;
    say_error("checking …");
    let service = data_dir::open_store(new, &outside, Rules::default())?;
    let is_clean = check::report(&service)?;
    service.store().close()?;
    if !is_clean {
        bail!("what was carried over does not agree, see above; {} is as it was", store.display());
    }
    steps.step();
    Ok(place)
}

/// Refuses to begin what will not fit on the disk.
fn check_space(folder: &Path, store: &Path, new: &Path) -> anyhow::Result<()> {
    let old_bytes = bytes_in(store);
    // It becomes smaller than the old one; until then it has journals, and tables twice while
    // they are compacted. 1.75 times as much was measured.
    let needed = 2 * old_bytes + SPACE_MARGIN_BYTES;
    let needed = needed.saturating_sub(bytes_in(new));
    let free = local::free_bytes(folder, &data_dir::config(Durability::default()));
    let (old, wants, has) = (megabytes(old_bytes), megabytes(needed), megabytes(free));
    ensure!(
        needed <= free,
        "not enough space: the new store takes up to {wants} beside the {old} of the old one, and {has} are free"
    );
    say_error(&format!("carrying over {old}; the new store takes up to {wants}, {has} are free"));
    Ok(())
}

/// The new store, begun or not. What cannot be opened is started again: it is only a copy.
fn open_or_create(place: &Path, outside: &Runtime) -> anyhow::Result<Arc<dyn Store>> {
    let config = data_dir::config(Durability::default());
    match local::open(place, config.clone(), outside) {
        Ok(store) => {
            say_error("going on with an upgrade that was interrupted");
            return Ok(store);
        }
        Err(error @ StorageError::InUse { .. }) => return Err(error.into()),
        Err(_) if !place.exists() => {}
        Err(error) => {
            say_error(&format!("starting again: {error}"));
            folders::remove(place)?;
        }
    }
    Ok(local::create(place, config, outside)?)
}

/// Counts what was done, and ends the process where a test wants it.
struct Steps {
    done: u64,
    max: Option<u64>,
}

impl Steps {
    fn new() -> Steps {
        let max = std::env::var(STEPS_MAX).ok().and_then(|text| text.parse().ok());
        Steps { done: 0, max }
    }

    fn step(&mut self) {
        self.done += 1;
        if self.max == Some(self.done) {
            std::process::abort();
        }
    }
}
