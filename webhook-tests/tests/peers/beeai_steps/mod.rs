//! The four tasks of a BeeAI build with real tools: git against a server that asks for the token, Debian's buildah, skopeo and docker-registry.
//! Run by `make test-peers` (root).
//!
//! The runs are what composition makes of the objects; the processes have what a kubelet and Tekton would give them, by [`pod`]. Numbers are
//! those of docs/cases.md: Z13, Z20, Z21, Z22, Z25 to Z30. What is left needs a container engine: that a kubelet pulls the image with the
//! login (Z5, Z37), and that the images of the values table hold these tools.

mod cases;
mod pod;
mod registry;
