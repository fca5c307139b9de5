//! What each script has done since the process started, for those who operate it.
//!
//! Every run counts, also one that is repeated after a conflict or whose writes were not
//! committed: it took its time. A function counts its calls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::charge::{Charge, Work};
use model::rid::ContainerRid;
use runtime::Runtime;

use super::host::ScriptHost;
use super::transaction::Ran;
use crate::catalogue::kind::Kind;
use crate::pipeline::account;
use crate::service::Service;

/// Scripts that are counted by name. Clients choose the names, and each is a row of the
/// metrics: further ones are counted together.
const COUNTED_MAX: usize = 1_000;

/// What a script has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScriptTotals {
    pub runs: u64,
    /// Runs that ended with an error.
    pub failures: u64,
    /// What the runs and their operations cost, whether they were committed or not.
    pub charge: Charge,
    /// While the script ran: not while it waited for a thread or to be committed.
    pub time: Duration,
}

/// The totals of one script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedScript {
    /// `dbs/NAME/colls/NAME`; none for all scripts that are counted together.
    pub container: Option<Arc<str>>,
    pub kind: Kind,
    /// Empty for those that are counted together.
    pub name: String,
    pub totals: ScriptTotals,
}

type Counted = (ContainerRid, Kind, String);

/// The totals of all scripts.
#[derive(Debug, Default)]
pub(crate) struct AllTotals(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    by_name: BTreeMap<Counted, ScriptTotals>,
    others: BTreeMap<Kind, ScriptTotals>,
}

impl AllTotals {
    fn add(&self, script: (ContainerRid, Kind, &str), run: ScriptTotals) {
        let (container, kind, name) = script;
        let script = (container, kind, name.to_owned());
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = counts.by_name.contains_key(&script);
        let totals = if is_known || counts.by_name.len() < COUNTED_MAX {
            counts.by_name.entry(script).or_default()
        } else {
            counts.others.entry(kind).or_default()
        };
        totals.runs += run.runs;
        totals.failures += run.failures;
        totals.charge += run.charge;
        totals.time += run.time;
    }

    fn of(&self, container: ContainerRid, kind: Kind, name: &str) -> ScriptTotals {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let totals = counts.by_name.get(&(container, kind, name.to_owned()));
        totals.copied().unwrap_or_default()
    }
}

/// Measures runs of the scripts of one container and kind.
#[derive(Clone, Debug)]
pub(crate) struct ScriptMeter {
    all: Arc<AllTotals>,
    runtime: Runtime,
    container: ContainerRid,
    kind: Kind,
}

impl ScriptMeter {
    /// Runs a script on a host.
    pub(crate) fn measure<T>(
        &self,
        name: &str,
        host: ScriptHost,
        run: impl FnOnce(ScriptHost) -> Ran<T>,
    ) -> Ran<T> {
        let charged = |host: &ScriptHost| host.read_charge() + host.write_charge();
        let (begun, before) = (self.runtime.clock.monotonic(), charged(&host));
        let ran = run(host);
        let operations = charged(&ran.host).units().saturating_sub(before.units());
        let own = account::charge(&Work::Script { ticks: ran.ticks });
        let charge = Charge::from_units(operations) + own;
        self.add(name, begun, ran.value.is_err(), charge);
        ran
    }

    /// Calls a function. `told` says whether that failed, and its ticks.
    pub(crate) fn measure_call<T>(
        &self,
        name: &str,
        call: impl FnOnce() -> T,
        told: impl FnOnce(&T) -> (bool, u64),
    ) -> T {
        let begun = self.runtime.clock.monotonic();
        let answer = call();
        let (failed, ticks) = told(&answer);
        self.add(name, begun, failed, account::charge(&Work::Calls { calls: 1, ticks }));
        answer
    }

    fn add(&self, name: &str, begun: Duration, failed: bool, charge: Charge) {
        let time = self.runtime.clock.monotonic().saturating_sub(begun);
        let run = ScriptTotals { runs: 1, failures: u64::from(failed), charge, time };
        self.all.add((self.container, self.kind, name), run);
    }
}

impl Service {
    pub(crate) fn script_meter(&self, container: ContainerRid, kind: Kind) -> ScriptMeter {
        let (all, runtime) = (Arc::clone(&self.script_totals), self.runtime.clone());
        ScriptMeter { all, runtime, container, kind }
    }

    pub(crate) fn totals_of_script(
        &self,
        container: ContainerRid,
        kind: Kind,
        name: &str,
    ) -> ScriptTotals {
        self.script_totals.of(container, kind, name)
    }

    /// The totals of the scripts of all containers. Those of containers that were dropped
    /// are forgotten.
    pub(crate) fn counted_scripts(&self) -> Vec<CountedScript> {
        let links: BTreeMap<ContainerRid, Arc<str>> = self
            .directory()
            .containers()
            .map(|entry| (entry.rid, Arc::clone(&entry.names.link)))
            .collect();
        let mut counts = self.script_totals.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.by_name.retain(|(container, ..), _| links.contains_key(container));
        let named = counts.by_name.iter().map(|((container, kind, name), totals)| CountedScript {
            container: links.get(container).cloned(),
            kind: *kind,
            name: name.clone(),
            totals: *totals,
        });
        let others = counts.others.iter().map(|(kind, totals)| CountedScript {
            container: None,
            kind: *kind,
            name: String::new(),
            totals: *totals,
        });
        named.chain(others).collect()
    }
}

#[cfg(test)]
mod tests {
    use model::rid::DatabaseRid;

    use super::*;

    #[test]
    fn names_beyond_the_limit_are_counted_together() {
        let all = AllTotals::default();
        let container = ContainerRid::new(DatabaseRid::new(1).unwrap(), 2).unwrap();
        let run = ScriptTotals { runs: 1, ..ScriptTotals::default() };
        for number in 0..COUNTED_MAX + 5 {
            all.add((container, Kind::StoredProcedure, &number.to_string()), run);
        }
        all.add((container, Kind::StoredProcedure, "0"), run);
        assert_eq!(all.of(container, Kind::StoredProcedure, "0").runs, 2);
        assert_eq!(all.of(container, Kind::StoredProcedure, "1003").runs, 0);
        let counts = all.0.lock().unwrap();
        assert_eq!(counts.by_name.len(), COUNTED_MAX);
        assert_eq!(counts.others[&Kind::StoredProcedure].runs, 5);
    }
}
