//! Emulates integer divisions that fault on the processor, with the results of NVIDIA GPUs as observed on an
//! H200, for all types.
//!
//! - Division by zero: quotient and remainder have all bits set. For a 64-bit dividend with an empty upper
//!   half, only the lower half is set.
//! - The least number divided by -1 is itself, with remainder 0.
//!
//! Programs make such divisions in threads whose results are not used. With `PYGPU_CHECK`, the divisions are
//! reported instead.

/// Completes the division that a signal handler has interrupted, and lets the thread continue after it.
/// Returns false if the instruction is not a division.
///
/// # Safety
/// The context belongs to a handler of `SIGFPE`, in a thread that will resume with it.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn divide(context: *mut libc::ucontext_t) -> bool {
    // SAFETY: the caller's promise.
    let registers = unsafe { &mut (*context).uc_mcontext.gregs };
    let at = registers[libc::REG_RIP as usize] as usize;
    // SAFETY: the processor has read the whole instruction, and the decoder reads only bytes of the
    // instruction.
    let read = |offset: usize| unsafe { *((at + offset) as *const u8) };
    let Some(division) = Division::decode(read, registers, at) else { return false };
    // SAFETY: the processor has read the divisor there.
    let is_by_zero = unsafe { division.is_by_zero(registers) };
    division.finish(registers, is_by_zero);
    registers[libc::REG_RIP as usize] = (at + division.length) as i64;
    true
}

/// Divisions do not fault on other processors.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn divide(_context: *mut libc::ucontext_t) -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
use x86_64::Division;

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use libc::{REG_R8, REG_RAX, REG_RBP, REG_RBX, REG_RCX, REG_RDI, REG_RDX, REG_RSI, REG_RSP};

    type Registers = [i64; 23];

    /// The registers by their numbers in instructions.
    const BY_NUMBER: [i32; 8] =
        [REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI];

    fn place(number: u8) -> usize {
        match number {
            0..8 => BY_NUMBER[usize::from(number)] as usize,
            _ => (REG_R8 as usize) + usize::from(number - 8),
        }
    }

    #[derive(Clone, Copy)]
    enum Divisor {
        /// The number of a register.
        Register(u8),
        Memory(usize),
    }

    /// A `div` or `idiv` instruction. See Intel's Software Developer's Manual, volume 2, chapters 2 and 3.
    pub(super) struct Division {
        divisor: Divisor,
        /// The size of divisor, quotient and remainder in bytes.
        size: usize,
        /// Without a REX prefix, the byte registers 4 to 7 are the second bytes of registers 0 to 3.
        has_second_bytes: bool,
        /// The length of the instruction in bytes.
        pub(super) length: usize,
    }

    impl Division {
        /// Decodes the instruction at an address.
        pub(super) fn decode(
            read: impl Fn(usize) -> u8,
            registers: &Registers,
            at: usize,
        ) -> Option<Division> {
            let mut length = 0;
            let mut next = || {
                length += 1;
                read(length - 1)
            };
            let (mut is_half, mut prefix) = (false, 0);
            let opcode = loop {
                match next() {
                    0x66 => is_half = true,
                    byte @ 0x40..=0x4f => {
                        prefix = byte;
                        break next();
                    }
                    byte => break byte,
                }
            };
            let size = match opcode {
                0xf6 => 1,
                0xf7 if prefix & 8 != 0 => 8,
                0xf7 if is_half => 2,
                0xf7 => 4,
                _ => return None,
            };
            let mode = next();
            if mode >> 3 & 7 < 6 {
                return None;
            }
            let extended = |number: u8, bit: u8| number | u8::from(prefix & bit != 0) << 3;
            let (kind, low) = (mode >> 6, mode & 7);
            let has_second_bytes = prefix == 0;
            if kind == 3 {
                let divisor = Divisor::Register(extended(low, 1));
                return Some(Division { divisor, size, has_second_bytes, length });
            }
            let mut base = Some(extended(low, 1));
            let mut index = None;
            let mut is_relative = false;
            if low == 4 {
                let scaled = next();
                base = Some(extended(scaled & 7, 1));
                let number = extended(scaled >> 3 & 7, 2);
                index = (number != 4).then_some((number, scaled >> 6));
                if scaled & 7 == 5 && kind == 0 {
                    base = None;
                }
            } else if low == 5 && kind == 0 {
                (base, is_relative) = (None, true);
            }
            let mut bytes = |count: usize| {
                (0..count).fold(0_u32, |sum, byte| sum | u32::from(next()) << (8 * byte))
            };
            let distance = match kind {
                1 => i64::from(bytes(1) as i8),
                2 => i64::from(bytes(4) as i32),
                _ if base.is_none() => i64::from(bytes(4) as i32),
                _ => 0,
            };
            let value = |number: u8| registers[place(number)];
            let scaled =
                index.map_or(0, |(number, scale)| value(number).wrapping_shl(scale.into()));
            let from = if is_relative { (at + length) as i64 } else { base.map_or(0, value) };
            let address = from.wrapping_add(scaled).wrapping_add(distance);
            let divisor = Divisor::Memory(address as usize);
            Some(Division { divisor, size, has_second_bytes, length })
        }

        /// Returns true if the divisor is zero. The only other divisor that faults is -1, if the dividend
        /// fits into the divisor's size, as in C.
        ///
        /// # Safety
        /// A divisor in memory can be read.
        pub(super) unsafe fn is_by_zero(&self, registers: &Registers) -> bool {
            let bits = match self.divisor {
                Divisor::Register(number @ 4..8) if self.size == 1 && self.has_second_bytes => {
                    registers[place(number - 4)] >> 8
                }
                Divisor::Register(number) => registers[place(number)],
                Divisor::Memory(address) => {
                    let mut bytes = [0; 8];
                    for (offset, byte) in bytes.iter_mut().enumerate().take(self.size) {
                        // SAFETY: the caller's promise.
                        *byte = unsafe { *((address + offset) as *const u8) };
                    }
                    i64::from_le_bytes(bytes)
                }
            };
            bits & (-1_i64 as u64 >> (64 - 8 * self.size)) as i64 == 0
        }

        /// Writes quotient and remainder.
        pub(super) fn finish(&self, registers: &mut Registers, is_by_zero: bool) {
            let least = 1_u64 << (8 * self.size - 1);
            let is_short = self.size == 8 && registers[REG_RAX as usize] >> 32 == 0;
            let ones = if is_short { 0xffff_ffff } else { u64::MAX };
            let (quotient, remainder) = if is_by_zero { (ones, ones) } else { (least, 0) };
            if self.size == 1 {
                let both = quotient & 0xff | (remainder & 0xff) << 8;
                let rax = &mut registers[REG_RAX as usize];
                *rax = *rax & !0xffff | both as i64;
                return;
            }
            for (register, value) in [(REG_RAX, quotient), (REG_RDX, remainder)] {
                let register = &mut registers[register as usize];
                *register = match self.size {
                    2 => *register & !0xffff | (value & 0xffff) as i64,
                    // Writing a 32-bit register clears its upper half.
                    4 => (value & 0xffff_ffff) as i64,
                    _ => value as i64,
                };
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        /// Registers whose values identify them.
        fn registers() -> Registers {
            let mut registers = [0; 23];
            for number in 0..16 {
                registers[place(number)] = 0x1_0000 * (i64::from(number) + 1);
            }
            registers
        }

        #[test]
        fn instructions_are_read() {
            const AT: usize = 0x4000_0000;
            let register = |number: i64| 0x1_0000 * (number + 1);
            let (rax, rcx, rbx, rsp) = (register(0), register(1), register(3), register(4));
            let (r9, r12, r13) = (register(9), register(12), register(13));
            // The bytes, as the GNU assembler encodes them; the size; the address, or the number of the
            // register.
            let cases: [(&[u8], usize, Result<u8, i64>); 16] = [
                (&[0xf7, 0xf9], 4, Ok(1)),
                (&[0x41, 0xf7, 0xf8], 4, Ok(8)),
                (&[0x66, 0x41, 0xf7, 0xf7], 2, Ok(15)),
                (&[0xf6, 0xf4], 1, Ok(4)),
                (&[0x40, 0xf6, 0xf4], 1, Ok(4)),
                (&[0x41, 0xf6, 0xf4], 1, Ok(12)),
                (&[0x48, 0xf7, 0x7c, 0x8b, 0x10], 8, Err(rbx + 4 * rcx + 0x10)),
                (&[0xf7, 0x35, 0x34, 0x12, 0, 0], 4, Err(AT as i64 + 6 + 0x1234)),
                (&[0x66, 0xf7, 0xb4, 0x24, 0x45, 0x23, 1, 0], 2, Err(rsp + 0x12345)),
                (&[0x41, 0xf7, 0x3c, 0x24], 4, Err(r12)),
                (&[0x41, 0xf7, 0x7d, 0], 4, Err(r13)),
                (&[0xf7, 0x3c, 0xcd, 0, 1, 0, 0], 4, Err(8 * rcx + 0x100)),
                (&[0x42, 0xf6, 0x74, 0x60, 0x80], 1, Err(rax + 2 * r12 - 0x80)),
                (
                    &[0x4b, 0xf7, 0xbc, 0xcd, 0x88, 0xa9, 0xcb, 0xed],
                    8,
                    Err(r13 + 8 * r9 - 0x1234_5678),
                ),
                (&[0xf7, 0x34, 0x24], 4, Err(rsp)),
                (&[0xf7, 0x3c, 0x25, 0, 0x10, 0, 0], 4, Err(0x1000)),
            ];
            for (bytes, size, expected) in cases {
                let division =
                    Division::decode(|at| bytes[at], &registers(), AT).expect("a division");
                assert_eq!((division.length, division.size), (bytes.len(), size), "{bytes:x?}");
                match (division.divisor, expected) {
                    (Divisor::Register(found), Ok(number)) => assert_eq!(found, number),
                    (Divisor::Memory(found), Err(address)) => assert_eq!(found as i64, address),
                    _ => panic!("{bytes:x?}"),
                }
            }
            for bytes in [&[0xf7, 0xe1][..], &[0x0f, 0x0b], &[0xf6, 0xd8], &[0x48, 0x89, 0xc8]] {
                assert!(Division::decode(|at| bytes[at], &registers(), AT).is_none(), "{bytes:x?}");
            }
        }

        #[test]
        fn second_bytes_of_registers_are_divisors() {
            let mut registers = registers();
            registers[REG_RAX as usize] = 0xff;
            registers[REG_RSP as usize] = 0;
            for (bytes, is_zero) in [(&[0xf6, 0xf4][..], true), (&[0x40, 0xf6, 0xf4], true)] {
                let division = Division::decode(|at| bytes[at], &registers, 0).expect("one");
                // SAFETY: the divisor is in a register.
                assert_eq!(unsafe { division.is_by_zero(&registers) }, is_zero);
            }
            registers[REG_RAX as usize] = 0xff00;
            let division = Division::decode(|at| [0xf6, 0xf4][at], &registers, 0).expect("one");
            // SAFETY: as above.
            assert!(!unsafe { division.is_by_zero(&registers) });
        }
    }
}
