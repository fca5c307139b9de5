//! The rules of other years, as values of [`Limits`].
//!
//! Until 2019 a container was one of two kinds. A *fixed* one had one physical partition
//! for ever, with or without a key; an *unlimited* (2018) or *partitioned* (2016) one had
//! to be requested with enough throughput. The difference is only in numbers, so no other
//! code knows about years.

use std::fmt;
use std::str::FromStr;

use super::{GIB, Limits};

/// A year whose published rules hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Single-partition collections up to 10,000 RU/s, partitioned ones from 10,100 RU/s.
    Y2016,
    /// Fixed containers, and unlimited ones with a key and at least 1,000 RU/s.
    Y2018,
    /// Every container with a key grows.
    #[default]
    Y2026,
}

/// There is no profile for that year.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is none of the profiles 2016, 2018, 2026")]
pub struct ProfileError(String);

impl Profile {
    pub const ALL: [Profile; 3] = [Profile::Y2016, Profile::Y2018, Profile::Y2026];

    /// The numbers of that year.
    #[must_use]
    pub fn limits(self) -> Limits {
        match self {
            Profile::Y2026 => Limits::default(),
            Profile::Y2018 => Limits {
                logical_partition_bytes_max: 10 * GIB,
                physical_partition_bytes_max: 10 * GIB,
                partition_throughput_at_creation: 10_000,
                unlimited_throughput_min: 1_000,
                throughput_per_gib_min: 10,
                ..Limits::default()
            },
            Profile::Y2016 => Limits {
                throughput_max: 250_000,
                container_bytes_max: 250 * GIB,
                unlimited_throughput_min: 10_100,
                ..Profile::Y2018.limits()
            },
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Profile::Y2016 => "2016",
            Profile::Y2018 => "2018",
            Profile::Y2026 => "2026",
        })
    }
}

impl FromStr for Profile {
    type Err = ProfileError;

    fn from_str(text: &str) -> Result<Profile, ProfileError> {
        let found = Profile::ALL.into_iter().find(|profile| profile.to_string() == text);
        found.ok_or_else(|| ProfileError(text.to_owned()))
    }
}
