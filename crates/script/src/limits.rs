//! What one run of a script may use.
//!
//! Each bound is a constant with its reason; [`ScriptLimits`] carries them so that tests can reach
//! one in a moment. Time is the host's: it alone has a clock, and says when the run is over.

use std::time::Duration;

/// How long a script may run, as the service says for procedures, triggers and pages of
/// queries. The host turns it into a deadline ([`crate::Environment::is_out_of_time`]).
pub const TIME_MAX: Duration = Duration::from_secs(5);
/// A page of documents of 4 MB takes some ten times that as JavaScript objects.
pub const MEMORY_BYTES_MAX: usize = 64 << 20;
/// Native stack that JavaScript may use: some thousand nested calls. The thread that runs
/// scripts needs this and [`STACK_BYTES_SPARE`].
pub const STACK_BYTES_MAX: usize = 512 << 10;
/// Native stack that the host's functions and the engine need above the scripts' own.
pub const STACK_BYTES_SPARE: usize = 512 << 10;
/// How often the engine may ask whether to go on. It asks after some ten thousand calls or
/// turns of a loop, so this is ten thousand million of them, far more than fit into
/// [`TIME_MAX`]: the end even when the host's clock stands still.
pub const TICKS_MAX: u64 = 1_000_000;
/// Operations on documents that are accepted; the next one is answered with `false`. A
/// transaction of more than this would hold up its partition.
pub const CALLS_MAX: u32 = 10_000;
/// Pages of queries and feeds that a script may read, since each one costs a scan.
pub const PAGES_MAX: u32 = 10_000;
/// Documents on a page that does not say how many it wants, as in the service.
pub const PAGE_ITEMS_DEFAULT: u32 = 100;
/// Documents on a page at most, as in queries from outside.
pub const PAGE_ITEMS_MAX: u32 = 1_000;
/// What `console.log` keeps. The text travels in a header of the answer.
pub const LOG_BYTES_MAX: usize = 8 << 10;
/// The response body. It is the service's limit for a message.
pub const RESULT_BYTES_MAX: usize = 2 << 20;
/// Arguments of a procedure arrive in a request, whose limit this is.
pub const ARGUMENTS_BYTES_MAX: usize = 2 << 20;
/// Arguments of one call; the engine refuses more than 65,534.
pub const ARGUMENTS_MAX: usize = 10_000;
/// The text of a script. It is kept in a record of the catalogue.
pub const SOURCE_BYTES_MAX: usize = 1 << 20;
/// What is kept of an exception's message and of the names of functions on its stack.
pub const MESSAGE_BYTES_MAX: usize = 16 << 10;
/// Frames of the stack that are kept with an exception.
pub const FRAMES_MAX: usize = 32;
/// Rejected promises without a handler that are remembered until one is attached.
pub const REJECTIONS_MAX: usize = 1_000;
/// Compiled scripts that a cache keeps.
pub const CACHED_SCRIPTS_MAX: usize = 10_000;
/// Bytes of compiled scripts that a cache keeps.
pub const CACHED_BYTES_MAX: usize = 64 << 20;

const _: () = assert!(LOG_BYTES_MAX < RESULT_BYTES_MAX);
const _: () = assert!(4 * RESULT_BYTES_MAX < MEMORY_BYTES_MAX);
const _: () = assert!(SOURCE_BYTES_MAX * 8 <= CACHED_BYTES_MAX);

/// The bounds of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptLimits {
    pub memory_bytes_max: usize,
    pub stack_bytes_max: usize,
    pub ticks_max: u64,
    pub calls_max: u32,
    pub pages_max: u32,
    pub log_bytes_max: usize,
    pub result_bytes_max: usize,
}

impl Default for ScriptLimits {
    fn default() -> Self {
        ScriptLimits {
            memory_bytes_max: MEMORY_BYTES_MAX,
            stack_bytes_max: STACK_BYTES_MAX,
            ticks_max: TICKS_MAX,
            calls_max: CALLS_MAX,
            pages_max: PAGES_MAX,
            log_bytes_max: LOG_BYTES_MAX,
            result_bytes_max: RESULT_BYTES_MAX,
        }
    }
}
