//! The keys of the account in this process: from settings, from the data folder, and new ones
//! while the server runs.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use operator::KeyNotKept;
use runtime::Random;
use service::identity::{AccountKey, AccountKeyKind, AccountKeys};
use tokio::sync::Mutex;

use crate::data_dir::DataDir;
use crate::data_dir::keys::RotatedKeys;
use crate::settings::Settings;

#[derive(Debug)]
pub(crate) struct KeyKeeper {
    live: Arc<AccountKeys>,
    /// Where new ones are kept; in memory they last as long as all else.
    root: Option<PathBuf>,
    kept: Mutex<RotatedKeys>,
    random: Arc<dyn Random>,
}

impl KeyKeeper {
    /// Takes those of the settings, except where a key was replaced since.
    pub(crate) fn open(
        settings: &Settings,
        dir: Option<&DataDir>,
        random: Arc<dyn Random>,
    ) -> anyhow::Result<KeyKeeper> {
        let kept = dir.map_or_else(|| Ok(RotatedKeys::none()), DataDir::rotated_keys)?;
        let [primary, others @ ..] = settings.account_keys()?;
        let choose = |(kind, given)| Ok::<_, anyhow::Error>((kind, kept.choose(kind, given)?));
        let (_, primary) = choose(primary)?;
        let mut live = AccountKeys::new(primary.context("there is no primary key")?);
        for (kind, key) in others.into_iter().map(choose).collect::<Result<Vec<_>, _>>()? {
            if let Some(key) = key {
                live = live.with(kind, key);
            }
        }
        let root = dir.map(|dir| dir.root().to_owned());
        Ok(KeyKeeper::of(live, kept, root, random))
    }

    pub(crate) fn of(
        live: AccountKeys,
        kept: RotatedKeys,
        root: Option<PathBuf>,
        random: Arc<dyn Random>,
    ) -> KeyKeeper {
        KeyKeeper { live: Arc::new(live), root, kept: Mutex::new(kept), random }
    }

    pub(crate) fn live(&self) -> &Arc<AccountKeys> {
        &self.live
    }

    /// Replaces a key once the new one is durable: what was answered stays true.
    pub(crate) async fn rotate(&self, kind: AccountKeyKind) -> Result<AccountKey, KeyNotKept> {
        let mut kept = self.kept.lock().await;
        let new = AccountKey::generate(&*self.random);
        let rotated = kept.rotated(kind, self.live.get(kind).as_ref(), &new);
        if let Some(root) = self.root.clone() {
            let rotated = rotated.clone();
            let writing = tokio::task::spawn_blocking(move || rotated.write(&root));
            let written = writing.await.map_err(anyhow::Error::from).and_then(|written| written);
            written.map_err(|error| KeyNotKept(format!("{error:#}")))?;
        }
        *kept = rotated;
        self.live.replace(kind, new.clone());
        Ok(new)
    }
}
