//! Simplification of an iteration over several operands: axes in the output's memory order,
//! adjacent axes merged, so that most operations become a walk along one axis.

use crate::layout::memory_order;
use crate::operation::{Shape, Strides};
use smallvec::SmallVec;

/// How far the address of each operand moves, in bytes.
pub type Moves = SmallVec<[isize; 5]>;

/// Sorts the axes so that the first operand (the output) is walked in its memory order,
/// drops axes of extent one, walks an axis forwards that every operand walks backwards, and
/// merges axes that every operand walks as one.
///
/// Returns the new shape and, for each operand, how far its address moves (in bytes) because
/// of reversed axes; `strides` are replaced in place. The order of the elements within the
/// iteration changes, so only operations that do not depend on it may use this.
pub fn simplify(shape: &[usize], strides: &mut [Strides]) -> (Shape, Moves) {
    let mut moved: Moves = SmallVec::from_elem(0, strides.len());
    let order = {
        let views: SmallVec<[&Strides; 4]> = strides.iter().collect();
        memory_order(shape, &views)
    };
    let mut axes: Shape = Shape::new();
    let mut sorted: SmallVec<[Strides; 5]> = strides.iter().map(|_| Strides::new()).collect();
    for &axis in order.iter().filter(|&&axis| shape[axis] != 1) {
        let backwards = strides.iter().any(|s| s[axis] < 0) && strides.iter().all(|s| s[axis] <= 0);
        for (operand, list) in sorted.iter_mut().enumerate() {
            let stride = strides[operand][axis];
            if backwards {
                moved[operand] += stride * (shape[axis] as isize - 1);
            }
            list.push(if backwards { -stride } else { stride });
        }
        axes.push(shape[axis]);
        while let [.., outer, inner] = axes[..] {
            let last = axes.len() - 1;
            let joins =
                sorted.iter().all(|s| s[last].checked_mul(inner as isize) == Some(s[last - 1]));
            if !joins {
                break;
            }
            axes.pop();
            axes[last - 1] = outer * inner;
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
