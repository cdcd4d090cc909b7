# One static binary in an empty image: no shell, no libc, nothing to patch but the binary itself.
#
#   docker build -t drawbridge:0.1.0 .
#   docker buildx build --platform linux/amd64,linux/arm64 -t registry.example.com/drawbridge:0.1.0 --push .
#
# The build runs on the platform that it builds for, so that the C compiler of the image is the right one on both.

FROM rust:1.95.0-slim-bookworm AS build
WORKDIR /source
COPY rust-toolchain.toml ./
# The C compiler is for aws-lc (cryptography) and mimalloc (allocator). The target belongs to the toolchain that the
# file pins, so it is added where rustup reads that file.
RUN apt-get update \
 && apt-get install -y --no-install-recommends musl-tools make \
 && rustup target add "$(uname -m)-unknown-linux-musl"
COPY Cargo.toml Cargo.lock ./
COPY src src
COPY webhook-tests webhook-tests
COPY benches benches
RUN target="$(uname -m)-unknown-linux-musl" \
 && cargo build --release --locked --package drawbridge --bin drawbridge --target "$target" \
 && cp "target/$target/release/drawbridge" /drawbridge

FROM scratch
COPY --from=build /drawbridge /drawbridge
# Numeric, so that `runAsNonRoot` can be checked without a passwd file.
USER 65532:65532
EXPOSE 9443 8081
ENTRYPOINT ["/drawbridge"]
CMD ["serve"]
