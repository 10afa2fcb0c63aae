// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package volume

// hasRoom is not known here: the probe tells, and the executor runs on Linux.
func hasRoom(string) error { return nil }
