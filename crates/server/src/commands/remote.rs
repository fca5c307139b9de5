//! Which server a command asks.

use operator::{OperatorClient, OperatorKey};
use wire_cosmos::EMULATOR_KEY;

use crate::settings::Secret;

#[derive(Debug, clap::Args)]
pub(crate) struct Remote {
    /// Address and port of the server; it is spoken to in plain HTTP.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8081")]
    server: String,
    /// Account key [default: ORRERY_KEY, else the emulators' well-known key].
    #[arg(long, value_name = "KEY", env = "ORRERY_KEY", hide_env_values = true)]
    key: Option<Secret>,
}

impl Remote {
    pub(crate) fn client(&self) -> OperatorClient {
        let key = self.key.as_ref().map_or(EMULATOR_KEY, Secret::reveal);
        OperatorClient::new(&self.server, OperatorKey::new(key))
    }
}
