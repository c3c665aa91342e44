use super::*;

fn texel(channel: ChannelFormat, channels: u32) -> TexelFormat {
    TexelFormat::new(channel, channels).expect("a format")
}

#[test]
fn integers_are_not_interpolated() {
    let linear = Sampling { linear: true, as_integer: true, ..Sampling::default() };
    let check = |channel, sampling: &Sampling| {
        TextureResource::Array { array: 1, axes: 2, format: texel(channel, 1) }.check(sampling)
    };
    for channel in ChannelFormat::ALL {
        let is_float = matches!(channel, ChannelFormat::Half | ChannelFormat::Float);
        assert_eq!(check(channel, &linear).is_ok(), is_float, "{channel:?}");
        let fractions = Sampling { as_integer: false, ..linear };
        assert_eq!(check(channel, &fractions).is_ok(), is_float || channel.bytes() < 4);
        assert!(check(channel, &Sampling { linear: false, ..linear }).is_ok());
    }
}

#[test]
fn memory_holds_whole_texels() {
    let format = texel(ChannelFormat::Int16, 4);
    let linear = |address, bytes| {
        TextureResource::Linear { address, bytes, format }.check(&Sampling::default())
    };
    assert!(linear(64, 8).is_ok());
    assert!(linear(64, 7).expect_err("too short").to_string().contains("a texel has size 8"));
    assert!(linear(68, 8).expect_err("misaligned").to_string().contains("0x44"));
    let rows = |width, height, pitch| {
        TextureResource::Pitched { address: 64, width, height, pitch, format }
            .check(&Sampling::default())
    };
    assert!(rows(3, 2, 24).is_ok());
    assert!(rows(3, 2, 23).is_err() && rows(0, 2, 24).is_err() && rows(3, 0, 24).is_err());
    let resource = TextureResource::Pitched { address: 64, width: 3, height: 3, pitch: 32, format };
    assert_eq!(resource.range(), Some((64, 88)));
}

#[test]
fn copies_stay_inside_the_array() {
    let shape = ArrayShape::new(5, 4, 0, texel(ChannelFormat::Float, 2));
    let side = CopySide::Array { array: 1, format: shape.format, origin: [0; 3] };
    let check = |origin, [width, height, depth]: [usize; 3]| {
        let copy = ArrayCopy { destination: side, source: side, width, height, depth, wait: true };
        copy.check("dst", &shape, origin)
    };
    assert!(check([0, 0, 0], [40, 4, 1]).is_ok());
    assert!(check([8, 1, 0], [32, 3, 1]).is_ok());
    let outside = [([8, 0, 0], [40, 4, 1]), ([0, 1, 0], [40, 4, 1]), ([0, 0, 1], [40, 4, 1])];
    for (origin, extent) in outside {
        let error = check(origin, extent).expect_err("outside").to_string();
        assert!(error.contains("dst holds"), "{error}");
    }
    assert!(check([usize::MAX, 0, 0], [8, 1, 1]).is_err());
    assert!(check([4, 0, 0], [8, 1, 1]).is_err() && check([0, 0, 0], [4, 1, 1]).is_err());
    let of = |format| CopySide::Array { array: 1, format, origin: [0; 3] };
    for (other, is_same) in
        [(texel(ChannelFormat::Float, 2), true), (texel(ChannelFormat::UInt8, 4), false)]
    {
        for (destination, source) in [(side, of(other)), (of(other), side)] {
            let copy = ArrayCopy { destination, source, width: 8, height: 1, depth: 1, wait: true };
            assert_eq!(copy.check_sides().is_ok(), is_same, "{other:?}");
        }
    }
}

#[test]
fn arrays_have_texels() {
    let format = texel(ChannelFormat::UInt8, 4);
    let bytes = |width, height, depth, layered| {
        ArrayShape {
            width,
            height,
            depth,
            layered,
            cubemap: false,
            surface: false,
            gather: false,
            format,
        }
        .bytes()
    };
    assert_eq!(bytes(3, 0, 0, false).ok(), Some(12));
    assert_eq!(bytes(3, 2, 5, false).ok(), Some(120));
    assert_eq!(bytes(3, 0, 5, true).ok(), Some(60));
    assert!(bytes(0, 2, 0, false).is_err() && bytes(3, 0, 5, false).is_err());
    assert!(bytes(3, 2, 0, true).is_err() && bytes(usize::MAX, 2, 0, false).is_err());
    let cube = |height, depth, layered| {
        let shape = ArrayShape {
            width: 3,
            height,
            depth,
            layered,
            cubemap: true,
            surface: false,
            gather: false,
            format,
        };
        shape.bytes().map(|bytes| (bytes, shape.axes(), shape.flags()))
    };
    assert_eq!(cube(3, 6, false).ok(), Some((216, 2, 4)));
    assert_eq!(cube(3, 12, true).ok(), Some((432, 2, 5)));
    for (height, depth, layered) in [(2, 6, false), (3, 5, true), (3, 12, false), (3, 0, false)] {
        assert!(cube(height, depth, layered).expect_err("no cube").to_string().contains("cubemap"));
    }
}

#[test]
fn axes_are_the_coordinates_that_textures_are_read_by() {
    let format = texel(ChannelFormat::UInt8, 4);
    let axes = |height, depth, layered| {
        ArrayShape {
            width: 3,
            height,
            depth,
            layered,
            cubemap: false,
            surface: false,
            gather: false,
            format,
        }
        .axes()
    };
    assert_eq!([axes(0, 0, false), axes(2, 0, false), axes(2, 2, false)], [1, 2, 3]);
    assert_eq!([axes(0, 2, true), axes(2, 2, true)], [1, 2]);
}

#[test]
fn graphs_repeat_copies_of_memory_that_stays() {
    let format = texel(ChannelFormat::Float, 1);
    let array = CopySide::Array { array: 1, format, origin: [0; 3] };
    let memory = |is_host| CopySide::Memory { address: 64, pitch: 4, slice: 4, is_host };
    let copy = |destination, source, wait| {
        let copy = ArrayCopy { destination, source, width: 4, height: 1, depth: 1, wait };
        copy.unrepeatable(|address| address != 64)
    };
    assert!(copy(array, memory(false), false).is_none() && copy(array, array, false).is_none());
    for (destination, source) in [(array, memory(true)), (memory(true), array)] {
        assert!(copy(destination, source, false).expect("pageable").contains("page-locked"));
    }
    assert!(copy(array, array, true).expect("waits").contains("wait"));
}

#[test]
fn numbers_of_formats_are_the_drivers() {
    for format in ChannelFormat::ALL {
        assert_eq!(ChannelFormat::from_number(format.number()), Some(format));
    }
    assert_eq!(ChannelFormat::from_number(4), None);
    assert_eq!(AddressMode::from_number(3), Some(AddressMode::Border));
    assert_eq!(AddressMode::from_number(4), None);
}
