//! Damaging copies of data folders, one harm at a time.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use runtime::Random;

/// One harm done to one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    Delete,
    Truncate { len: u64 },
    FlipBit { at: u64, bit: u8 },
    Zero { at: u64, len: u64 },
}

impl Harm {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Harm::Delete => "delete",
            Harm::Truncate { .. } => "truncate",
            Harm::FlipBit { .. } => "flip a bit",
            Harm::Zero { .. } => "zero a range",
        }
    }

    /// Draws a harm for a file of which `used` bytes are in use.
    pub fn draw(random: &dyn Random, used: u64) -> Harm {
        let below = |limit: u64| random.next_u64() % limit.max(1);
        let at = below(used);
        let reach = used.saturating_sub(at).max(1);
        // Mostly small ranges, at times the rest of the file.
        let len = if below(8) == 0 { reach } else { 1 + below(reach.min(2_000)) };
        match below(8) {
            0 => Harm::Delete,
            1 | 2 => Harm::Truncate { len: at },
            3..=5 => Harm::FlipBit { at, bit: u8::try_from(below(8)).unwrap_or_default() },
            _ => Harm::Zero { at, len },
        }
    }

    pub fn inflict(self, path: &Path) -> io::Result<()> {
        let (at, bytes) = match self {
            Harm::Delete => return fs::remove_file(path),
            Harm::Truncate { len } => {
                return OpenOptions::new().write(true).open(path)?.set_len(len);
            }
            Harm::FlipBit { at, bit } => {
                let byte = read_at(path, at, 1)?.first().copied().unwrap_or_default();
                (at, vec![byte ^ (1 << bit)])
            }
            Harm::Zero { at, len } => (at, vec![0; usize::try_from(len).unwrap_or_default()]),
        };
        let mut file = OpenOptions::new().write(true).open(path)?;
        file.seek(SeekFrom::Start(at))?;
        file.write_all(&bytes)
    }
}

/// The files of a folder and all folders in it, in order, relative to it.
pub fn list_files(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    collect(root, Path::new(""), &mut files)?;
    files.sort();
    Ok(files)
}

fn collect(root: &Path, below: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            collect(root, &path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Copies a folder with its empty folders, leaving the zeros at the end of
/// preallocated files as holes.
pub fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy_folder(&source, &target)?;
            continue;
        }
        let mut copy = File::create(&target)?;
        copy.write_all(&read_at(&source, 0, used_len(&source)?)?)?;
        copy.set_len(fs::metadata(&source)?.len())?;
    }
    Ok(())
}

/// The length of a file without zeros at its end.
pub fn used_len(path: &Path) -> io::Result<u64> {
    const PIECE: u64 = 64 << 10;
    let mut end = fs::metadata(path)?.len();
    while end > 0 {
        let start = end.saturating_sub(PIECE);
        let piece = read_at(path, start, end - start)?;
        if let Some(last) = piece.iter().rposition(|byte| *byte != 0) {
            return Ok(start + last as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

fn read_at(path: &Path, at: u64, len: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    file.take(len).read_to_end(&mut bytes)?;
    Ok(bytes)
}
