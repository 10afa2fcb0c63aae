// SPDX-License-Identifier: Apache-2.0

// Package image builds container images from files of this machine, without a
// container engine, a registry or a base image, and pushes them.
//
// An image is one layer with exactly the files that were named. It is
// reproducible: entries are sorted, times are zero, owners are fixed, so the same
// input gives the same digest on every machine of the same architecture.
package image
