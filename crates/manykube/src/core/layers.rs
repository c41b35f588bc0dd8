//! Layers of node images on their way, shown as steps of a phase, and why they do not arrive.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use image::registry::{Doing, LayerEvent, LayerProgress, RegistryError};
use model::{Fault, Reason};
use tokio::sync::mpsc::unbounded_channel;

use crate::ctx::Ctx;
use crate::report::{Event, steps::start as step};

/// Runs `work`, and shows what it tells of layers. The phase is announced with the first of them.
pub async fn shown<T, F>(ctx: &Ctx, phase: &str, work: impl FnOnce(Arc<LayerProgress>) -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let (sender, mut told) = unbounded_channel();
    // Whoever does not listen any more has got the result.
    let work = work(Arc::new(move |event| drop(sender.send(event))));
    let mut shown = Shown::new(phase);
    tokio::pin!(work);
    let result = loop {
        tokio::select! {
            Some(event) = told.recv() => shown.next(event).into_iter().for_each(|e| ctx.emit(e)),
            result = &mut work => break result,
        }
    };
    while let Ok(event) = told.try_recv() {
        shown.next(event).into_iter().for_each(|e| ctx.emit(e));
    }
    result
}

/// What was said already.
struct Shown {
    phase: String,
    announced: bool,
    /// Since when, and how many hundredths; `None` of one that is done.
    layers: HashMap<(String, &'static str), Option<(Instant, u64)>>,
}

impl Shown {
    fn new(phase: &str) -> Shown {
        Shown { phase: phase.to_owned(), announced: false, layers: HashMap::new() }
    }

    /// Not more than a hundred for each layer.
    fn next(&mut self, event: LayerEvent) -> Vec<Event> {
        let LayerEvent { layer, doing, done, total } = event;
        let (phase, node) = (self.phase.clone(), String::new());
        let mut events = Vec::new();
        if !std::mem::replace(&mut self.announced, true) {
            events.push(Event::PhaseStarted { phase: phase.clone(), step: Some(step::PULLING_BASE_IMAGE) });
        }
        let verb = verb(doing);
        let step = match total {
            0 => format!("{verb} {layer}"),
            _ => format!("{verb} {layer}, {}", image::human_size(total)),
        };
        let now = (done * 100).checked_div(total).unwrap_or(0);
        let state = self.layers.entry((layer, verb)).or_insert_with(|| {
            events.push(Event::StepStarted { phase: phase.clone(), step: step.clone(), node: node.clone() });
            Some((Instant::now(), 0))
        });
        let Some((since, before)) = state else { return events };
        if done == total && total > 0 {
            let elapsed = since.elapsed();
            *state = None;
            events.push(Event::StepFinished { phase, step, node, elapsed });
        } else if now > *before {
            *before = now;
            events.push(Event::StepProgress { step, node, done, total });
        }
        events
    }
}

fn verb(doing: Doing) -> &'static str {
    match doing {
        Doing::Packing => "pack",
        Doing::Sending => "send",
        Doing::Receiving => "receive",
        Doing::Unpacking => "unpack",
    }
}

/// In one sentence, with minikube's code: what is asked for wrongly, what the network or the registry withholds,
/// what the disk has no room for, and what is not what it should be.
pub fn cannot(be: &str, asked: &str, error: anyhow::Error) -> anyhow::Error {
    if error.is::<Fault>() {
        return error;
    }
    let full = |e: &(dyn std::error::Error + 'static)| {
        e.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::StorageFull)
    };
    let login;
    let (reason, advice) = match error.downcast_ref() {
        Some(RegistryError::BadReference(_)) => (Reason::Usage, "Use HOST/NAME:TAG or HOST/NAME@sha256:…"),
        Some(RegistryError::Unreachable { .. }) => (
            Reason::InetRepo,
            "Check the name and the network; a registry without encryption needs --insecure of node-image pull",
        ),
        Some(RegistryError::Missing(_)) => (Reason::InetRepo, "Check the name and the tag"),
        Some(RegistryError::Denied { host, .. }) => {
            login = format!("Log in: docker login {host}");
            (Reason::InetRepo, &*login)
        }
        Some(RegistryError::Registry { .. }) => {
            (Reason::InetRepo, "Look at the registry, or take the image from a file: node-image import FILE")
        }
        Some(RegistryError::NoSpace { .. }) => {
            (Reason::InsufficientStorage, "Free some room, or set MANYKUBE_CACHE to a larger disk")
        }
        None if error.chain().any(full) => {
            (Reason::InsufficientStorage, "Free some room, or set MANYKUBE_CACHE to a larger disk")
        }
        _ => (Reason::ImageUnusable, "Push it anew with 'manykube node-image push', or name another image"),
    };
    // The registry's sentence is whole without what was going on around it.
    let why = error.downcast_ref::<RegistryError>().map_or_else(|| format!("{error:#}"), ToString::to_string);
    Fault::new(reason, format!("The node image {asked} cannot be {be}: {why}")).advice(advice).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(doing: Doing, done: u64) -> LayerEvent {
        LayerEvent { layer: "system".into(), doing, done, total: 1000 }
    }

    #[test]
    fn a_layer_begins_once_goes_on_by_hundredths_and_ends_once() {
        let mut shown = Shown::new("Pulling");
        let mut kinds = |doing, done| -> String {
            let kind = |e: &Event| match e {
                Event::PhaseStarted { .. } => 'P',
                Event::StepStarted { .. } => 'S',
                Event::StepProgress { .. } => '.',
                Event::StepFinished { .. } => 'F',
                _ => '?',
            };
            shown.next(event(doing, done)).iter().map(kind).collect()
        };
        assert_eq!(kinds(Doing::Receiving, 0), "PS");
        assert_eq!(kinds(Doing::Receiving, 9), "");
        assert_eq!(kinds(Doing::Receiving, 500), ".");
        assert_eq!(kinds(Doing::Receiving, 1000), "F");
        assert_eq!(kinds(Doing::Receiving, 1000), "");
        assert_eq!(kinds(Doing::Unpacking, 1000), "SF");
    }

    #[test]
    fn every_reason_has_a_code() {
        let code = |error: anyhow::Error| {
            let fault = cannot("pulled", "r.example/x", error);
            let fault = fault.downcast_ref::<Fault>().expect("a fault");
            assert!(fault.message.starts_with("The node image r.example/x cannot be pulled: "));
            fault.reason.exit_code()
        };
        let host = || "r.example".to_owned();
        assert_eq!(code(RegistryError::BadReference(String::new()).into()), 14);
        assert_eq!(code(RegistryError::Unreachable { host: host(), why: String::new() }.into()), 40);
        assert_eq!(code(RegistryError::Missing(host()).into()), 40);
        assert_eq!(code(RegistryError::Denied { host: host(), user: None }.into()), 40);
        assert_eq!(code(RegistryError::NotOurs.into()), 80);
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        assert_eq!(code(anyhow::Error::from(full).context("keeping a layer")), 26);
    }
}
