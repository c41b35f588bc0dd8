//! What one control plane knows of the others, and when it learnt it.
//!
//! A claim is "X holds the address since election T, heard of X so long ago". Each member passes on
//! the best one it knows. Two majorities have a member in common, so a member that is in contact with
//! one knows of the holder that is in contact with another, at the latest by what the common member
//! passes on. Only X makes its claim younger, and a claim goes no further than two members (else those
//! that tell each other would keep it alive by the time that it takes to tell), so it ends everywhere
//! with X.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;

use super::advert::{Advert, Claim, HOPS, Standing};
use super::election::{DOWN, Time};

/// Control planes that were silent for so long are not counted by one that has etcd's majority: they
/// have left etcd, or are not in it yet. Longer than that proof lasts and the time that it takes to
/// notice its end: what is cut off now is still counted when the proof ends.
const COUNTED: Duration = Duration::from_secs(20);

#[derive(Debug, Clone)]
pub struct Others {
    me: Ipv4Addr,
    peers: BTreeMap<Ipv4Addr, Peer>,
    /// Of other holders.
    claims: BTreeMap<Ipv4Addr, Known>,
    /// This node's time.
    now: Time,
}

#[derive(Debug, Clone, Default)]
struct Peer {
    heard: Option<(Time, Advert)>,
    /// When there was last anything from it, unless it has left.
    spoke: Option<Time>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    term: u64,
    /// When the holder was heard: by us, by one that told us, by one that told that one.
    heard: [Option<Time>; HOPS as usize + 1],
}

/// What changes with a peer's word.
pub struct Word {
    /// The peer was silent.
    pub comes_back: bool,
    /// The peer held the address.
    pub resigns: bool,
}

impl Others {
    pub fn new(me: Ipv4Addr, all: &BTreeSet<Ipv4Addr>) -> Others {
        let mut others = Others { me, peers: BTreeMap::new(), claims: BTreeMap::new(), now: Time::ZERO };
        others.set(all);
        others
    }

    /// The control planes are these now.
    pub fn set(&mut self, all: &BTreeSet<Ipv4Addr>) {
        let known = |ip| (ip, self.peers.get(&ip).cloned().unwrap_or_default());
        self.peers = all.iter().copied().filter(|ip| *ip != self.me).map(known).collect();
        self.claims.retain(|ip, _| self.peers.contains_key(ip));
    }

    pub fn now(&self) -> Time {
        self.now
    }

    pub fn since(&self, at: Time) -> Duration {
        self.now.saturating_sub(at)
    }

    /// This much time of this node passes.
    pub fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    pub fn is_empty(&self) -> bool {
        self.peers.is_empty()
    }

    pub fn ips(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.peers.keys().copied()
    }

    /// Of all control planes, this node among them.
    pub fn size(&self) -> usize {
        1 + self.peers.len()
    }

    /// Those that spoke at any time of late, and this node.
    pub fn counted(&self) -> usize {
        let spoke = |p: &&Peer| p.spoke.is_some_and(|at| self.since(at) < COUNTED);
        1 + self.peers.values().filter(spoke).count()
    }

    /// This node and those that hear it and are heard.
    pub fn contact(&self) -> usize {
        let both_ways = |a: &Advert| a.standing != Standing::Leaving && a.hears.contains(&self.me);
        1 + self.fresh().filter(|(_, a)| both_ways(a)).count()
    }

    /// What those say that are heard.
    pub fn fresh(&self) -> impl Iterator<Item = (Ipv4Addr, &Advert)> {
        let heard = self.peers.iter().filter_map(|(ip, p)| p.heard.as_ref().map(|(at, a)| (*ip, *at, a)));
        heard.filter(|(_, at, _)| self.is_recent(*at)).map(|(ip, _, advert)| (ip, advert))
    }

    /// The best peer that stands at least so well.
    pub fn best(&self, least: Standing) -> Option<Ipv4Addr> {
        let able = self.fresh().filter(|(_, a)| a.standing >= least && a.majority);
        able.max_by_key(|(ip, a)| (a.standing, Reverse(*ip))).map(|(ip, _)| ip)
    }

    /// `None` for a stranger.
    pub fn hear(&mut self, from: Ipv4Addr, advert: Advert) -> Option<Word> {
        let last = self.peers.get(&from)?.heard.as_ref();
        let word = Word {
            comes_back: last.is_none_or(|(at, _)| !self.is_recent(*at)),
            resigns: last.is_some_and(|(_, a)| a.holds(from)) && !advert.holds(from),
        };
        if !advert.holds(from) {
            self.claims.remove(&from);
        }
        let spoke = (advert.standing != Standing::Leaving).then_some(self.now);
        self.peers.insert(from, Peer { heard: Some((self.now, advert)), spoke });
        Some(word)
    }

    /// Something from a peer that is no advertisement with our key.
    pub fn noise(&mut self, from: Ipv4Addr) {
        if let Some(peer) = self.peers.get_mut(&from) {
            peer.spoke = Some(self.now);
        }
    }

    /// When the holder was heard; `None` if that is too long ago, or denied by the holder itself.
    pub fn learn(&mut self, from: Ipv4Addr, claim: Claim) -> Option<Time> {
        let holder = self.peers.get(&claim.holder)?;
        let at = self.now.saturating_sub(claim.age);
        // What the holder itself has said since outweighs what others heard of it before.
        let denied = |(said, advert): &(Time, Advert)| !advert.holds(claim.holder) && *said >= at;
        if !self.is_recent(at) || (from != claim.holder && holder.heard.as_ref().is_some_and(denied)) {
            return None;
        }
        let known =
            self.claims.entry(claim.holder).or_insert(Known { term: claim.term, heard: Default::default() });
        known.term = known.term.max(claim.term);
        let heard = &mut known.heard[usize::from(claim.hops.min(HOPS))];
        *heard = (*heard).max(Some(at));
        Some(at)
    }

    /// The one that holds the address, as far as this node knows.
    pub fn claim(&self) -> Option<Ipv4Addr> {
        self.best_claim(HOPS).map(|(holder, _)| holder)
    }

    /// What this node tells the others of another's claim.
    pub fn pass_on(&self) -> Option<Claim> {
        let (holder, known) = self.best_claim(HOPS - 1)?;
        let (hops, at) = self.evidence(&known, HOPS - 1)?;
        Some(Claim { holder, term: known.term, age: self.since(at), hops: hops + 1 })
    }

    /// Of those that were heard so near.
    fn best_claim(&self, hops: u8) -> Option<(Ipv4Addr, Known)> {
        let alive = self.claims.iter().filter(|(_, c)| self.evidence(c, hops).is_some());
        alive.max_by_key(|(ip, c)| (c.term, Reverse(**ip))).map(|(ip, c)| (*ip, *c))
    }

    /// The nearest that is not too old, with its distance.
    fn evidence(&self, known: &Known, hops: u8) -> Option<(u8, Time)> {
        let mut near = (0..=hops).filter_map(|hops| Some((hops, known.heard[usize::from(hops)]?)));
        near.find(|(_, at)| self.is_recent(*at))
    }

    fn is_recent(&self, at: Time) -> bool {
        self.since(at) < DOWN
    }
}
