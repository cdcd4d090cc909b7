//! What the fuzz targets share: worlds to decide in, mutations that know JSON, and what is asked of every answer.

pub mod answers;
pub mod builds;
pub mod mutate;
pub mod words;
pub mod worlds;

/// The text in `data` up to its first invalid byte.
#[must_use]
pub fn text(data: &[u8]) -> &str {
    match std::str::from_utf8(data) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&data[..error.valid_up_to()]).unwrap_or_default(),
    }
}
