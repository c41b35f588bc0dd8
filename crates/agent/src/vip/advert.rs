//! What control planes tell each other, in one datagram.
//!
//! ```text
//!  0      4          5        6       7         8      16    20       24          28
//!  | MKV2 | standing | health | flags | n heard | term | vip | sender | successor | stamp |
//!  36              40           48          52
//!  | claim: holder | its term   | its age   | n addresses | tag (32 bytes) |
//! ```
//! Numbers are in network order, an address of 0.0.0.0 is none, an age is in milliseconds. Flag 1: the
//! sender is in contact with a majority; the two bits above it are how far the claim has come. The tag is HMAC-SHA256 of all before it with a key that only
//! the control planes' agents have. The sender is part of it, so that nothing can be sent on under
//! another address; for the stamp see `replay`. As in VRRP (RFC 9568, 5.1.1.3) packets travel with a
//! TTL of 255 and are dropped when they arrive with less: what comes from elsewhere costs no look.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use model::node_spec::Health;
use ring::hmac;

/// Room for the longest one.
pub const SIZE: usize = HEAD + 4 * MOST + TAG;
const HEAD: usize = 52;
const TAG: usize = 32;
const MOST: usize = 255;
const MAGIC: [u8; 4] = *b"MKV2";
const MAJORITY: u8 = 1;
/// As far as a claim goes.
pub const HOPS: u8 = 2;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advert {
    /// Of the election that the holder won; from others, the highest they have seen.
    pub term: u64,
    pub standing: Standing,
    pub health: Health,
    /// The best that the sender knows: its own, if it holds the address.
    pub claim: Option<Claim>,
    /// The sender has just given the address up for this one.
    pub successor: Option<Ipv4Addr>,
    /// The sender is in contact with a majority.
    pub majority: bool,
    /// Whom the sender hears.
    pub hears: BTreeSet<Ipv4Addr>,
}

/// Who holds the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    pub holder: Ipv4Addr,
    pub term: u64,
    /// How long ago the holder was heard.
    pub age: Duration,
    /// Who heard it: 0 for the holder's own word, 1 for the sender, 2 for one that told the sender.
    pub hops: u8,
}

/// How well a control plane would do as the holder (VRRP's priority).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Going down: not to be reckoned with any more (VRRP's priority 0).
    Leaving,
    /// Its API server does not answer.
    Down,
    /// Its API server has only just begun to answer.
    New,
    Fit,
}

/// What belongs to one election and to no other.
#[derive(Clone)]
pub struct Seal {
    key: hmac::Key,
    vip: Ipv4Addr,
}

impl Seal {
    pub fn new(key: &str, vip: Ipv4Addr) -> Seal {
        Seal { key: hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes()), vip }
    }
}

impl Advert {
    /// `from` holds the address.
    pub fn holds(&self, from: Ipv4Addr) -> bool {
        self.claim.is_some_and(|claim| claim.holder == from)
    }

    pub fn encode(&self, seal: &Seal, from: Ipv4Addr, stamp: u64) -> Vec<u8> {
        let ip = |ip: Option<Ipv4Addr>| ip.unwrap_or(Ipv4Addr::UNSPECIFIED).octets();
        let hears = || self.hears.iter().take(MOST);
        let claim = self.claim;
        let mut packet = MAGIC.to_vec();
        let hops = claim.map_or(0, |c| c.hops.min(HOPS)) << 1;
        packet.extend([self.standing as u8, self.health as u8, u8::from(self.majority) | hops]);
        packet.push(u8::try_from(hears().count()).unwrap_or(u8::MAX));
        packet.extend(self.term.to_be_bytes());
        packet.extend(seal.vip.octets());
        packet.extend(from.octets());
        packet.extend(ip(self.successor));
        packet.extend(stamp.to_be_bytes());
        packet.extend(ip(claim.map(|c| c.holder)));
        packet.extend(claim.map_or(0, |c| c.term).to_be_bytes());
        let age = claim.map_or(0, |c| c.age.as_millis());
        packet.extend(u32::try_from(age).unwrap_or(u32::MAX).to_be_bytes());
        hears().for_each(|ip| packet.extend(ip.octets()));
        let tag = hmac::sign(&seal.key, &packet);
        packet.extend(tag.as_ref());
        packet
    }

    /// With its stamp. `None` for whatever `from` did not make with our key for this election.
    pub fn decode(packet: &[u8], seal: &Seal, from: Ipv4Addr) -> Option<(Advert, u64)> {
        let (text, tag) = packet.split_at_checked(packet.len().checked_sub(TAG)?)?;
        hmac::verify(&seal.key, text, tag).ok()?;
        let (head, hears) = text.split_at_checked(HEAD)?;
        if head[..4] != MAGIC || head[16..20] != seal.vip.octets() || head[20..24] != from.octets() {
            return None;
        }
        if hears.len() != 4 * usize::from(head[7]) {
            return None;
        }
        let standing = [Standing::Leaving, Standing::Down, Standing::New, Standing::Fit];
        let health = [Health::Down, Health::Alive, Health::Ready];
        let number = |at: usize| Some(u64::from_be_bytes(head[at..at + 8].try_into().ok()?));
        let age = u32::from_be_bytes(head[48..52].try_into().ok()?);
        let advert = Advert {
            term: number(8)?,
            standing: *standing.get(usize::from(head[4]))?,
            health: *health.get(usize::from(head[5]))?,
            claim: match address(&head[36..40]) {
                Some(holder) => Some(Claim {
                    holder,
                    term: number(40)?,
                    age: Duration::from_millis(age.into()),
                    hops: (head[6] >> 1).min(HOPS),
                }),
                None => None,
            },
            successor: address(&head[24..28]),
            majority: head[6] & MAJORITY != 0,
            hears: hears.chunks_exact(4).filter_map(address).collect(),
        };
        Some((advert, number(28)?))
    }
}

fn address(octets: &[u8]) -> Option<Ipv4Addr> {
    let ip = Ipv4Addr::from(<[u8; 4]>::try_from(octets).ok()?);
    (!ip.is_unspecified()).then_some(ip)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VIP: Ipv4Addr = Ipv4Addr::new(192, 168, 49, 254);
    const FROM: Ipv4Addr = Ipv4Addr::new(192, 168, 49, 2);
    const OTHER: Ipv4Addr = Ipv4Addr::new(192, 168, 49, 3);

    fn advert() -> Advert {
        Advert {
            term: 1 << 40,
            standing: Standing::Fit,
            health: Health::Ready,
            claim: Some(Claim { holder: OTHER, term: u64::MAX, age: Duration::from_millis(140), hops: 2 }),
            successor: None,
            majority: true,
            hears: [OTHER, Ipv4Addr::new(192, 168, 49, 4)].into(),
        }
    }

    #[test]
    fn what_is_told_is_heard() {
        let seal = Seal::new("secret", VIP);
        for standing in [Standing::Leaving, Standing::Down, Standing::New, Standing::Fit] {
            for health in [Health::Down, Health::Alive, Health::Ready] {
                for successor in [None, Some(OTHER)] {
                    let advert = Advert { standing, health, successor, ..advert() };
                    let packet = advert.encode(&seal, FROM, 7);
                    assert_eq!(Advert::decode(&packet, &seal, FROM), Some((advert, 7)));
                }
            }
        }
        let plain = Advert { claim: None, majority: false, hears: BTreeSet::new(), ..advert() };
        let packet = plain.encode(&seal, FROM, u64::MAX);
        assert_eq!(Advert::decode(&packet, &seal, FROM), Some((plain, u64::MAX)));
        let all = Advert { hears: (0..300).map(|n| Ipv4Addr::from(1 + n)).collect(), ..advert() };
        assert_eq!(all.encode(&seal, FROM, 0).len(), SIZE);
    }

    #[test]
    fn only_the_key_the_election_and_the_sender_fit() {
        let packet = advert().encode(&Seal::new("secret", VIP), FROM, 7);
        let heard = |key: &str, vip, from| Advert::decode(&packet, &Seal::new(key, vip), from).is_some();
        assert!(heard("secret", VIP, FROM));
        assert!(!heard("guessed", VIP, FROM), "made without the key");
        assert!(!heard("secret", Ipv4Addr::new(10, 0, 0, 254), FROM), "of another election");
        assert!(!heard("secret", VIP, OTHER), "sent on under another address");
    }

    proptest! {
        #[test]
        fn no_bit_can_be_changed(at in 0usize..92, bit in 0u8..8) {
            let seal = Seal::new("secret", VIP);
            let mut packet = advert().encode(&seal, FROM, 7);
            packet[at] ^= 1 << bit;
            prop_assert_eq!(Advert::decode(&packet, &seal, FROM), None);
        }

        #[test]
        fn noise_is_no_advert(noise in prop::collection::vec(any::<u8>(), 0..120)) {
            prop_assert_eq!(Advert::decode(&noise, &Seal::new("secret", VIP), FROM), None);
        }
    }
}
