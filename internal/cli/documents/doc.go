// SPDX-License-Identifier: Apache-2.0

// Package documents reads the documents of a file or of standard input: strict JSON, or YAML
// as kubectl reads it.
//
// [ReadInput] reads an input within a bound, and [Parse] gives its documents as JSON. A fault
// names the input and the byte offset ([InputError]). The fuzz test of the package is that of
// "kubectl plumbline hash", which hashes each document that is read.
package documents
