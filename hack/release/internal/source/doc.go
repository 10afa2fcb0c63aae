// SPDX-License-Identifier: Apache-2.0

// Package source says what a release is made of: a version, and the commit of a clean
// working tree.
package source
