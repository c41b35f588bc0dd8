//! The health of this node's own API server.
//!
//! Two questions, because they have different costs of being wrong. `/livez` without its etcd check
//! is about the process alone: it must come soon, or the server hangs (a slow disk delays etcd, not
//! this). `/readyz` is about everything behind it, and only decides whether new connections go
//! there. Before its roles exist a server answers 403 to strangers, and 401 where they are not
//! allowed: it serves, and more we cannot know.

use std::net::SocketAddrV4;
use std::time::Duration;

use anyhow::Result;
use model::node_spec::Health;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::probe::Probe;

const LIVE: Question = Question {
    path: "/livez?exclude=etcd",
    every: Duration::from_millis(200),
    // This alone is the debounce of a hang: one long wait tolerates a busy machine better than two
    // short ones that add up to the same.
    patience: Duration::from_millis(600),
    // A machine that boots three of them is slow: who has just answered late is waited for longer.
    longest: Duration::from_millis(1800),
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

struct Question {
    path: &'static str,
    every: Duration,
    patience: Duration,
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

/// Asks forever and tells the verdict.
pub async fn watch(target: SocketAddrV4, verdict: &watch::Sender<Health>) -> Result<()> {
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
        result = keep_asking(&LIVE, target, live) => result,
        result = keep_asking(&READY, target, ready) => result,
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

async fn keep_asking(question: &Question, target: SocketAddrV4, told: watch::Sender<Answer>) -> Result<()> {
    let mut probe = Probe::new(target)?;
    let mut failures = 0;
    let mut usual = Duration::ZERO;
    loop {
        let asked = Instant::now();
        let answer = match timeout(question.patience(usual), probe.get(question.path)).await {
            Err(_) => Answer::Late,
            Ok(Err(_)) => Answer::No,
            Ok(Ok((status, _))) => judge(status),
        };
        let well = matches!(answer, Answer::Yes | Answer::Unknown);
        failures = if well { 0 } else { failures + 1 };
        if well {
            usual = slowest(usual, asked.elapsed());
        }
        if well || failures >= FAILURES || (question.late_is_lost && answer == Answer::Late) {
            told.send_if_modified(|before| std::mem::replace(before, answer) != answer);
        }
        // Only the first failure is worth a hurry: what stays down is asked at the usual pace.
        sleep_until(asked + if failures == 1 { AGAIN } else { question.every }).await;
    }
}

impl Question {
    fn patience(&self, usual: Duration) -> Duration {
        (usual * 4).clamp(self.patience, self.longest)
    }
}

/// The slowest answer of late, forgotten in a few seconds.
fn slowest(before: Duration, answer: Duration) -> Duration {
    answer.max(before.mul_f64(0.9))
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
    fn who_answers_late_is_waited_for_longer() {
        let ms = Duration::from_millis;
        assert_eq!(LIVE.patience(Duration::ZERO), ms(600));
        assert_eq!(LIVE.patience(ms(20)), ms(600));
        assert_eq!(LIVE.patience(ms(250)), ms(1000));
        assert_eq!(LIVE.patience(ms(599)), ms(1800));
        let later = (0..15).fold(ms(500), |usual, _| slowest(usual, ms(5)));
        assert!(later < ms(110), "{later:?} after 3 seconds");
    }

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
