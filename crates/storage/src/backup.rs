//! Backups: the rows of one view in a file, and back.
//!
//! A view is one moment over all partitions, so its rows are a consistent state. They are
//! read and written in chunks while the store goes on serving; nothing is locked. Nothing
//! of the engine is in a backup, so a backup of any backend can be restored into any other.
//!
//! A backup is a folder with one file (`docs/formats/backup.md`) that gets its name only
//! when it is complete and synced: an interrupted one is never taken for a backup.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use bytes::Bytes;
use xxhash_rust::xxh3::Xxh3Default;

use crate::error::VersionMismatch;
use crate::local::{decode::Reader, files};
use crate::{
    CommitStatus, ContentsVersion, Direction, KEY_BYTES_MAX, KeyRange, RESERVED_PREFIX, ScanLimit,
    StorageError, Store, Ticket, VALUE_BYTES_MAX, WriteBatch,
};

/// The one file of a backup.
const FILE: &str = "rows";
/// Its name while it is being written.
const UNFINISHED: &str = "rows.unfinished";

const MAGIC: &[u8; 8] = b"ORRERYBK";
const VERSION: u32 = 2;

/// The version before, which did not name its contents; there was one version of them.
const VERSION_BEFORE: u32 = 1;
const CONTENTS_BEFORE: ContentsVersion = ContentsVersion(1);

const CHUNK: u8 = 1;
const END: u8 = 2;

/// Rows and bytes of a chunk: some milliseconds of reading, so that a request to stop is
/// noticed soon, and few enough chunks that their checksums cost nothing.
const CHUNK_LIMIT: ScanLimit = ScanLimit { rows: 4_096, bytes: 1 << 20 };

/// Bytes that a chunk may have at most when it is read: a full one and the largest row.
const CHUNK_BYTES_MAX: usize =
    CHUNK_LIMIT.bytes + KEY_BYTES_MAX + VALUE_BYTES_MAX + (CHUNK_LIMIT.rows + 1) * ROW_HEADER_BYTES;
const ROW_HEADER_BYTES: usize = 2 + 4;

/// Chunks that may wait for the disk while a backup is loaded.
const PENDING_MAX: usize = 8;

/// How far a backup or its loading is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    pub rows: u64,
    /// Bytes of all keys and values.
    pub bytes: u64,
}

/// Writes what `store` holds at this moment into a new folder, with the version of its
/// contents. `go_on` receives the
/// progress after each chunk; if it returns false, or anything fails, nothing is left of
/// the folder.
///
/// While it runs, the store keeps what is deleted or replaced. Never to be called on an
/// async worker.
///
/// # Errors
/// [`StorageError::AlreadyExists`] when the folder exists, [`StorageError::Stopped`] when
/// `go_on` returned false, [`StorageError::Io`] when the disk is full, and whatever reading
/// returns.
pub fn write(
    (store, contents): (&dyn Store, ContentsVersion),
    folder: &Path,
    mut go_on: impl FnMut(Progress) -> bool,
) -> Result<Progress, StorageError> {
    create_folder(folder)?;
    let written = write_into((store, contents), folder, &mut go_on);
    if written.is_err() {
        // The first error is the one that counts.
        let _left = fs::remove_dir_all(folder);
    }
    written
}

fn write_into(
    (store, contents): (&dyn Store, ContentsVersion),
    folder: &Path,
    go_on: &mut dyn FnMut(Progress) -> bool,
) -> Result<Progress, StorageError> {
    let (unfinished, finished) = (folder.join(UNFINISHED), folder.join(FILE));
    let during = |source| files::during("write", &finished, source);
    let file = File::create_new(&unfinished).map_err(during)?;
    let mut writer = Writer::new(file);
    writer.begin(contents).map_err(during)?;
    let view = store.view()?;
    let mut rest = Some(KeyRange::all());
    while let Some(range) = rest {
        let chunk = view.scan(&range, Direction::Forward, CHUNK_LIMIT)?;
        writer.chunk(&chunk.rows).map_err(during)?;
        if !go_on(writer.progress) {
            return Err(StorageError::Stopped);
        }
        rest = chunk.rest;
    }
    drop(view);
    let progress = writer.progress;
    let file = writer.end().map_err(during)?;
    file.sync_all().and_then(|()| fs::rename(&unfinished, &finished)).map_err(during)?;
    files::sync_folder(folder)?;
    folder.parent().filter(|parent| parent.is_dir()).map_or(Ok(()), files::sync_folder)?;
    Ok(progress)
}

/// Loads the rows of a backup into an empty store. Every checksum is verified before its
/// chunk is written, and the totals at the end: **after an error the store must not be
/// used.** Returns when everything is durable.
///
/// # Errors
/// [`StorageError::Backup`] when the backup is incomplete or damaged or has other contents,
/// and whatever writing returns.
pub fn load(
    folder: &Path,
    (store, contents): (&dyn Store, ContentsVersion),
    mut progress: impl FnMut(Progress),
) -> Result<Progress, StorageError> {
    let mut source = open(folder, contents)?;
    let (mut session, mut pending) = (store.write_session(), std::collections::VecDeque::new());
    while let Some(rows) = source.next_chunk()? {
        let mut batch = WriteBatch::new();
        rows.into_iter().for_each(|(key, value)| batch.put(key, value));
        pending.push_back(session.submit(batch));
        if pending.len() == PENDING_MAX {
            settle(store, pending.pop_front())?;
        }
        progress(source.progress);
    }
    while !pending.is_empty() {
        settle(store, pending.pop_front())?;
    }
    Ok(source.progress)
}

/// Whether the folder is a backup with these contents, judging by the head of its file.
///
/// # Errors
/// [`StorageError::NotFound`] or [`StorageError::Backup`] when it is none.
pub fn probe(folder: &Path, contents: ContentsVersion) -> Result<(), StorageError> {
    open(folder, contents).map(drop)
}

fn open(folder: &Path, contents: ContentsVersion) -> Result<Source<'_>, StorageError> {
    let path = folder.join(FILE);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(_) if folder.join(UNFINISHED).exists() => {
            return Err(unusable(folder, "it was never finished"));
        }
        Err(source) if source.kind() == io::ErrorKind::NotFound => {
            return Err(unusable(folder, &format!("there is no file {FILE} in it")));
        }
        Err(source) => return Err(files::during("open", &path, source)),
    };
    let mut source = Source::new(folder, file);
    let found = source.begin()?;
    if found == contents {
        return Ok(source);
    }
    let remedy = match found < contents {
        true => "restore it with the version that wrote it, then upgrade the data folder",
        false => "use the version that wrote it, or a newer one",
    };
    let mismatch = VersionMismatch::new("contents version", found, contents);
    Err(source.unusable(&format!("it has {mismatch}: {remedy}")))
}

fn settle(store: &dyn Store, ticket: Option<Ticket>) -> Result<(), StorageError> {
    match ticket.map(Ticket::wait) {
        None | Some(CommitStatus::Durable) => Ok(()),
        Some(
            CommitStatus::Refused
            | CommitStatus::Full
            | CommitStatus::Fenced
            | CommitStatus::Unknown,
        ) => {
            store.health()?;
            Err(StorageError::Failed { detail: "rows of the backup were not written".to_owned() })
        }
    }
}

fn unusable(folder: &Path, detail: &str) -> StorageError {
    StorageError::Backup { path: folder.to_owned(), detail: detail.into() }
}

/// All data of all users, so readable by the owner alone.
fn create_folder(folder: &Path) -> Result<(), StorageError> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|source| {
        if source.kind() == io::ErrorKind::AlreadyExists {
            return StorageError::AlreadyExists { path: folder.to_owned() };
        }
        files::during("create", folder, source)
    })
}

/// Writes the file.
struct Writer {
    to: BufWriter<File>,
    digest: Xxh3Default,
    chunks: u64,
    progress: Progress,
}

impl Writer {
    fn new(file: File) -> Writer {
        let to = BufWriter::with_capacity(CHUNK_LIMIT.bytes, file);
        Writer { to, digest: Xxh3Default::new(), chunks: 0, progress: Progress::default() }
    }

    fn begin(&mut self, contents: ContentsVersion) -> io::Result<()> {
        let mut head = MAGIC.to_vec();
        head.extend_from_slice(&VERSION.to_le_bytes());
        head.extend_from_slice(&contents.0.to_le_bytes());
        self.sealed(head)
    }

    fn chunk(&mut self, rows: &[(Bytes, Bytes)]) -> io::Result<()> {
        let mut payload = Vec::with_capacity(CHUNK_LIMIT.bytes);
        for (key, value) in rows {
            let key_len = u16::try_from(key.len()).map_err(io::Error::other)?;
            let value_len = u32::try_from(value.len()).map_err(io::Error::other)?;
            payload.extend_from_slice(&key_len.to_le_bytes());
            payload.extend_from_slice(&value_len.to_le_bytes());
            payload.extend_from_slice(key);
            payload.extend_from_slice(value);
            self.progress.rows += 1;
            self.progress.bytes += (key.len() + value.len()) as u64;
        }
        if payload.is_empty() {
            return Ok(());
        }
        self.digest.update(&payload);
        self.chunks += 1;
        let len = u32::try_from(payload.len()).map_err(io::Error::other)?;
        let mut record = vec![CHUNK];
        record.extend_from_slice(&len.to_le_bytes());
        record.extend_from_slice(&payload);
        self.sealed(record)
    }

    /// Returns the file when everything is in it.
    fn end(mut self) -> io::Result<File> {
        let mut record = vec![END];
        for number in [self.chunks, self.progress.rows, self.progress.bytes] {
            record.extend_from_slice(&number.to_le_bytes());
        }
        record.extend_from_slice(&self.digest.digest128().to_le_bytes());
        self.sealed(record)?;
        self.to.into_inner().map_err(io::IntoInnerError::into_error)
    }

    fn sealed(&mut self, mut record: Vec<u8>) -> io::Result<()> {
        record.extend_from_slice(&crc32fast::hash(&record).to_le_bytes());
        self.to.write_all(&record)
    }
}

/// Reads the file and trusts nothing in it.
struct Source<'f> {
    folder: &'f Path,
    from: BufReader<File>,
    digest: Xxh3Default,
    chunks: u64,
    progress: Progress,
    last: Bytes,
}

impl<'f> Source<'f> {
    fn new(folder: &'f Path, file: File) -> Source<'f> {
        let from = BufReader::with_capacity(CHUNK_LIMIT.bytes, file);
        let (digest, progress) = (Xxh3Default::new(), Progress::default());
        Source { folder, from, digest, chunks: 0, progress, last: Bytes::new() }
    }

    fn begin(&mut self) -> Result<ContentsVersion, StorageError> {
        let mut start = [0; 12];
        self.read(&mut start)?;
        let mut reader = Reader::new(&start);
        reader.expect(MAGIC).ok_or_else(|| self.unusable("it is none of Orrery"))?;
        match reader.u32().unwrap_or_default() {
            VERSION_BEFORE => self.check(&start).map(|()| CONTENTS_BEFORE),
            VERSION => {
                let mut contents = [0; 4];
                self.read(&mut contents)?;
                self.check(&[start.as_slice(), &contents].concat())?;
                Ok(ContentsVersion(u32::from_le_bytes(contents)))
            }
            found => {
                let mismatch = VersionMismatch::new("format", found, VERSION);
                Err(self.unusable(&format!("it has {mismatch}")))
            }
        }
    }

    /// `None` after the last chunk, once the totals agree.
    fn next_chunk(&mut self) -> Result<Option<Vec<(Bytes, Bytes)>>, StorageError> {
        let mut tag = [0];
        self.read(&mut tag)?;
        match tag {
            [CHUNK] => self.chunk().map(Some),
            [END] => self.end().map(|()| None),
            [_] => Err(self.unusable("it is damaged")),
        }
    }

    fn chunk(&mut self) -> Result<Vec<(Bytes, Bytes)>, StorageError> {
        let mut len = [0; 4];
        self.read(&mut len)?;
        let bytes = usize::try_from(u32::from_le_bytes(len)).unwrap_or(usize::MAX);
        if bytes > CHUNK_BYTES_MAX {
            return Err(self.unusable("it is damaged"));
        }
        let mut record = vec![0; 1 + len.len() + bytes];
        let head = [[CHUNK].as_slice(), &len].concat();
        let (start, payload) = record.split_at_mut(head.len());
        start.copy_from_slice(&head);
        self.read(payload)?;
        self.check(&record)?;
        let payload = Bytes::from(record).slice(head.len()..);
        self.digest.update(&payload);
        self.chunks += 1;
        self.rows(&payload)
    }

    fn rows(&mut self, payload: &Bytes) -> Result<Vec<(Bytes, Bytes)>, StorageError> {
        let (mut reader, mut rows) = (Reader::new(payload), Vec::new());
        while reader.remaining() > 0 {
            let row = take_row(&mut reader, payload);
            let (key, value) = row.ok_or_else(|| self.unusable("it is damaged"))?;
            let first = self.progress.rows == 0;
            if (key <= self.last && !first) || key.first() == Some(&RESERVED_PREFIX) {
                return Err(self.unusable("its rows are out of order"));
            }
            self.progress.rows += 1;
            self.progress.bytes += (key.len() + value.len()) as u64;
            self.last = key.clone();
            rows.push((key, value));
        }
        Ok(rows)
    }

    fn end(&mut self) -> Result<(), StorageError> {
        let mut body = [0; 3 * 8 + 16];
        self.read(&mut body)?;
        self.check(&[[END].as_slice(), &body].concat())?;
        let mut expected = Vec::new();
        for number in [self.chunks, self.progress.rows, self.progress.bytes] {
            expected.extend_from_slice(&number.to_le_bytes());
        }
        expected.extend_from_slice(&self.digest.digest128().to_le_bytes());
        if expected != body {
            return Err(self.unusable("its totals are not those of its rows"));
        }
        let mut more = [0];
        match self.from.read(&mut more) {
            Ok(0) => Ok(()),
            Ok(_) => Err(self.unusable("it goes on after its end")),
            Err(source) => Err(files::during("read", self.folder, source)),
        }
    }

    fn check(&mut self, record: &[u8]) -> Result<(), StorageError> {
        let mut crc = [0; 4];
        self.read(&mut crc)?;
        if crc32fast::hash(record) == u32::from_le_bytes(crc) {
            return Ok(());
        }
        Err(self.unusable(&format!("a checksum after row {} is wrong", self.progress.rows)))
    }

    fn read(&mut self, into: &mut [u8]) -> Result<(), StorageError> {
        self.from.read_exact(into).map_err(|source| {
            if source.kind() == io::ErrorKind::UnexpectedEof {
                return self.unusable("it ends too early");
            }
            files::during("read", self.folder, source)
        })
    }

    fn unusable(&self, detail: &str) -> StorageError {
        unusable(self.folder, detail)
    }
}

fn take_row(reader: &mut Reader<'_>, payload: &Bytes) -> Option<(Bytes, Bytes)> {
    let key_len = usize::from(reader.u16()?);
    let value_len = usize::try_from(reader.u32()?).ok().filter(|len| *len <= VALUE_BYTES_MAX)?;
    let (key, value) = (reader.take(key_len)?, reader.take(value_len)?);
    Some((payload.slice_ref(key), payload.slice_ref(value)))
}
