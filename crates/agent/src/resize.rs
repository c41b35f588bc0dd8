//! A node that gets another size while it runs. The host changes the control group, then the document
//! that this node was made from; here the node's own view of itself follows, and the kubelet, which looks
//! at it once, starts again. Pods run on.

use std::rc::Rc;

use model::node_spec::SPEC_PATH;

use crate::capacity::Capacity;
use crate::document;
use crate::poweroff::stop_service;
use crate::state::Node;

pub async fn follow(node: Rc<Node>, capacity: Rc<Capacity>) {
    let mut specs = document::follow(SPEC_PATH.into(), node.spec.clone());
    let mut size = (node.spec.cpus, node.spec.memory_mib);
    // The document may have changed since this node read it.
    loop {
        let new = {
            let spec = specs.borrow_and_update();
            (spec.cpus, spec.memory_mib)
        };
        if new != size {
            tracing::info!("from {size:?} (CPUs, MiB) to {new:?}");
            size = new;
            if let Err(e) = capacity.set(new.1) {
                tracing::error!("{e:#}");
            }
            stop_service(&node, "kubelet").await;
        }
        if specs.changed().await.is_err() {
            return;
        }
    }
}
