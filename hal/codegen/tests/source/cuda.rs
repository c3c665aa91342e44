//! The first NVIDIA GPU, with the functions of the driver and of NVRTC, found at run time.

use gpuarray_codegen::source::NVRTC_OPTIONS;
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::PathBuf;
use std::ptr::null;

/// An opaque pointer that only the library that created it dereferences.
pub(crate) type Handle = usize;

/// Defines a struct of the functions of a C library, with their names in the library.
macro_rules! functions {
    ($table:ident: $($name:ident($($argument:ty),*))*) => {
        #[allow(non_snake_case, reason = "the names of the symbols")]
        pub(crate) struct $table {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) -> c_int,)*
            _library: Library,
        }

        impl $table {
            fn new(library: Library) -> Result<Self, libloading::Error> {
                Ok($table {
                    // SAFETY: the types match the library's header, and the library stays loaded as
                    // long as the table.
                    $($name: unsafe {
                        *library.get(concat!(stringify!($name), "\0").as_bytes())?
                    },)*
                    _library: library,
                })
            }
        }
    };
}

// A CUdeviceptr is a u64; CUdevice and the enumerations are ints.
functions! { Driver:
    cuInit(c_uint)
    cuDriverGetVersion(*mut c_int)
    cuGetErrorName(c_int, *mut *const c_char)
    cuDeviceGetCount(*mut c_int)
    cuDeviceGet(*mut c_int, c_int)
    cuDeviceGetAttribute(*mut c_int, c_int, c_int)
    cuDevicePrimaryCtxRetain(*mut Handle, c_int)
    cuCtxSetCurrent(Handle)
    cuCtxSynchronize()
    cuModuleLoadData(*mut Handle, *const c_void)
    cuModuleGetFunction(*mut Handle, Handle, *const c_char)
    cuModuleUnload(Handle)
    cuMemAlloc_v2(*mut u64, usize)
    cuMemFree_v2(u64)
    cuMemcpyHtoD_v2(u64, *const c_void, usize)
    cuMemcpyDtoH_v2(*mut c_void, u64, usize)
    cuLaunchKernel(Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle,
        *mut *mut c_void, *mut *mut c_void)
}

functions! { Nvrtc:
    nvrtcVersion(*mut c_int, *mut c_int)
    nvrtcCreateProgram(*mut Handle, *const c_char, *const c_char, c_int,
        *const *const c_char, *const *const c_char)
    nvrtcCompileProgram(Handle, c_int, *const *const c_char)
    nvrtcGetProgramLogSize(Handle, *mut usize)
    nvrtcGetProgramLog(Handle, *mut c_char)
    nvrtcGetCUBINSize(Handle, *mut usize)
    nvrtcGetCUBIN(Handle, *mut c_char)
    nvrtcDestroyProgram(*mut Handle)
}

/// The first device, with its primary context and a compiler for it.
pub(crate) struct Gpu {
    pub(crate) driver: Driver,
    nvrtc: Nvrtc,
    pub(crate) context: Handle,
    architecture: String,
}

const COMPUTE_CAPABILITY_MAJOR: c_int = 75;
const COMPUTE_CAPABILITY_MINOR: c_int = 76;

impl Gpu {
    pub(crate) fn new() -> Result<Gpu, String> {
        // SAFETY: the initialisers of the driver's library are harmless here.
        let library = unsafe { Library::new("libcuda.so.1") };
        let driver = library.and_then(Driver::new).map_err(|it| format!("no driver: {it}"))?;
        let (mut version, mut count, mut device) = (0, 0, 0);
        let (mut context, mut major, mut minor) = (0, 0, 0);
        // SAFETY: cuInit comes first, and each function writes through one valid pointer.
        unsafe {
            driver.ok("cuInit", (driver.cuInit)(0))?;
            driver.ok("cuDriverGetVersion", (driver.cuDriverGetVersion)(&mut version))?;
            driver.ok("cuDeviceGetCount", (driver.cuDeviceGetCount)(&mut count))?;
            if count == 0 {
                return Err("the driver has no device".into());
            }
            driver.ok("cuDeviceGet", (driver.cuDeviceGet)(&mut device, 0))?;
            for (value, name) in
                [(&mut major, COMPUTE_CAPABILITY_MAJOR), (&mut minor, COMPUTE_CAPABILITY_MINOR)]
            {
                let status = (driver.cuDeviceGetAttribute)(value, name, device);
                driver.ok("cuDeviceGetAttribute", status)?;
            }
            let status = (driver.cuDevicePrimaryCtxRetain)(&mut context, device);
            driver.ok("cuDevicePrimaryCtxRetain", status)?;
        }
        let nvrtc = Nvrtc::find(version / 1000)?;
        Ok(Gpu { driver, nvrtc, context, architecture: format!("sm_{major}{minor}") })
    }

    pub(crate) fn check(&self, what: &str, status: c_int) {
        self.driver.ok(what, status).unwrap();
    }

    /// Compiles the source for the device.
    pub(crate) fn compile(&self, source: &str) -> Vec<u8> {
        let nvrtc = &self.nvrtc;
        let check = |status: c_int| assert_eq!(status, 0, "a function of NVRTC failed");
        let source = CString::new(source).unwrap();
        let options: Vec<CString> = NVRTC_OPTIONS
            .iter()
            .map(|option| CString::new(*option).unwrap())
            .chain([CString::new(format!("--gpu-architecture={}", self.architecture)).unwrap()])
            .collect();
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let (mut program, mut bytes) = (0, 0);
        // SAFETY: strings end with zero bytes and live until the call returns; the buffers of log
        // and code have the sizes that NVRTC reports.
        unsafe {
            let (text, name) = (source.as_ptr(), c"unit.cu".as_ptr());
            check((nvrtc.nvrtcCreateProgram)(&mut program, text, name, 0, null(), null()));
            let count = options.len() as c_int;
            let status = (nvrtc.nvrtcCompileProgram)(program, count, options.as_ptr());
            if status != 0 {
                check((nvrtc.nvrtcGetProgramLogSize)(program, &mut bytes));
                let mut log = vec![0; bytes];
                check((nvrtc.nvrtcGetProgramLog)(program, log.as_mut_ptr().cast()));
                panic!("NVRTC's status is {status}:\n{}", String::from_utf8_lossy(&log));
            }
            check((nvrtc.nvrtcGetCUBINSize)(program, &mut bytes));
            let mut code = vec![0_u8; bytes];
            check((nvrtc.nvrtcGetCUBIN)(program, code.as_mut_ptr().cast()));
            check((nvrtc.nvrtcDestroyProgram)(&mut program));
            code
        }
    }
}

impl Driver {
    fn ok(&self, what: &str, status: c_int) -> Result<(), String> {
        if status == 0 {
            return Ok(());
        }
        let mut name = null();
        // SAFETY: the name becomes a static string, or stays null for an unknown status.
        let name = unsafe {
            (self.cuGetErrorName)(status, &mut name);
            if name.is_null() { c"unknown" } else { CStr::from_ptr(name) }
        };
        Err(format!("{what}: status {status}, {}", name.to_string_lossy()))
    }
}

impl Nvrtc {
    /// Returns the first NVRTC that is not newer than the driver, which could not load newer code.
    /// It is searched for in `GPUARRAY_NVRTC_PATH` (folders, or Python's site-packages with NVRTC
    /// wheels), then where the loader and CUDA keep libraries.
    fn find(driver_major: c_int) -> Result<Nvrtc, String> {
        let list = |variable| {
            let text = std::env::var_os(variable).unwrap_or_default();
            std::env::split_paths(&text).collect::<Vec<PathBuf>>()
        };
        let below = |folder: PathBuf, start: &'static str| {
            let paths = std::fs::read_dir(folder).into_iter().flatten().flatten();
            paths
                .filter(move |it| it.file_name().to_string_lossy().starts_with(start))
                .map(|it| it.path())
        };
        let mut folders = Vec::new();
        for folder in list("GPUARRAY_NVRTC_PATH") {
            folders.extend(below(folder.join("nvidia"), "").map(|it| it.join("lib")));
            folders.push(folder);
        }
        folders.extend(list("LD_LIBRARY_PATH"));
        folders.extend(list("CUDA_HOME").into_iter().map(|it| it.join("lib64")));
        // An empty path leaves the name unchanged, for the loader's own search.
        folders.push(PathBuf::new());
        folders.extend(below("/usr/local".into(), "cuda").map(|it| it.join("lib64")));
        for folder in folders {
            for name in ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"] {
                // SAFETY: the initialisers of NVRTC are harmless here.
                let library = unsafe { Library::new(folder.join(name)) };
                let Ok(nvrtc) = library.and_then(Nvrtc::new) else {
                    continue;
                };
                let (mut major, mut minor) = (0, 0);
                // SAFETY: both pointers are valid.
                let status = unsafe { (nvrtc.nvrtcVersion)(&mut major, &mut minor) };
                if status == 0 && major <= driver_major {
                    return Ok(nvrtc);
                }
            }
        }
        Err(format!("no NVRTC for a driver of CUDA {driver_major}; try GPUARRAY_NVRTC_PATH"))
    }
}
