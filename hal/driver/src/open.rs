//! Opening a vendor's driver: looking up its functions in a library, and creating the backend over
//! them.

use super::backend;
use super::calls::{Calls, Names};
use super::vendor::Vendor;
use hal::backend::Backend;
use hal::error::Result;
use hal::library::{Library, Search};
use std::path::Path;
use std::sync::Arc;

/// The vendor-specific functions, and those whose types differ between the vendors: the struct that
/// [`driver_calls!`](crate::driver_calls) defines.
pub trait VendorCalls: Sized {
    /// The symbols without which the driver cannot be used.
    const REQUIRED: &'static [&'static str];
    /// The symbols without which one call is `Unsupported`.
    const OPTIONAL: &'static [&'static str];

    /// Looks up the functions. A missing optional function is `None`.
    ///
    /// # Errors
    /// `BackendUnavailable` that names the required functions that are missing.
    ///
    /// # Safety
    /// The library's functions of these names have the types that the struct declares.
    unsafe fn find(library: Library) -> Result<Self>;
}

/// A vendor's driver as a library that may be present.
pub trait DriverLibrary: Vendor + Sized + 'static {
    /// The name of the library in messages: "the CUDA driver".
    const LIBRARY: &'static str;
    /// The symbols of the table's functions.
    const NAMES: &'static Names;
    /// The vendor-specific functions.
    type Own: VendorCalls;

    /// Returns the vendor's part, over the functions found in `library`. The driver is not initialised
    /// yet.
    fn new(own: Self::Own, calls: &Calls, library: Library) -> Self;
}

/// Returns a search for the library of the driver `D`, without candidates.
pub fn search<D: DriverLibrary>() -> Search {
    Search::new(D::LIBRARY)
}

/// Opens the first library of a search that is the driver `D`, initialises it (`cuInit`, `hipInit`)
/// and returns its backend. Does not create a context.
///
/// # Errors
/// `BackendUnavailable` with every path and symbol tried, or with the driver's status if it cannot be
/// initialised or does not have a device.
///
/// # Safety
/// The files of the search are the vendor's driver, or libraries that behave like it; the types of
/// `D`'s tables match the vendor's declarations.
pub unsafe fn open<D: DriverLibrary>(search: &Search) -> Result<Arc<dyn Backend>> {
    let accept = |library: Library| {
        // SAFETY: the caller's promise, here and below.
        let (calls, own) = unsafe { (Calls::find(D::NAMES, library)?, D::Own::find(library)?) };
        let vendor = Box::new(D::new(own, &calls, library));
        // SAFETY: as above.
        unsafe { backend::open(vendor, calls) }
    };
    // SAFETY: as above.
    unsafe { search.open(accept) }
}

/// Opens the driver `D` from a file.
///
/// # Errors
/// As for [`open`].
///
/// # Safety
/// As for [`open`], for this file.
pub unsafe fn open_file<D: DriverLibrary>(path: &Path) -> Result<Arc<dyn Backend>> {
    // SAFETY: the caller's promise.
    unsafe { open::<D>(&search::<D>().candidates([path])) }
}

/// Returns the symbols that are looked up in the library of the driver `D`: the required ones, and the
/// ones without which a single call is `Unsupported`.
pub fn symbols<D: DriverLibrary>() -> (Vec<&'static str>, Vec<&'static str>) {
    let mut required = D::NAMES.required();
    required.extend(D::Own::REQUIRED);
    let mut optional = D::NAMES.optional();
    optional.extend(D::Own::OPTIONAL);
    (required, optional)
}

/// Defines `NAMES`, the symbols of a vendor's functions under the names of [`Calls`], and checks each
/// function's type against the vendor's declaration.
///
/// The first line has the vendor's marker type, the module of its declarations, and their calling
/// convention: `"C"`, or `"Rust"` if the bindings load a function when it is first called. A row of
/// `checked` has the field, the symbol and a `_` for each argument. A row of `unchecked` has a symbol
/// that the bindings do not declare in this form, or an empty one for a function that the vendor
/// lacks.
#[macro_export]
macro_rules! driver_names {
    (
        $vendor:ty, $sys:ident, $abi:literal;
        checked { $($field:ident: $symbol:ident($($argument:tt),*);)* }
        unchecked { $($other:ident: $other_symbol:literal;)* }
    ) => {
        /// The symbols of the driver's library.
        pub(crate) static NAMES: $crate::calls::Names = $crate::calls::Names {
            $($field: stringify!($symbol),)*
            $($other: $other_symbol,)*
        };

        // Compiles only if each field has the type of its function.
        const _: () = {
            use $crate::{abi::check_field, calls::Calls};
            $(
                let declared: unsafe extern $abi fn($($argument),*) -> _ = $sys::$symbol;
                check_field::<$vendor, _, _, _>(|calls: &Calls| calls.$field, declared);
            )*
        };
    };
}

/// Defines `OwnCalls`, the vendor-specific functions and those whose types differ between the vendors,
/// and checks each function's type against the vendor's declaration.
///
/// The first line is the same as for [`driver_names!`]. A row has the field, the symbol, the types of
/// the arguments with a `_:` before each, and the type of the result.
#[macro_export]
macro_rules! driver_calls {
    (
        $vendor:ty, $sys:ident, $abi:literal;
        required { $($name:ident: $symbol:ident($($argument:tt: $raw:ty),*) -> $result:ty;)* }
        optional {
            $($other:ident: $other_symbol:ident($($other_argument:tt: $other_raw:ty),*)
                -> $other_result:ty;)*
        }
    ) => {
        /// The vendor-specific functions, and those whose types differ between the vendors.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct OwnCalls {
            $(pub(crate) $name: unsafe extern "C" fn($($raw),*) -> $result,)*
            $(pub(crate) $other: Option<unsafe extern "C" fn($($other_raw),*) -> $other_result>,)*
        }

        const _: () = {
            use $crate::abi::check_field;
            $(
                let declared: unsafe extern $abi fn($($argument),*) -> _ = $sys::$symbol;
                check_field::<$vendor, _, _, _>(|calls: &OwnCalls| calls.$name, declared);
            )*
            $(
                let declared: unsafe extern $abi fn($($other_argument),*) -> _ = $sys::$other_symbol;
                check_field::<$vendor, _, _, _>(|calls: &OwnCalls| calls.$other, declared);
            )*
        };

        impl $crate::VendorCalls for OwnCalls {
            const REQUIRED: &'static [&'static str] = &[$(stringify!($symbol)),*];
            const OPTIONAL: &'static [&'static str] = &[$(stringify!($other_symbol)),*];

            unsafe fn find(library: hal::library::Library) -> hal::Result<Self> {
                let mut symbols = library.symbols();
                // SAFETY: the types are checked against the declarations above, here and below.
                $(let $name = unsafe { symbols.required(stringify!($symbol)) };)*
                let all = || Some(OwnCalls {
                    $($name: $name?,)*
                    // SAFETY: as above.
                    $($other: unsafe { symbols.optional(stringify!($other_symbol)) },)*
                });
                symbols.complete(all())
            }
        }
    };
}
