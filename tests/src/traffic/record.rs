//! What clients asked, when, and whether they were answered. No IO.

use std::time::{Duration, Instant};

/// What a client does, every 50 ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Reads an object, on a new connection each time.
    Read,
    /// Makes a new object, on a new connection each time.
    Write,
    /// Reads an object, on one connection that is kept as long as it lasts. One question at a time.
    Kept,
}

pub const KINDS: [Kind; 3] = [Kind::Read, Kind::Write, Kind::Kept];

#[derive(Debug, Clone)]
pub struct Request {
    pub kind: Kind,
    pub asked: Instant,
    pub ended: Instant,
    /// Why it was not answered as it should be.
    pub failed: Option<String>,
}

#[derive(Debug, Default)]
pub struct Record {
    requests: Vec<Request>,
    /// Numbers of the objects that the API said it has.
    pub acknowledged: Vec<u64>,
}

/// What clients noticed of something that happened.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disturbance {
    /// The longest time without any answer.
    pub gap: Duration,
    /// For how long some were not answered: from the beginning to the last one asked in vain.
    pub until: Duration,
    pub failed: usize,
}

impl Record {
    pub fn add(&mut self, request: Request) {
        self.requests.push(request);
    }

    pub fn disturbance(&self, kind: Kind, from: Instant, to: Instant) -> Disturbance {
        let of_kind = || self.requests.iter().filter(|r| r.kind == kind);
        let mut answered: Vec<Instant> = of_kind().filter(|r| r.failed.is_none()).map(|r| r.ended).collect();
        answered.retain(|at| (from..=to).contains(at));
        answered.sort();
        let mut gap = Duration::ZERO;
        let mut last = from;
        for at in answered.into_iter().chain([to]) {
            gap = gap.max(at.saturating_duration_since(last));
            last = at;
        }
        let failed: Vec<Instant> = of_kind()
            .filter(|r| r.failed.is_some() && (from..=to).contains(&r.asked))
            .map(|r| r.asked)
            .collect();
        let until = failed.iter().max().map_or(Duration::ZERO, |at| at.saturating_duration_since(from));
        Disturbance { gap, until, failed: failed.len() }
    }

    /// Whoever asked since `from` and is done was answered, and each kind of client was at least
    /// `times`.
    pub fn calm(&self, from: Instant, times: usize) -> Result<(), String> {
        let recent = || self.requests.iter().filter(|r| r.ended >= from);
        if let Some(failed) = recent().find(|r| r.failed.is_some()) {
            return Err(format!("{:?}: {}", failed.kind, failed.failed.clone().unwrap_or_default()));
        }
        for kind in KINDS {
            let answers = recent().filter(|r| r.kind == kind).count();
            if answers < times {
                return Err(format!("{kind:?}: only {answers} answers, not {times}"));
            }
        }
        Ok(())
    }

    /// Why requests of this time failed, each reason once, with how often.
    pub fn reasons(&self, from: Instant, to: Instant) -> Vec<(String, usize)> {
        let mut reasons: Vec<(String, usize)> = Vec::new();
        for request in self.requests.iter().filter(|r| (from..=to).contains(&r.asked)) {
            let Some(why) = &request.failed else { continue };
            let why = format!("{:?}: {why}", request.kind);
            match reasons.iter_mut().find(|(known, _)| *known == why) {
                Some((_, count)) => *count += 1,
                None => reasons.push((why, 1)),
            }
        }
        reasons
    }
}

/// The value that `percent` of all do not exceed (nearest rank).
pub fn percentile(values: &[Duration], percent: usize) -> Duration {
    let mut sorted = values.to_vec();
    sorted.sort();
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn record(began: Instant, requests: &[(u64, u64, bool)]) -> Record {
        let mut record = Record::default();
        for (asked, ended, well) in requests {
            let failed = (!well).then(|| "late".to_owned());
            record.add(Request {
                kind: Kind::Read,
                asked: began + ms(*asked),
                ended: began + ms(*ended),
                failed,
            });
        }
        record
    }

    #[test]
    fn gaps_reach_from_answer_to_answer() {
        let t = Instant::now();
        // Answers may overtake each other.
        let record = record(
            t,
            &[(0, 10, true), (50, 700, false), (100, 300, true), (150, 160, true), (600, 900, true)],
        );
        let seen = record.disturbance(Kind::Read, t, t + ms(1000));
        assert_eq!((seen.gap, seen.until, seen.failed), (ms(600), ms(50), 1));
        assert_eq!(record.disturbance(Kind::Read, t + ms(900), t + ms(1000)).gap, ms(100));
        assert_eq!(record.disturbance(Kind::Write, t, t + ms(1000)).gap, ms(1000));
        assert_eq!(record.reasons(t, t + ms(1000)), [("Read: late".to_owned(), 1)]);
    }

    #[test]
    fn percentiles_are_values_that_were_seen() {
        let values: Vec<Duration> = (1..=20).rev().map(ms).collect();
        assert_eq!((percentile(&values, 50), percentile(&values, 99)), (ms(10), ms(20)));
        assert_eq!(percentile(&[ms(7)], 50), ms(7));
        assert_eq!(percentile(&[], 99), ms(0));
    }
}
