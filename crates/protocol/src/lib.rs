//! What the host and the agent of a node say to each other: gRPC on one byte stream, which the driver provides.
//!
//! The messages are written by hand, because generating them would make every build need a protobuf compiler. Fields are
//! only ever added: the agent of a running node is as old as its last boot. A call that an agent does not know is
//! answered with "unimplemented", which the client reports as [`Error::Old`].

mod client;
pub mod messages;
mod server;

pub use client::{
    Connection, Error, Exec, ExecEvent, Failed, FileDigest, FileInfo, Grpc, Node, Output, PutError, Received,
    Stdin, root_cause,
};
pub use server::{Answers, Handler, serve};

/// The longest message. Data travel in parts of [`PART`].
pub const LONGEST: usize = 16 << 20;
/// The size of a part of a file or stream.
pub const PART: usize = 128 << 10;
/// How much one side may send in a call before the other has read it.
const WINDOW: u32 = 4 << 20;
/// The same for all calls of a connection: a few that are not read stop no other.
const ALL_WINDOWS: u32 = 1 << 30;

/// The calls. The version is part of the name: a change that older agents cannot answer gets a new one.
pub mod calls {
    pub const STATE: &str = "/manykube.node.v1/State";
    pub const EXEC: &str = "/manykube.node.v1/Exec";
    pub const PUT: &str = "/manykube.node.v1/Put";
    pub const GET: &str = "/manykube.node.v1/Get";
    pub const DIGESTS: &str = "/manykube.node.v1/Digests";
    pub const REMOVE: &str = "/manykube.node.v1/Remove";
    pub const DIAL: &str = "/manykube.node.v1/Dial";
    pub const FILL: &str = "/manykube.node.v1/Fill";
    pub const PACKETS: &str = "/manykube.node.v1/Packets";
    pub const KILL: &str = "/manykube.node.v1/Kill";
}
