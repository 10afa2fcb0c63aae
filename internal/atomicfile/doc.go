// SPDX-License-Identifier: Apache-2.0

// Package atomicfile replaces files whole.
package atomicfile
