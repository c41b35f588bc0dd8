//! When the network is told that the address is here.

use std::time::Duration;

use super::election::Time;

/// After taking the address; some may be lost or come too early.
const SOON: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_millis(40),
    Duration::from_millis(150),
    Duration::from_millis(400),
    Duration::from_millis(1000),
];
/// And later, for those that heard of the address from a node that did not know better.
const REMIND: Duration = Duration::from_secs(2);

/// Of one time of holding the address.
pub struct Announcements {
    since: Time,
    made: usize,
    next: Time,
}

impl Announcements {
    pub fn begin(now: Time) -> Announcements {
        Announcements { since: now, made: 0, next: now }
    }

    pub fn is_due(&mut self, now: Time) -> bool {
        if now < self.next {
            return false;
        }
        self.made += 1;
        self.next = SOON.get(self.made).map_or(now + REMIND, |after| self.since + *after);
        true
    }

    pub fn pause(&self, now: Time) -> Duration {
        self.next.saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_at_first_and_then_now_and_again() {
        let mut all = Announcements::begin(Duration::from_secs(1));
        let due: Vec<u64> = (1000..8000).filter(|ms| all.is_due(Duration::from_millis(*ms))).collect();
        assert_eq!(due, [1000, 1040, 1150, 1400, 2000, 4000, 6000]);
    }
}
