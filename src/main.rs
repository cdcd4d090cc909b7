//! The binary: allocator, crypto provider, and [`drawbridge::cli`]; nothing else.

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    drawbridge::cli::main()
}
