//! When a function of one type may be called as another one: a check of the tables against
//! the declarations that bindgen made of the headers, when this crate is compiled.

use crate::bindings as sys;
use hal::IpcHandle;
use hal::driver::calls::{HostFunction, PoolAccess, PoolProperties, StreamCallback};
use std::ffi::{c_int, c_uint, c_void};
use std::mem::offset_of;

/// A value that is passed, and lies in memory, as a `T` does in the C ABI of 64-bit systems.
pub(crate) trait Passes<T> {}

macro_rules! passes {
    ($($type:ty as $($other:ty),+;)*) => {
        $($(
            impl Passes<$other> for $type {}
            const _: () = {
                assert!(size_of::<$type>() == size_of::<$other>());
                assert!(align_of::<$type>() >= align_of::<$other>());
            };
        )+)*
    };
}

// Enumerations are ints in C, unsigned in the bindings; device addresses are pointers.
passes! {
    c_int as c_int, c_uint;
    c_uint as c_uint, c_int;
    i8 as i8;
    u8 as u8;
    u16 as u16;
    f32 as f32;
    usize as usize;
    u64 as u64, *mut c_void, *const c_void;
    c_void as c_void;
    IpcHandle as sys::hipIpcMemHandle_t, sys::hipIpcEventHandle_t;
    [u8; 16] as sys::hipUUID;
    PoolProperties as sys::hipMemPoolProps;
    PoolAccess as sys::hipMemAccessDesc;
    HostFunction as sys::hipHostFn_t;
    StreamCallback as sys::hipStreamCallback_t;
    sys::hipMemcpy3DParms as sys::hipMemcpy3DParms;
    sys::hipPointerAttribute_t as sys::hipPointerAttribute_t;
    sys::hipDeviceProp_tR0600 as sys::hipDeviceProp_tR0600;
    sys::hipDeviceProp_tR0000 as sys::hipDeviceProp_tR0000;
    sys::_hiprtcProgram as sys::_hiprtcProgram;
}

/// Handles are pointers to what only the driver looks into.
impl<T> Passes<*mut T> for usize {}
impl<A: Passes<B>, B> Passes<*mut B> for *mut A {}
impl<A: Passes<B>, B> Passes<*const B> for *mut A {}
impl<A: Passes<B>, B> Passes<*mut B> for *const A {}
impl<A: Passes<B>, B> Passes<*const B> for *const A {}

/// Structs of hal whose fields must lie where the header has them.
const _: () = {
    type Ours = PoolProperties;
    type Theirs = sys::hipMemPoolProps;
    let location = offset_of!(Theirs, location);
    assert!(offset_of!(Ours, allocation_type) == offset_of!(Theirs, allocType));
    assert!(offset_of!(Ours, handle_types) == offset_of!(Theirs, handleTypes));
    assert!(offset_of!(Ours, location_type) == location + offset_of!(sys::hipMemLocation, type_));
    assert!(offset_of!(Ours, location_id) == location + offset_of!(sys::hipMemLocation, id));
    assert!(offset_of!(Ours, win32_security) == offset_of!(Theirs, win32SecurityAttributes));
    assert!(offset_of!(Ours, max_size) == offset_of!(Theirs, maxSize));
    type OurAccess = PoolAccess;
    type TheirAccess = sys::hipMemAccessDesc;
    let location = offset_of!(TheirAccess, location);
    let kind = location + offset_of!(sys::hipMemLocation, type_);
    assert!(offset_of!(OurAccess, location_type) == kind);
    assert!(offset_of!(OurAccess, location_id) == location + offset_of!(sys::hipMemLocation, id));
    assert!(offset_of!(OurAccess, flags) == offset_of!(TheirAccess, flags));
};

/// A function pointer that calls what is declared as `D`.
pub(crate) trait Declared<D>: Copy {}

macro_rules! declared {
    ($($ours:ident as $theirs:ident),*) => {
        impl<$($ours: Passes<$theirs>, $theirs,)* R: Passes<S>, S>
            Declared<unsafe extern "C" fn($($theirs),*) -> S>
            for unsafe extern "C" fn($($ours),*) -> R {}
    };
}
declared!();
declared!(A as B);
declared!(A as B, C as D);
declared!(A as B, C as D, E as F);
declared!(A as B, C as D, E as F, G as H);
declared!(A as B, C as D, E as F, G as H, I as J);
declared!(A as B, C as D, E as F, G as H, I as J, K as L);
declared!(A as B, C as D, E as F, G as H, I as J, K as L, M as N, O as P, Q as T, U as V);
declared!(A as B, C as D, E as F, G as H, I as J, K as L, M as N, O as P, Q as T, U as V, W as X);

/// Compiles if a field of the table `T` may call what is declared as `D`.
pub(crate) const fn required<T, F: Declared<D>, D: Copy>(_: fn(&T) -> F, _: D) {}

/// The same for a field that may be empty.
pub(crate) const fn optional<T, F: Declared<D>, D: Copy>(_: fn(&T) -> Option<F>, _: D) {}

/// The same for a type of function.
pub(crate) const fn function<F: Declared<D>, D: Copy>(_: D) {}
