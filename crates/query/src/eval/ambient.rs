//! The ambient state of an evaluation: the context of the query, and the remaining budget
//! of the run.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use super::budget::{Budget, STEPS_MAX};
use crate::context::{Called, Context, Watch};
use crate::ledger::Ledger;

#[derive(Debug)]
pub(crate) struct Ambient {
    pub(crate) context: Arc<Context>,
    pub(crate) budget: Budget,
    random: Cell<u64>,
}

impl Ambient {
    pub(crate) fn new(context: &Arc<Context>) -> Ambient {
        Ambient::within(context, STEPS_MAX, Rc::default())
    }

    pub(crate) fn within(context: &Arc<Context>, steps: usize, ledger: Rc<Ledger>) -> Ambient {
        let random = Cell::new(context.seed);
        let budget = Budget::new(steps, ledger, context.watch.clone());
        Ambient { context: Arc::clone(context), budget, random }
    }

    /// For a part of the documents, which another thread may process in parallel with the
    /// rest: with a watch of its own thread, and with random numbers of its own.
    pub(crate) fn of_part(
        context: &Arc<Context>,
        steps: usize,
        ledger: Rc<Ledger>,
        (part, watch): (u64, Option<Arc<dyn Watch>>),
    ) -> Ambient {
        let random = Cell::new(context.seed ^ part.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        let budget = Budget::new(steps, ledger, watch);
        Ambient { context: Arc::clone(context), budget, random }
    }

    /// Makes a call, and measures it if timings are requested.
    pub(crate) fn metered<T>(&self, called: Called, call: impl FnOnce() -> T) -> T {
        let Some(meter) = &self.context.meter else { return call() };
        let before = meter.now();
        let done = call();
        meter.took(called, meter.now().saturating_sub(before));
        done
    }

    /// The next random number from 0 up to, but not, 1.
    pub(crate) fn random(&self) -> f64 {
        /// Doubles have 53 bits, hence the number of values to choose from.
        const CHOICES: f64 = 9_007_199_254_740_992.0;
        let state = self.random.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.random.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let bits = (mixed ^ (mixed >> 31)) >> 11;
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double")]
        let chosen = bits as f64;
        chosen / CHOICES
    }
}
