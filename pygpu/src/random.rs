//! Random numbers: filling of arrays, and states of generators in host memory, which the Python
//! module `curandom` copies to the device and back.

use crate::array::{GPUArray, on_stream};
use crate::synchronize::run;
use gpuarray::random::{DIMENSIONS, Distribution, Generator, Jump, sobol};
use numpy::{IntoPyArray as _, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use std::collections::TryReserveError;

type Words<'py> = Bound<'py, PyArray1<u32>>;

fn generator(name: &str) -> PyResult<Generator> {
    let named = Generator::ALL.into_iter().find(|it| format!("{it:?}") == name);
    named
        .ok_or_else(|| PyValueError::new_err(format!("name is {name:?}, which is not a generator")))
}

/// Returns the number of states of a generator, the 32-bit words per state, and the bits per draw.
#[pyfunction]
pub(crate) fn random_generator(name: &str) -> PyResult<(usize, usize, usize)> {
    let generator = generator(name)?;
    Ok((generator.count(), generator.state_words(), generator.bits()))
}

/// Sets the elements of an array to numbers drawn from a generator's states.
#[pyfunction]
#[pyo3(signature = (name, states, data, distribution, first = 0.0, second = 0.0, stream = None))]
#[allow(clippy::too_many_arguments, reason = "the distribution and its parameters")]
pub(crate) fn random_fill(
    py: Python<'_>,
    name: &str,
    states: &Bound<'_, GPUArray>,
    data: &Bound<'_, GPUArray>,
    distribution: &str,
    first: f64,
    second: f64,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let generator = generator(name)?;
    let distribution = match distribution {
        "bits" => Distribution::Bits,
        "uniform" => Distribution::Uniform,
        "normal" => Distribution::Normal,
        "log_normal" => Distribution::LogNormal { mean: first, deviation: second },
        "poisson" => Distribution::Poisson { mean: first },
        "poisson_of_element" => Distribution::PoissonOfElement,
        other => {
            return Err(PyValueError::new_err(format!(
                "distribution is {other:?}, which is not known"
            )));
        }
    };
    let (states, target) = (states.get().array()?, on_stream(data.get().array()?, stream)?);
    run(py, target.size(), || target.fill_random(generator, states, distribution))
}

/// Sets the elements of an array to the numbers of a seed: uniform in [0, 1) in floating point,
/// uniform over all values in 32-bit integers.
#[pyfunction]
#[pyo3(signature = (data, seed, stream = None))]
pub(crate) fn random_fill_from_seed(
    py: Python<'_>,
    data: &Bound<'_, GPUArray>,
    seed: u64,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let target = on_stream(data.get().array()?, stream)?;
    let distribution = match target.dtype().is_integer() {
        true => Distribution::Bits,
        false => Distribution::HalfOpen,
    };
    run(py, target.size(), || target.fill_from_seed(seed, distribution))
}

/// Returns the states of a pseudo-random generator, one for each seed.
#[pyfunction]
pub(crate) fn random_seeded<'py>(
    py: Python<'py>,
    name: &str,
    seeds: PyReadonlyArray1<'py, u32>,
    offset: u64,
) -> PyResult<Words<'py>> {
    let (generator, seeds) = (generator(name)?, seeds.as_slice()?);
    let states = py.detach(|| generator.seeded(seeds, offset)).map_err(no_memory)?;
    let states = states.ok_or_else(|| PyValueError::new_err(format!("{name} takes no seeds")))?;
    Ok(states.into_pyarray(py))
}

/// Returns the states of dimensions of Sobol's sequence, from the words of their direction vectors
/// and shifts.
#[pyfunction]
#[pyo3(signature = (bits, vectors, shifts, offset))]
pub(crate) fn random_points<'py>(
    py: Python<'py>,
    bits: usize,
    vectors: PyReadonlyArray1<'py, u32>,
    shifts: Option<PyReadonlyArray1<'py, u32>>,
    offset: u64,
) -> PyResult<Words<'py>> {
    check_bits(bits)?;
    let dimensions = vectors.len()? * 32 / (bits * bits);
    if let Some(shifts) = &shifts
        && shifts.len()? * 32 != dimensions * bits
    {
        return Err(PyValueError::new_err("shifts and dimensions differ in number"));
    }
    let (vectors, shifts) =
        (vectors.as_slice()?, shifts.as_ref().map(|shifts| shifts.as_slice()).transpose()?);
    let states = py.detach(|| sobol::states(bits, vectors, shifts, offset)).map_err(no_memory)?;
    Ok(states.into_pyarray(py))
}

/// Returns states that have jumped ahead, each by its own number of draws or sequences, or all by the
/// first one if there is only one.
#[pyfunction]
pub(crate) fn random_skip<'py>(
    py: Python<'py>,
    name: &str,
    states: PyReadonlyArray1<'py, u32>,
    jump: &str,
    amounts: PyReadonlyArray1<'py, u64>,
) -> PyResult<Words<'py>> {
    let generator = generator(name)?;
    let jump = match jump {
        "draws" => Jump::Draws,
        "subsequences" => Jump::Subsequences,
        "sequences" => Jump::Sequences,
        other => {
            return Err(PyValueError::new_err(format!("jump is {other:?}, which is not known")));
        }
    };
    let (given, amounts) = (states.as_slice()?, amounts.as_slice()?);
    let mut states = with_room(given.len())?;
    states.extend_from_slice(given);
    let amount = |index: usize| match amounts {
        [amount] => *amount,
        amounts => amounts.get(index).copied().unwrap_or(0),
    };
    py.detach(|| generator.skip(&mut states, jump, amount));
    Ok(states.into_pyarray(py))
}

/// Returns the words of the direction vectors of the first dimensions.
#[pyfunction]
pub(crate) fn random_direction_vectors(
    py: Python<'_>,
    bits: usize,
    count: usize,
    scrambled: bool,
) -> PyResult<Words<'_>> {
    check_bits(bits)?;
    let vectors = py.detach(|| sobol::direction_vectors(count, scrambled)).map_err(no_memory)?;
    let vectors = vectors.ok_or_else(|| {
        PyValueError::new_err(format!(
            "count is {count}; direction vectors have at most {DIMENSIONS} dimensions"
        ))
    })?;
    let mut words = with_room(vectors.len() * bits * (bits / 32))?;
    let numbers = vectors.iter().flat_map(|vectors| &vectors[..bits]);
    words.extend(numbers.flat_map(|number| upper(*number, bits)));
    Ok(words.into_pyarray(py))
}

/// Returns the words of the constants of the digital shifts of the first dimensions.
#[pyfunction]
pub(crate) fn random_scramble_constants(
    py: Python<'_>,
    bits: usize,
    count: usize,
) -> PyResult<Words<'_>> {
    check_bits(bits)?;
    let constants = sobol::scramble_constants(count).map_err(no_memory)?;
    let mut words = with_room(count.saturating_mul(bits / 32))?;
    words.extend(constants.iter().flat_map(|number| upper(*number, bits)));
    Ok(words.into_pyarray(py))
}

fn with_room(count: usize) -> PyResult<Vec<u32>> {
    let mut words = Vec::new();
    words.try_reserve_exact(count).map_err(no_memory)?;
    Ok(words)
}

fn no_memory(error: TryReserveError) -> PyErr {
    PyMemoryError::new_err(format!(
        "out of memory: the states of a generator cannot be allocated ({error})"
    ))
}

/// Returns the words, the lower one first, of the upper bits of a number.
fn upper(number: u64, bits: usize) -> impl Iterator<Item = u32> {
    let words = [number as u32, (number >> 32) as u32];
    words.into_iter().skip(2 - bits / 32)
}

fn check_bits(bits: usize) -> PyResult<()> {
    if bits == 32 || bits == 64 {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("bits is {bits}; 32 or 64 are allowed")))
}
