//! Every way to cut the links between three and between five control planes, of which the host
//! reaches all: there is one holder, in contact with a majority, or none if none could be.

use proptest::test_runner::TestCaseError;

use super::simulation::{Fault, LONGEST_GAP, World};
use super::*;

/// All links between so many machines.
fn links(size: usize) -> Vec<(usize, usize)> {
    (0..size).flat_map(|a| (a + 1..size).map(move |b| (a, b))).collect()
}

fn settled(size: u8) -> Result<World, TestCaseError> {
    let mut world = World::new(size, 0.0, 7);
    world.start_all(Health::Ready);
    world.run(Duration::from_secs(4))?;
    Ok(world)
}

fn holders(world: &World) -> Vec<usize> {
    (0..world.machines.len()).filter(|i| world.machines[*i].holds).collect()
}

/// After one election, and when all that the time of an election rests on has passed.
fn one_holder(world: &mut World, long: bool) -> Result<(), String> {
    let before = holders(world);
    let moves = world.moves;
    let stays = before.iter().any(|i| world.has_majority(*i));
    let could = (0..world.machines.len()).any(|i| world.has_majority(i));
    world.run(LONGEST_GAP).map_err(|e| e.to_string())?;
    let now = holders(world);
    if now.len() != usize::from(could) || !now.iter().all(|i| world.has_majority(*i)) {
        return Err(format!("holders {now:?}, one could: {could}"));
    }
    if stays && (now != before || world.moves != moves) {
        return Err(format!("it moved from {before:?} to {now:?}"));
    }
    let moves = world.moves;
    world.run(Duration::from_secs(if long { 40 } else { 1 })).map_err(|e| e.to_string())?;
    if holders(world) == now && world.moves == moves {
        Ok(())
    } else {
        Err(format!("{now:?} did not stay: {:?}", holders(world)))
    }
}

fn every_cut(size: u8, long: impl Fn(u32) -> bool) {
    let links = links(usize::from(size));
    let world = settled(size).expect("a world");
    for set in 0..1u32 << links.len() {
        let mut world = world.clone();
        let cut: Vec<_> = (0..links.len()).filter(|i| set & (1 << i) != 0).map(|i| links[i]).collect();
        cut.iter().for_each(|(a, b)| world.break_link(*a, *b));
        if let Err(why) = one_holder(&mut world, long(set)) {
            panic!("cut {cut:?}: {why}");
        }
        // Healed, there is one again, and one that was left in peace stays.
        let kept = holders(&world);
        world.broken.clear();
        world.run(LONGEST_GAP).expect("healed");
        let now = holders(&world);
        assert!(now.len() == 1 && (kept.is_empty() || now == kept), "cut {cut:?}, healed: {kept:?}, {now:?}");
    }
}

#[test]
fn three_with_any_links_cut() {
    every_cut(3, |_| true);
}

#[test]
fn five_with_any_links_cut() {
    every_cut(5, |set| set % 16 == 3);
}

#[test]
fn a_member_dies_while_links_are_cut() {
    let world = settled(5).expect("a world");
    for (a, b) in links(5) {
        for dead in 0..5 {
            let mut world = world.clone();
            world.break_link(a, b);
            world.fault(dead, Fault::Kill);
            one_holder(&mut world, false).unwrap_or_else(|why| panic!("{a}-{b} cut, {dead} dead: {why}"));
        }
    }
}
