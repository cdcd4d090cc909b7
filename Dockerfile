# One static binary in an empty image: no shell, no libc, nothing to patch but the binary itself.
#
#   docker build -t drawbridge:0.1.0 .

FROM rust:1.95.0-slim-bookworm AS build
WORKDIR /source
COPY rust-toolchain.toml ./
# The C compiler is for aws-lc (cryptography) and mimalloc (allocator). The target belongs to the toolchain that the
# file pins, so it is added where rustup reads that file.
RUN apt-get update \
 && apt-get install -y --no-install-recommends musl-tools make \
 && rustup target add x86_64-unknown-linux-musl
COPY Cargo.toml Cargo.lock ./
COPY src src
COPY webhook-tests webhook-tests
COPY benches benches
RUN cargo build --release --locked --package drawbridge --bin drawbridge --target x86_64-unknown-linux-musl

FROM scratch
COPY --from=build /source/target/x86_64-unknown-linux-musl/release/drawbridge /drawbridge
# Numeric, so that `runAsNonRoot` can be checked without a passwd file.
USER 65532:65532
EXPOSE 9443 8081
ENTRYPOINT ["/drawbridge"]
CMD ["serve"]
