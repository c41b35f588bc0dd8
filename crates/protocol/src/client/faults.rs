//! What a node does to itself on purpose.

use model::injected::PacketFaults;

use super::{Error, Node};
use crate::calls;
use crate::messages::{self, Killed, PacketsDone, Program};

impl Node {
    /// From now on the node loses these packets and holds these back, and no others. `false`: its kernel cannot hold
    /// packets back, and nothing was changed.
    pub async fn packets(&self, faults: &PacketFaults) -> Result<bool, Error> {
        let json = serde_json::to_vec(faults).map_err(|e| self.refused(e.to_string()))?;
        let done: PacketsDone =
            self.call(calls::PACKETS, messages::PacketFaults { json: json.into() }).await?;
        Ok(!done.no_delays)
    }

    /// Kills all processes of a program.
    pub async fn kill(&self, program: &str) -> Result<Killed, Error> {
        self.call(calls::KILL, Program { name: program.to_owned() }).await
    }
}
