//! Lists of tables and tables: `docs/formats/tables.md`.

use std::collections::BTreeMap;
use std::path::Path;

use super::bytes::{Cursor, Damage, Result, check_128, damage, hash_64, part, require, size};

const LEVELS: u8 = 7;
const ARCHIVE_TRAILER_BYTES: usize = 38;
const BLOCK_HEADER_BYTES: usize = 33;
const BLOCK_TRAILER_BYTES: usize = 31;
/// Far above what a row can have: no length in a block is believed beyond it.
const BLOCK_BYTES_MAX: u32 = 64 << 20;

/// What a run knows of a key: its version, and the value unless it was deleted.
pub(crate) type Version = (u64, Option<Vec<u8>>);

/// A table with its rows.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) id: u64,
    pub(crate) level: usize,
    pub(crate) properties: Properties,
    pub(crate) rows: BTreeMap<Vec<u8>, Version>,
}

/// What a table says of itself.
#[derive(Debug)]
pub(crate) struct Properties {
    pub(crate) compressed: bool,
    pub(crate) index_blocks: u64,
    pub(crate) data_blocks: u64,
    pub(crate) tombstones: u64,
    all: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// All runs of a tree, in the order in which a key is looked for.
pub(crate) fn read(tree: &Path) -> Result<Vec<Vec<Table>>> {
    let list = current_list(tree)?;
    let sections = sections("the list of tables", &list)?;
    let section = |name| find(&sections, name);
    for (name, content) in [
        ("format_version", &[3][..]),
        ("tree_type", &[0]),
        ("level_count", &[LEVELS]),
        ("filter_hash_type", &[0]),
        ("blob_files", &[0; 4]),
        ("blob_gc_stats", &[0; 4]),
    ] {
        let found = section(name)?;
        require(found == content, || format!("section {name} of the list is {found:?}"))?;
    }
    let mut cursor = Cursor::new("the list of tables", section("tables")?);
    cursor.expect(&[LEVELS])?;
    let mut runs = Vec::new();
    for level in 0..LEVELS {
        for _run in 0..cursor.u8()? {
            let tables = 0..cursor.u32()?;
            let tables = tables.map(|_table| listed_table(tree, level.into(), &mut cursor));
            runs.push(tables.collect::<Result<Vec<Table>>>()?);
        }
    }
    cursor.end()?;
    runs.iter().try_for_each(|run| check_run(run))?;
    Ok(runs)
}

fn current_list(tree: &Path) -> Result<Vec<u8>> {
    let current = read_file(&tree.join("current"))?;
    let mut cursor = Cursor::new("current", &current);
    let (number, checksum) = (cursor.u64()?, cursor.u128()?);
    cursor.expect(&[0])?;
    cursor.end()?;
    let list = read_file(&tree.join(format!("v{number}")))?;
    check_128(&list, checksum, "the list of tables")?;
    Ok(list)
}

pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| Damage(format!("{}: {error}", path.display())))
}

fn listed_table(tree: &Path, level: usize, cursor: &mut Cursor<'_>) -> Result<Table> {
    let id = cursor.u64()?;
    cursor.expect(&[0])?;
    let checksum = cursor.u128()?;
    cursor.expect(&[0; 8])?;
    let file = read_file(&tree.join("tables").join(id.to_string()))?;
    check_128(&file, checksum, &format!("table {id}"))?;
    read_table(id, level, &file)
}

/// The keys of the tables of a run do not overlap, and are in order.
fn check_run(run: &[Table]) -> Result<()> {
    let bounds = run.iter().map(|table| (table.rows.keys().next(), table.rows.keys().next_back()));
    let is_ordered = bounds.clone().zip(bounds.skip(1)).all(|((_, last), (first, _))| last < first);
    require(is_ordered, || "the tables of a run overlap".to_owned())
}

/// The sections of an archive, in the order of the file.
fn sections<'a>(what: &str, archive: &'a [u8]) -> Result<Vec<(&'a str, &'a [u8])>> {
    let at = archive.len().checked_sub(ARCHIVE_TRAILER_BYTES);
    let (body, trailer) = at
        .and_then(|at| archive.split_at_checked(at))
        .ok_or_else(|| Damage(format!("{what} ends early")))?;
    let mut trailer = Cursor::new(what, trailer);
    trailer.expect(b"SFA!\x01\x00")?;
    let (checksum, at, len) = (trailer.u128()?, trailer.u64()?, trailer.u64()?);
    let contents = part(what, body, at, len)?;
    check_128(contents, checksum, &format!("the table of contents of {what}"))?;
    let mut contents = Cursor::new("a table of contents", contents);
    contents.expect(b"TOC!")?;
    let (mut sections, mut end) = (Vec::new(), 0);
    for _section in 0..contents.u32()? {
        let (start, len, name_len) = (contents.u64()?, contents.u64()?, contents.u16()?);
        let name = std::str::from_utf8(contents.take(name_len.into())?);
        let name = name.map_err(|_| Damage(format!("a section of {what} has no name")))?;
        require(start == end && len > 0, || format!("section {name} of {what} begins at {start}"))?;
        end = start + len;
        sections.push((name, part(name, body, start, len)?));
    }
    contents.end()?;
    require(end == at && size(at + len)? == body.len(), || format!("{what} has a gap"))?;
    Ok(sections)
}

fn find<'a>(sections: &[(&str, &'a [u8])], name: &str) -> Result<&'a [u8]> {
    let found = sections.iter().find(|(own, _)| *own == name);
    found.map(|(_, bytes)| *bytes).ok_or_else(|| Damage(format!("there is no section {name}")))
}

fn has(sections: &[(&str, &[u8])], name: &str) -> bool {
    sections.iter().any(|(own, _)| *own == name)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockType {
    Data = 0,
    Index = 1,
    Filter = 2,
    Properties = 3,
}

/// Takes one block off the front.
fn block(cursor: &mut Cursor<'_>, kind: BlockType, compressed: bool) -> Result<Vec<u8>> {
    let header = cursor.take(BLOCK_HEADER_BYTES)?;
    let (checked, _) = header.split_at(BLOCK_HEADER_BYTES - 4);
    let mut fields = Cursor::new("the header of a block", header);
    fields.expect(b"LSM\x03")?;
    fields.expect(&[kind as u8])?;
    let (checksum, stored, plain) = (fields.u128()?, fields.u32()?, fields.u32()?);
    let expected = xxhash_rust::xxh3::xxh3_128(checked).to_le_bytes();
    fields.expect(expected.first_chunk::<4>().unwrap_or(&[0; 4]))?;
    let bytes = cursor.take(size(stored)?)?;
    check_128(bytes, checksum, "a block")?;
    require(plain <= BLOCK_BYTES_MAX, || format!("a block of {plain} bytes"))?;
    let plain = size(plain)?;
    let bytes = match compressed {
        true => lz4_flex::block::decompress(bytes, plain)
            .map_err(|error| Damage(format!("a block cannot be decompressed: {error}")))?,
        false => bytes.to_vec(),
    };
    require(bytes.len() == plain, || format!("{} instead of {plain} bytes", bytes.len()))?;
    Ok(bytes)
}

/// The block that a handle leads to.
fn block_at(file: &[u8], handle: &Handle, kind: BlockType, compressed: bool) -> Result<Vec<u8>> {
    let mut cursor = Cursor::new("a block", part("a block", file, handle.at, handle.len)?);
    let block = block(&mut cursor, kind, compressed)?;
    cursor.end()?;
    Ok(block)
}

/// Where a block is, and what the last row in it is.
struct Handle {
    at: u64,
    len: u64,
    sequence: u64,
    key: Vec<u8>,
}

struct Row {
    key: Vec<u8>,
    sequence: u64,
    value: Option<Vec<u8>>,
}

/// What follows the entries of a block.
struct Entries<'a> {
    bytes: &'a [u8],
    interval: u8,
    positions: Vec<usize>,
    count: usize,
}

impl<'a> Entries<'a> {
    fn of(block: &'a [u8]) -> Result<Entries<'a>> {
        let at = block.len().checked_sub(BLOCK_TRAILER_BYTES);
        let (body, trailer) = at
            .and_then(|at| block.split_at_checked(at))
            .ok_or_else(|| Damage("a block ends early".to_owned()))?;
        let mut trailer = Cursor::new("the trailer of a block", trailer);
        let (interval, width) = (trailer.u8()?, trailer.u8()?);
        let (groups, at) = (trailer.u32()?, size(trailer.u32()?)?);
        trailer.expect(&[0; 8])?;
        trailer.expect(&[1, 0, 0, 0, 0, 0, 0, 0, 0])?;
        let count = size(trailer.u32()?)?;
        let (entries, positions) =
            body.split_at_checked(at).ok_or_else(|| Damage("positions outside".to_owned()))?;
        let [bytes @ .., 0xFF] = entries else { return damage("entries without an end") };
        let mut cursor = Cursor::new("positions", positions);
        let position = |_| match width {
            2 => cursor.u16().map(usize::from),
            4 => size(cursor.u32()?),
            _ => damage(format!("positions of {width} bytes")),
        };
        let positions = (0..groups).map(position).collect::<Result<Vec<usize>>>()?;
        cursor.end()?;
        Ok(Entries { bytes, interval, positions, count })
    }

    /// Reads all entries. `read` gets the first key of the group, unless the entry is that.
    fn read<T>(
        &self,
        read: impl Fn(&mut Cursor<'a>, Option<&[u8]>) -> Result<T>,
        key: impl Fn(&T) -> &[u8],
    ) -> Result<Vec<T>> {
        let (mut cursor, mut found) = (Cursor::new("entries", self.bytes), Vec::<T>::new());
        let (mut starts, mut first) = (Vec::new(), Vec::new());
        while !cursor.is_empty() {
            let is_first = found.len().is_multiple_of(usize::from(self.interval));
            if is_first {
                starts.push(self.bytes.len() - cursor.rest().len());
            }
            let entry = read(&mut cursor, (!is_first).then_some(&first))?;
            if is_first {
                first = key(&entry).to_vec();
            }
            found.push(entry);
        }
        require(starts == self.positions, || "positions do not match".to_owned())?;
        require(found.len() == self.count, || "the number of entries is wrong".to_owned())?;
        Ok(found)
    }
}

fn rows(block: &[u8], interval: u8) -> Result<Vec<Row>> {
    let entries = Entries::of(block)?;
    require(entries.interval == interval, || format!("an interval of {}", entries.interval))?;
    entries.read(row, |row| &row.key)
}

fn row(cursor: &mut Cursor<'_>, first: Option<&[u8]>) -> Result<Row> {
    let (kind, sequence) = (cursor.u8()?, cursor.varint()?);
    let shared = first.map_or(Ok(0), |_| size(cursor.varint()?))?;
    let shared = first.unwrap_or_default().get(..shared);
    let mut key = shared.ok_or_else(|| Damage("too much is shared".to_owned()))?.to_vec();
    key.extend_from_slice(cursor.counted()?);
    let value = match kind {
        0 => Some(cursor.counted()?.to_vec()),
        1 => None,
        other => return damage(format!("a row of type {other}")),
    };
    Ok(Row { key, sequence, value })
}

fn handles(block: &[u8]) -> Result<Vec<Handle>> {
    let entries = Entries::of(block)?;
    require(entries.interval == 1, || "an index block with shortened keys".to_owned())?;
    entries.read(handle, |handle| &handle.key)
}

fn handle(cursor: &mut Cursor<'_>, _first: Option<&[u8]>) -> Result<Handle> {
    cursor.expect(&[0])?;
    let (at, len, sequence) = (cursor.varint()?, cursor.varint()?, cursor.varint()?);
    Ok(Handle { at, len, sequence, key: cursor.counted()?.to_vec() })
}

impl Properties {
    fn read(section: &[u8]) -> Result<Properties> {
        let mut cursor = Cursor::new("properties", section);
        let block = block(&mut cursor, BlockType::Properties, false)?;
        cursor.end()?;
        let rows = rows(&block, 1)?.into_iter();
        let all: BTreeMap<Vec<u8>, Vec<u8>> =
            rows.map(|row| (row.key, row.value.unwrap_or_default())).collect();
        let mut properties =
            Properties { compressed: false, index_blocks: 0, data_blocks: 0, tombstones: 0, all };
        for (name, value) in [
            ("checksum_type", &[0][..]),
            ("filter_hash_type", &[0]),
            ("compression#index", &[0]),
            ("data_block_hash_ratio", &[0; 4]),
            ("index_keys_have_seqno", &[1]),
            ("prefix_truncation#data", &[1]),
            ("prefix_truncation#index", &[1]),
            ("restart_interval#index", &[1]),
            ("table_version", &[3]),
            ("weak_tombstone_count", &[0; 8]),
            ("weak_tombstone_reclaimable", &[0; 8]),
        ] {
            let found = properties.bytes(name)?;
            require(found == value, || format!("property {name} is {found:?}"))?;
        }
        properties.compressed = match properties.byte("compression#data")? {
            0 => false,
            1 => true,
            other => return damage(format!("compression {other}")),
        };
        properties.index_blocks = properties.number("block_count#index")?;
        properties.data_blocks = properties.number("block_count#data")?;
        properties.tombstones = properties.number("tombstone_count")?;
        Ok(properties)
    }

    fn bytes(&self, name: &str) -> Result<&[u8]> {
        let found = self.all.get(name.as_bytes());
        found.map(Vec::as_slice).ok_or_else(|| Damage(format!("there is no property {name}")))
    }

    fn byte(&self, name: &str) -> Result<u8> {
        Cursor::new(name, self.bytes(name)?).u8()
    }

    fn number(&self, name: &str) -> Result<u64> {
        let mut cursor = Cursor::new(name, self.bytes(name)?);
        let number = cursor.u64()?;
        cursor.end()?;
        Ok(number)
    }
}

/// Reads one table, whose file may have been changed since its checksum was made.
pub(crate) fn read_table(id: u64, level: usize, file: &[u8]) -> Result<Table> {
    let sections = sections(&format!("table {id}"), file)?;
    require(find(&sections, "table_version")? == [3], || format!("the version of table {id}"))?;
    let properties = Properties::read(find(&sections, "meta")?)?;
    let handles = data_handles(file, &sections)?;
    let interval = properties.byte("restart_interval#data")?;
    let mut reader = DataReader { file, interval, compressed: properties.compressed, plain: 0 };
    let mut all = Vec::new();
    for handle in &handles {
        all.extend(reader.rows(handle)?);
    }
    let is_ordered = all.iter().zip(all.iter().skip(1)).all(|(one, next)| one.key < next.key);
    require(is_ordered, || format!("the keys of table {id} are not in order"))?;
    check_properties(id, &properties, &handles, &all, reader.plain)?;
    check_filters(file, &sections, &properties, &all)?;
    let rows = all.into_iter().map(|row| (row.key, (row.sequence, row.value))).collect();
    Ok(Table { id, level, properties, rows })
}

/// The handles of all data blocks, which follow each other and fill their section.
fn data_handles(file: &[u8], sections: &[(&str, &[u8])]) -> Result<Vec<Handle>> {
    let mut top = Cursor::new("tli", find(sections, "tli")?);
    let mut found = handles(&block(&mut top, BlockType::Index, false)?)?;
    top.end()?;
    if has(sections, "index") {
        let below = found.iter().map(|handle| {
            let below = handles(&block_at(file, handle, BlockType::Index, false)?)?;
            let last = below.last().map(|last| (&last.key, last.sequence));
            let same = last == Some((&handle.key, handle.sequence));
            require(same, || "a handle does not match its index block".to_owned())?;
            Ok(below)
        });
        found = below.collect::<Result<Vec<Vec<Handle>>>>()?.into_iter().flatten().collect();
    }
    let end = found.iter().try_fold(0, |end, handle| {
        require(handle.at == end, || format!("a data block at {}", handle.at))?;
        Ok(end + handle.len)
    })?;
    require(size(end)? == find(sections, "data")?.len(), || "data without handles".to_owned())?;
    Ok(found)
}

struct DataReader<'a> {
    file: &'a [u8],
    interval: u8,
    compressed: bool,
    /// Bytes before compression so far.
    plain: usize,
}

impl DataReader<'_> {
    fn rows(&mut self, handle: &Handle) -> Result<Vec<Row>> {
        let block = block_at(self.file, handle, BlockType::Data, self.compressed)?;
        self.plain += block.len();
        let rows = rows(&block, self.interval)?;
        let last = rows.last().map(|row| (&row.key, row.sequence));
        let same = last == Some((&handle.key, handle.sequence));
        require(same, || "a handle does not match its data block".to_owned())?;
        Ok(rows)
    }
}

fn check_properties(
    id: u64,
    properties: &Properties,
    handles: &[Handle],
    rows: &[Row],
    plain: usize,
) -> Result<()> {
    let sequences = || rows.iter().map(|row| row.sequence);
    let data: u64 = handles.iter().map(|handle| handle.len).sum();
    for (name, number) in [
        ("table_id", id),
        ("block_count#data", handles.len() as u64),
        ("item_count", rows.len() as u64),
        ("key_count", rows.len() as u64),
        ("tombstone_count", rows.iter().filter(|row| row.value.is_none()).count() as u64),
        ("seqno#min", sequences().min().unwrap_or(0)),
        ("seqno#max", sequences().max().unwrap_or(0)),
        ("file_size", data),
        ("user_data_size", plain as u64),
    ] {
        let found = properties.number(name)?;
        require(found == number, || format!("property {name} is {found}, not {number}"))?;
    }
    for (name, row) in [("key#min", rows.first()), ("key#max", rows.last())] {
        let found = properties.bytes(name)?;
        let key = row.map_or(&[][..], |row| &row.key);
        require(found == key, || format!("property {name} is not the row's"))?;
    }
    require(properties.bytes("created_at")?.len() == 16, || "created_at".to_owned())
}

struct Filter {
    bits: Vec<u8>,
    count: u64,
    per_key: u64,
}

impl Filter {
    fn read(block: &[u8]) -> Result<Filter> {
        let mut cursor = Cursor::new("a filter", block);
        cursor.expect(b"LSM\x03\x00\x00")?;
        let (count, per_key) = (cursor.u64()?, cursor.u64()?);
        let bits = cursor.rest().to_vec();
        require(count > 0 && bits.len() as u64 * 8 == count, || "the bits of a filter".to_owned())?;
        Ok(Filter { bits, count, per_key })
    }

    fn may_have(&self, key: &[u8]) -> Result<bool> {
        let mut hash = hash_64(key, 0);
        let mut step = (hash >> 32).wrapping_mul(0x517C_C1B7_2722_0A95);
        for number in 1..=self.per_key {
            let bit = size(hash % self.count)?;
            let byte = self.bits.get(bit / 8).copied().unwrap_or(0);
            if byte & (0x80 >> (bit % 8)) == 0 {
                return Ok(false);
            }
            hash = hash.wrapping_add(step);
            step = step.wrapping_mul(number);
        }
        Ok(true)
    }
}

/// A filter must not deny a row that its table has.
fn check_filters(
    file: &[u8],
    sections: &[(&str, &[u8])],
    properties: &Properties,
    rows: &[Row],
) -> Result<()> {
    let mut filters = Vec::new();
    if has(sections, "filter_tli") {
        let mut top = Cursor::new("filter_tli", find(sections, "filter_tli")?);
        for handle in handles(&block(&mut top, BlockType::Index, false)?)? {
            let filter = Filter::read(&block_at(file, &handle, BlockType::Filter, false)?)?;
            filters.push((Some(handle.key), filter));
        }
        top.end()?;
    } else {
        let mut cursor = Cursor::new("filter", find(sections, "filter")?);
        filters.push((None, Filter::read(&block(&mut cursor, BlockType::Filter, false)?)?));
        cursor.end()?;
    }
    let counted = properties.number("block_count#filter")?;
    require(counted == filters.len() as u64, || format!("{counted} filters"))?;
    let mut filters = filters.iter().peekable();
    for row in rows {
        let is_before = |(last, _): &&(Option<Vec<u8>>, Filter)| {
            last.as_ref().is_some_and(|last| *last < row.key)
        };
        while filters.next_if(|filter| is_before(filter)).is_some() {}
        let (_, filter) = filters.peek().ok_or_else(|| Damage("no filter".to_owned()))?;
        require(filter.may_have(&row.key)?, || "a filter denies a row".to_owned())?;
    }
    Ok(())
}
