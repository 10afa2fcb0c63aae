// SPDX-License-Identifier: Apache-2.0

// Package killed kills the executor at its writes, and has another one carry on. The oracle that
// judges has its test here too.
package killed
