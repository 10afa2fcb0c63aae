// SPDX-License-Identifier: Apache-2.0

// Package reload has the common parts of connectors whose programs load files: the steps of a change,
// a refusal in the program's own words, and the replacement of files.
package reload
