//! Names that users give: ids of items, names of everything else.

use std::fmt;

use crate::limits::{ITEM_ID_BYTES_MAX, NAME_CHARS_MAX};

/// The id of an item, unique within its logical partition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ItemId(Box<str>);

/// The name of a database, container, user, permission or script.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceName(Box<str>);

/// Why a text cannot be a name. The caller has to send another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("The id must not be empty.")]
    Empty,
    #[error("The id is too long: it has {given}, at most {max} are allowed.")]
    TooLong { given: usize, max: usize },
    #[error("The id contains the character {character:?}, which is not allowed.")]
    Character { character: char },
    #[error("The id ends with a blank.")]
    TrailingBlank,
}

impl ItemId {
    /// Any text of an acceptable length, as in the service. Clients are stricter, each
    /// differently; slashes come percent-encoded in a path.
    pub fn parse(text: &str) -> Result<ItemId, NameError> {
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if text.len() > ITEM_ID_BYTES_MAX {
            return Err(NameError::TooLong { given: text.len(), max: ITEM_ID_BYTES_MAX });
        }
        Ok(ItemId(text.into()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ResourceName {
    pub fn parse(text: &str) -> Result<ResourceName, NameError> {
        let given = text.chars().count();
        if given == 0 {
            return Err(NameError::Empty);
        }
        if given > NAME_CHARS_MAX {
            return Err(NameError::TooLong { given, max: NAME_CHARS_MAX });
        }
        if let Some(character) = text.chars().find(|c| ['/', '\\', '?', '#'].contains(c)) {
            return Err(NameError::Character { character });
        }
        if text.ends_with([' ', '\n']) {
            return Err(NameError::TrailingBlank);
        }
        Ok(ResourceName(text.into()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn item_ids() {
        for good in
            ["1", "with space ", "quote\"'%+", "日本語", "a?b#c", "a/b\\c", &"x".repeat(1023)]
        {
            assert_eq!(ItemId::parse(good).unwrap().as_str(), good);
        }
        assert_eq!(ItemId::parse(""), Err(NameError::Empty));
        // Bytes count, not characters.
        let long = "é".repeat(512);
        assert_eq!(ItemId::parse(&long), Err(NameError::TooLong { given: 1024, max: 1023 }));
    }

    #[test]
    fn resource_names() {
        for good in ["db", "with space", "日本語", "%+\"'", &"é".repeat(255)] {
            assert_eq!(ResourceName::parse(good).unwrap().as_str(), good);
        }
        assert_eq!(ResourceName::parse(""), Err(NameError::Empty));
        for character in ['/', '\\', '?', '#'] {
            let text = format!("a{character}b");
            assert_eq!(ResourceName::parse(&text), Err(NameError::Character { character }));
        }
        assert_eq!(ResourceName::parse("a "), Err(NameError::TrailingBlank));
        assert_eq!(ResourceName::parse("a\n"), Err(NameError::TrailingBlank));
        let long = "x".repeat(256);
        assert_eq!(ResourceName::parse(&long), Err(NameError::TooLong { given: 256, max: 255 }));
    }
}
