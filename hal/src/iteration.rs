//! Simplification of an iteration over several operands. Axes are put into the output's memory order and
//! adjacent axes are merged, so that most operations become a walk along one axis.

use crate::operation::{Shape, Strides};
use smallvec::SmallVec;

/// For each operand, the number of bytes by which its address moves.
pub type Moves = SmallVec<[isize; 5]>;

/// Simplifies an iteration: sorts the axes so that the first operand (the output) is walked in its memory
/// order, drops axes of extent one, reverses an axis that every operand walks backwards, and merges axes that
/// every operand walks as one.
///
/// Returns the new shape and, for each operand, the offset of its address (in bytes) that reversed axes cause;
/// `strides` are replaced in place. The order of the elements changes, so only operations that do not depend
/// on the order may use this. An operand with fewer strides than axes does not move along the remaining axes.
/// Distances that do not fit wrap around, like addresses.
pub fn simplify(shape: &[usize], strides: &mut [Strides]) -> (Shape, Moves) {
    for operand in &mut *strides {
        operand.resize(shape.len(), 0);
    }
    let mut moved: Moves = SmallVec::from_elem(0, strides.len());
    let order = {
        let views: SmallVec<[&Strides; 4]> = strides.iter().collect();
        memory_order(shape, &views)
    };
    let mut axes: Shape = Shape::new();
    let mut sorted: SmallVec<[Strides; 5]> = strides.iter().map(|_| Strides::new()).collect();
    for &axis in order.iter().filter(|&&axis| shape[axis] != 1) {
        // Without elements, nothing is walked and strides may have any value.
        let backwards = !shape.contains(&0)
            && strides.iter().any(|s| s[axis] < 0)
            && strides.iter().all(|s| s[axis] <= 0);
        for (operand, list) in sorted.iter_mut().enumerate() {
            let stride = strides[operand][axis];
            if backwards {
                let far = stride.wrapping_mul((shape[axis] as isize).wrapping_sub(1));
                moved[operand] = moved[operand].wrapping_add(far);
            }
            list.push(if backwards { stride.wrapping_neg() } else { stride });
        }
        axes.push(shape[axis]);
        while let [.., outer, inner] = axes[..] {
            let last = axes.len() - 1;
            let joined = outer.checked_mul(inner).filter(|_| {
                sorted.iter().all(|s| s[last].checked_mul(inner as isize) == Some(s[last - 1]))
            });
            let Some(joined) = joined else { break };
            axes.pop();
            axes[last - 1] = joined;
            for list in &mut sorted {
                let stride = list[last];
                list.pop();
                list[last - 1] = stride;
            }
        }
    }
    for (place, list) in strides.iter_mut().zip(sorted) {
        *place = list;
    }
    (axes, moved)
}

/// Returns the axes from the slowest to the fastest (numpy's order "K"). Of two axes, the outer one has the
/// larger stride in every operand that moves along both; where operands disagree, the C order is kept.
pub fn memory_order(shape: &[usize], operands: &[&Strides]) -> SmallVec<[usize; 4]> {
    let mut axes: SmallVec<[usize; 4]> = (0..shape.len()).collect();
    // None: no operand moves along both; Some(true): `inner` should be outside `outer`.
    let should_swap = |outer: usize, inner: usize| {
        let mut verdict = None;
        if shape[outer] == 1 || shape[inner] == 1 {
            return verdict;
        }
        for strides in operands {
            // An operand does not move along an axis that lacks a stride.
            let step = |axis: usize| strides.get(axis).map_or(0, |stride| stride.unsigned_abs());
            let (a, b) = (step(outer), step(inner));
            if a == 0 || b == 0 {
                continue;
            }
            if a >= b {
                return Some(false);
            }
            verdict = Some(true);
        }
        verdict
    };
    for from in (0..axes.len()).rev() {
        // Move the axis inwards past every axis that should be outside it.
        let moving = axes[from];
        let mut target = from;
        for place in from + 1..axes.len() {
            match should_swap(moving, axes[place]) {
                Some(true) => target = place,
                Some(false) => break,
                None => {}
            }
        }
        axes[from..=target].rotate_left(1);
    }
    axes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn huge() -> impl Strategy<Value = usize> {
        let edges = [0, 1, 2, 1 << 32, isize::MAX as usize, isize::MAX as usize + 1, usize::MAX];
        prop_oneof![any::<usize>(), proptest::sample::select(edges.to_vec())]
    }

    /// Returns the addresses of all operands at every index, in an order that depends only on the addresses.
    fn visited(shape: &[usize], strides: &[Strides], starts: &[isize]) -> Vec<Vec<isize>> {
        let mut all = vec![starts.to_vec()];
        for (axis, &extent) in shape.iter().enumerate() {
            let step = |at: Vec<isize>| {
                (0..extent as isize).map(move |i| {
                    at.iter().zip(strides).map(|(a, s)| a + i * s[axis]).collect::<Vec<isize>>()
                })
            };
            all = all.into_iter().flat_map(step).collect();
        }
        all.sort_unstable();
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn simplifying_visits_the_same_elements(
            axes in vec((1usize..5, vec(-12isize..13, 3)), 0..5), count in 1usize..4,
        ) {
            let shape: Vec<usize> = axes.iter().map(|axis| axis.0).collect();
            let mut strides: Vec<Strides> =
                (0..count).map(|operand| axes.iter().map(|axis| axis.1[operand]).collect()).collect();
            let before = visited(&shape, &strides, &vec![0; count]);
            let (simple, moved) = simplify(&shape, &mut strides);
            prop_assert_eq!(visited(&simple, &strides, &moved), before);
            prop_assert!(!simple.contains(&1) && simple.len() <= shape.len());
        }

        #[test]
        fn nothing_overflows(
            axes in vec((huge(), vec(huge().prop_map(|it| it as isize), 0..4)), 0..5), count in 0usize..4,
        ) {
            let shape: Vec<usize> = axes.iter().map(|axis| axis.0).collect();
            let mut strides: Vec<Strides> = (0..count)
                .map(|operand| axes.iter().filter_map(|axis| axis.1.get(operand)).copied().collect())
                .collect();
            let (simple, moved) = simplify(&shape, &mut strides);
            prop_assert!(moved.len() == count && strides.iter().all(|it| it.len() == simple.len()));
        }

        #[test]
        fn dense_operands_become_one_axis(shape in vec(1usize..5, 0..5), backwards in any::<bool>()) {
            let mut step = if backwards { -4 } else { 4 };
            let mut dense: Strides = SmallVec::from_elem(0, shape.len());
            for axis in (0..shape.len()).rev() {
                dense[axis] = step;
                step *= shape[axis] as isize;
            }
            let mut strides = [dense.clone(), dense];
            let (simple, _) = simplify(&shape, &mut strides);
            let size: usize = shape.iter().product();
            prop_assert_eq!(&simple[..], if size == 1 { &[][..] } else { &[size][..] });
            prop_assert!(strides.iter().all(|s| s.iter().all(|&stride| stride == 4)));
        }
    }
}
