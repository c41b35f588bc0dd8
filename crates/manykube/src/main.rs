//! manykube: local Kubernetes clusters of many nodes.

mod args;
mod core;
mod ctx;
mod report;

fn main() {}
