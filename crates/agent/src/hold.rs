//! What the host wants to stand still: `pause` ends the kubelet and freezes containers, and nothing may
//! bring the kubelet back before `unpause`.

use std::path::Path;
use std::rc::Rc;

use model::node_spec::{HOLD_NAME, Hold, RUN_DIR};

use crate::document;
use crate::poweroff::stop_service;
use crate::state::Node;

pub async fn follow(node: Rc<Node>) {
    let mut wishes = document::follow(Path::new(RUN_DIR).join(HOLD_NAME), Hold::default());
    loop {
        let hold = wishes.borrow_and_update().clone();
        // Told first: who ends now must not be started again.
        node.hold.send_replace(hold.clone());
        for service in &hold.services {
            tracing::info!("{service} stands still");
            stop_service(&node, service).await;
        }
        if wishes.changed().await.is_err() {
            return;
        }
    }
}
