//! Arrays of random numbers.

use super::Array;
use hal::dtype::DType;
use hal::error::{Error, Result};
use hal::memory::{Access, AccessGuard, Use};
use hal::operation::{Operation, Random, RandomSource, Strides};
use hal::random::{Distribution, Generator};
use hal::recording::{self, Work};
use smallvec::SmallVec;

impl Array {
    /// Sets the elements to random numbers drawn from the states of a generator, and advances the
    /// states. Element `e` in memory order is draw `e / count` of state `e % count`, where `count` is
    /// [`Generator::count`]; see [`Random`] for the numbers of a draw. The work is queued on this
    /// array's stream.
    ///
    /// `states` is a contiguous array of 32-bit unsigned integers with [`Generator::state_words`]
    /// elements per state.
    ///
    /// # Errors
    /// `InvalidArgument` for states of another dtype or size, an array that repeats elements, states
    /// that overlap the array, and invalid parameters of a distribution; `InvalidType` for a dtype that
    /// the distribution does not support.
    pub fn fill_random(
        &self,
        generator: Generator,
        states: &Array,
        distribution: Distribution,
    ) -> Result<()> {
        self.during(|| {
            let words = generator.count() * generator.state_words();
            if states.dtype != DType::UInt32
                || states.size() != words
                || !states.layout.is_c_contiguous()
            {
                return Err(Error::invalid(
                    "random",
                    format!(
                        "the states have size {} and dtype {}; {generator:?} needs size {words} and \
             uint32, without gaps",
                        states.size(),
                        states.dtype
                    ),
                ));
            }
            self.check_same_device(states)?;
            if self.overlaps(states) {
                return Err(Error::invalid("random", "the array overlaps the generator's states"));
            }
            let source = RandomSource::States { generator, address: states.address() };
            self.draw(source, distribution, Some(states))
        })
    }

    /// Sets the elements to the random numbers of a seed, from the beginning of the seed's sequence:
    /// [`Distribution::HalfOpen`] in floating point, [`Distribution::Bits`] in 32-bit integers. The work
    /// is queued on this array's stream.
    ///
    /// # Errors
    /// `InvalidArgument` for an array that repeats elements; `InvalidType` for another dtype or
    /// distribution.
    pub fn fill_from_seed(&self, seed: u64, distribution: Distribution) -> Result<()> {
        self.during(|| self.draw(RandomSource::Seed(seed), distribution, None))
    }

    fn draw(
        &self,
        source: RandomSource,
        distribution: Distribution,
        states: Option<&Array>,
    ) -> Result<()> {
        if !self.layout.is_packed() {
            self.check_writable()?;
            let packed = self.copy()?;
            packed.draw(source, distribution, states)?;
            return self.assign(&packed);
        }
        let size = self.dtype.size() as isize;
        let output = self.operand(Strides::from_slice(&[size]), 0);
        let length = self.size();
        let operation = Operation::new(Random { source, distribution, length, output })?;
        if length == 0 {
            return Ok(());
        }
        let mut uses: SmallVec<[Use<'_>; 2]> = SmallVec::new();
        uses.push((&self.memory, Access::Write));
        if let Some(states) = states {
            uses.push((&states.memory, Access::Write));
        }
        self.stream().wait_for_room();
        let _guard = AccessGuard::acquire(self.stream(), &uses)?;
        // SAFETY: the output is contiguous, the number of states is the generator's, both are inside
        // their memory and are disjoint, and the guard has ordered this work.
        let execute = || unsafe { self.stream().execute(&operation) };
        recording::queued(self.stream().as_ref(), || Work::operation(&operation), execute)
    }
}
