//! The layer of each node.

use super::Link;

/// The links that close a cycle, on a walk from the first node.
pub(super) fn turned(count: usize, links: &[Link]) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (index, link) in links.iter().enumerate() {
        out[link.from].push(index);
    }
    let mut marks = vec![Mark::New; count];
    let mut turned = vec![false; links.len()];
    for root in 0..count {
        if marks[root] != Mark::New {
            continue;
        }
        marks[root] = Mark::Open;
        let mut path = vec![(root, 0)];
        while let Some((node, next)) = path.last_mut() {
            let Some(&link) = out[*node].get(*next) else {
                marks[*node] = Mark::Done;
                path.pop();
                continue;
            };
            *next += 1;
            let to = links[link].to;
            match marks[to] {
                Mark::New => {
                    marks[to] = Mark::Open;
                    path.push((to, 0));
                }
                Mark::Open => turned[link] = true,
                Mark::Done => {}
            }
        }
    }
    turned
}

/// A rank for each node, below all nodes that lead to it.
pub(super) fn ranks(count: usize, links: &[Link], turned: &[bool]) -> Vec<usize> {
    let edges: Vec<(usize, usize)> = links
        .iter()
        .zip(turned)
        .filter(|(link, _)| link.from != link.to)
        .map(|(link, &turned)| {
            if turned {
                (link.to, link.from)
            } else {
                (link.from, link.to)
            }
        })
        .collect();
    let mut waiting = vec![0; count];
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); count];
    for &(from, to) in &edges {
        waiting[to] += 1;
        below[from].push(to);
    }
    let mut ranks = vec![0usize; count];
    let mut ready: Vec<usize> = (0..count).filter(|&node| waiting[node] == 0).collect();
    let roots = ready.clone();
    while let Some(node) = ready.pop() {
        for &to in &below[node] {
            ranks[to] = ranks[to].max(ranks[node] + 1);
            waiting[to] -= 1;
            if waiting[to] == 0 {
                ready.push(to);
            }
        }
    }
    // A node that nothing leads to, other than the start, is placed just above the nodes that it leads to.
    for root in roots.into_iter().filter(|&root| root != 0) {
        if let Some(least) = below[root].iter().map(|&to| ranks[to]).min() {
            ranks[root] = least.saturating_sub(1);
        }
    }
    ranks
}
