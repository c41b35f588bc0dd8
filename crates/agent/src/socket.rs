//! The node's state for whoever may open the socket: the host's root, by a directory both share.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::rc::Rc;

use anyhow::{Context, Result};
use model::node_spec::{RUN_DIR, SOCKET_NAME};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixListener;
use tokio::task::spawn_local;

use crate::state::Node;

/// One connection, one document, no questions: there is only one to ask so far.
pub fn serve(node: Rc<Node>) -> Result<()> {
    let path = Path::new(RUN_DIR).join(SOCKET_NAME);
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).with_context(|| format!("listen on {}", path.display()))?;
    fs_err::set_permissions(&path, PermissionsExt::from_mode(0o600))?;
    spawn_local(async move {
        loop {
            let Ok((mut stream, _)) = listener.accept().await else { continue };
            let node = node.clone();
            spawn_local(async move {
                if let Ok(document) = serde_json::to_vec(&node.document()) {
                    let _ = stream.write_all(&document).await;
                }
            });
        }
    });
    Ok(())
}
