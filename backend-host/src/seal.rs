//! The seal at the end of a host image. It detects damage before the system's loader reads the image; the
//! loader trusts the file, and a wrong offset in the file would crash the process.

use xxhash_rust::xxh3::xxh3_128;

const MARK: &[u8; 16] = b"gpuarray's image";

/// Seals an image: adds a checksum of everything before it, and the mark.
pub(crate) fn seal(image: &mut Vec<u8>) {
    let checksum = xxh3_128(image).to_le_bytes();
    image.extend(checksum);
    image.extend(MARK);
}

/// Returns an image without its seal.
///
/// # Errors
/// A description of the damage.
pub(crate) fn unsealed(image: &[u8]) -> Result<&[u8], String> {
    let bytes = image.len();
    let parts = image.split_last_chunk().filter(|(_, mark)| *mark == MARK);
    let parts = parts.and_then(|(rest, _)| rest.split_last_chunk::<16>());
    let Some((own, checksum)) = parts else {
        return Err(format!(
            "image has length {bytes}, and does not end as a compiled module does: it was cut short, or \
             another version of the compiler made it"
        ));
    };
    if xxh3_128(own).to_le_bytes() != *checksum {
        return Err(format!("image has length {bytes}, and some of its bytes were changed"));
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_of_an_image_is_seen() {
        let own: Vec<u8> = (0..100).collect();
        let mut image = own.clone();
        seal(&mut image);
        assert_eq!(unsealed(&image), Ok(&own[..]));
        for place in 0..image.len() {
            let mut changed = image.clone();
            changed[place] ^= 1;
            assert!(unsealed(&changed).is_err(), "{place}");
            assert!(unsealed(&image[..place]).is_err(), "{place}");
        }
        image.push(0);
        assert!(unsealed(&image).is_err());
    }
}
