//! Arrays joined to one.

use super::Array;
use crate::layout::{IndexItem, Layout, Order, SliceBounds, shape_text};
use hal::error::{Error, Result};

impl Array {
    /// Joins arrays along an axis that they have, in a new array on the first one's stream and of its dtype.
    ///
    /// # Errors
    /// `InvalidArgument` for no arrays, and for one whose shape differs from the first one's in another axis;
    /// `InvalidType` for one of another dtype; `IndexOutOfRange` for an axis that does not exist; `OutOfMemory`.
    pub fn concatenate(arrays: &[&Array], axis: isize) -> Result<Array> {
        let Some((first, rest)) = arrays.split_first() else {
            let detail = "arrays is empty; at least one array is needed";
            return Err(Error::invalid("concatenate", detail));
        };
        first.during(|| {
            let axis = first.layout.normalize_axis(axis)?;
            let mut length = first.shape()[axis];
            for (number, array) in rest.iter().enumerate() {
                if array.dtype != first.dtype {
                    return Err(Error::invalid_type(
                        "concatenate",
                        format!("arrays[{}] is of {}, arrays[0] of {}", number + 1, array.dtype, first.dtype),
                    ));
                }
                let differs = |other: usize| array.shape()[other] != first.shape()[other];
                if array.ndim() != first.ndim() || (0..first.ndim()).any(|it| it != axis && differs(it)) {
                    return Err(Error::invalid(
                        "concatenate",
                        format!(
                            "arrays[{}] has shape {}, arrays[0] {}; they may differ in axis {axis} only",
                            number + 1,
                            shape_text(array.shape()),
                            shape_text(first.shape())
                        ),
                    ));
                }
                length = length.saturating_add(array.shape()[axis]);
            }
            let mut shape = first.shape().to_vec();
            shape[axis] = length;
            let layout = Layout::contiguous(&shape, first.dtype.size(), Order::C)?;
            let joined = first.new_array(layout, first.dtype)?;
            let mut items = vec![IndexItem::Slice(SliceBounds::default()); axis + 1];
            let mut start = 0;
            for array in arrays {
                let stop = start + array.shape()[axis];
                items[axis] = (start..stop).into();
                joined.index(&items)?.assign(array)?;
                start = stop;
            }
            Ok(joined)
        })
    }
}
