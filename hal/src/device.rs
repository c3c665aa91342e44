//! Devices: memory, streams, events and modules of one GPU, or of the host.

use crate::error::{Error, Result};
use crate::event::{Event, EventOptions};
use crate::module::{Compiled, LinkInput, LoadOptions, Module, ModuleSource};
use crate::properties::{
    DeviceAttribute, DeviceId, DeviceProperties, Features, IpcHandle, MemoryInfo, PinnedOptions,
};
use crate::stream::{Stream, StreamOptions};
use crate::texture::{ArrayShape, Sampling, TextureHandle, TextureResource};
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

/// One GPU, or the host as a device. Every method may be called from any thread.
///
/// Programs get devices from a [`Backend`](crate::Backend). A device creates streams, events and modules, and reports
/// its properties and features. Functions that allocate take a device as an argument. Each backend implements the trait
/// for its own devices; the driver layer does so for CUDA and HIP together. Methods with a body are optional for a
/// backend; most of them return `Unsupported` by default.
///
/// The methods that allocate and free bytes are for the owning types of [`crate::memory`] and for other libraries.
/// Programs use the owning types instead; these free their memory when they are dropped. Memory allocated here can be
/// used on every stream immediately; memory from [`Stream::allocate`](crate::stream::StreamCore::allocate) is ordered
/// with the work of its stream.
///
/// A device creates a program's objects, and a program can wait for all work of a device:
///
/// ```
/// use gpuarray::{DeviceArray, Feature, StreamOptions};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let stream = device.create_stream(StreamOptions::default())?;
/// let x = DeviceArray::<f32>::ones_on(&device, &stream, &[1000])?;
/// let doubled = (&x + &x)?;
/// device.synchronize()?;
/// assert!(stream.query()?);
/// assert!(device.features().contains(Feature::Kernels));
/// assert_eq!(doubled.sum()?, 2000.0);
/// # Ok(())
/// # }
/// ```
///
/// # Safety
/// Safe code of this crate relies on what an implementation returns:
/// - an allocation, on the device or page-locked on the host, has the requested number of bytes, overlaps no other
///   allocation, and exists until it is freed or [`Device::epoch`] changes; page-locked memory can be read and written
///   by the host;
/// - streams and events belong to this device and keep their own promises;
/// - [`Device::id`] identifies one device only, and [`Device::synchronize`] returns after all of the device's work.
pub unsafe trait Device: Send + Sync + Debug {
    /// Returns the identity of the device.
    fn id(&self) -> DeviceId;

    /// Returns the name, architecture, memory size and other properties, as read when the device was opened.
    fn properties(&self) -> &DeviceProperties;

    /// Returns a numbered attribute (`cuDeviceGetAttribute`, `hipDeviceGetAttribute`).
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown number.
    fn attribute(&self, attribute: DeviceAttribute) -> Result<i32>;

    /// Returns the optional features that the device supports. The answer comes from the driver's functions and the
    /// device's attributes, without creating a context. If a driver has a function that always fails, the call that
    /// uses it returns `Unsupported`.
    fn features(&self) -> Features;

    /// Returns the free and the total bytes of device memory (`cuMemGetInfo`, `hipMemGetInfo`).
    ///
    /// # Errors
    /// The driver's, for example `DeviceLost`.
    fn memory_info(&self) -> Result<MemoryInfo>;

    /// Returns the default stream, the legacy default stream of the driver. It waits for all streams created without
    /// `non_blocking`, and they wait for it. The call does not create a context.
    fn default_stream(&self) -> Arc<dyn Stream>;

    /// Creates a stream (`cuStreamCreateWithPriority`, `hipStreamCreateWithPriority`). It is destroyed with the
    /// returned object.
    ///
    /// # Errors
    /// The driver's, for example `OutOfMemory` or `DeviceLost`.
    fn create_stream(&self, options: StreamOptions) -> Result<Arc<dyn Stream>>;

    /// Creates an event (`cuEventCreate`, `hipEventCreateWithFlags`). It is destroyed with the
    /// returned object.
    ///
    /// # Errors
    /// `InvalidArgument` for options that exclude each other; else the driver's.
    fn create_event(&self, options: EventOptions) -> Result<Arc<dyn Event>>;

    /// Allocates `bytes` bytes of device memory and returns the address. It is aligned for every element type
    /// (`cuMemAlloc`, `hipMalloc`).
    ///
    /// # Errors
    /// `OutOfMemory` with the bytes that were requested, are in use and are available.
    fn allocate(&self, bytes: usize) -> Result<u64>;

    /// Frees memory of [`Device::allocate`], [`Device::allocate_pitched`] or
    /// [`Device::allocate_managed`] (`cuMemFree`, `hipFree`). The call may wait for all work that
    /// is queued on the device.
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Safety
    /// `address` and `bytes` belong to one such allocation that has not been freed since, and no work that uses the
    /// memory is queued from now on.
    unsafe fn free(&self, address: u64, bytes: usize) -> Result<()>;

    /// Frees the ordinary host memory with which [`Device::reset`] replaced managed memory.
    ///
    /// # Safety
    /// [`Device::allocate_managed`] returned the memory before the reset, and nothing uses it any longer.
    unsafe fn free_detached(&self, address: u64) {
        let _ = address;
    }

    /// Returns true if the device can access the whole range, as far as the driver can tell without an access. Raw
    /// addresses from a program are checked with this method. A backend that tracks its allocations accepts only ranges
    /// inside one of them, or inside page-locked host memory.
    fn can_access(&self, address: u64, bytes: usize) -> bool;

    /// Allocates `bytes` bytes of page-locked host memory, aligned to a page, and returns the address. The pages
    /// belong to the process and are page-locked as by [`Device::register_host`]. After any reset of the device they
    /// are ordinary memory with the same bytes.
    ///
    /// # Errors
    /// `OutOfMemory` if the host has too little memory; else the driver's.
    fn allocate_pinned(&self, bytes: usize, options: PinnedOptions) -> Result<*mut u8>;

    /// Frees page-locked memory of [`Device::allocate_pinned`], before or after a reset.
    /// The call may wait for all work that is queued on the device.
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Safety
    /// As for [`Device::free`].
    unsafe fn free_pinned(&self, pointer: *mut u8, bytes: usize) -> Result<()>;

    /// Returns the address at which the device sees page-locked host memory
    /// (`cuMemHostGetDevicePointer`, `hipHostGetDevicePointer`).
    ///
    /// # Errors
    /// `InvalidArgument` for memory that is not page-locked, or not mapped.
    fn pinned_address(&self, pointer: *mut u8) -> Result<u64>;

    /// Page-locks `bytes` bytes of host memory that the program allocated (`cuMemHostRegister`,
    /// `hipHostRegister`).
    ///
    /// [`PinnedOptions::write_combined`] has no effect here.
    ///
    /// # Errors
    /// The driver's, for example for a range that is registered already.
    ///
    /// # Safety
    /// The range is allocated, and remains allocated until it is unregistered.
    unsafe fn register_host(
        &self,
        pointer: *mut u8,
        bytes: usize,
        options: PinnedOptions,
    ) -> Result<()>;

    /// Ends the page-locking of a range that [`Device::register_host`] registered
    /// (`cuMemHostUnregister`, `hipHostUnregister`). The call may wait for all work that is queued
    /// on the device.
    ///
    /// # Errors
    /// The driver's, for a pointer that is not registered.
    ///
    /// # Safety
    /// No queued or running work uses the range.
    unsafe fn unregister_host(&self, pointer: *mut u8) -> Result<()>;

    /// Loads a module of kernels from code, or compiles it from source first (`cuModuleLoadDataEx`,
    /// `hipModuleLoadDataEx`).
    ///
    /// # Errors
    /// `CompileFailed` with the compiler's log; `InvalidArgument` for a file that cannot be read, or for bytes that
    /// are not code for a device; `Unsupported` if the backend cannot run such kernels.
    ///
    /// # Safety
    /// On the host, modules are native code of this process. Their code is trusted like a library's: initialisers of
    /// its variables run when it is loaded. Drivers' modules run nothing until a kernel is launched.
    unsafe fn load_module(
        &self,
        source: &ModuleSource<'_>,
        options: &LoadOptions,
    ) -> Result<Arc<dyn Module>> {
        let _ = (source, options);
        self.id().lacks("load_module", "does not load kernels from source or images")
    }

    /// Compiles CUDA C to code that [`Device::load_module`] accepts as an image. The compiler's messages show `name`
    /// as the file name; `options` are passed to NVRTC or hipRTC.
    ///
    /// # Errors
    /// `CompileFailed` with the compiler's log; `Unsupported` if no compiler is available.
    fn compile(&self, text: &str, name: &str, options: &[&str]) -> Result<Compiled> {
        let _ = (text, name, options);
        self.id().lacks("compile", "does not compile kernels")
    }

    /// Returns the name and the version of the compiler of [`Device::compile`].
    ///
    /// # Errors
    /// `Unsupported` if no compiler is available. The message says what to install.
    fn compiler(&self) -> Result<String> {
        self.id().lacks("compile", "does not compile kernels")
    }

    /// Links code from several inputs to one image (`cuLinkCreate` and related functions,
    /// `hipLinkCreate`).
    ///
    /// # Errors
    /// `CompileFailed` with the linker's log; `Unsupported` if no linker is available.
    fn link(&self, inputs: &[LinkInput<'_>], options: &LoadOptions) -> Result<Compiled> {
        let _ = (inputs, options);
        self.id().lacks("link", "does not link code")
    }

    /// Waits until all work of the device has run (`cuCtxSynchronize`, `hipDeviceSynchronize`).
    ///
    /// # Errors
    /// A failure of that work, for example `LaunchFailed` or `DeviceLost`. If several host functions have failed, each
    /// call returns one of the failures. `InvalidArgument` inside a host function.
    fn synchronize(&self) -> Result<()>;

    /// Waits like [`Device::synchronize`], before the library frees something. A one-time failure of the work stays
    /// pending: a later call of the program reports it. Captures in progress continue.
    ///
    /// # Errors
    /// The driver's error, if the driver cannot wait.
    fn drain(&self) -> Result<()> {
        self.synchronize()
    }

    /// Returns true if other libraries in the process can use a stream by its handle.
    fn shares_streams(&self) -> bool {
        false
    }

    /// Returns an object for a stream that another library created, or for one of the driver's special handles: 1 is
    /// the legacy default stream, 2 the per-thread default stream. The stream is not destroyed with the object.
    ///
    /// # Errors
    /// `Unsupported` if streams have no handles; `InvalidHandle` if handles are addresses and this address is not
    /// readable; the driver's, if it refuses the handle.
    ///
    /// # Safety
    /// `handle` is a stream of this device and lives as long as the object.
    unsafe fn stream_from_handle(&self, handle: u64) -> Result<Arc<dyn Stream>> {
        self.id().lacks("stream_from_handle", format_args!("cannot take the stream {handle:#x}"))
    }

    /// Returns an object for an event that another library created and recorded. The event is not
    /// destroyed with the object.
    ///
    /// # Errors
    /// `Unsupported` if events have no handles.
    ///
    /// # Safety
    /// `handle` is an event of this device's driver and lives as long as the object.
    unsafe fn event_from_handle(&self, handle: u64) -> Result<Arc<dyn Event>> {
        self.id().lacks("event_from_handle", format_args!("cannot take the event {handle:#x}"))
    }

    /// Returns the least and the greatest priority of streams; smaller numbers run first
    /// (`cuCtxGetStreamPriorityRange`, `hipDeviceGetStreamPriorityRange`). Both are 0 if the device does not support
    /// priorities.
    ///
    /// # Errors
    /// The driver's.
    fn priority_range(&self) -> Result<(i32, i32)> {
        Ok((0, 0))
    }

    /// Allocates `height` rows of `width` bytes, each aligned for elements of `element` bytes (4, 8 or 16), and
    /// returns the base address and the row pitch in bytes (`cuMemAllocPitch`, `hipMemAllocPitch`). Free the memory
    /// with [`Device::free`] and `height` times the pitch.
    ///
    /// # Errors
    /// `InvalidArgument` for another `element`; `Overflow` if the sizes do not fit; `OutOfMemory`.
    fn allocate_pitched(
        &self,
        width: usize,
        height: usize,
        element: usize,
    ) -> Result<(u64, usize)> {
        check_pitched(width, height, element)?;
        let pitch = width.checked_next_multiple_of(512).unwrap_or(usize::MAX);
        Ok((self.allocate(pitch.saturating_mul(height))?, pitch))
    }

    /// Allocates `bytes` bytes of managed memory (shared by host and device), and returns the address
    /// (`cuMemAllocManaged`, `hipMallocManaged`). The memory migrates to the side that accesses it. Free it with
    /// [`Device::free`].
    ///
    /// # Errors
    /// `Unsupported` if the device does not support managed memory; `OutOfMemory`.
    fn allocate_managed(&self, bytes: usize) -> Result<u64> {
        let _ = bytes;
        self.id().lacks("allocate_managed", "has no managed memory")
    }

    /// Allocates an array for textures and surfaces, with undefined texels, and returns its handle
    /// (`cuArray3DCreate`). The shape has passed [`ArrayShape::bytes`].
    ///
    /// # Errors
    /// `Unsupported` if the device does not support textures; `OutOfMemory`; the driver's, for a shape that the device
    /// does not support.
    fn create_array(&self, shape: &ArrayShape) -> Result<u64> {
        let _ = shape;
        self.id().lacks("create_array", "has no textures")
    }

    /// Creates a texture object, and returns the number that kernels use for it (`cuTexObjectCreate`). The resource
    /// has passed [`TextureResource::check`].
    ///
    /// # Errors
    /// `Unsupported` if the device does not support textures; the driver's, for memory that is not aligned to the
    /// device's attribute 14.
    ///
    /// # Safety
    /// The memory or array that the resource names stays allocated until the object is destroyed.
    unsafe fn create_texture(
        &self,
        resource: &TextureResource,
        sampling: &Sampling,
    ) -> Result<u64> {
        let _ = (resource, sampling);
        self.id().lacks("create_texture", "has no textures")
    }

    /// Creates a surface object over an array, and returns the number that kernels use for it (`cuSurfObjectCreate`).
    ///
    /// # Errors
    /// `Unsupported` if the device does not support surfaces; the driver's.
    ///
    /// # Safety
    /// The array stays allocated until the object is destroyed.
    unsafe fn create_surface(&self, array: u64) -> Result<u64> {
        let _ = array;
        self.id().lacks("create_surface", "has no surfaces")
    }

    /// Frees an array, or destroys a texture or surface object (`cuArrayDestroy`,
    /// `cuTexObjectDestroy`, `cuSurfObjectDestroy`).
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Safety
    /// The handle is of that kind, and no queued or running work uses it.
    unsafe fn destroy_texture(&self, kind: TextureHandle, handle: u64) -> Result<()> {
        let _ = (kind, handle);
        self.id().lacks("destroy_texture", "has no textures")
    }

    /// Returns the base address and the bytes of the allocation that contains `address`
    /// (`cuMemGetAddressRange`, `hipMemGetAddressRange`).
    ///
    /// # Errors
    /// `InvalidArgument` for an address outside all allocations; `Unsupported` if the backend does not track its
    /// allocations.
    fn address_range(&self, address: u64) -> Result<(u64, usize)> {
        let _ = address;
        self.id().lacks("address_range", "does not report the range of an allocation")
    }

    /// Returns true if kernels on this device could access memory of `other`
    /// (`cuDeviceCanAccessPeer`, `hipDeviceCanAccessPeer`).
    ///
    /// # Errors
    /// The driver's.
    fn can_access_peer(&self, other: &dyn Device) -> Result<bool> {
        let _ = other;
        Ok(false)
    }

    /// Lets kernels on this device access memory of `other` (`cuCtxEnablePeerAccess`,
    /// `hipDeviceEnablePeerAccess`). Enabling access that is enabled already succeeds.
    ///
    /// # Errors
    /// `InvalidArgument` for a device of another backend or for this device itself; `Unsupported` if the backend lacks
    /// peer access; the driver's, if the devices cannot access each other.
    fn enable_peer_access(&self, other: &dyn Device) -> Result<()> {
        let what = format_args!("cannot access device {}", other.id());
        self.id().lacks("enable_peer_access", what)
    }

    /// Ends the access that [`Device::enable_peer_access`] enabled (`cuCtxDisablePeerAccess`,
    /// `hipDeviceDisablePeerAccess`). Disabling access that is not enabled succeeds.
    ///
    /// # Errors
    /// `InvalidArgument` for a device of another backend or for this device itself; `Unsupported` if the backend lacks
    /// peer access.
    fn disable_peer_access(&self, other: &dyn Device) -> Result<()> {
        let what = format_args!("cannot access device {}", other.id());
        self.id().lacks("disable_peer_access", what)
    }

    /// Queues a copy of `bytes` bytes from the memory of `source_device` to memory of this device
    /// (`cuMemcpyPeerAsync`, `hipMemcpyPeerAsync`). The stream belongs to any device of the backend. Overlapping bytes are
    /// read before they are written.
    ///
    /// # Errors
    /// `InvalidArgument` for a device or a stream of another backend; `Unsupported` if the backend lacks peer copies;
    /// else as for [`Stream::transfer`](crate::stream::StreamCore::transfer).
    ///
    /// # Safety
    /// As for [`Stream::transfer`](crate::stream::StreamCore::transfer); `destination` is memory of this device and
    /// `source` of `source_device`.
    unsafe fn transfer_peer(
        &self,
        stream: &dyn Stream,
        destination: u64,
        source: u64,
        source_device: &dyn Device,
        bytes: usize,
    ) -> Result<()> {
        let _ = (stream, destination, source, bytes);
        let what = format_args!("cannot copy from device {}", source_device.id());
        self.id().lacks("transfer_peer", what)
    }

    /// Returns the bytes of freed memory that are kept for later allocations. [`Device::trim_memory`] releases them.
    ///
    /// # Errors
    /// The driver's.
    fn kept_memory(&self) -> Result<usize> {
        Ok(0)
    }

    /// Releases unused memory of the pool until it holds at most `keep` bytes (`cuMemPoolTrimTo`, `hipMemPoolTrimTo`).
    /// If `keep` is 0, also releases the streams' free lists and the staging memory. Does nothing on a device without
    /// a pool.
    ///
    /// # Errors
    /// The driver's.
    fn trim_memory(&self, keep: usize) -> Result<()> {
        let _ = keep;
        Ok(())
    }

    /// Sets how many bytes of freed memory the pool keeps at a synchronization (`CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`).
    /// By default the pool keeps all freed memory.
    ///
    /// # Errors
    /// `Unsupported` if the device does not have a pool.
    fn set_release_threshold(&self, bytes: usize) -> Result<()> {
        let _ = bytes;
        self.id().lacks("set_release_threshold", "has no pool")
    }

    /// Returns a handle with which another process can open memory of [`Device::allocate`]
    /// (`cuIpcGetMemHandle`, `hipIpcGetMemHandle`).
    ///
    /// # Errors
    /// `Unsupported` where the device cannot share memory; `InvalidArgument` for memory of a pool.
    fn export_memory(&self, address: u64) -> Result<IpcHandle> {
        let _ = address;
        self.id().lacks("export_memory", "does not share memory between processes")
    }

    /// Opens memory that another process exported, and returns the memory's address in this process
    /// (`cuIpcOpenMemHandle`, `hipIpcOpenMemHandle`).
    ///
    /// # Errors
    /// `Unsupported` where the device cannot share memory; the driver's, for a handle of this
    /// process or of memory that has been freed.
    fn import_memory(&self, handle: &IpcHandle) -> Result<u64> {
        let _ = handle;
        self.id().lacks("import_memory", "does not share memory between processes")
    }

    /// Closes memory that [`Device::import_memory`] opened (`cuIpcCloseMemHandle`,
    /// `hipIpcCloseMemHandle`).
    ///
    /// # Errors
    /// `Unsupported` where the device cannot share memory; else the driver's.
    ///
    /// # Safety
    /// No queued or running work uses the memory.
    unsafe fn close_imported(&self, address: u64) -> Result<()> {
        let _ = address;
        self.id().lacks("close_imported", "does not share memory between processes")
    }

    /// Returns a handle with which another process can open an event created with `interprocess`
    /// (`cuIpcGetEventHandle`, `hipIpcGetEventHandle`).
    ///
    /// # Errors
    /// `Unsupported` where the device cannot share events; the driver's, for an event created without
    /// `interprocess`.
    fn export_event(&self, event: &dyn Event) -> Result<IpcHandle> {
        let _ = event;
        self.id().lacks("export_event", "does not share events between processes")
    }

    /// Opens an event that another process exported (`cuIpcOpenEventHandle`,
    /// `hipIpcOpenEventHandle`).
    ///
    /// # Errors
    /// `Unsupported` where the device cannot share events; else the driver's.
    fn import_event(&self, handle: &IpcHandle) -> Result<Arc<dyn Event>> {
        let _ = handle;
        self.id().lacks("import_event", "does not share events between processes")
    }

    /// Returns a limit of the device's context, by its number in `CUlimit` (`cuCtxGetLimit`, `hipDeviceGetLimit`).
    ///
    /// # Errors
    /// `Unsupported` for a limit that the device does not have.
    fn limit(&self, limit: i32) -> Result<usize> {
        self.id().lacks("limit", format_args!("has no limit {limit}"))
    }

    /// Sets a limit of the device's context; the driver may round the value (`cuCtxSetLimit`,
    /// `hipDeviceSetLimit`).
    ///
    /// # Errors
    /// `Unsupported` for a limit that the device does not have; `InvalidArgument` for a value that
    /// the driver refuses.
    fn set_limit(&self, limit: i32, value: usize) -> Result<()> {
        let _ = value;
        self.id().lacks("set_limit", format_args!("has no limit {limit}"))
    }

    /// Returns the driver's handle of the device's primary context, a `CUcontext` or `hipCtx_t`, for other libraries.
    /// The device still owns the context, and a reset ends it. A device without a driver may return any number that is
    /// unique to it.
    ///
    /// # Errors
    /// `Unsupported` if the device does not have such a handle.
    fn context_handle(&self) -> Result<u64> {
        self.id().lacks("context_handle", "has no context of a driver")
    }

    /// Makes the device's context the current one of the calling thread, for other libraries' calls
    /// on this thread (`cuCtxSetCurrent`, `hipSetDevice`). This library's own calls do not need it.
    ///
    /// # Errors
    /// The driver's.
    fn make_current(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the number of resets of the device. Objects of an earlier epoch are invalid.
    fn epoch(&self) -> u64 {
        0
    }

    /// Destroys everything on the device: memory, streams, events and modules of this and all other libraries in the
    /// process, and page-locked memory (`cuDevicePrimaryCtxReset`, `hipDeviceReset`). Calls on older objects of this
    /// library then return `InvalidHandle`. This lets a program recover from a failed kernel without ending the
    /// process.
    ///
    /// # Errors
    /// `Unsupported` if the device cannot be reset.
    ///
    /// # Safety
    /// Nothing reads or writes page-locked memory of the device from now on. No other library of the process uses the
    /// device during the reset, or later uses objects that this library created before the reset.
    unsafe fn reset(&self) -> Result<()> {
        self.id().lacks("reset", "cannot be reset")
    }

    /// Returns the backend's own object, inside all layers.
    fn as_any(&self) -> &dyn Any;
}

/// Checks the arguments of [`Device::allocate_pitched`], and returns the bytes of the rows without padding.
pub fn check_pitched(width: usize, height: usize, element: usize) -> Result<usize> {
    if ![4, 8, 16].contains(&element) {
        return Err(Error::invalid(
            "allocate_pitched",
            format!("element is {element}; allowed are 4, 8 and 16"),
        ));
    }
    width.checked_mul(height).ok_or_else(|| {
        Error::overflow(
            "allocate_pitched",
            format!("width {width} times height {height} is more bytes than {}", usize::MAX),
        )
    })
}
