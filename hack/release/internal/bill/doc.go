// SPDX-License-Identifier: Apache-2.0

// Package bill says what a binary is made of: its modules, from the record that the Go
// toolchain keeps in it, their licenses, from the module cache, and both as a software
// bill of materials (CycloneDX).
package bill
