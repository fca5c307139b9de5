//! The sequencer: the one writer of a partition's buckets.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use model::charge::Work;
use model::limits::{Growth, Limits};
use model::position::{Lsn, Timestamp};
use storage::{CommitStatus, Store, Ticket, View, WriteBatch, WriteSession};

use crate::command::{Command, CommandError, Effect, EffectKind, Outcome, PartitionError, Purpose};
use crate::config::{Bucket, PartitionConfig};
use crate::dual_write::Changes;
use crate::history::decode_horizon;
use crate::items;
use crate::key::BucketNumber;
use crate::ordinal_blocks::OrdinalBlocks;
use crate::overlay::Overlay;
use crate::record::Head;
use crate::transaction::Transaction;
use crate::write_set::WriteSet;

/// Operations in the command of a script. They are applied in one go, during which the
/// partition's other commands wait, so there have to be some bounds; etags have 16 bits for
/// the position of an operation.
const SCRIPT_OPERATIONS_MAX: usize = 10_000;

const _: () = assert!(SCRIPT_OPERATIONS_MAX <= u16::MAX as usize);

/// A partition, open for commands.
#[derive(Debug)]
pub struct Partition {
    config: Arc<PartitionConfig>,
    store: Arc<dyn Store>,
    session: Box<dyn WriteSession>,
    /// One for each bucket that is written to, ahead of the disk by what is in the overlay.
    heads: BTreeMap<BucketNumber, Head>,
    /// Those of the buckets whose history is complete from some position on.
    horizons: BTreeMap<BucketNumber, Lsn>,
    lsn: Lsn,
    /// Time never goes back in a partition, whatever the clock does; see `time.rs`.
    now: Timestamp,
    ordinals: OrdinalBlocks,
    overlay: Overlay,
}

/// The answer to a command, and when it may be given.
#[derive(Debug)]
#[must_use = "the answer may be told only after the ticket"]
pub struct Application {
    /// The answer. Even a refusal may rest on writes that are not durable yet, so it waits
    /// for the ticket as well.
    pub result: Result<Outcome, CommandError>,
    /// Resolves when everything that the answer rests on is durable. If it does not become
    /// durable, the true answer is not known.
    pub ticket: Ticket,
}

impl Partition {
    /// Reads the heads and continues after the last commit.
    pub fn open(
        config: Arc<PartitionConfig>,
        store: Arc<dyn Store>,
    ) -> Result<Partition, PartitionError> {
        let session = store.write_session();
        let view = store.view()?;
        let heads = read_heads(&config, view.as_ref())?;
        let horizons = read_horizons(&config, view.as_ref())?;
        let recorded = heads.values().map(|head| head.next_number);
        let ordinals = OrdinalBlocks::resume(config.ordinal_blocks.clone(), recorded);
        let lsn = heads
            .values()
            .map(|head| head.lsn)
            .max()
            .map_or(Lsn::ZERO, Lsn::from_u64)
            .max(config.lsn_floor);
        let now =
            Timestamp::from_millis(heads.values().map(|head| head.ts_millis).max().unwrap_or(0));
        Ok(Partition {
            config,
            store,
            session,
            heads,
            horizons,
            lsn,
            now,
            ordinals,
            overlay: Overlay::default(),
        })
    }

    /// The position of the last command, durable or not.
    #[must_use]
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    #[must_use]
    pub fn config(&self) -> &Arc<PartitionConfig> {
        &self.config
    }

    /// Takes a new configuration with the same buckets: another policy, more ordinals, a
    /// bucket that begins to move. Move targets are new, so nothing has to be read about
    /// them.
    pub fn reconfigure(&mut self, config: Arc<PartitionConfig>) {
        assert_eq!(self.config.buckets, config.buckets, "buckets change hands only by reopening");
        let recorded = self.ordinals.next();
        self.ordinals =
            OrdinalBlocks::resume(config.ordinal_blocks.clone(), std::iter::once(recorded));
        let known = |bucket: &Bucket| self.heads.get(&bucket.number).copied().unwrap_or_default();
        self.heads =
            config.written_buckets().map(|bucket| (bucket.number, known(bucket))).collect();
        self.config = config;
    }

    /// Executes one command and submits its writes.
    pub fn apply(&mut self, now: Timestamp, command: &Command) -> Application {
        self.apply_as(now, command, Purpose::Any)
    }

    /// The same, for a purpose that matters on a full disk.
    pub fn apply_as(&mut self, now: Timestamp, command: &Command, purpose: Purpose) -> Application {
        if let Err(problem) = self.recover_if_broken() {
            return Application {
                result: Err(self.refusal(problem)),
                ticket: Ticket::resolved(CommitStatus::Durable),
            };
        }
        match self.work_out(now, command, purpose) {
            Ok((batch, outcome)) if !batch.is_empty() => {
                let ticket = self.submit(batch.for_relief(purpose == Purpose::Relief));
                Application { result: Ok(outcome), ticket }
            }
            Ok((_, outcome)) => Application { result: Ok(outcome), ticket: self.barrier() },
            Err(error) => Application { result: Err(error), ticket: self.barrier() },
        }
    }

    /// A submission may have failed since the last command: then everything that was
    /// computed on top of it is void, and the state is read from the disk again.
    pub(crate) fn recover_if_broken(&mut self) -> Result<(), PartitionError> {
        if self.overlay.settle().is_ok() {
            return Ok(());
        }
        *self = Partition::open(Arc::clone(&self.config), Arc::clone(&self.store))?;
        Ok(())
    }

    fn work_out(
        &mut self,
        now: Timestamp,
        command: &Command,
        purpose: Purpose,
    ) -> Result<(WriteBatch, Outcome), CommandError> {
        let refusal = |problem| self.refusal(problem);
        check_count(&self.config, command, purpose).map_err(refusal)?;
        let mut tx = self.transaction(now, command).map_err(refusal)?;
        let mut effects: Vec<Effect> = Vec::with_capacity(command.operations.len());
        let mut gathered = Gathered::new(&self.config.limits, purpose);
        for (step, operation) in command.operations.iter().enumerate() {
            tx.step = u16::try_from(step).expect("the number of operations was checked");
            let done = items::perform(&mut tx, operation).and_then(|effect| gathered.add(effect));
            effects.push(done.map_err(|problem| CommandError {
                at: step,
                work: problem.work(operation.attempt()),
                ..self.refusal(problem)
            })?);
        }
        let now = tx.now;
        let (changes, ordinals) = tx.finish();
        if !changes.batch.is_empty() {
            self.ordinals = ordinals;
        }
        let batch = self.commit(changes, now);
        Ok((batch, Outcome { lsn: self.lsn, effects }))
    }

    /// Takes the next position for changes, if there are any.
    pub(crate) fn commit(&mut self, changes: Changes, now: Timestamp) -> WriteBatch {
        let Changes { batch, heads, horizon } = changes;
        if !batch.is_empty() {
            self.lsn = self.lsn.next();
            self.now = now;
            self.set_heads(heads);
            if let Some((bucket, horizon)) = horizon {
                self.set_horizon(bucket, horizon);
            }
        }
        batch
    }

    /// A command that is refused as a whole.
    fn refusal(&self, problem: PartitionError) -> CommandError {
        let work = problem.work(Work::RefusedWrite);
        CommandError { at: 0, problem, lsn: self.lsn, work }
    }

    fn transaction<'a>(
        &'a self,
        now: Timestamp,
        command: &'a Command,
    ) -> Result<Transaction<'a>, PartitionError> {
        let epk = &command.position;
        let bucket = self.config.bucket_of(epk).ok_or(PartitionError::Gone)?;
        let (lsn, now) = (self.lsn.next(), self.time_of(now, command)?);
        Ok(Transaction {
            config: &self.config,
            writer: self.recording_writer(epk, (lsn, now))?,
            elsewhere: self.bytes_elsewhere(bucket.number),
            ordinals: self.ordinals.clone(),
            lsn,
            now,
            step: 0,
        })
    }

    pub(crate) fn write_set(&self) -> Result<WriteSet<'_>, PartitionError> {
        Ok(WriteSet::new(&self.overlay, self.store.view()?))
    }

    pub(crate) fn submit(&mut self, batch: WriteBatch) -> Ticket {
        let staged = self.overlay.stage(&batch);
        let ticket = self.session.submit(batch);
        self.overlay.submitted(staged, ticket.status());
        ticket
    }

    pub(crate) fn head(&self, bucket: BucketNumber) -> Head {
        self.heads.get(&bucket).copied().unwrap_or_default()
    }

    pub(crate) fn set_heads(&mut self, heads: Vec<(BucketNumber, Head)>) {
        self.heads.extend(heads);
    }

    /// The position after which the history of a bucket is complete.
    pub(crate) fn horizon(&self, bucket: BucketNumber) -> Option<Lsn> {
        self.horizons.get(&bucket).copied()
    }

    pub(crate) fn has_horizons(&self) -> bool {
        !self.horizons.is_empty()
    }

    pub(crate) fn set_horizon(&mut self, bucket: BucketNumber, horizon: Option<Lsn>) {
        match horizon {
            Some(lsn) => self.horizons.insert(bucket, lsn),
            None => self.horizons.remove(&bucket),
        };
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    pub(crate) fn set_now(&mut self, now: Timestamp) {
        self.now = now;
    }

    pub(crate) fn next_number(&self) -> u64 {
        self.ordinals.next()
    }

    /// Bytes of all buckets but one, if the partition has a limit; not needed otherwise.
    fn bytes_elsewhere(&self, bucket: BucketNumber) -> u64 {
        match self.config.growth {
            Growth::Fixed => self.size().bytes.saturating_sub(self.head(bucket).bytes),
            Growth::Unlimited => 0,
        }
    }

    /// All items and their bytes, durable or not.
    #[must_use]
    pub fn size(&self) -> Size {
        let heads = self.config.buckets.iter().map(|bucket| self.head(bucket.number));
        heads.fold(Size::default(), |size, head| Size {
            items: size.items + head.items,
            bytes: size.bytes + head.bytes,
        })
    }

    /// Ordinals that were allocated to it and not used.
    #[must_use]
    pub fn unused_ordinals(&self) -> Vec<Range<u64>> {
        self.ordinals.left()
    }

    /// Resolves when everything submitted so far is durable.
    pub fn barrier(&mut self) -> Ticket {
        if self.overlay.is_empty() {
            Ticket::resolved(CommitStatus::Durable)
        } else {
            self.submit(WriteBatch::new())
        }
    }
}

/// The size of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    pub items: u64,
    /// Of their texts.
    pub bytes: u64,
}

/// The texts that the operations of a command return. Each may be an item, so a short batch
/// could ask for a hundred times as much as an answer can have.
struct Gathered {
    bytes: usize,
    max: usize,
    /// What was read is returned in any case, and has to fit into an answer.
    read_bytes: usize,
    read_max: usize,
    purpose: Purpose,
}

impl Gathered {
    fn new(limits: &Limits, purpose: Purpose) -> Gathered {
        let read_max = usize::try_from(limits.response_bytes_max).unwrap_or(usize::MAX);
        Gathered { bytes: 0, max: limits.effects_bytes_max(), read_bytes: 0, read_max, purpose }
    }

    fn add(&mut self, effect: Effect) -> Result<Effect, PartitionError> {
        if self.purpose == Purpose::Script {
            // The script has seen it.
            return Ok(Effect { text: None, ..effect });
        }
        let bytes = effect.text.as_ref().map_or(0, Bytes::len);
        self.bytes += bytes;
        if effect.kind == EffectKind::Read {
            self.read_bytes += bytes;
        }
        if self.bytes > self.max {
            return Err(PartitionError::GivesTooMuch { max: self.max });
        }
        // A single item is an answer however large it is.
        if self.read_bytes > self.read_max.max(bytes) {
            return Err(PartitionError::GivesTooMuch { max: self.read_max });
        }
        Ok(effect)
    }
}

fn check_count(
    config: &PartitionConfig,
    command: &Command,
    purpose: Purpose,
) -> Result<(), PartitionError> {
    let max = match purpose {
        Purpose::Any | Purpose::Relief => config.limits.batch_operations_max,
        Purpose::Script => SCRIPT_OPERATIONS_MAX,
    };
    let count = command.operations.len();
    match count {
        0 => Err(PartitionError::Empty),
        _ if count > max => Err(PartitionError::TooMany { count, max }),
        _ => Ok(()),
    }
}

fn read_heads(
    config: &PartitionConfig,
    view: &dyn View,
) -> Result<BTreeMap<BucketNumber, Head>, PartitionError> {
    let read = |bucket: &Bucket| match view.get(&config.keys(bucket).head())? {
        Some(value) => Ok((bucket.number, Head::decode(&value)?)),
        None => Ok((bucket.number, Head::default())),
    };
    config.written_buckets().map(read).collect()
}

fn read_horizons(
    config: &PartitionConfig,
    view: &dyn View,
) -> Result<BTreeMap<BucketNumber, Lsn>, PartitionError> {
    let mut horizons = BTreeMap::new();
    for bucket in &config.buckets {
        if let Some(value) = view.get(&config.keys(bucket).horizon())? {
            horizons.insert(bucket.number, decode_horizon(&value)?);
        }
    }
    Ok(horizons)
}
