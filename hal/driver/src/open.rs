//! Opening a vendor's driver: its functions found in a library, and the backend over them.

use super::backend;
use super::calls::{Calls, Names};
use super::vendor::Vendor;
use hal::backend::Backend;
use hal::error::Result;
use hal::library::{Library, Search};
use std::path::Path;
use std::sync::Arc;

/// The functions that only one vendor has, or whose types differ from the other vendor's: the
/// struct that [`driver_calls!`](crate::driver_calls) makes.
pub trait VendorCalls: Sized {
    /// The symbols without which the driver cannot be used.
    const REQUIRED: &'static [&'static str];
    /// The symbols without which one call is `Unsupported`.
    const OPTIONAL: &'static [&'static str];

    /// Finds the functions. An optional one that is missing stays empty.
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
    /// What messages call the library: "the CUDA driver".
    const LIBRARY: &'static str;
    /// The symbols of the table's functions.
    const NAMES: &'static Names;
    /// The vendor's own functions.
    type Own: VendorCalls;

    /// Returns the vendor's part over the functions that were found in `library`. The driver is not
    /// initialised yet.
    fn new(own: Self::Own, calls: &Calls, library: Library) -> Self;
}

/// Returns a search for the library of the driver `D`, without any file to try.
pub fn search<D: DriverLibrary>() -> Search {
    Search::new(D::LIBRARY)
}

/// Opens the first library of a search that is the driver `D`, initialises it (`cuInit`,
/// `hipInit`) and returns its backend. Makes no context.
///
/// # Errors
/// `BackendUnavailable` with every path and symbol tried, or with the driver's status if it
/// cannot be initialised or has no device.
///
/// # Safety
/// The files of the search are the vendor's driver, or libraries that behave like it; the types of
/// `D`'s tables are those that the vendor declares.
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

/// Opens the driver `D` in a file.
///
/// # Errors
/// As for [`open`].
///
/// # Safety
/// As for [`open`], of this file.
pub unsafe fn open_file<D: DriverLibrary>(path: &Path) -> Result<Arc<dyn Backend>> {
    // SAFETY: the caller's promise.
    unsafe { open::<D>(&search::<D>().candidates([path])) }
}

/// Returns the symbols that are looked for in the library of the driver `D`: those that are
/// needed, and those without which one call is `Unsupported`.
pub fn symbols<D: DriverLibrary>() -> (Vec<&'static str>, Vec<&'static str>) {
    let mut required = D::NAMES.required();
    required.extend(D::Own::REQUIRED);
    let mut optional = D::NAMES.optional();
    optional.extend(D::Own::OPTIONAL);
    (required, optional)
}

/// Defines `NAMES`, the symbols of a vendor's functions under the names of
/// [`Calls`], and checks each function's type against the vendor's declaration.
///
/// The head has the vendor's marker type, the module of its declarations, and their calling
/// convention: `"C"`, or `"Rust"` where the bindings load a function when it is first called. A row of
/// `checked` has the field, the symbol and a `_` for each argument; a row of `unchecked` has a symbol
/// that the bindings do not declare in this form, or an empty one for a function that the vendor
/// does not have.
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

        // Does not compile if a field has another type than the function.
        const _: () = {
            use $crate::{abi::check_field, calls::Calls};
            $(
                let declared: unsafe extern $abi fn($($argument),*) -> _ = $sys::$symbol;
                check_field::<$vendor, _, _, _>(|calls: &Calls| calls.$field, declared);
            )*
        };
    };
}

/// Defines `OwnCalls`, the functions that only one vendor has or whose types differ from the other
/// vendor's, and checks each function's type against the vendor's declaration.
///
/// The head is that of [`driver_names!`]. A row has the field, the symbol, the types of the
/// arguments with a `_:` before each, and the type of the result.
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
        /// The functions that this vendor alone has, or whose types differ from the other's.
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
