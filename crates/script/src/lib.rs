//! Server-side JavaScript: stored procedures, triggers and functions.
//!
//! [`Script::compile`] parses a script, which [`ScriptCache`] keeps; [`run`] runs a procedure or a trigger on a [`Host`],
//! which is one transaction on one logical partition; [`StoredFunction`] is
//! called by queries. Each run has a heap and globals of its own, so that nothing passes from one
//! to another, and is bounded in time, steps, memory, stack, calls and sizes ([`ScriptLimits`]).
//! What a script did counts only if it ended well: the host stages writes and the caller
//! throws them away after a [`Fault`].
//!
//! docs/design/scripts.md says why it is so, and what the service does in each case.
//!
//! Must not know: storage, partitions, SQL text, HTTP.

mod bytecode;
mod cache;
mod calls;
mod describe;
mod fault;
mod functions;
mod host;
mod isolate;
pub mod limits;
mod prelude;
mod run;
mod script;

pub use cache::ScriptCache;
pub use fault::{Fault, Frame, LineColumn, Thrown};
pub use functions::StoredFunction;
pub use host::{
    ContainerLinks, Environment, FeedPage, FeedSource, Host, HostReason, HostRefusal, IndexAction,
    ItemLink, Question, Read,
};
pub use isolate::ScriptUsage;
pub use limits::ScriptLimits;
pub use run::{Ended, ScriptTask, Surroundings, TriggerOperation, run};
pub use script::Script;
