//! Checks rosters: each post has a member as its holder, of one generation, under a fence that was
//! given.

use std::collections::BTreeSet;

use super::view::View;
use crate::violation::Wrong;

/// The most posts of a roster.
const POSTS_MAX: u64 = 1024;

pub(super) fn check(view: &View<'_>, wrong: &mut Wrong) {
    if view.meta("count") == 0 {
        return;
    }
    check_members(view, wrong);
    check_posts(view, wrong);
    check_positions(view, wrong);
    check_source(view, wrong);
}

fn check_source(view: &View<'_>, wrong: &mut Wrong) {
    let is_number = |text: &String| text.parse::<f64>().is_ok_and(|number| number >= 0.0);
    for (field, text) in view.pairs("control").iter().filter(|(_, text)| !is_number(text)) {
        wrong.add("control", format!("{field} of the source is {text:?}"));
    }
    for slice in view.pairs("scans").keys() {
        if !slice.parse::<u64>().is_ok_and(|slice| slice < POSTS_MAX) {
            wrong.add("scans", format!("{slice:?} has figures and is no slice"));
        }
    }
}

fn check_members(view: &View<'_>, wrong: &mut Wrong) {
    let (workers, joined) = (view.pairs("workers"), view.pairs("joined"));
    for member in workers.keys().filter(|member| !joined.contains_key(*member)) {
        wrong.add("joined", format!("the member {member} has not joined"));
    }
    for member in joined.keys().filter(|member| !workers.contains_key(*member)) {
        wrong.add("joined", format!("{member} has joined and is no member"));
    }
}

fn check_posts(view: &View<'_>, wrong: &mut Wrong) {
    let (members, fence) = (view.pairs("workers"), view.meta("fence"));
    let (generation, count) = (view.meta("generation"), view.meta("count"));
    if count > POSTS_MAX || generation > fence {
        wrong.add("meta", format!("the roster has {count} posts of generation {generation}"));
    }
    let fences = view.pairs("fences");
    for (index, last) in &fences {
        let is_number = index.parse::<u64>().is_ok_and(|index| index < POSTS_MAX);
        if !is_number || !last.parse::<u64>().is_ok_and(|last| last <= fence) {
            wrong.add("fences", format!("the last fence of the post {index:?} is {last:?}"));
        }
    }
    let mut generations = BTreeSet::new();
    for (post, holder) in view.pairs("posts") {
        let words: Vec<&str> = holder.split(' ').collect();
        let [member, own, "keep" | "drop", since] = words[..] else {
            wrong.add("posts", format!("the post {post} has the holder {holder:?}"));
            continue;
        };
        let Some((its, index)) = place(&post).filter(|_| since.parse::<u64>().is_ok()) else {
            wrong.add("posts", format!("{post} is no post, held since {since}"));
            continue;
        };
        generations.insert(its);
        if !members.contains_key(member) {
            wrong.add("posts", format!("the post {post} is held by {member}, who is no member"));
        }
        if own.parse::<u64>().is_ok_and(|own| own > fence) {
            wrong.add(
                "posts",
                format!("the post {post} is held under a fence that was not given yet"),
            );
        }
        if fences.get(&index.to_string()).is_none_or(|last| last != own) {
            let text = format!("the post {post} is held, and its fence {own} is not noted");
            if its < generation {
                wrong.at_rest("fences", text);
            } else {
                wrong.add("fences", text);
            }
        }
        if its == generation && index >= count || its > generation {
            wrong.add(
                "posts",
                format!("the post {post} is none of {count} of generation {generation}"),
            );
        }
    }
    // After a store has lost writes, a member may come with posts of a later generation, while what
    // another one has given back counts as held until its next heartbeat.
    if generations.len() > 1 {
        wrong.at_rest(
            "posts",
            format!("posts of the generations {generations:?} are held at the same time"),
        );
    }
}

fn check_positions(view: &View<'_>, wrong: &mut Wrong) {
    let generations = view.pairs("generations");
    let is_begun = view.meta("generation") > 0;
    if is_begun && !generations.contains_key(&view.meta("generation").to_string()) {
        wrong.add("generations", "the present generation is not among the generations");
    }
    for post in view.pairs("positions").keys().filter(|post| place(post).is_none()) {
        wrong.add("positions", format!("{post:?} has a position and is no post"));
    }
    let (failures, aside) = (view.pairs("failures"), view.pairs("aside"));
    if failures.keys().ne(aside.keys()) {
        wrong.add("aside", "the rows that failed are not those that are set aside");
    }
}

fn place(post: &str) -> Option<(u64, u64)> {
    let (generation, index) = post.split_once('/')?;
    Some((generation.parse().ok()?, index.parse().ok()?))
}
