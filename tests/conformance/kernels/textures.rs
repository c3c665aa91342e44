//! Texture arrays, texture objects and surface objects.

use crate::captures::graphs::{capture, replay};
use crate::context::{Context, Gate, error_of, expect_error};
use crate::harness::{Outcome, tests};
use crate::programs::{grid, launch};
use gpuarray::memory::PinnedMemory;
use gpuarray::texture::{
    AddressMode, ArrayCopy, ArrayShape, ChannelFormat, CopySide, Sampling, SurfaceObject,
    TexelFormat, TextureArray, TextureObject, TextureResource,
};
use gpuarray::{
    CaptureMode, DeviceArray, ErrorKind, Feature, Kernel, LoadOptions, ModuleSource, PinnedOptions,
    Result, Stream,
};
use std::sync::Arc;

tests![
    a_device_without_textures_says_so_by_name,
    a_device_without_surfaces_says_so_by_name needs [Textures],
    kernels_read_arrays_between_their_texels needs [Kernels, Textures],
    kernels_read_layers needs [Kernels, Textures],
    kernels_read_memory_as_textures needs [Kernels, Textures],
    axes_have_modes_of_their_own_or_are_refused needs [Kernels, Textures],
    surfaces_are_read_and_written needs [Kernels, Textures, Surfaces],
    parts_are_copied_between_arrays_and_memory needs [Textures],
    copies_to_arrays_go_in_their_streams_order needs [Textures],
    pageable_memory_is_read_when_the_copy_returns needs [Textures],
    graphs_copy_to_arrays needs [Graphs, Textures],
    memory_runs_out_for_arrays needs [Textures],
];

const SOURCE: &str = r#"
#ifdef __HIP__
typedef hipTextureObject_t Texture;
typedef hipSurfaceObject_t Surface;
#else
typedef cudaTextureObject_t Texture;
typedef cudaSurfaceObject_t Surface;
#endif

extern "C" {

__global__ void read(float* out, Texture texture, float y, float scale) {
    out[threadIdx.x] = tex2D<float>(texture, threadIdx.x * scale, y);
}

__global__ void read_layer(float* out, Texture texture, int layer) {
    out[threadIdx.x] = tex2DLayered<float>(texture, threadIdx.x + 0.5f, 0.5f, layer);
}

__global__ void fetch(float2* out, Texture texture) {
    out[threadIdx.x] = tex1Dfetch<float2>(texture, (int)threadIdx.x - 1);
}

// A row is written one row further down.
__global__ void shift(Surface surface) {
    float texel;
    surf2Dread(&texel, surface, threadIdx.x * 4, 0);
    surf2Dwrite(texel + 1, surface, threadIdx.x * 4, 1);
}

}
"#;

fn kernel(context: &Context, name: &str) -> Result<Arc<dyn Kernel>> {
    let source = ModuleSource::Source { text: SOURCE, name: "textures.cu", options: &[] };
    // SAFETY: the text above contains only functions.
    unsafe { context.device.load_module(&source, &LoadOptions::default()) }?.kernel(name)
}

fn floats() -> TexelFormat {
    TexelFormat::new(ChannelFormat::Float, 1).expect("there are such texels")
}

fn shape(width: usize, height: usize) -> ArrayShape {
    ArrayShape::new(width, height, 0, floats())
}

/// Returns a side of a copy in an array, starting at `origin`.
fn of_array(array: &TextureArray, origin: [usize; 3]) -> Result<CopySide> {
    Ok(CopySide::Array { array: array.handle()?, format: array.shape().format, origin })
}

/// Returns a side of a copy in memory with contiguous rows.
fn of_memory(address: u64, width: usize, height: usize, is_host: bool) -> CopySide {
    CopySide::Memory { address, pitch: width, slice: width * height, is_host }
}

/// Queues a copy of an extent: the bytes of a row, rows and slices.
fn copy(
    stream: &Arc<dyn Stream>,
    (destination, source): (CopySide, CopySide),
    [width, height, depth]: [usize; 3],
    wait: bool,
) -> Result<()> {
    let copy = ArrayCopy { destination, source, width, height, depth, wait };
    // SAFETY: the tests name memory and arrays that they own, and wait before dropping them.
    unsafe { stream.copy_array(&copy) }
}

/// Returns an array whose texels are `0, 1, 2, ...`.
fn counting(context: &Context, shape: ArrayShape) -> Result<Arc<TextureArray>> {
    let array = TextureArray::new(&context.device, shape)?;
    let [width, height, depth] = shape.extents();
    let texels: Vec<f32> = (0..width * height * depth).map(|it| it as f32).collect();
    let from = of_memory(texels.as_ptr() as u64, 4 * width, height, true);
    let sides = (of_array(&array, [0; 3])?, from);
    copy(&context.device.default_stream(), sides, [4 * width, height, depth], true)?;
    Ok(array)
}

/// Returns all texels of an array without slices.
fn texels(context: &Context, array: &TextureArray) -> Result<Vec<f32>> {
    let [width, height, _] = array.shape().extents();
    let mut all = vec![0.0_f32; width * height];
    let to = of_memory(all.as_mut_ptr() as u64, 4 * width, height, true);
    let sides = (to, of_array(array, [0; 3])?);
    copy(&context.device.default_stream(), sides, [4 * width, height, 1], true)?;
    Ok(all)
}

/// Returns the values that a kernel reads from a row at x = 0, `scale`, `2 * scale` and so on.
fn row(
    context: &Context,
    texture: &TextureObject,
    (y, scale): (f32, f32),
    count: u32,
) -> Result<Vec<f32>> {
    let out = DeviceArray::<f32>::zeros(&context.device, &[count as usize])?;
    let stream = context.device.default_stream();
    let arguments = (&mut out.clone(), texture.value(), y, scale);
    launch(&kernel(context, "read")?, grid(1, count), &stream, arguments)?;
    out.to_vec()
}

/// Copies a random box of an array to another position in it, and compares all texels.
pub(crate) fn check_copy_within(
    context: &Context,
    mut below: impl FnMut(usize) -> usize,
    is_captured: bool,
) -> Outcome {
    let (width, height) = (1 + below(40), 1 + below(12));
    let array = counting(context, shape(width, height))?;
    let [columns, rows] = [1 + below(width), 1 + below(height)];
    let [source, destination] =
        [(); 2].map(|()| [below(width - columns + 1), below(height - rows + 1)]);
    let side = |[x, y]: [usize; 2]| of_array(&array, [4 * x, y, 0]);
    let (sides, stream) = ((side(destination)?, side(source)?), context.stream()?);
    let queue = || copy(&stream, sides, [4 * columns, rows, 1], false);
    context.device.synchronize()?;
    if is_captured {
        replay(&capture(&stream, queue)?, &stream)?;
    } else {
        queue()?;
    }
    stream.synchronize()?;
    let mut expected: Vec<f32> = (0..width * height).map(|it| it as f32).collect();
    for (x, y) in (0..rows).flat_map(|y| (0..columns).map(move |x| (x, y))) {
        let from = (source[1] + y) * width + source[0] + x;
        expected[(destination[1] + y) * width + destination[0] + x] = from as f32;
    }
    assert_eq!(texels(context, &array)?, expected, "{columns}x{rows} {source:?} {destination:?}");
    Ok(())
}

fn a_device_without_textures_says_so_by_name(context: &Context) -> Outcome {
    let array = TextureArray::new(&context.device, shape(3, 2));
    if context.can(Feature::Textures) {
        assert_eq!(array?.shape(), &shape(3, 2));
        return Ok(());
    }
    expect_error(array, ErrorKind::Unsupported, &["create_array"])
}

fn a_device_without_surfaces_says_so_by_name(context: &Context) -> Outcome {
    let array = TextureArray::new(&context.device, shape(3, 2).surface(true))?;
    let surface = SurfaceObject::new(&array);
    if context.can(Feature::Surfaces) {
        assert_ne!(surface?.value(), 0);
        let plain = TextureArray::new(&context.device, shape(3, 2))?;
        return expect_error(
            SurfaceObject::new(&plain),
            ErrorKind::InvalidArgument,
            &["SURFACE_LDST"],
        );
    }
    expect_error(surface, ErrorKind::Unsupported, &["create_surface"])
}

fn kernels_read_arrays_between_their_texels(context: &Context) -> Outcome {
    let array = counting(context, shape(4, 3))?;
    let nearest = TextureObject::of_array(&array, &Sampling::default())?;
    assert_eq!(row(context, &nearest, (1.5, 1.0), 6)?, [4.0, 5.0, 6.0, 7.0, 7.0, 7.0]);
    let linear = Sampling::default().linear(true);
    let linear = TextureObject::of_array(&array, &linear)?;
    // Halfway between rows, and at the boundary between texels.
    assert_eq!(row(context, &linear, (1.0, 1.0), 4)?, [2.0, 2.5, 3.5, 4.5]);
    let repeated = Sampling::default().address([AddressMode::Wrap; 3]).normalized(true);
    let repeated = TextureObject::of_array(&array, &repeated)?;
    let twice = row(context, &repeated, (0.5, 0.25), 8)?;
    assert_eq!(twice, [4.0, 5.0, 6.0, 7.0, 4.0, 5.0, 6.0, 7.0]);
    Ok(())
}

fn kernels_read_layers(context: &Context) -> Outcome {
    let layers = shape(2, 2).depth(3).layered(true);
    let array = counting(context, layers)?;
    let texture = TextureObject::of_array(&array, &Sampling::default())?;
    let read = kernel(context, "read_layer")?;
    let stream = context.device.default_stream();
    for layer in 0..3 {
        let out = DeviceArray::<f32>::zeros(&context.device, &[2])?;
        launch(&read, grid(1, 2), &stream, (&mut out.clone(), texture.value(), layer))?;
        let first = 4.0 * layer as f32;
        assert_eq!(out.to_vec()?, [first, first + 1.0]);
    }
    Ok(())
}

fn kernels_read_memory_as_textures(context: &Context) -> Outcome {
    let numbers: Vec<f32> = (0..128).map(|it| it as f32).collect();
    let memory = DeviceArray::from_shaped(&context.device, &[128], &numbers)?;
    let address = memory.untyped().address();
    let format = TexelFormat::new(ChannelFormat::Float, 2)?;
    let object = |resource| {
        let kept = Box::new(memory.clone());
        // SAFETY: the object keeps the memory that the resources below refer to.
        unsafe { TextureObject::new(&context.device, &resource, &Sampling::default(), kept) }
    };
    let texture = object(TextureResource::Linear { address, bytes: 16, format })?;
    let out = DeviceArray::<f32>::zeros(&context.device, &[8])?;
    let stream = context.device.default_stream();
    let fetch = kernel(context, "fetch")?;
    launch(&fetch, grid(1, 4), &stream, (&mut out.clone(), texture.value()))?;
    // Reads outside the texture return zero.
    assert_eq!(out.to_vec()?, [0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 0.0, 0.0]);
    let format = floats();
    let rows = TextureResource::Pitched { address, width: 3, height: 2, pitch: 256, format };
    assert_eq!(row(context, &object(rows)?, (1.5, 1.0), 4)?, [64.0, 65.0, 66.0, 66.0]);
    for (address, named) in [(address + 2, "0x"), (address + 4, "")] {
        let resource = TextureResource::Linear { address, bytes: 16, format };
        expect_error(object(resource), ErrorKind::InvalidArgument, &[named])?;
    }
    Ok(())
}

fn axes_have_modes_of_their_own_or_are_refused(context: &Context) -> Outcome {
    use AddressMode::{Border, Clamp, Wrap};
    let array = counting(context, shape(4, 3))?;
    let sampling = |address| Sampling::default().address(address);
    let texture = TextureObject::of_array(&array, &sampling([Border, Clamp, Clamp]));
    if context.device.id().backend == "hip" {
        expect_error(texture, ErrorKind::Unsupported, &["Border", "one mode"])?;
    } else {
        assert_eq!(row(context, &texture?, (7.0, 1.0), 5)?, [8.0, 9.0, 10.0, 11.0, 0.0]);
    }
    // The mode of an axis that the texture does not have is ignored, and wrapping is ignored without
    // normalised coordinates.
    for address in [[Border, Border, Clamp], [Wrap, Clamp, Border]] {
        TextureObject::of_array(&array, &sampling(address))?;
    }
    Ok(())
}

fn surfaces_are_read_and_written(context: &Context) -> Outcome {
    let array = counting(context, shape(4, 2).surface(true))?;
    let surface = SurfaceObject::new(&array)?;
    let stream = context.device.default_stream();
    launch(&kernel(context, "shift")?, grid(1, 4), &stream, (surface.value(),))?;
    assert_eq!(texels(context, &array)?, [0.0, 1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 4.0]);
    Ok(())
}

fn parts_are_copied_between_arrays_and_memory(context: &Context) -> Outcome {
    let stream = context.device.default_stream();
    let (from, to) = (counting(context, shape(5, 4))?, counting(context, shape(4, 3))?);
    // Copies two texels of two rows to another position.
    let sides = (of_array(&to, [4, 1, 0])?, of_array(&from, [12, 2, 0])?);
    copy(&stream, sides, [8, 2, 1], true)?;
    let expected = [0.0, 1.0, 2.0, 3.0, 4.0, 13.0, 14.0, 7.0, 8.0, 18.0, 19.0, 11.0];
    assert_eq!(texels(context, &to)?, expected);
    // Copies through device memory whose rows have gaps.
    let memory = DeviceArray::<f32>::zeros(&context.device, &[6])?;
    let address = memory.untyped().address();
    let gaps = CopySide::Memory { address, pitch: 12, slice: 24, is_host: false };
    copy(&stream, (gaps, of_array(&from, [4, 0, 0])?), [8, 2, 1], true)?;
    assert_eq!(memory.to_vec()?, [1.0, 2.0, 0.0, 6.0, 7.0, 0.0]);
    copy(&stream, (of_array(&to, [8, 0, 0])?, gaps), [8, 2, 1], true)?;
    assert_eq!(texels(context, &to)?[..8], [0.0, 1.0, 1.0, 2.0, 4.0, 13.0, 6.0, 7.0]);
    // Copies a part of several slices.
    let deep = shape(2, 2).depth(3);
    let deep = counting(context, deep)?;
    let mut part = [0.0_f32; 4];
    let to = of_memory(part.as_mut_ptr() as u64, 4, 2, true);
    copy(&stream, (to, of_array(&deep, [4, 0, 1])?), [4, 2, 2], true)?;
    assert_eq!(part, [5.0, 7.0, 9.0, 11.0]);
    Ok(())
}

fn copies_to_arrays_go_in_their_streams_order(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let array = counting(context, shape(4, 1))?;
    let mut memory = PinnedMemory::with_options(&context.device, 32, PinnedOptions::default())?;
    memory.fill(0);
    let address = memory.as_ptr() as u64;
    let gate = Gate::on(stream.as_ref())?;
    let (there, back) = (of_memory(address, 16, 1, true), of_memory(address + 16, 16, 1, true));
    copy(&stream, (of_array(&array, [0; 3])?, there), [16, 1, 1], false)?;
    copy(&stream, (back, of_array(&array, [0; 3])?), [16, 1, 1], false)?;
    // Nothing is read before the gate opens.
    // SAFETY: the queued copies have not reached this page-locked memory.
    unsafe { (address as *mut f32).write(9.0) };
    gate.open();
    stream.synchronize()?;
    let floats: Vec<f32> = memory
        .chunks_exact(4)
        .map(|it| f32::from_ne_bytes(it.try_into().expect("four bytes")))
        .collect();
    assert_eq!(floats, [9.0, 0.0, 0.0, 0.0, 9.0, 0.0, 0.0, 0.0]);
    Ok(())
}

fn pageable_memory_is_read_when_the_copy_returns(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let array = counting(context, shape(4, 2))?;
    let mut texels_before: Vec<f32> = (0..8).map(|it| 10.0 + it as f32).collect();
    let from = of_memory(texels_before.as_ptr() as u64, 16, 2, true);
    copy(&stream, (of_array(&array, [0; 3])?, from), [16, 2, 1], false)?;
    texels_before.fill(0.0);
    stream.synchronize()?;
    assert_eq!(texels(context, &array)?, [10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0]);
    Ok(())
}

fn graphs_copy_to_arrays(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let array = counting(context, shape(4, 1))?;
    let memory = DeviceArray::from_shaped(&context.device, &[4], &[5.0_f32, 6.0, 7.0, 8.0])?;
    context.device.synchronize()?;
    let from = of_memory(memory.untyped().address(), 16, 1, false);
    let to = of_array(&array, [0; 3])?;
    let pageable = [0.0_f32; 4];
    let host = of_memory(pageable.as_ptr() as u64, 16, 1, true);
    stream.begin_capture(CaptureMode::Relaxed)?;
    copy(&stream, (to, from), [16, 1, 1], false)?;
    // A copy that a graph could not repeat is refused, and the capture continues.
    let refused = error_of(copy(&stream, (to, from), [16, 1, 1], true));
    assert!(refused.to_string().contains("captures"), "{refused}");
    let refused = error_of(copy(&stream, (to, host), [16, 1, 1], false));
    assert!(refused.to_string().contains("page-locked"), "{refused}");
    let graph = stream.end_capture()?;
    assert_eq!(texels(context, &array)?, [0.0, 1.0, 2.0, 3.0]);
    replay(&graph, &stream)?;
    assert_eq!(texels(context, &array)?, [5.0, 6.0, 7.0, 8.0]);
    Ok(())
}

fn memory_runs_out_for_arrays(context: &Context) -> Outcome {
    let format = TexelFormat::new(ChannelFormat::Float, 4)?;
    let large = shape(16384, 16384).format(format);
    let mut all = Vec::new();
    let bytes = large.bytes()?;
    let total = context.device.memory_info()?.total;
    for _ in 0..=total / bytes {
        match TextureArray::new(&context.device, large) {
            Ok(array) => all.push(array),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
                drop(all);
                counting(context, shape(4, 3))?;
                return Ok(());
            }
        }
    }
    panic!("{} arrays of {bytes} bytes fit into {total}", all.len());
}
