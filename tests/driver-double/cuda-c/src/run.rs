//! Loads compiled units into this process, and launches their kernels.

use crate::status::{status, unpanicking};
use crate::{Sink, text};
use host_executor::{Kernel, Library, Schedule, Shape};
use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;

/// `CudaCUnit`.
#[derive(Debug)]
pub(crate) struct Unit(Arc<Library>);

/// `CudaCLaunch`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch {
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    cooperative: c_int,
    fill: c_int,
    reversed: c_int,
}

/// `cuda_c_load`.
///
/// # Safety
/// The pointers are valid as `cuda_c.h` documents, and the bytes are what `cuda_c_compile` made from a
/// trusted program.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuda_c_load(bytes: *const u8, count: usize, log: Sink) -> *mut Unit {
    let mut loaded = None;
    status(log, || {
        // SAFETY: the caller's promise.
        let bytes = unsafe { std::slice::from_raw_parts(bytes, count) };
        // SAFETY: the caller's promise.
        loaded = Some(Unit(unsafe { Library::load(bytes) }?));
        Ok(())
    });
    loaded.map_or(ptr::null_mut(), |unit| Box::into_raw(Box::new(unit)))
}

/// `cuda_c_drop_unit`.
///
/// # Safety
/// The unit comes from [`cuda_c_load`], and is not used again.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuda_c_drop_unit(unit: *mut Unit) {
    // SAFETY: the caller's promise.
    unpanicking(|| drop(unsafe { Box::from_raw(unit) }));
}

/// `cuda_c_lowered`.
///
/// # Safety
/// The pointers are valid as `cuda_c.h` documents.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuda_c_lowered(unit: *const Unit, count: usize, index: usize, symbol: Sink) {
    // SAFETY: the caller's promise.
    let names = unsafe { &*unit }.0.lowered(count);
    if let Some(name) = names.get(index) {
        symbol.put(name.as_bytes());
    }
}

/// `cuda_c_variable`.
///
/// # Safety
/// The pointers are valid as `cuda_c.h` documents.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuda_c_variable(
    unit: *const Unit,
    name: *const c_char,
    bytes: *mut usize,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    let (unit, name) = unsafe { (&*unit, text(name)) };
    let Some((address, size)) = unit.0.variable(&name) else { return ptr::null_mut() };
    // SAFETY: the caller's promise.
    unsafe { *bytes = size };
    address as *mut c_void
}

/// `cuda_c_kernel`.
///
/// # Safety
/// The pointers are valid as `cuda_c.h` documents.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuda_c_kernel(unit: *const Unit, name: *const c_char) -> *mut Kernel {
    // SAFETY: the caller's promise.
    let (unit, name) = unsafe { (&*unit, text(name)) };
    let found = Kernel::find(&unit.0, &name);
    found.map_or(ptr::null_mut(), |kernel| Box::into_raw(Box::new(kernel)))
}

/// `cuda_c_drop_kernel`.
///
/// # Safety
/// The kernel comes from [`cuda_c_kernel`], and is not used again.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuda_c_drop_kernel(kernel: *mut Kernel) {
    // SAFETY: the caller's promise.
    unpanicking(|| drop(unsafe { Box::from_raw(kernel) }));
}

/// `cuda_c_most_threads`.
///
/// # Safety
/// The kernel comes from [`cuda_c_kernel`].
#[unsafe(no_mangle)]
unsafe extern "C" fn cuda_c_most_threads(kernel: *const Kernel) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { &*kernel }.most_threads()
}

/// `cuda_c_static_shared`.
///
/// # Safety
/// The kernel comes from [`cuda_c_kernel`].
#[unsafe(no_mangle)]
unsafe extern "C" fn cuda_c_static_shared(kernel: *const Kernel) -> usize {
    // SAFETY: the caller's promise.
    unsafe { &*kernel }.static_shared_bytes() as usize
}

/// `cuda_c_parameter`.
///
/// # Safety
/// The pointers are valid as `cuda_c.h` documents.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuda_c_parameter(
    kernel: *const Kernel,
    index: usize,
    offset: *mut usize,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some(parameter) = unsafe { &*kernel }.parameters().get(index) else { return 0 };
    // SAFETY: the caller's promise.
    unsafe { (*offset, *bytes) = (parameter.offset, parameter.bytes) };
    1
}

/// `cuda_c_launch`.
///
/// # Safety
/// The pointers are valid as `cuda_c.h` documents, and [`Kernel::launch`] allows the launch.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuda_c_launch(
    kernel: *const Kernel,
    launch: *const Launch,
    arguments: *const *mut c_void,
    log: Sink,
) -> c_int {
    // SAFETY: the caller's promise.
    let (kernel, launch) = unsafe { (&*kernel, *launch) };
    let cooperative = launch.cooperative != 0;
    let shape = Shape { grid: launch.grid, block: launch.block, cooperative };
    let schedule = Schedule {
        fill: u8::try_from(launch.fill).ok(),
        dynamic_shared: Some(launch.shared),
        reversed: launch.reversed != 0,
        ..Schedule::default()
    };
    status(log, || {
        let arguments: &[*mut c_void] = match kernel.parameters().len() {
            0 => &[],
            // SAFETY: the caller's promise.
            count => unsafe { std::slice::from_raw_parts(arguments, count) },
        };
        // SAFETY: the caller's promise.
        unsafe { kernel.launch(&shape, &schedule, arguments, &|| None) }
    })
}
