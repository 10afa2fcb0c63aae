// SPDX-License-Identifier: Apache-2.0

// Package killed kills or stops the executor at its writes, or loses their answers, and
// has it or another one carry on. The oracle that judges has its test here too.
package killed
