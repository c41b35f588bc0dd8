//! The health of this node's own API server.
//!
//! Two questions, because they have different costs of being wrong. `/livez` without its etcd check
//! is about the process alone (a slow disk delays etcd, not this). While no answer comes, the state of
//! the process tells a server that was stopped from one on a busy machine. `/readyz` is about everything
//! behind it, and only decides whether new connections go there. Before its roles exist a server answers 403 to strangers, and 401 where they are not
//! allowed: it serves, and more we cannot know.

use std::net::SocketAddrV4;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use model::node_spec::Health;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::probe::Probe;
use super::server::Process;

const LIVE: Question = Question {
    path: "/livez?exclude=etcd",
    every: Duration::from_millis(200),
    patience: Duration::from_millis(600),
    // A machine that is busy many times over lets a server wait for seconds; connections to it live on.
    longest: Duration::from_secs(10),
    late_is_lost: true,
};

const READY: Question = Question {
    path: "/readyz",
    every: Duration::from_millis(400),
    patience: Duration::from_secs(2),
    longest: Duration::from_secs(2),
    late_is_lost: false,
};

/// After a failure the next question comes sooner.
const AGAIN: Duration = Duration::from_millis(50);
const FAILURES: u32 = 2;
/// Between two looks at a server that does not answer.
const LOOK: Duration = Duration::from_millis(100);

struct Question {
    path: &'static str,
    every: Duration,
    /// An answer is late after this time if the server is stopped, or not known,
    patience: Duration,
    /// and after this time in any case.
    longest: Duration,
    /// One answer that did not come in time is enough.
    late_is_lost: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Yes,
    /// It serves, but does not tell us.
    Unknown,
    No,
    Late,
}

/// The API server, as far as it is known.
pub struct Server {
    pub target: SocketAddrV4,
    pub process: watch::Receiver<Option<Arc<Process>>>,
}

/// Asks forever and tells the verdict.
pub async fn watch(server: &Server, verdict: &watch::Sender<Health>, log: &dyn Fn(String)) -> Result<()> {
    let (live, ready) = (watch::Sender::new(Answer::No), watch::Sender::new(Answer::No));
    let (mut live_seen, mut ready_seen) = (live.subscribe(), ready.subscribe());
    let conclude = async {
        loop {
            let health = health(*live_seen.borrow_and_update(), *ready_seen.borrow_and_update());
            verdict.send_if_modified(|before| std::mem::replace(before, health) != health);
            tokio::select! {
                _ = live_seen.changed() => {}
                _ = ready_seen.changed() => {}
            }
        }
    };
    tokio::select! {
        result = keep_asking(&LIVE, server, live, log) => result,
        result = keep_asking(&READY, server, ready, log) => result,
        () = conclude => Ok(()),
    }
}

fn health(live: Answer, ready: Answer) -> Health {
    match (live, ready) {
        (Answer::No | Answer::Late, _) => Health::Down,
        (_, Answer::Yes) => Health::Ready,
        _ => Health::Alive,
    }
}

async fn keep_asking(
    question: &Question,
    server: &Server,
    told: watch::Sender<Answer>,
    log: &dyn Fn(String),
) -> Result<()> {
    let mut probe = Probe::new(server.target)?;
    let mut failures = 0;
    loop {
        let asked = Instant::now();
        // Not borrowed while waiting: the agent's thread writes it.
        let process = server.process.borrow().clone();
        let answer = ask(question, &mut probe, process.as_deref()).await;
        let well = matches!(answer, Answer::Yes | Answer::Unknown);
        failures = if well { 0 } else { failures + 1 };
        if well || failures >= FAILURES || (question.late_is_lost && answer == Answer::Late) {
            let news = told.send_if_modified(|before| std::mem::replace(before, answer) != answer);
            if news && !well {
                log(format!("{}: {answer:?} after {:?}", question.path, asked.elapsed()));
            }
        }
        // Only the first failure is worth a hurry: what stays down is asked at the usual pace.
        sleep_until(asked + if failures == 1 { AGAIN } else { question.every }).await;
    }
}

async fn ask(question: &Question, probe: &mut Probe, process: Option<&Process>) -> Answer {
    let asked = Instant::now();
    let mut answer = pin!(probe.get(question.path));
    loop {
        match timeout(LOOK, &mut answer).await {
            Ok(Ok((status, _))) => return judge(status),
            Ok(Err(_)) => return Answer::No,
            Err(_) if asked.elapsed() >= question.patience(process) => return Answer::Late,
            Err(_) => {}
        }
    }
}

impl Question {
    fn patience(&self, process: Option<&Process>) -> Duration {
        if process.is_none_or(Process::is_stopped) { self.patience } else { self.longest }
    }
}

fn judge(status: u16) -> Answer {
    match status {
        200 => Answer::Yes,
        500.. => Answer::No,
        _ => Answer::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_from_two_answers() {
        assert_eq!(health(judge(200), judge(200)), Health::Ready);
        assert_eq!(health(judge(200), judge(500)), Health::Alive);
        assert_eq!(health(judge(403), judge(403)), Health::Alive);
        assert_eq!(health(judge(401), judge(401)), Health::Alive);
        assert_eq!(health(judge(403), judge(200)), Health::Ready);
        assert_eq!(health(judge(500), judge(200)), Health::Down);
        assert_eq!(health(Answer::Late, judge(200)), Health::Down);
        assert_eq!(health(Answer::No, Answer::No), Health::Down);
    }
}
