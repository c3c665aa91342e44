//! Gathers and scatters of the catalogue.

use super::dtypes::INDICES;
use super::operands::{indexed, number, operand};
use hal::dtype::DType;
use hal::operation::{Description, Gather, Input, Scatter};

/// Returns the gathers and scatters of a machine word.
pub(super) fn gathers_and_scatters(word: DType) -> Vec<Description> {
    let mut operations = Vec::new();
    for indices in INDICES {
        for axes in [1, 2] {
            let shape = [512, 64][..axes].into();
            let elements: &[isize] = if axes == 1 { &[1] } else { &[64, 1] };
            let array = operand(word, elements);
            let (source, output) = (indexed(word, indices, axes), array.clone());
            operations.push(Description::Gather(Gather { shape, source, output }));
            for input in [Input::Array(array), Input::Scalar(number(word))] {
                let (shape, target) = ([512, 64][..axes].into(), indexed(word, indices, axes));
                operations.push(Description::Scatter(Scatter { shape, input, target }));
            }
        }
    }
    operations
}
