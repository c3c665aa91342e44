//! Switches between stacks: the callee-saved registers are saved on the old stack and restored from the new
//! one.

use std::arch::naked_asm;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("fibres are switched on x86-64 and AArch64 only");

/// A suspended context: the address on its stack below which its registers are saved.
pub(crate) type StackPointer = *mut u8;

/// Saves the callee-saved registers on the stack.
#[cfg(target_arch = "x86_64")]
macro_rules! save {
    () => {
        "push rbp; push rbx; push r12; push r13; push r14; push r15"
    };
}

/// Restores the callee-saved registers from the stack.
#[cfg(target_arch = "x86_64")]
macro_rules! restore {
    () => {
        "pop r15; pop r14; pop r13; pop r12; pop rbx; pop rbp"
    };
}

/// Stores (`stp`) or loads (`ldp`) the registers x19 to x30 and d8 to d15.
#[cfg(target_arch = "aarch64")]
macro_rules! registers {
    ($do:literal) => {
        registers!(@each $do:
            " x19, x20, [sp, #0]\n" " x21, x22, [sp, #16]\n" " x23, x24, [sp, #32]\n"
            " x25, x26, [sp, #48]\n" " x27, x28, [sp, #64]\n" " x29, x30, [sp, #80]\n"
            " d8, d9, [sp, #96]\n" " d10, d11, [sp, #112]\n" " d12, d13, [sp, #128]\n"
            " d14, d15, [sp, #144]")
    };
    (@each $do:literal: $($pair:literal)*) => { concat!($($do, $pair),*) };
}

/// Saves the caller's context to `save`, and resumes the context in `load`, in which `value` is returned.
///
/// # Safety
/// `load` was written by this function or created by [`prepare`], and has not been resumed since.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn switch(
    save: *mut StackPointer,
    load: StackPointer,
    value: u64,
) -> u64 {
    naked_asm!(save!(), "mov [rdi], rsp", "mov rsp, rsi", "mov rax, rdx", restore!(), "ret")
}

/// The context in which a thread resumes, and the result of its operation there. A null stack means none.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "the short way is assembler"))]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) stack: StackPointer,
    pub(crate) value: u64,
}

/// Defines a function of the executor's table that many threads of a block call one after another.
///
/// The function calls `$step` with the caller's context, as [`switch`] saves it, and resumes the step's
/// [`Target`]. If that is null, it calls `$otherwise` with the original arguments. `$condition` jumps to
/// label 2 if no step can be made. `$arguments` move the arguments of the step into their registers. The
/// arguments of the call are in rbx, rbp, r12, r13, r14 and r15.
#[cfg(target_arch = "x86_64")]
macro_rules! stepping {
    (
        $(#[$attribute:meta])*
        fn $name:ident($($parameter:ident: $kind:ty),*) -> $result:ty;
        step: $step:path, otherwise: $otherwise:path,
        condition: [$($condition:literal),*], arguments: [$($argument:literal),*]
    ) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name($($parameter: $kind),*) -> $result {
            std::arch::naked_asm!(
                $crate::context::save!(),
                "mov rbx, rdi; mov rbp, rsi; mov r12, rdx; mov r13, rcx; mov r14, r8; mov r15, r9",
                $($condition,)*
                "mov rdi, rsp",
                $($argument,)*
                "sub rsp, 8; call {step}; add rsp, 8",
                "test rax, rax; jz 2f",
                "mov rsp, rax; mov rax, rdx",
                "3:",
                $crate::context::restore!(),
                "ret",
                "2:",
                "mov rdi, rbx; mov rsi, rbp; mov rdx, r12; mov rcx, r13; mov r8, r14; mov r9, r15",
                "sub rsp, 8; call {otherwise}; add rsp, 8",
                "jmp 3b",
                step = sym $step,
                otherwise = sym $otherwise,
            )
        }
    };
}
#[cfg(target_arch = "x86_64")]
pub(crate) use {restore, save, stepping};

/// The same as on x86-64.
///
/// # Safety
/// The same as on x86-64.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn switch(
    save: *mut StackPointer,
    load: StackPointer,
    value: u64,
) -> u64 {
    naked_asm!(
        "sub sp, sp, #160",
        registers!("stp"),
        "mov x9, sp",
        "str x9, [x0]",
        "mov sp, x1",
        "mov x0, x2",
        registers!("ldp"),
        "add sp, sp, #160",
        "ret",
    )
}

/// Resumes the context in `load`; the caller's stack is abandoned.
///
/// # Safety
/// The same as for [`switch`]. Nothing on the caller's stack needs to be dropped.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn leave(load: StackPointer) -> ! {
    #[cfg(target_arch = "x86_64")]
    naked_asm!("mov rsp, rdi", restore!(), "ret");
    #[cfg(target_arch = "aarch64")]
    naked_asm!("mov sp, x0", registers!("ldp"), "add sp, sp, #160", "ret");
}

/// The number of words that [`switch`] restores from a stack, and the index of the return address among them.
#[cfg(target_arch = "x86_64")]
const FRAME: (usize, usize) = (8, 6);
#[cfg(target_arch = "aarch64")]
const FRAME: (usize, usize) = (20, 11);

/// Creates a context at the top of a stack that starts in `entry`.
///
/// # Safety
/// `top` is the end of an unused stack of at least 4 KiB, and a multiple of 16.
pub(crate) unsafe fn prepare(top: StackPointer, entry: extern "C" fn() -> !) -> StackPointer {
    // SAFETY: the words are on the stack. On x86-64, the word after the entry's address takes the place of a
    // return address, so that the stack is aligned as after a call.
    unsafe {
        let frame = top.cast::<usize>().sub(FRAME.0);
        frame.write_bytes(0, FRAME.0);
        frame.add(FRAME.1).write(entry as usize);
        frame.cast()
    }
}
