//! What a process reported, and what must therefore survive a power cut.

use storage::Durability;

/// Batches that were acknowledged, submitted, and made durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promise {
    /// The newest batch that must not be lost.
    pub at_least: u64,
    /// The newest batch that was acknowledged.
    pub acknowledged: u64,
    /// The newest batch that was submitted.
    pub at_most: u64,
    /// There is a store.
    pub created: bool,
    durability: Durability,
}

impl Promise {
    /// Takes in lines of a process. Other lines are ignored.
    pub fn hear(&mut self, text: &str) {
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            if let [verb, number, durability] = words.as_slice()
                && let Ok(number) = number.parse()
            {
                let relaxed = *durability == Promise::name(Durability::Os);
                self.durability = if relaxed { Durability::Os } else { Durability::Full };
                self.happened(verb, number);
            }
        }
    }

    /// The line about a batch: `opened` with it, `try` and `done`, or `closed` after it.
    #[must_use]
    pub fn line(verb: &str, number: u64, durability: Durability) -> String {
        format!("{verb} {number} {}\n", Promise::name(durability))
    }

    fn name(durability: Durability) -> &'static str {
        match durability {
            Durability::Full => "full",
            Durability::Os => "os",
        }
    }

    fn happened(&mut self, verb: &str, number: u64) {
        let lasts = match verb {
            "try" => {
                self.at_most = self.at_most.max(number);
                return;
            }
            // Readers have seen it from then on.
            "opened" => {
                self.created = true;
                self.durability == Durability::Full
            }
            "done" => self.durability == Durability::Full,
            "closed" => true,
            _ => return,
        };
        self.acknowledged = self.acknowledged.max(number);
        if lasts {
            self.at_least = self.at_least.max(number);
        }
    }
}
