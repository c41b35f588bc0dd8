//! The commands that make what a node needs before its kubelet runs. Each is run once in the life of
//! a node: one that was cut short has not made its mark and is run again.

use std::path::Path;
use std::rc::Rc;

use anyhow::{Context, Result};
use model::node_spec::{LOG_DIR, PrepareState};

use crate::commands;
use crate::reaper::Reaper;
use crate::state::Node;

pub async fn run(node: &Rc<Node>, reaper: &Reaper) -> Result<()> {
    let log = format!("{LOG_DIR}/prepare.log");
    for step in &node.spec.prepare {
        if step.creates.as_ref().is_some_and(|mark| Path::new(mark).exists()) {
            continue;
        }
        node.state.borrow_mut().prepare = PrepareState::Running { step: step.name.clone() };
        if let Err(e) = commands::run(reaper, &step.argv, &log).await {
            node.state.borrow_mut().prepare =
                PrepareState::Failed { step: step.name.clone(), output: format!("{e:#}") };
            return Err(e).with_context(|| format!("prepare {}", step.name));
        }
        if let Some(mark) = &step.creates
            && !Path::new(mark).exists()
        {
            fs_err::write(mark, "")?;
        }
    }
    node.state.borrow_mut().prepare = PrepareState::Done;
    Ok(())
}
