//! The key of the kernels that draw random numbers.

use hal::dtype::DType;
use hal::random::{Distribution, Generator};

/// What is drawn, without its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Draw {
    Bits,
    Uniform,
    HalfOpen,
    Normal,
    LogNormal,
    Poisson,
    PoissonOfElement,
}

impl Draw {
    pub(super) fn of(distribution: Distribution) -> Draw {
        match distribution {
            Distribution::Uniform => Draw::Uniform,
            Distribution::HalfOpen => Draw::HalfOpen,
            Distribution::Normal => Draw::Normal,
            Distribution::LogNormal { .. } => Draw::LogNormal,
            Distribution::Poisson { .. } => Draw::Poisson,
            Distribution::PoissonOfElement => Draw::PoissonOfElement,
            _ => Draw::Bits,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Draw::Bits => "bits",
            Draw::Uniform => "uniform",
            Draw::HalfOpen => "half_open",
            Draw::Normal => "normal",
            Draw::LogNormal => "log_normal",
            Draw::Poisson => "poisson",
            Draw::PoissonOfElement => "poisson_of_element",
        }
    }
}

/// Everything that changes the code of a kernel that draws random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::source) struct Key {
    /// None for the sequence of a seed.
    pub(super) generator: Option<Generator>,
    pub(super) draw: Draw,
    pub(super) dtype: DType,
}
