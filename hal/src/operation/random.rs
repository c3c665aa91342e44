//! The operation that draws random numbers.

use super::Operand;
use super::check::check_strides;
use crate::dtype::DType;
use crate::error::{Error, Result};
use random::Generator;
use random::distribution::Distribution;

/// Where random numbers come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RandomSource {
    /// The states of a generator: [`Generator::count`] of them, each
    /// [`Generator::state_words`] words of 32 bits, from this address. Drawing advances them.
    States {
        /// The kind of the states.
        generator: Generator,
        /// Where the first one lies.
        address: u64,
    },
    /// The sequence of this seed from its beginning, by Philox4x32-10 ([`random::philox`]).
    Seed(u64),
}

/// `output[e] = draw e / count of state e % count`, where `count` is the number of states.
///
/// Of a pseudo-random generator, normal numbers come in pairs: elements `2 k` and `2 k + 1` are
/// one draw. A number in double precision takes two words of 32 bits.
#[derive(Clone, Debug, PartialEq)]
pub struct Random {
    /// Where the numbers come from.
    pub source: RandomSource,
    /// How they are distributed.
    pub distribution: Distribution,
    /// The number of elements.
    pub length: usize,
    /// Where they go: one stride, that of neighbours.
    pub output: Operand,
}

impl Random {
    pub(super) fn check(&self) -> Result<()> {
        let Random { source, distribution, output, .. } = self;
        check_strides("random", 1, [output])?;
        let size = output.dtype.size() as isize;
        if output.strides[0] != size {
            let detail = format!("the output's stride is {}, not {size}", output.strides[0]);
            return Err(Error::invalid("random", detail));
        }
        let is_wide = match source {
            RandomSource::States { generator, .. } => generator.bits() == 64,
            RandomSource::Seed(_) => false,
        };
        let is_seed = matches!(source, RandomSource::Seed(_));
        let dtypes: &[DType] = match distribution {
            Distribution::Bits if is_wide => {
                &[DType::Int32, DType::UInt32, DType::Int64, DType::UInt64]
            }
            Distribution::Bits => &[DType::Int32, DType::UInt32],
            Distribution::HalfOpen if is_seed => &[DType::Float32, DType::Float64],
            Distribution::HalfOpen => &[],
            _ if is_seed => &[],
            Distribution::Poisson { .. } => &[DType::UInt32],
            Distribution::PoissonOfElement => &[DType::Float32, DType::Float64, DType::UInt32],
            _ => &[DType::Float32, DType::Float64],
        };
        if !dtypes.contains(&output.dtype) {
            let allowed: Vec<_> = dtypes.iter().map(DType::to_string).collect();
            return Err(Error::invalid_type(
                "random",
                format!(
                    "{distribution:?} of {source:?} makes no numbers of dtype {}; allowed: {}",
                    output.dtype,
                    if allowed.is_empty() { "none".into() } else { allowed.join(", ") },
                ),
            ));
        }
        match *distribution {
            Distribution::LogNormal { mean, deviation } => {
                finite("mean", mean)?;
                finite("deviation", deviation)
            }
            Distribution::Poisson { mean } if mean < 0.0 => {
                Err(Error::invalid("random", format!("the mean is {mean}; it cannot be negative")))
            }
            Distribution::Poisson { mean } => finite("mean", mean),
            _ => Ok(()),
        }
    }
}

fn finite(name: &str, value: f64) -> Result<()> {
    if value.is_finite() {
        return Ok(());
    }
    Err(Error::invalid("random", format!("the {name} is {value}; a finite number is needed")))
}
