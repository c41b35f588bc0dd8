//! The Docker engine, which runs from the first time that somebody asks for it.

use std::process::Command;
use std::rc::Rc;

use model::node_spec::{DOCKER_PATH, Docker};

use crate::document;
use crate::reaper::Reaper;
use crate::service::{Recipe, Service};
use crate::state::Node;

/// The host says that it is wanted by writing a document, which stays: it runs again after a restart.
pub async fn follow(node: Rc<Node>, reaper: Reaper) {
    let mut wanted = document::follow(DOCKER_PATH.into(), Docker::default());
    while wanted.borrow_and_update().argv.is_empty() {
        if wanted.changed().await.is_err() {
            return;
        }
    }
    let recipe = Recipe::new("dockerd", move || {
        // Read for each start: the next one may be another command.
        let docker = wanted.borrow_and_update().clone();
        let mut argv = docker.argv.iter();
        let mut command = Command::new(argv.next().map_or("dockerd", String::as_str));
        command.args(argv);
        Ok(command)
    });
    Service::start(&node, &reaper, recipe).forever().await;
}
