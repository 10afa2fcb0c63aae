// SPDX-License-Identifier: Apache-2.0

// Package asker is a client that asks for the same again and again, to see when the
// answer becomes another one.
package asker
