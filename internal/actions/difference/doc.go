// SPDX-License-Identifier: Apache-2.0

// Package difference compares the live object with its authorized state, as the API server has both
// now. The plugin prints the [Report], and the console shows it.
//
// [GetRevision], [ListRevisions] and [DecodeBody] read authorized bodies. A body is data from a cluster,
// so its size is bounded.
package difference
