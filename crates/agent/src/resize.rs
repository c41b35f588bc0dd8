//! A node that gets another size while it runs. The host changes the control group, then the document
//! that this node was made from; here the node's own view of itself follows, and the kubelet, which looks
//! at it once, starts again. Pods run on.

use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use anyhow::Result;
use model::node_spec::{NodeSpec, SPEC_PATH};
use tokio::time::sleep;

use crate::capacity::Capacity;
use crate::mark::mark;
use crate::poweroff::stop_service;
use crate::state::Node;

const LOOK: Duration = Duration::from_millis(200);

pub async fn follow(node: Rc<Node>, capacity: Rc<Capacity>) {
    let path = Path::new(SPEC_PATH);
    let mut seen = mark(path);
    let mut size = (node.spec.cpus, node.spec.memory_mib);
    loop {
        sleep(LOOK).await;
        let now = mark(path);
        if now == seen || now.is_none() {
            continue;
        }
        seen = now;
        match asked(path) {
            Ok(new) if new == size => {}
            Ok(new) => {
                tracing::info!("from {size:?} (CPUs, MiB) to {new:?}");
                size = new;
                if let Err(e) = capacity.set(new.1) {
                    tracing::error!("{e:#}");
                }
                stop_service(&node, "kubelet").await;
            }
            Err(e) => tracing::error!("{e:#}"),
        }
    }
}

fn asked(path: &Path) -> Result<(Option<u32>, Option<u32>)> {
    let spec: NodeSpec = serde_json::from_slice(&fs_err::read(path)?)?;
    Ok((spec.cpus, spec.memory_mib))
}
