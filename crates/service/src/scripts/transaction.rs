//! A script as a transaction: run on a snapshot, committed as one command.
//!
//! The command names the versions that the script found. If one of them has changed
//! meanwhile nothing is written and the script runs again, on a new snapshot.

use std::sync::Arc;

use cluster::{ClusterError, ScriptTurn};
use model::charge::{Charge, Work};
use model::epk::Epk;
use model::partition_key::PartitionKey;
use model::position::Lsn;
use model::session::SessionToken;
use model::system_properties::{ItemStamp, SystemProperties};
use partition::{Effect, PartitionRemedy, Tried};
use script::{Ended, Fault};

use super::StoredScript;
use super::host::{ScriptHost, Stage};
use crate::error::ServiceError;
use crate::items::check_session;
use crate::pipeline::account;
use crate::pipeline::meta::ResponseMeta;
use crate::pipeline::resolve::ResolvedContainer;
use crate::service::Service;

/// How often a script is run again after others have changed what it wrote.
const RERUNS_MAX: usize = 3;

/// Where a script runs.
pub(crate) struct Place<'a> {
    pub(crate) entry: &'a ResolvedContainer,
    pub(crate) key: PartitionKey,
    pub(crate) position: Epk,
    pub(crate) session: Option<&'a SessionToken>,
    pub(crate) system: Arc<SystemProperties>,
}

/// One run, whose writes are not committed yet.
pub(crate) struct Ran<T> {
    pub(crate) host: ScriptHost,
    pub(crate) value: Result<T, ServiceError>,
    pub(crate) ticks: u64,
}

impl<T> Ran<T> {
    pub(crate) fn failed(host: ScriptHost, error: ServiceError) -> Ran<T> {
        Ran { host, value: Err(error), ticks: 0 }
    }
}

impl Ran<(Option<String>, String)> {
    /// What a script returned and printed.
    pub(crate) fn of(script: &StoredScript, ended: Ended<ScriptHost>) -> Self {
        let Ended { result, log, usage, host } = ended;
        let value = match result {
            Ok(body) => Ok((body, log)),
            Err(Fault::OutOfTime) if host.is_cancelled() => Err(ServiceError::Stopping),
            Err(fault) => Err(script.failed(fault, log)),
        };
        Ran { host, value, ticks: usage.ticks }
    }
}

/// A committed script.
pub(crate) struct Committed<T> {
    pub(crate) value: T,
    /// What the script saw of its writes, and what they became, where that differs.
    pub(crate) stamps: Vec<(ItemStamp, ItemStamp)>,
    /// What its writes did, in their order, without texts.
    pub(crate) effects: Vec<Effect>,
}

/// What is left of a run outside its thread.
struct Attempt<T> {
    value: Result<T, ServiceError>,
    tried: Tried,
    seen: (cluster::PartitionId, Lsn),
    charge: Charge,
    /// The charge of writes that will not be committed.
    wasted: Charge,
}

impl Service {
    /// Runs `work` and commits what it wrote, all or nothing.
    pub(crate) async fn transact<T, W>(
        &self,
        place: &Place<'_>,
        work: Arc<W>,
        meta: &mut ResponseMeta,
    ) -> Result<Committed<T>, ServiceError>
    where
        T: Send + 'static,
        W: Fn(ScriptHost) -> Ran<T> + Send + Sync + 'static,
    {
        for _ in 0..=RERUNS_MAX {
            let (stage, work) = (Stage::new(self, place)?, Arc::clone(&work));
            let ran = self.cluster.run_script(move |turn| attempt(stage, turn, work.as_ref()));
            let Attempt { value, tried, seen: (range, lsn), charge, wasted } = ran.await??;
            meta.saw(range, lsn);
            meta.charged(charge);
            check_session(place.entry, place.session, meta)?;
            let value = value.inspect_err(|_| meta.charged(wasted))?;
            if let Some(effects) = self.commit(place, &tried, meta).await? {
                let stamps = changed_stamps(tried.stamps, &effects);
                return Ok(Committed { value, stamps, effects });
            }
        }
        Err(ServiceError::ScriptConflict)
    }

    /// Commits the writes of a script; none if they have to be tried again.
    async fn commit(
        &self,
        place: &Place<'_>,
        tried: &Tried,
        meta: &mut ResponseMeta,
    ) -> Result<Option<Vec<Effect>>, ServiceError> {
        let Some(command) = tried.command(place.position.clone()) else {
            return Ok(Some(Vec::new()));
        };
        let partition = place.entry.route(&place.position)?;
        match self.cluster.apply_script(&place.entry.container, partition, command).await {
            Ok(served) => {
                let outcome = meta.served(served);
                for effect in &outcome.effects {
                    meta.worked(&effect.work);
                }
                Ok(Some(outcome.effects))
            }
            Err(error) if is_outdated(&error) => {
                meta.refused(error);
                Ok(None)
            }
            Err(error) => Err(meta.refused(error).into()),
        }
    }
}

/// Whether the writes were possible on the snapshot and are not any more.
fn is_outdated(error: &ClusterError) -> bool {
    let ClusterError::Command { error, .. } = error else { return false };
    match error.problem.remedy() {
        PartitionRemedy::Correct | PartitionRemedy::Reread => true,
        PartitionRemedy::Reroute
        | PartitionRemedy::AllocateOrdinals
        | PartitionRemedy::Operator => false,
    }
}

fn attempt<T>(
    stage: Stage,
    turn: &Arc<ScriptTurn>,
    work: &(impl Fn(ScriptHost) -> Ran<T> + Send + Sync + 'static),
) -> Result<Attempt<T>, ServiceError> {
    let host = ScriptHost::new(stage, turn)?;
    let Ran { host, value, ticks } = work(host);
    let charge = host.read_charge() + account::charge(&Work::Script { ticks });
    let (seen, wasted) = (host.seen(), host.write_charge());
    Ok(Attempt { value, seen, charge, wasted, tried: host.finish() })
}

fn changed_stamps(seen: Vec<Option<ItemStamp>>, effects: &[Effect]) -> Vec<(ItemStamp, ItemStamp)> {
    let real = effects.iter().map(|effect| effect.stamp.clone());
    let pairs = seen.into_iter().zip(real).filter_map(|(seen, real)| seen.zip(real));
    pairs.filter(|(seen, real)| seen != real).collect()
}
