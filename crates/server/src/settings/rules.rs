//! The limits and rules that the database enforces.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::ensure;
use model::limits::{Limits, Profile};
use serde::Deserialize;
use service::{Division, Throttle, ThroughputRules};

/// The largest factor of a scale model: beyond it one item does not fit into a partition.
const SCALE_MAX: u32 = 1_000_000;

/// What a database is opened with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) profile: Profile,
    pub(crate) limits: Limits,
    pub(crate) throughput: ThroughputRules,
    /// Cold neighbours are merged when a layout has not changed for this long.
    pub(crate) merge_after: Option<Duration>,
}

/// The settings that decide it, from one source or merged.
#[derive(Debug, Default)]
pub(crate) struct RuleSettings {
    pub(crate) profile: Option<Named<Profile>>,
    pub(crate) limits: Vec<String>,
    pub(crate) scale: Option<u32>,
    pub(crate) throttle: Option<Named<Throttle>>,
    pub(crate) burst: Option<bool>,
    pub(crate) serverless: Option<bool>,
    pub(crate) storage_splits: Option<Named<Division>>,
    pub(crate) merge_after: Option<u32>,
}

impl Rules {
    /// For commands that work on a folder themselves: throughput is not limited.
    pub(crate) fn for_tools() -> Rules {
        Rules { throughput: ThroughputRules::UNLIMITED, ..Rules::default() }
    }

    /// The year first, then single limits in their order, then the scale: it scales
    /// everything before it.
    pub(crate) fn decide(settings: RuleSettings) -> anyhow::Result<Rules> {
        let profile = settings.profile.map_or_else(Profile::default, |named| named.0);
        let mut limits = profile.limits();
        for setting in settings.limits.iter().flat_map(|list| list.split(',')) {
            if !setting.trim().is_empty() {
                limits.set(setting)?;
            }
        }
        let scale = settings.scale.unwrap_or(1);
        ensure!((1..=SCALE_MAX).contains(&scale), "a scale lies between 1 and {SCALE_MAX}");
        let throughput = ThroughputRules {
            throttle: settings.throttle.map_or_else(Throttle::default, |named| named.0),
            serverless: settings.serverless.unwrap_or_default(),
            burst: settings.burst.unwrap_or_default(),
            storage_splits: settings.storage_splits.map_or_else(Division::default, |named| named.0),
        };
        let merge_after = settings.merge_after.map(|secs| Duration::from_secs(u64::from(secs)));
        Ok(Rules { profile, limits: limits.scaled(scale), throughput, merge_after })
    }

    /// What is limited, for people.
    pub(crate) fn words(&self) -> String {
        let whose = match (self.throughput.throttle, self.throughput.serverless) {
            (Throttle::Never, _) => "throughput is metered but not limited".to_owned(),
            (Throttle::Explicit | Throttle::Always, true) => {
                let rate = self.limits.serverless_partition_throughput_max;
                format!("serverless, {rate} RU/s for each physical partition (429 beyond it)")
            }
            (Throttle::Explicit, false) => {
                "throughput that was asked for (429 beyond it); without, metered and not limited"
                    .to_owned()
            }
            (Throttle::Always, false) => "everyone's throughput (429 beyond it)".to_owned(),
        };
        let year = if self.profile == Profile::default() {
            String::new()
        } else {
            format!("; the limits of {}", self.profile)
        };
        let model = match self.limits.scale {
            0 | 1 => String::new(),
            scale => format!("; a scale model, 1 : {scale}"),
        };
        format!("{whose}{year}{model}")
    }
}

/// A setting that is chosen by its name, in every source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String", bound = "T: FromStr, T::Err: fmt::Display")]
pub(crate) struct Named<T>(pub(crate) T);

impl<T: FromStr> FromStr for Named<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Named<T>, T::Err> {
        text.parse().map(Named)
    }
}

impl<T: FromStr> TryFrom<String> for Named<T> {
    type Error = T::Err;

    fn try_from(text: String) -> Result<Named<T>, T::Err> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(limits: &[&str], scale: Option<u32>) -> anyhow::Result<Rules> {
        let limits = limits.iter().map(|text| (*text).to_owned()).collect();
        Rules::decide(RuleSettings { limits, scale, ..RuleSettings::default() })
    }

    #[test]
    fn a_year_comes_before_single_limits_and_the_scale_last() {
        let settings = RuleSettings {
            profile: Some("2018".parse().unwrap()),
            limits: vec!["throughput_min=200, physical-partition-bytes-max=1GiB".to_owned()],
            scale: Some(1024),
            ..RuleSettings::default()
        };
        let rules = Rules::decide(settings).unwrap();
        assert_eq!(rules.limits.throughput_min, 200);
        assert_eq!(rules.limits.physical_partition_bytes_max, 1 << 20);
        assert_eq!(rules.limits.gib_unscaled(rules.limits.logical_partition_bytes_max), 10);
        assert!(rules.words().ends_with("; the limits of 2018; a scale model, 1 : 1024"));
    }

    #[test]
    fn nonsense_is_refused_with_advice() {
        let text = |limits: &[&str], scale| decide(limits, scale).unwrap_err().to_string();
        assert!(text(&["ru=1"], None).starts_with("there is no limit 'ru'"));
        assert_eq!(text(&[], Some(0)), "a scale lies between 1 and 1000000");
        assert!("2017".parse::<Named<Profile>>().is_err());
        assert!("sometimes".parse::<Named<Throttle>>().is_err());
        assert_eq!(decide(&[], None).unwrap(), Rules::default());
    }
}
