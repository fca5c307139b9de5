//! Limits by name: how an operator sets one without a recompiled server.
//!
//! The list is written once, with its documentation and defaults. The struct, its
//! default and the table of names all come from it, so none can be forgotten.

use std::fmt::Write as _;

use super::Limits;

/// Why a setting `NAME=VALUE` is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    #[error("'{0}' is not of the form NAME=VALUE")]
    Form(String),
    #[error("there is no limit '{name}'; the limits and their values now:\n{known}")]
    Name { name: String, known: String },
    #[error(
        "'{value}' is not a value for {name}: give a whole number, with KiB, MiB or GiB if you like"
    )]
    Value { name: String, value: String },
}

/// A number that a limit may have.
pub(super) trait LimitValue: Copy {
    fn from_number(number: u64) -> Option<Self>;
    fn number(self) -> u64;
}

macro_rules! limit_value {
    ($($type:ty),*) => {$(
        impl LimitValue for $type {
            fn from_number(number: u64) -> Option<$type> {
                <$type>::try_from(number).ok()
            }

            fn number(self) -> u64 {
                self as u64
            }
        }
    )*};
}

limit_value!(u32, u64, usize);

/// Declares [`Limits`]: each field with what it means, its type and its default.
macro_rules! limits {
    ($($(#[doc = $doc:literal])* $name:ident: $type:ty = $default:expr;)*) => {
        /// The adjustable limits; the default is what the service published for 2026.
        ///
        /// Throughput is in request units per second (RU/s).
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Limits {
            $($(#[doc = $doc])* pub $name: $type,)*
        }

        impl Default for Limits {
            fn default() -> Limits {
                Limits { $($name: $default,)* }
            }
        }

        impl Limits {
            /// Every limit with its value, in the order of the source.
            #[must_use]
            pub fn values(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name.number()),)*]
            }

            /// Sets the limit of that name, if there is one and the number fits.
            fn assign(&mut self, name: &str, number: u64) -> bool {
                match name {
                    $(stringify!($name) => <$type>::from_number(number)
                        .map(|value| self.$name = value)
                        .is_some(),)*
                    _ => false,
                }
            }
        }
    };
}
pub(super) use limits;

impl Limits {
    /// Sets one limit from `NAME=VALUE`. Names are those of the fields, also with
    /// dashes; values may carry `KiB`, `MiB` or `GiB`.
    pub fn set(&mut self, setting: &str) -> Result<(), LimitError> {
        let Some((name, value)) = setting.split_once('=') else {
            return Err(LimitError::Form(setting.to_owned()));
        };
        let (name, value) = (name.trim().replace('-', "_"), value.trim());
        if !self.values().iter().any(|(known, _)| *known == name) {
            return Err(LimitError::Name { name, known: self.listed() });
        }
        if parse_number(value).is_some_and(|number| self.assign(&name, number)) {
            return Ok(());
        }
        Err(LimitError::Value { name, value: value.to_owned() })
    }

    fn listed(&self) -> String {
        self.values().into_iter().fold(String::new(), |mut list, (name, value)| {
            let _ = writeln!(list, "  {name}={value}");
            list
        })
    }
}

/// A number, of bytes or anything else: `64MiB`, `1_000`.
#[must_use]
pub fn parse_number(text: &str) -> Option<u64> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    let suffix = units.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)));
    let (digits, shift) = suffix.unwrap_or((text, 0));
    let number: u64 = digits.trim().replace(['_', ','], "").parse().ok()?;
    number.checked_mul(1 << shift)
}
