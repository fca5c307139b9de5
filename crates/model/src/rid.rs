//! Resource ids (`_rid`), one type per kind of resource.
//!
//! Clients parse them, so the bytes are a contract: `docs/formats/rid.md`. The types carry
//! what the bytes say; a container's id knows its database.

use std::fmt;

use base64::Engine;
use base64::alphabet::Alphabet;
use base64::engine::{GeneralPurpose, general_purpose};

use crate::position::Ordinal;

/// Standard base64, but without a slash: ids are used in paths.
const BASE64: GeneralPurpose = {
    let symbols = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";
    match Alphabet::new(symbols) {
        Ok(alphabet) => GeneralPurpose::new(&alphabet, general_purpose::PAD),
        Err(_) => panic!("the alphabet has 64 different symbols"),
    }
};

/// The longest id, of a child of a container, in characters.
const TEXT_BYTES_MAX: usize = 24;

/// Set in the fifth byte of a container's id, clear in a user's.
const CONTAINER_BIT: u32 = 1 << 31;

/// The text is not a resource id of the expected kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not the resource id of a {kind}")]
pub struct RidError {
    pub text: String,
    pub kind: &'static str,
}

/// Decodes text into exactly the bytes that this kind of id has.
fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    BASE64.decode(text).ok()?.try_into().ok()
}

fn encode(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    f.write_str(&BASE64.encode(bytes))
}

fn refused(text: &str, kind: &'static str) -> RidError {
    RidError { text: text.chars().take(2 * TEXT_BYTES_MAX).collect(), kind }
}

/// Splits bytes at a length that the caller's array type fixes.
fn split<const HEAD: usize, const TAIL: usize>(bytes: &[u8]) -> Option<([u8; HEAD], [u8; TAIL])> {
    let (head, tail) = bytes.split_first_chunk::<HEAD>()?;
    Some((*head, tail.try_into().ok()?))
}

/// A database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DatabaseRid(u32);

impl DatabaseRid {
    /// `None` for zero, which clients take for "no database".
    #[must_use]
    pub fn new(number: u32) -> Option<DatabaseRid> {
        (number != 0).then_some(DatabaseRid(number))
    }

    pub fn parse(text: &str) -> Result<DatabaseRid, RidError> {
        decode(text).and_then(DatabaseRid::from_bytes).ok_or_else(|| refused(text, "database"))
    }

    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }

    fn from_bytes(bytes: [u8; 4]) -> Option<DatabaseRid> {
        DatabaseRid::new(u32::from_be_bytes(bytes))
    }

    fn to_bytes(self) -> [u8; 4] {
        self.0.to_be_bytes()
    }
}

/// A container of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContainerRid {
    database: DatabaseRid,
    number: u32,
}

impl ContainerRid {
    /// `None` unless the number is in 1..2^31.
    #[must_use]
    pub fn new(database: DatabaseRid, number: u32) -> Option<ContainerRid> {
        (1..CONTAINER_BIT).contains(&number).then_some(ContainerRid { database, number })
    }

    pub fn parse(text: &str) -> Result<ContainerRid, RidError> {
        decode(text).and_then(ContainerRid::from_bytes).ok_or_else(|| refused(text, "container"))
    }

    #[must_use]
    pub fn database(self) -> DatabaseRid {
        self.database
    }

    #[must_use]
    pub fn number(self) -> u32 {
        self.number
    }

    fn from_bytes(bytes: [u8; 8]) -> Option<ContainerRid> {
        let (database, number) = split(&bytes)?;
        let number = u32::from_be_bytes(number).checked_sub(CONTAINER_BIT)?;
        ContainerRid::new(DatabaseRid::from_bytes(database)?, number)
    }

    fn to_bytes(self) -> [u8; 8] {
        pair(self.database, self.number | CONTAINER_BIT)
    }
}

/// A user of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UserRid {
    database: DatabaseRid,
    number: u32,
}

impl UserRid {
    /// `None` unless the number is in 1..2^31.
    #[must_use]
    pub fn new(database: DatabaseRid, number: u32) -> Option<UserRid> {
        (1..CONTAINER_BIT).contains(&number).then_some(UserRid { database, number })
    }

    pub fn parse(text: &str) -> Result<UserRid, RidError> {
        decode(text).and_then(UserRid::from_bytes).ok_or_else(|| refused(text, "user"))
    }

    #[must_use]
    pub fn database(self) -> DatabaseRid {
        self.database
    }

    #[must_use]
    pub fn number(self) -> u32 {
        self.number
    }

    fn from_bytes(bytes: [u8; 8]) -> Option<UserRid> {
        let (database, number) = split(&bytes)?;
        UserRid::new(DatabaseRid::from_bytes(database)?, u32::from_be_bytes(number))
    }

    fn to_bytes(self) -> [u8; 8] {
        pair(self.database, self.number)
    }
}

fn pair(database: DatabaseRid, number: u32) -> [u8; 8] {
    ((u64::from(database.number()) << 32) | u64::from(number)).to_be_bytes()
}

/// A permission of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PermissionRid {
    user: UserRid,
    number: u64,
}

impl PermissionRid {
    #[must_use]
    pub fn new(user: UserRid, number: u64) -> PermissionRid {
        PermissionRid { user, number }
    }

    pub fn parse(text: &str) -> Result<PermissionRid, RidError> {
        decode(text).and_then(PermissionRid::from_bytes).ok_or_else(|| refused(text, "permission"))
    }

    #[must_use]
    pub fn user(self) -> UserRid {
        self.user
    }

    #[must_use]
    pub fn number(self) -> u64 {
        self.number
    }

    fn from_bytes(bytes: [u8; 16]) -> Option<PermissionRid> {
        let (user, number) = split(&bytes)?;
        Some(PermissionRid::new(UserRid::from_bytes(user)?, u64::from_le_bytes(number)))
    }
}

/// An item of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ItemRid {
    container: ContainerRid,
    ordinal: Ordinal,
}

impl ItemRid {
    #[must_use]
    pub fn new(container: ContainerRid, ordinal: Ordinal) -> ItemRid {
        ItemRid { container, ordinal }
    }

    pub fn parse(text: &str) -> Result<ItemRid, RidError> {
        decode(text).and_then(ItemRid::from_bytes).ok_or_else(|| refused(text, "item"))
    }

    #[must_use]
    pub fn container(self) -> ContainerRid {
        self.container
    }

    #[must_use]
    pub fn ordinal(self) -> Ordinal {
        self.ordinal
    }

    fn from_bytes(bytes: [u8; 16]) -> Option<ItemRid> {
        let (container, bits) = split(&bytes)?;
        let container = ContainerRid::from_bytes(container)?;
        // The type of items is 0, so a valid ordinal is the whole number.
        Ordinal::from_u64(u64::from_le_bytes(bits)).map(|ordinal| ItemRid { container, ordinal })
    }
}

/// What a child of a container is, other than an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChildKind {
    Conflict,
    PartitionKeyRange,
    UserDefinedFunction,
    Trigger,
    StoredProcedure,
}

impl ChildKind {
    const ALL: [ChildKind; 5] = [
        ChildKind::Conflict,
        ChildKind::PartitionKeyRange,
        ChildKind::UserDefinedFunction,
        ChildKind::Trigger,
        ChildKind::StoredProcedure,
    ];

    fn nibble(self) -> u64 {
        match self {
            ChildKind::Conflict => 0x4,
            ChildKind::PartitionKeyRange => 0x5,
            ChildKind::UserDefinedFunction => 0x6,
            ChildKind::Trigger => 0x7,
            ChildKind::StoredProcedure => 0x8,
        }
    }
}

/// A script, conflict or partition key range of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChildRid {
    container: ContainerRid,
    kind: ChildKind,
    number: u64,
}

impl ChildRid {
    /// `None` unless the number is in 1..2^60.
    #[must_use]
    pub fn new(container: ContainerRid, kind: ChildKind, number: u64) -> Option<ChildRid> {
        let valid = (1..1 << Ordinal::BITS).contains(&number);
        valid.then_some(ChildRid { container, kind, number })
    }

    pub fn parse(text: &str) -> Result<ChildRid, RidError> {
        decode(text)
            .and_then(ChildRid::from_bytes)
            .ok_or_else(|| refused(text, "script, conflict or partition key range"))
    }

    #[must_use]
    pub fn container(self) -> ContainerRid {
        self.container
    }

    #[must_use]
    pub fn kind(self) -> ChildKind {
        self.kind
    }

    #[must_use]
    pub fn number(self) -> u64 {
        self.number
    }

    fn from_bytes(bytes: [u8; 16]) -> Option<ChildRid> {
        let (container, bits) = split(&bytes)?;
        let bits = u64::from_le_bytes(bits);
        let nibble = bits >> Ordinal::BITS;
        let kind = ChildKind::ALL.into_iter().find(|kind| kind.nibble() == nibble)?;
        ChildRid::new(ContainerRid::from_bytes(container)?, kind, bits ^ (nibble << Ordinal::BITS))
    }
}

/// The throughput setting of a database or container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OfferRid(u32);

impl OfferRid {
    /// `None` for more than 24 bits.
    #[must_use]
    pub fn new(number: u32) -> Option<OfferRid> {
        (number < 1 << 24).then_some(OfferRid(number))
    }

    pub fn parse(text: &str) -> Result<OfferRid, RidError> {
        let [high, middle, low] = decode(text).ok_or_else(|| refused(text, "offer"))?;
        Ok(OfferRid(u32::from_be_bytes([0, high, middle, low])))
    }

    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for DatabaseRid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        encode(f, &self.to_bytes())
    }
}

impl fmt::Display for ContainerRid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        encode(f, &self.to_bytes())
    }
}

impl fmt::Display for UserRid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        encode(f, &self.to_bytes())
    }
}

impl fmt::Display for PermissionRid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        encode(f, &[self.user.to_bytes(), self.number.to_le_bytes()].concat())
    }
}

impl fmt::Display for ItemRid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        encode(f, &[self.container.to_bytes(), self.ordinal.as_u64().to_le_bytes()].concat())
    }
}

impl fmt::Display for ChildRid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = (self.kind.nibble() << Ordinal::BITS) | self.number;
        encode(f, &[self.container.to_bytes(), bits.to_le_bytes()].concat())
    }
}

impl fmt::Display for OfferRid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [_, bytes @ ..] = self.0.to_be_bytes();
        encode(f, &bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container() -> ContainerRid {
        ContainerRid::new(DatabaseRid::new(0x0100_0000).unwrap(), 1).unwrap()
    }

    #[test]
    fn texts_have_the_documented_shape() {
        assert_eq!(container().database().to_string(), "AQAAAA==");
        assert_eq!(container().to_string(), "AQAAAIAAAAE=");
        let user = UserRid::new(container().database(), 1).unwrap();
        assert_eq!(user.to_string(), "AQAAAAAAAAE=");
        let ordinal = Ordinal::from_u64(0xFFFFF << 40 | 2).unwrap();
        let item = ItemRid::new(container(), ordinal).to_string();
        assert_eq!(item.len(), 24);
        assert!(item.starts_with("AQAAAIAAAA"), "{item}");
        assert_eq!(OfferRid::new(0x69_B7_03).unwrap().to_string(), "abcD");
        // A slash would end a path segment.
        assert_eq!(OfferRid::new(0xFF_FFFF).unwrap().to_string(), "----");
    }

    #[test]
    fn the_type_is_the_high_nibble_of_the_last_byte() {
        for (kind, nibble) in [
            (ChildKind::Conflict, 4),
            (ChildKind::PartitionKeyRange, 5),
            (ChildKind::UserDefinedFunction, 6),
            (ChildKind::Trigger, 7),
            (ChildKind::StoredProcedure, 8),
        ] {
            let child = ChildRid::new(container(), kind, 1).unwrap();
            let bytes: [u8; 16] = decode(&child.to_string()).unwrap();
            assert_eq!(bytes[15] >> 4, nibble);
            assert!(ItemRid::parse(&child.to_string()).is_err());
        }
    }

    #[test]
    fn what_is_not_an_id_is_refused() {
        assert!(DatabaseRid::parse("AAAAAA==").is_err(), "zero");
        assert!(DatabaseRid::parse("AQAAAA").is_err(), "no padding");
        assert!(DatabaseRid::parse("AQAAAB==").is_err(), "stray bits");
        assert!(DatabaseRid::parse(" AQAAAA==").is_err());
        assert!(ContainerRid::parse("AQAAAA==").is_err(), "too short");
        assert!(ContainerRid::parse("AQAAAAAAAAE=").is_err(), "a user");
        assert!(UserRid::parse("AQAAAIAAAAE=").is_err(), "a container");
        assert!(OfferRid::parse("////").is_err());
        assert!(ItemRid::parse(&"A".repeat(4096)).is_err());
        assert_eq!(DatabaseRid::new(0), None);
        assert_eq!(ContainerRid::new(container().database(), 0), None);
        assert_eq!(ContainerRid::new(container().database(), 1 << 31), None);
    }
}
