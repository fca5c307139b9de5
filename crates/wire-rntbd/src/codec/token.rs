//! Tokens in a head: finding them, checking them, writing one.

use std::fmt;
use std::marker::PhantomData;

use crate::codec::error::{FrameError, TokenError, TooLong};
use crate::codec::reader::Reader;
use crate::codec::value::{TokenType, TokenValue, ValueType};

/// Tokens that a head may have. The protocol knows some 150 and clients send up to 30, each once.
pub const TOKENS_MAX: usize = 256;

/// Known ids are below this one, so that a small table shows which of them occurred.
const IDS_MAX: usize = 0x100;

/// A token that is known: its id, and the type that its value has.
pub struct Key<T> {
    pub(crate) id: u16,
    _holds: PhantomData<fn() -> T>,
}

impl<T> Key<T> {
    pub(crate) const fn new(id: u16) -> Key<T> {
        assert!((id as usize) < IDS_MAX, "an id that is known is below the bound for all");
        Key { id, _holds: PhantomData }
    }

    #[must_use]
    pub const fn id(&self) -> u16 {
        self.id
    }
}

// Not derived: that would ask the same of the type, which is only a name.
impl<T> Clone for Key<T> {
    fn clone(&self) -> Key<T> {
        *self
    }
}

impl<T> Copy for Key<T> {}

impl<T> fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({:04x})", self.id)
    }
}

/// A line of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableRow {
    pub id: u16,
    pub name: &'static str,
    pub token_type: TokenType,
}

/// The tokens that one kind of frame may have, in the order of their ids.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    pub rows: &'static [TableRow],
}

impl Table {
    #[must_use]
    pub fn row(&self, id: u16) -> Option<&'static TableRow> {
        let at = self.rows.binary_search_by_key(&id, |row| row.id).ok()?;
        self.rows.get(at)
    }
}

/// One token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Token<'a> {
    pub id: u16,
    pub value: TokenValue<'a>,
}

impl Token<'_> {
    /// Appends it. On an error nothing was appended.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let begin = out.len();
        out.extend(self.id.to_le_bytes());
        out.push(self.value.token_type() as u8);
        self.value.write(out).inspect_err(|_| out.truncate(begin))
    }
}

/// The tokens of a head. Each ends where the next begins, which was checked; whether their values
/// mean anything was not.
#[derive(Clone, Copy, Debug)]
pub struct Tokens<'a> {
    input: Reader<'a>,
}

impl<'a> Tokens<'a> {
    pub(crate) fn read(input: Reader<'a>) -> Result<Tokens<'a>, FrameError> {
        let mut walk = input;
        while !walk.is_empty() {
            take_raw(&mut walk)?;
        }
        Ok(Tokens { input })
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = Result<Token<'a>, TokenError>> + use<'a> {
        let mut rest = self.input;
        std::iter::from_fn(move || {
            let (id, token_type, bytes) = take_raw(&mut rest).ok()?;
            Some(TokenValue::of(token_type, bytes, id).map(|value| Token { id, value }))
        })
    }

    /// The first token with this id and type. Before [`Tokens::check`], only for what an error has
    /// to say.
    #[must_use]
    pub fn find<T: ValueType>(&self, key: Key<T>) -> Option<T::Value<'a>> {
        let found = self
            .iter()
            .flatten()
            .find(|token| token.id == key.id && token.value.token_type() == T::TYPE);
        found.and_then(|token| T::unwrap(token.value))
    }

    /// Holds all of them against a table. Tokens that are not in it are let through: clients that
    /// are newer than this server send them.
    ///
    /// # Errors
    /// A known token that comes twice or with another type, one that cannot be read, too many.
    pub fn check(&self, table: &Table) -> Result<Known<'a>, TokenError> {
        let mut seen = [false; IDS_MAX];
        for (token, count) in self.iter().zip(1..) {
            if count > TOKENS_MAX {
                return Err(TokenError::TooMany);
            }
            let Token { id, value } = token?;
            let Some(row) = table.row(id) else { continue };
            if value.token_type() != row.token_type {
                return Err(TokenError::Mismatch { id, name: row.name });
            }
            let seen = seen.get_mut(usize::from(id));
            if seen.is_some_and(|seen| std::mem::replace(seen, true)) {
                return Err(TokenError::Twice { id });
            }
        }
        Ok(Known { tokens: *self })
    }
}

/// Tokens that agree with their table.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    tokens: Tokens<'a>,
}

impl<'a> Known<'a> {
    #[must_use]
    pub fn get<T: ValueType>(&self, key: Key<T>) -> Option<T::Value<'a>> {
        self.tokens.find(key)
    }
}

fn take_raw<'a>(input: &mut Reader<'a>) -> Result<(u16, TokenType, &'a [u8]), FrameError> {
    let id = input.u16()?;
    let (offset, code) = (input.offset(), input.u8()?);
    let token_type = TokenType::of(code).ok_or(FrameError::Type { code, offset })?;
    Ok((id, token_type, token_type.take(input)?))
}
