use std::fmt;
use std::time::Instant;

use futures::future::LocalBoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use tokio_util::sync::CancellationToken;

use crate::{Event, crash};

/// Steps that need nothing of each other.
pub struct Phase<'a> {
    pub name: String,
    pub steps: Vec<Step<'a>>,
}

pub struct Step<'a> {
    /// The same in every run, for programs.
    pub id: String,
    /// For people.
    pub name: String,
    /// The node it is about, if it is about one.
    pub node: Option<String>,
    pub work: LocalBoxFuture<'a, anyhow::Result<()>>,
}

/// Why a plan was not finished. What was done stays done: the next run plans the rest.
#[derive(Debug)]
pub enum Failure {
    Step { step: String, node: Option<String>, source: anyhow::Error },
    TimedOut { phase: String, unfinished: Vec<String> },
    Cancelled { phase: String },
}

/// A cluster may have a hundred nodes; a few say enough.
const NAMED: usize = 5;

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Step { step, node: Some(node), .. } => write!(f, "{step} on {node}"),
            Failure::Step { step, node: None, .. } => write!(f, "{step}"),
            Failure::TimedOut { phase, unfinished } => {
                let (named, more) = unfinished.split_at(unfinished.len().min(NAMED));
                write!(f, "time is up in phase {phase:?}, still waiting for: {}", named.join(", "))?;
                if more.is_empty() { Ok(()) } else { write!(f, ", and {} more", more.len()) }
            }
            Failure::Cancelled { phase } => write!(f, "interrupted in phase {phase:?}"),
        }
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Failure::Step { source, .. } => Some(source.as_ref()),
            _ => None,
        }
    }
}

/// Runs until done, the first failure, `deadline` or `cancel`. Steps that are cut short are dropped
/// at their next await point, so they must leave things in a state that can be observed.
pub async fn run(
    phases: Vec<Phase<'_>>,
    deadline: Instant,
    cancel: &CancellationToken,
    listener: &dyn Fn(Event),
) -> Result<(), Failure> {
    let total = phases.len();
    for (index, phase) in phases.into_iter().enumerate() {
        let name = phase.name.clone();
        listener(Event::PhaseStarted { phase: name.clone(), index, total });
        let began = Instant::now();
        let mut unfinished: Vec<String> = phase.steps.iter().map(label).collect();
        let mut running: FuturesUnordered<_> =
            phase.steps.into_iter().map(|step| run_step(&name, step, listener)).collect();
        loop {
            let next = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(Failure::Cancelled { phase: name.clone() }),
                () = tokio::time::sleep_until(deadline.into()) => {
                    return Err(Failure::TimedOut { phase: name.clone(), unfinished });
                }
                next = running.next() => next,
            };
            match next {
                Some(Ok(done)) => unfinished.retain(|label| *label != done),
                Some(Err(failure)) => return Err(failure),
                None => break,
            }
        }
        listener(Event::PhaseFinished { phase: name.clone(), elapsed: began.elapsed() });
    }
    Ok(())
}

fn label(step: &Step<'_>) -> String {
    match &step.node {
        Some(node) => format!("{} on {node}", step.name),
        None => step.name.clone(),
    }
}

async fn run_step(phase: &str, step: Step<'_>, listener: &dyn Fn(Event)) -> Result<String, Failure> {
    let label = label(&step);
    let Step { id, name, node, work } = step;
    listener(Event::StepStarted { phase: phase.into(), step: name.clone(), node: node.clone() });
    let began = Instant::now();
    crash::place(&id, "before");
    let result = work.await;
    crash::place(&id, "after");
    let elapsed = began.elapsed();
    match result {
        Ok(()) => {
            listener(Event::StepFinished { phase: phase.into(), step: name, node, elapsed });
            Ok(label)
        }
        Err(source) => {
            let message = format!("{source:#}");
            listener(Event::StepFailed {
                phase: phase.into(),
                step: name.clone(),
                node: node.clone(),
                elapsed,
                message,
            });
            Err(Failure::Step { step: name, node, source })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::time::Duration;

    fn step<'a>(name: &str, work: impl Future<Output = anyhow::Result<()>> + 'a) -> Step<'a> {
        Step { id: name.into(), name: name.into(), node: None, work: Box::pin(work) }
    }

    fn phase<'a>(name: &str, steps: Vec<Step<'a>>) -> Phase<'a> {
        Phase { name: name.into(), steps }
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(5)
    }

    #[tokio::test]
    async fn phases_in_order_steps_together() {
        let log = RefCell::new(Vec::new());
        let both = tokio::sync::Barrier::new(2);
        let meet = |name: &'static str| {
            let (log, both) = (&log, &both);
            step(name, async move {
                both.wait().await;
                log.borrow_mut().push(name);
                Ok(())
            })
        };
        let phases = vec![
            phase("one", vec![meet("a"), meet("b")]),
            phase(
                "two",
                vec![step("c", async {
                    log.borrow_mut().push("c");
                    Ok(())
                })],
            ),
        ];
        run(phases, soon(), &CancellationToken::new(), &|_| {}).await.unwrap();
        assert_eq!(log.borrow().last(), Some(&"c"));
        assert_eq!(log.borrow().len(), 3);
    }

    #[tokio::test]
    async fn the_first_failure_ends_it_and_names_the_step() {
        let reached = RefCell::new(false);
        let phases = vec![
            phase(
                "one",
                vec![
                    step("hangs", std::future::pending()),
                    step("breaks", async { anyhow::bail!("no disk") }),
                ],
            ),
            phase(
                "two",
                vec![step("later", async {
                    *reached.borrow_mut() = true;
                    Ok(())
                })],
            ),
        ];
        let failure = run(phases, soon(), &CancellationToken::new(), &|_| {}).await.unwrap_err();
        assert_eq!(failure.to_string(), "breaks");
        assert_eq!(std::error::Error::source(&failure).unwrap().to_string(), "no disk");
        assert!(!*reached.borrow());
    }

    #[test]
    fn a_few_of_many_are_named() {
        let failure = |n: usize| Failure::TimedOut {
            phase: "boot".into(),
            unfinished: (1..=n).map(|i| format!("m{i}")).collect(),
        };
        assert!(failure(5).to_string().ends_with("waiting for: m1, m2, m3, m4, m5"));
        assert!(failure(33).to_string().ends_with("m5, and 28 more"));
    }

    #[tokio::test]
    async fn time_and_cancellation_end_it() {
        let hang = || vec![phase("wait", vec![step("hangs", std::future::pending())])];
        let late = Instant::now() + Duration::from_millis(20);
        let failure = run(hang(), late, &CancellationToken::new(), &|_| {}).await.unwrap_err();
        assert!(failure.to_string().contains("still waiting for: hangs"), "{failure}");
        let cancel = CancellationToken::new();
        cancel.cancel();
        assert!(matches!(run(hang(), soon(), &cancel, &|_| {}).await, Err(Failure::Cancelled { .. })));
    }
}
